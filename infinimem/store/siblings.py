"""A library as each of the strategies sees it that keep it side by side."""

from __future__ import annotations

from copy import copy

from infinimem.spec import StrategySpec, strategies
from infinimem.store.library import Library
from infinimem.store.state.drawn import path_of


def siblings(library: Library) -> tuple[Library, ...]:
    """The library itself, then as each other strategy sees it that derived something from it."""
    view = library.view()

    def keeps(spec: StrategySpec) -> bool:
        if any(view.below(folder) for folder in spec.folders):
            return True
        return spec.lists_turns and library.files.exists(path_of(spec))  # it looked, and made nothing yet

    others = [spec for spec in strategies().values() if spec is not library.spec]
    return (library, *(_seen_by(spec, library) for spec in others if library.initialised and keeps(spec)))


def _seen_by(spec: StrategySpec, library: Library) -> Library:
    """What is known of the files is shared, snapshots are not."""
    other = copy(library)
    other.spec, other._view = spec, None
    return other
