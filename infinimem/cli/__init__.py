"""The command line: a face over the facade."""

from infinimem.cli.app import main

__all__ = ["main"]
