"""Records: what every system shares that keeps whole files with a header instead of signed lines.

codec.py            a file from a record, and back
record_store.py     all records of a library, with a copy to try edits on
rules.py            what must hold of them
open_turns.py       the evidence that no record names yet
describing.py       turns described by a model
narrated.py         records in a model's words
asking.py           a model asked until its reply can be read
prompt_views.py     turns and records as a model is shown them
evidence_builder.py from ranked records to evidence
segments.py         where the pieces of a text stand that a model copied
rounds.py           plans that every strategy of records makes
beside.py           what a question finds that no record holds
figures.py          the store in figures
speakers.py         who speaks in a library
strategy.py         what strategies of records share
"""
