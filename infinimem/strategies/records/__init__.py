"""Records: what every system shares that keeps whole files with a header instead of signed lines.

record.py, codec.py   a record; a file from it, and back
record_store.py       all records of a library, with a copy to try edits on
edits.py              what must hold of them, and the plans of edits
open_turns.py         the evidence that no record names yet
asking.py             a model asked until its reply can be read
telling.py            turns and records as a model is shown them, and records in its words
evidence.py           from ranked records to evidence
strategy.py           what strategies of records share"""
