"""Conversations from files: the family is recognised by content, the turns are read one by one.

Each family is a file with three functions over a JSON record: `matches`, `names` (what `only` may say)
and `turns`. Markdown has no records and is what remains.
"""

from infinimem.importers.read import FORMATS, Import, read_turns

__all__ = ["FORMATS", "Import", "read_turns"]
