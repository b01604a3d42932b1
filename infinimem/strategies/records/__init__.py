"""Records: what every system shares that keeps whole files with a header instead of signed lines.

codec.py            a file from a record, and back
record_store.py     all records of a library, with a copy to try edits on
rules.py            what must hold of them
open_turns.py       the evidence that no record names yet
describing.py       turns described by a model
segments.py         where the pieces of a text stand that a model copied
rounds.py           plans that every strategy of records makes
beside.py           what a question finds that no record holds
figures.py          the store in figures
"""
