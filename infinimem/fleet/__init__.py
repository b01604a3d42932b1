"""Many libraries on engines that exist: an object store holds them, PostgreSQL knows which are due.

from infinimem.fleet.fleet import open_fleet (docs/FLEET.md)
"""
