"""The library's log. It goes nowhere until a program sets a handler, as the command line does."""

from __future__ import annotations

import logging

log = logging.getLogger("infinimem")
log.addHandler(logging.NullHandler())
