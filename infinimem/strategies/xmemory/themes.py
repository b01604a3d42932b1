"""Which theme each fact is in, as the records say: derived from a snapshot, and handed on to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy

from infinimem.model import Finding
from infinimem.store.records import stem
from infinimem.store.view import View
from infinimem.strategies.records.record import number_of, prefix_of
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.xmemory.spec import SPEC

EPISODES, FACT, GROUP = SPEC.kinds


def age(name: str) -> tuple[object, ...]:
    """Orders facts and themes; a theme is as old as its oldest fact was when it was made."""
    return number_of(name), name


class Themes:
    """Those of a snapshot that are not archived (`View.derived(Themes.load)`)."""

    def __init__(self) -> None:
        self.facts: dict[str, tuple[str, ...]] = {}
        """By theme; another object where one of them is not as it was."""
        self.of: dict[str, str] = {}
        """The theme of each fact, of two that hold it the older."""
        self.loose: set[str] = set()
        """Facts that are in none."""
        self._lists: dict[str, tuple[str, ...]] = {}
        self._holders: dict[str, tuple[str, ...]] = {}

    @classmethod
    def load(cls, view: View, known: Themes | None, changed: Collection[str] | None) -> Themes:
        """The themes as a view shows them; see `View.derived`."""
        new, store = cls(), view.derived(RecordStore.load)
        names = {*store.records}
        if known is not None and changed is not None:
            vars(new).update({name: copy(value) for name, value in vars(known).items()})
            names = {stem(doc_id) for doc_id in changed if doc_id.startswith(view.spec.record_folders)}
        facts = {name for name in names if prefix_of(name) == FACT.prefix}
        themes = names - facts
        for theme in (name for name in names if prefix_of(name) == GROUP.prefix):
            before = new._lists.pop(theme, ())
            sources = store.records[theme].sources if theme in store.visible else ()
            new._lists[theme] = now = tuple(one for one in sources if prefix_of(one) == FACT.prefix)
            facts.update(before, now)
            for fact in {*before, *now}:
                others = {one for one in new._holders.get(fact, ()) if one != theme}
                new._holders[fact] = tuple(sorted(others | ({theme} if fact in now else set()), key=age))
        for fact in facts:
            holders, here = new._holders.get(fact, ()), fact in store.visible
            themes.update(holders)
            new.of.pop(fact, None)
            new.of.update((fact, theme) for theme in holders[:1] if here)
            (new.loose.add if here and not holders else new.loose.discard)(fact)
        for theme in themes:
            new.facts.pop(theme, None)
            if members := tuple(one for one in new._lists.get(theme, ()) if new.of.get(one) == theme):
                new.facts[theme] = members
        return new

    def doubled(self, store: RecordStore) -> Iterator[Finding]:
        """Facts that two themes hold."""
        for fact in sorted(self.of, key=age):
            first, *others = self._holders[fact]
            for theme in others:
                what = f"{fact} is in {first} too, where it counts; take the line out of one"
                yield Finding("error", what, store.records[theme].doc_id)
