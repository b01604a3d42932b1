"""Conversations from files: the family is recognised by content, the turns are read one by one.

A JSON format is a `Format` (fields.py): functions over one record, or over all of a log. Markdown has no
records and is what remains. What is to come in is surveyed first, then read.
"""

from infinimem.importers.read import Import, Survey, read_turns, survey

__all__ = ["Import", "Survey", "read_turns", "survey"]
