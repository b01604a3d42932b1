"""Random valid sequences of operators: no orphan, caps held, evidence whole, files that read back."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest
from allmem_library import Library

from infinimem.index.vectors import Vectors
from infinimem.model import Plan
from infinimem.strategies.allmem.consolidate import Consolidator, Part, faults
from infinimem.strategies.allmem.spec import SEMANTIC, UNIT, VERSION, AllmemSettings
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.records.asking import Descriptor
from infinimem.strategies.records.record import Link, Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore, VectorIndex, differing, puts
from infinimem.testing import ScriptedLLM

WORDS = "rome oslo chess tea cat dog car tram bread violin sea hill".split()


class Coarse:
    """Few dimensions, so that cosines tie often."""

    name, size, semantic = "coarse 3", 3, False

    def embed(self, texts: Sequence[str], kind: str = "passage") -> np.ndarray:
        rows = np.array([random.Random(text).choices((-1, 0, 1), k=3) for text in texts], np.float32)
        rows = rows.reshape(len(texts), 3)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def grown(chance: random.Random) -> tuple[Library, RecordStore, VectorIndex]:
    """A few units as writing leaves them, on turns of several words, some without a time."""
    library = Library()
    for _ in range(chance.randint(4, 9)):
        time = chance.choice([None, "2024-01-01T10:00:00", "2024-01-02", "2023-05-05T05:05:00"])
        text = " ".join(chance.choices(WORDS, k=chance.randint(2, 9)))
        fields = {"time": time} if time else {}
        library.say(text, session=f"s{chance.randint(1, 3)}", **fields)
    bank = library.bank().copy()
    space = VectorIndex(Vectors(None, Coarse()))
    for place in library.pending():
        words = tuple(chance.choices(WORDS, k=2))
        name = record_id("u", place.seq)
        session = place.doc_id.split("/")[-1]
        bank.put(Record(name, ALLMEM, words[0], words, place.entry.time, session, (Ref(place.seq),)))
        for other in chance.sample(sorted(bank.visible), min(len(bank.visible), 2)):
            if other != name:
                bank.link(name, Link(SEMANTIC, other, 0.5))
    space.sync(bank)
    return library, bank, space


def descriptor(chance: random.Random) -> Descriptor:
    return Descriptor(" ".join(chance.choices(WORDS, k=3)), tuple(chance.sample(WORDS, 2)))


def step(chance: random.Random, editor: Consolidator) -> None:
    """One valid edit."""
    bank = editor.bank
    surface = sorted(bank.visible)
    kind = chance.choice(("split", "merge", "update"))
    name = chance.choice(surface)
    text = bank.text(name)
    if kind == "split" and len(text) > 2:
        cuts = sorted(chance.sample(range(1, len(text)), chance.randint(1, 2)))
        spans = zip([0, *cuts], [*cuts, len(text)], strict=True)
        parts = [Part(bank.cut(name, *span), descriptor(chance)) for span in spans]
        editor.split(name, [part for part in parts if part.refs])
    elif kind == "merge" and len(surface) > 1:
        names = chance.sample(surface, chance.randint(2, min(4, len(surface))))
        editor.merge(sorted(names), descriptor(chance))
    else:
        other = chance.choice(sorted(bank.records.keys() - {name}))
        editor.update(name, other, descriptor(chance))


def reached(bank: RecordStore) -> set[str]:
    """All that version links lead to from the surface, told anew."""
    seen, waiting = set(bank.visible), deque(sorted(bank.visible))
    while waiting:
        for link in bank.links(waiting.popleft()):
            if link.kind == VERSION and link.to not in seen:
                seen.add(link.to)
                waiting.append(link.to)
    return seen


def evidence(bank: RecordStore, names: Sequence[str]) -> set[tuple[int, int]]:
    """Every character of a turn that these units hold."""
    held = set()
    for name in names:
        for said in bank.quotes(name):
            start = said.ref.span[0] if said.ref.span else 0
            held |= {(said.ref.seq, start + at) for at in range(len(said.text))}
    return held


def run(seed: int) -> None:
    chance = random.Random(seed)
    library, start, space = grown(chance)
    bank = start.copy()
    own = AllmemSettings(
        degree_semantic=chance.choice((1, 2, 3, 8)),
        degree_version=chance.choice((0, 0, 1, 2)),
        online_anchors=chance.randint(1, 6),
    )
    for name in bank.records:
        bank.relink(name, SEMANTIC, bank.links(name, SEMANTIC)[: own.degree_semantic])
    editor = Consolidator(bank, space, own, ScriptedLLM({}))
    whole = evidence(bank, sorted(bank.records))
    for _ in range(chance.randint(3, 10)):
        known = set(bank.records)
        step(chance, editor)
        assert not faults(bank, settings=own), (seed, faults(bank, settings=own))
        assert reached(bank) == set(bank.records), seed
        assert known <= set(bank.records), seed
        assert evidence(bank, sorted(bank.records)) == whole, seed
        for name in bank.visible:
            assert set(bank.out(name, SEMANTIC)) <= bank.records.keys() - {name}
    library.apply(Plan("consolidate", records=puts(library.bank(), bank)))
    again = library.bank()
    assert differing(again.records, bank.records) == [], seed
    assert again.visible == bank.visible
    assert {name: again.render(name) for name in again.records} == {
        doc_id.split("/")[-1]: data.decode() for doc_id, data in library.files().items()
    }
    fresh = VectorIndex(Vectors(None, Coarse()))
    fresh.sync(again)
    query = np.array([0.6, 0.8, 0], np.float32)
    assert fresh.nearest(query, 9, (UNIT.folder,)) == space.nearest(query, 9, (UNIT.folder,))


def test_random_sequences_keep_what_must_hold() -> None:
    for seed in range(40):
        run(seed)


@pytest.mark.soak
def test_two_thousand_random_sequences_keep_what_must_hold() -> None:
    for seed in range(2000):
        run(seed)
