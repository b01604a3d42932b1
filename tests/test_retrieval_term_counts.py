"""Documents compared by their bags of terms: what an index would hold of them, and nothing is read twice."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from infinimem.markdown.document import Document
from infinimem.markdown.sections import Partition
from infinimem.retrieval import searcher
from infinimem.retrieval import term_counts as module
from infinimem.retrieval.origins import KnownLines, Origins
from infinimem.retrieval.pieces import Pieces
from infinimem.retrieval.searcher import Searcher
from infinimem.retrieval.tantivy_index import K1, rarity
from infinimem.retrieval.term_counts import B, TermCounts, term_counts
from infinimem.settings import Settings
from infinimem.store.view import View
from infinimem.terms import query_terms

WORDS = "tea boat Ana Ana's 8 May 2023 moved Lisbon café l'eau 京都 3rd trams not -".split()
NAMES = ("Ana", "Mel", "Zoe")


class _Folder:
    """A library's documents, those that do not change the same objects in all its views."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.documents: dict[str, Document] = {}
        self.before: tuple[View, dict[str, Document]] | None = None
        self.seq = 0
        for name in ("evidence/s1", "evidence/s2"):
            self.save(name, self.entries(self.random.randint(1, 6), ()))
        said = range(1, self.seq + 3)  # of some nobody knows anything
        for name in ("archive/a", "topics/a", "topics/b", "CURRENT"):
            self.save(name, self.entries(self.random.randint(0, 5), said))
        later = range(1, self.seq + 1)
        self.save("topics/c", f"{self.text()}\n\n{self.entries(3, later)}## Two\n{self.entries(30, later)}")
        self.save("topics/d", "tea " * 300 + "\n")
        self.save("notes/n", f"# {self.text()}\n\n- {self.text()}\n- {self.text()}\n")
        self.save("topics/e", self.random.choice(["", "\n\n", "---\n: [\n---\ntea\n"]))

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, 30)))

    def entries(self, count: int, origins: range | tuple[()]) -> str:
        return "".join(self._entry(origins) for _ in range(count))

    def _entry(self, origins: range | tuple[()]) -> str:
        self.seq += 1
        about = [f"seq={self.seq}"]
        if self.random.random() < 0.8:
            about.append(f"time=2023-0{self.random.randint(1, 9)}-08")
        about.append("source=user")
        if origins:
            about.append(f"origin={self.random.choice(origins)}")
        if self.random.random() < 0.5:
            about.append(f"speaker={self.random.choice(NAMES)}")
        return f"- <{','.join(about)}> {self.text()}\n"

    def save(self, doc_id: str, text: str) -> None:
        header = f"---\nid: {doc_id}\n---\n" if self.random.random() < 0.5 else ""
        self.documents[doc_id] = Document.parse(doc_id, (header + text).encode())

    def view(self) -> View:
        held, before = dict(self.documents), self.before
        changed = {doc_id for doc_id, _ in before[1].items() ^ held.items()} if before else ()
        view = View(tuple(sorted(held)), held.__getitem__, Settings(), before=before and (before[0], changed))
        self.before = view, held
        return view


def _bags(view: View, ids: list[str]) -> list[Counter[str]]:
    """The terms of documents as an index takes them in that knows nothing of where entries came from."""
    pieces = Pieces(view, Origins(view, KnownLines(())))
    found = [pieces.read(view.document(doc_id), 1) if doc_id in view else None for doc_id in ids]
    return [Counter(one.whole.split()) if one else Counter() for one in found]


def _scores(bags: dict[str, Counter[str]], terms: list[str]) -> dict[str, float]:
    """BM25 as it is written down, of the texts that hold a term."""
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    frequency = {term: sum(term in bag for bag in bags.values()) for term in terms}
    return {
        doc_id: sum(
            rarity(len(bags), frequency[term])
            * bag[term]
            * (K1 + 1)
            / (bag[term] + K1 * (1 - B + B * bag.total() / mean))
            for term in terms
        )
        for doc_id, bag in bags.items()
        if any(bag[term] for term in terms)
    }


