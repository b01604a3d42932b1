"""How much of what left the surface can be reached from it.

Source: All-Mem, Eq. 3 and section 4.4 (recoverability, visible ratio). An archived unit that version links
do not reach is a fault (faults.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from infinimem.strategies.allmem.record_store import Bank
from infinimem.strategies.allmem.unit import KINDS, VERSION
from infinimem.strategies.graph.walk import Recoverability, recoverability


def recovery(bank: Bank, kinds: Collection[str]) -> Recoverability:
    """How the archive is reached along outgoing links of these kinds."""
    return recoverability(bank.graph, bank.visible, bank.units.keys() - bank.visible, kinds)


def counts(bank: Bank) -> dict[str, Any]:
    """A bank in figures, for people and scripts.

    Returns:
        units, visible, archived; visible_ratio (of all units); links by kind; and "recovery" along version
        links and along all: how many archived units are unreachable, the share that is within 0, 1, … links
        of the surface (coverage), and the least number of links within which 95 % are (h95; None: none is).
    """
    kinds = Counter(link.kind for name in bank.units for link in bank.graph.links(name))
    by_version, by_all = recovery(bank, (VERSION,)), recovery(bank, KINDS)
    return {
        "units": len(bank),
        "visible": len(bank.visible),
        "archived": by_all.archived,
        "visible_ratio": round(by_all.visible_ratio, 4),
        "links": {kind: kinds[kind] for kind in KINDS},
        "recovery": {"version": _figures(by_version), "all": _figures(by_all)},
    }


def _figures(found: Recoverability) -> Mapping[str, Any]:
    return {
        "unreachable": found.unreachable,
        "coverage": [round(share, 4) for share in found.coverage],
        "h95": found.h95,
    }
