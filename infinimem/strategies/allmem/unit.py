"""What All-Mem calls its records, and the links between them (section 3.1)."""

from infinimem.strategies.allmem.spec import SPEC

HOME = SPEC.writes[0]
UNIT = SPEC.kinds[0]
SURFACE = (UNIT.folder,)
"""Where the units stand that are searched."""

KINDS = SPEC.links
"""Kinds of link, in the order in which a reader follows them (section 3.4)."""
VERSION, SIBLING, TEMPORAL, SEMANTIC = KINDS
