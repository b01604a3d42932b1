"""Conversations from files: the family is recognised by content, the turns are read one by one."""

from infinimem.importers.read import Import, Survey, read_turns, survey

__all__ = ["Import", "Survey", "read_turns", "survey"]