def _grown(old: Document, tail: str) -> Document:
    return old.grown(Document.parse(old.id, tail.encode()))


def _same(view: View, text: str) -> None:
    ids, terms = sorted([*view.ids("all"), "topics/gone"]), query_terms(f"{text} tea")
    wanted = _scores(dict(zip(ids, _bags(view, ids), strict=True)), terms)
    scores = view.derived(term_counts).scores(view, ids, terms)
    assert TermCounts("english").scores(view, ids, terms) == scores == pytest.approx(wanted, abs=1e-4)
    best = sorted(ids, key=lambda doc_id: (-scores.get(doc_id, 0.0), doc_id))
    assert Searcher(view).documents(f"{text} tea", 99, ids=ids) == best


@pytest.mark.parametrize("seed", range(20))
def test_bags_hold_what_the_index_holds_also_after_changes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARE", -20 * (seed % 2))  # what is of no use goes at once, or never
    folder = _Folder(seed)
    _same(folder.view(), folder.text())
    said = folder.documents["evidence/s1"]
    folder.save("topics/a", folder.entries(4, range(1, folder.seq)))
    _same(folder.view(), folder.text())
    for one, other in (("Ana", "Mel"), ("time=2023-0", "time=2024-0")):  # who said it, and when
        text = said.to_bytes().decode()
        folder.documents["evidence/s1"] = said = Document.parse(said.id, text.replace(one, other).encode())
        _same(folder.view(), folder.text())
    del folder.documents["archive/a"]
    _same(folder.view(), folder.text())
    folder.documents["evidence/s2"] = _grown(folder.documents["evidence/s2"], folder.entries(2, ()))
    _same(folder.view(), folder.text())


def test_what_did_not_change_is_not_read_again_and_no_index_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def parts(self: Pieces, document: Document) -> list[tuple[Partition, str]]:
        read.append(document.id)
        return terms(self, document)

    def refuse(view: View) -> None:
        raise AssertionError("an index was built")

    terms = Pieces.parts
    monkeypatch.setattr(Pieces, "parts", parts)
    monkeypatch.setattr(searcher, "ranking", refuse)
    folder = _Folder(100)
    topics = ["topics/b", "topics/c", "topics/d"]
    folder.save("topics/b", folder.entries(1, range(1, 3)))
    Searcher(folder.view()).documents("tea", ids=topics)
    assert set(read) == set(topics)
    read.clear()
    folder.save("topics/b", folder.entries(2, ()))
    folder.documents["evidence/s2"] = _grown(folder.documents["evidence/s2"], folder.entries(2, ()))
    Searcher(folder.view()).documents("tea", ids=topics)
    assert set(read) == {"topics/b"}


def test_of_very_many_the_index_chooses_those_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "COMPARED", 2)
    folder = _Folder(5)
    folder.save("topics/z", "xylophone\n")
    ids = [doc_id for doc_id in folder.documents if doc_id.startswith("topics/")]
    found = Searcher(folder.view()).documents("xylophone", 99, ids=ids)
    assert found == ["topics/z", *(doc_id for doc_id in sorted(ids) if doc_id != "topics/z")]


def test_a_library_in_another_language_has_its_own_terms() -> None:
    document = Document.parse("topics/a", "les maisons réunies\n".encode())
    views = []
    for language in ("english", "french"):
        settings = replace(Settings(), search=replace(Settings().search, language=language))
        views.append(View(("topics/a",), {"topics/a": document}.__getitem__, settings))
    counts = None
    for view in (*views, *views):
        counts = term_counts(view, counts, ())
        terms = ["maison", "réun", "reun", "reuni", "réuni"]
        bag = _bags(view, ["topics/a"])[0]
        found = [bool(counts.scores(view, ["topics/a"], [term])) for term in terms]
        assert found == [bool(bag[term]) for term in terms]
