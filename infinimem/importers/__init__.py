"""Conversations from files: the family is recognised by content, the turns are read one by one.

Each family is a file with three functions over a JSON record: `matches`, `names` (what `only` may say)
and `turns`; a log of a session, whose lines need each other, has `matches` and `turns` over all of them.
Markdown has no records and is what remains. What is to come in is surveyed first, then read.
"""

from infinimem.importers.files import Survey, survey
from infinimem.importers.read import Import, read_turns

__all__ = ["Import", "Survey", "read_turns", "survey"]
