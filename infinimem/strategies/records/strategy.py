"""What strategies of records share: what must hold of records, plans of edits that break none of it, figures,
what links lead to, evidence from ranked records and from what no record holds, rebuilding and readers.

Source: All-Mem, Appendix D.3 (expansion) and D.5 (evidence attached to selected units).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from infinimem.errors import LibraryError
from infinimem.index.pieces import Pieces
from infinimem.index.search import searcher
from infinimem.index.vectors import Matrix
from infinimem.llm.base import LLM
from infinimem.model import AGAIN, Candidate, Evidence, Finding, Plan, Put, RejectedReply, Retrieved, Stage
from infinimem.settings import Settings
from infinimem.spec import StrategySpec
from infinimem.store.records import held_by
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Outcome, Rejected, View, whole
from infinimem.strategies.base import Plans, Topology
from infinimem.strategies.readers.pipeline import MOST, READERS, Trace, collect, pack, ranked, size
from infinimem.strategies.records.asking import IN_VAIN, open_turns
from infinimem.strategies.records.record import ANEW, Link, Quote, Record, Ref, fits, is_record_id, moment
from infinimem.strategies.records.record_store import Loaded, RecordStore, VectorIndex, differing, puts

Rule = Callable[[RecordStore, Record], Iterator[str]]
"""Says what is wrong with a record, and what helps."""

Check = Callable[[RecordStore, Collection[str] | None], list[Finding]]
"""What does not hold of these records, or of all (None)."""


def faults(store: RecordStore, only: Collection[str] | None, *rules: Rule) -> list[Finding]:
    """What does not hold of some records, or of all (None) and of files that hold none: by these rules, and
    that what they are made of and link to is there and their headers can be read."""
    found = [one for _, one in sorted(store.unread.items())] if only is None else []
    for name in sorted(store.records if only is None else (name for name in only if name in store)):
        record = store.records[name]
        told = list[str]()
        for ref in record.refs:
            place = store.turn(ref.seq)
            if place is None:
                told.append(f"turn {ref.seq} is not in the evidence; bring it back, or {ANEW}")
            elif ref.span and ref.span[1] > len(place.entry.text):
                told.append(f"turn {ref.seq} is shorter than the span {ref.span[0]}-{ref.span[1]}; {ANEW}")
        for source in record.sources:
            if source not in store:
                told.append(f"its source {source} is not here; bring it back, or {ANEW}")
        for link in (link for link in record.links if link.to not in store):
            what = f"a {link.kind} link leads to {link.to}, which is not here"
            told.append(f"{what}; bring it back, or take the line out")
        if not fits(record):
            told.append("its header is longer than what is read")
        told += (what for rule in rules for what in rule(store, record))
        found += [Finding("error", what, record.doc_id) for what in told]
    return found


def new_faults(
    before: RecordStore, after: RecordStore, check: Check, changed: Collection[str]
) -> list[Finding]:
    """What held before an edit of these records and does not after it."""
    found = check(after, changed)
    old = {(one.what, one.where.rsplit("/", 1)[-1]) for one in (check(before, None) if found else ())}
    return [one for one in found if (one.what, one.where.rsplit("/", 1)[-1]) not in old]


def orphans(store: RecordStore, version: str, only: Collection[str] | None = None) -> Iterator[Finding]:
    """Archived records to which no `version` links lead, if one of `only` may have made some."""
    names = store.records if only is None else (name for name in only if name in store)
    if any(name not in store.visible or store.out(name, version) for name in names):
        for name in sorted(store.records.keys() - store.visible):
            if not replacements(store, name, version):
                record = store.records[name]
                what = f"no {record.kind.name} of the surface leads here by {version} links"
                yield Finding("error", f"{what}; move it to {record.kind.folder}", record.doc_id)


# ── plans that every strategy of records makes ───────────────────────────────────────────────────


TRIES = 3
"""How often a plan to write is made where the library changes under it."""


Step = Callable[[View, bool], Plan | None]
"""What is planned for the library as it is then; it is told whether a model may be asked."""


def run(view: View, steps: Iterable[Step | int]) -> Plans:
    """Propose a plan a step, each with the turns (ints) that were looked at since the last that was taken.

    After `IN_VAIN` in a row about which a model gave no answer it is not asked any more.
    """
    seen: list[int] = []
    in_vain = 0
    for step in steps:
        if isinstance(step, int):
            seen.append(step)
        elif plan := step(view, in_vain < IN_VAIN):
            outcome = yield replace(plan, empty=tuple(seen))
            view = outcome.view
            in_vain = in_vain + 1 if {*plan.unanswered.values()} - {AGAIN} else 0
            seen = seen if isinstance(outcome, Rejected) else []
    if seen:
        yield Plan(empty=tuple(seen))


def settled(view: View, make: Callable[[View], Plan | None]) -> Generator[Plan, Outcome, View | None]:
    """The library after the plan of `make` was taken, if there is one; None if it would not take it."""
    for _ in range(TRIES):
        plan = make(view)
        if plan is None:
            return view
        outcome = yield plan
        view = outcome.view
        if not isinstance(outcome, Rejected):
            return view
    return None


def edited(
    op: str,
    before: RecordStore,
    after: RecordStore,
    check: Check,
    rejected: Sequence[RejectedReply] = (),
    unanswered: Mapping[int, str] = MappingProxyType({}),
) -> Plan | None:
    """The plan of an edit that was tried on a copy; where it would break a rule, one that only says why.

    Args:
        rejected: replies of the model that could not be read.
        unanswered: turns about which none could, and so nothing is written.
    """
    notes = [f"{one.task}: a reply that could not be read ({one.reasons[0]})" for one in rejected]
    touched = differing(before.records, after.records)
    wrong = new_faults(before, after, check, touched)
    notes += (f"not written, for {one.where} would be wrong: {one.what}" for one in wrong)
    plan = Plan(op, records=puts(before, after)) if touched and not wrong else Plan()
    if not (plan.records or notes or unanswered):
        return None
    return replace(plan, notes=tuple(notes), rejected=tuple(rejected), unanswered=unanswered)


def links(store: RecordStore) -> dict[str, int]:
    """Count the links of each kind."""
    return {kind: sum(len(store.out(name, kind)) for name in store.records) for kind in store.spec.links}


def by_kind(store: RecordStore) -> dict[str, int]:
    """Count the records of each kind on the surface, as "episodes" for "episode", and the archived ones."""
    kinds = Counter(store.records[name].kind.name for name in store.visible)
    found = {f"{kind.name}s": kinds[kind.name] for kind in store.spec.kinds}
    return {**found, "archived": len(store) - len(store.visible)}


SHOWN = 40
"""Records that a picture shows."""
AT_ONCE = 256
"""Records that one plan of a rebuild takes away; a transaction of thousands is slow."""


def named(store: RecordStore, index: VectorIndex, name: str | None) -> str:
    """The record that a person means: by an id, the seq of its turn, or words; None for the newest."""
    kind = store.spec.kinds[0].name
    if not store.records:
        raise LibraryError(f"there are no {kind}s yet: nothing that was said made one")
    if name is None:
        return max(store.visible or store.records, key=lambda one: (store.records[one].age, one))
    wanted = name.strip()
    stem = wanted.removesuffix(".md").rsplit("/", 1)[-1].casefold()
    if stem in store:
        return stem
    if is_record_id(stem) or wanted.startswith(store.spec.writes):
        raise LibraryError(f"there is no {kind} {wanted!r}; infinimem ls shows which there are")
    if (seq := whole(wanted)) is not None:
        for one in differing({}, store.records):  # in order of creation
            if any(ref.seq == seq for ref in store.records[one].refs):
                return one
        raise LibraryError(f"no {kind} holds turn {seq}; infinimem history {seq} tells what became of it")
    found = index.nearest(index.embed(wanted), 1, store.spec.record_folders)
    if not found or found[0][1] <= 0:
        raise LibraryError(f"no {kind} is about {wanted[:80]!r}; try other words")
    return found[0][0]


# ── what links lead to ──────────────────────────────────────────────────────────────────────────


def expand(
    anchors: Iterable[str],
    neighbours: Callable[[str], Iterable[Link]],
    hops: int,
    cap: int,
    kinds: Sequence[str],
    time: Callable[[str], Any],
    *,
    priority: bool = True,
) -> list[Candidate]:
    """Search breadth-first along links; return what is reached in the order of admission, each with its "hop"
    (0 for an anchor) and by way of which kind of link from where.

    Args:
        anchors: where it starts, best first; they count towards the cap.
        neighbours: the links to follow from a node, such as `RecordStore.links`.
        kinds: the kinds of link that it follows, first the one whose neighbours come first, if `priority`.
        time: what orders the neighbours of a node by one kind, ascending; equal ones by id.
    """
    rank = {kind: position if priority else 0 for position, kind in enumerate(kinds)}
    reached = [Candidate(node, {"hop": 0}) for node in dict.fromkeys(anchors)][:cap]
    seen = {one.id for one in reached}
    for here in reached:  # which grows meanwhile
        hop = here.parts["hop"] + 1
        if hop > hops or len(reached) == cap:
            break
        links = [link for link in neighbours(here.id) if link.kind in rank]
        for link in sorted(links, key=lambda link: (rank[link.kind], time(link.to), link.to, link.kind)):
            if link.to not in seen and len(reached) < cap:
                seen.add(link.to)
                reached.append(Candidate(link.to, {"hop": hop}, via=f"{link.kind} {here.id}"))
    return reached


def either_way(graph: RecordStore, node: str, kinds: Iterable[str]) -> Iterator[Link]:
    """The links of these kinds that lead from a node or to it, each as one to the other end."""
    for kind in kinds:
        yield from graph.links(node, kind)
        for source in graph.into(node, kind):
            yield from (replace(link, to=source) for link in graph.links(source, kind) if link.to == node)


def replacements(graph: RecordStore, node: str, kind: str) -> set[str]:
    """The visible nodes from which links of a kind lead to a node, by way of others that are not visible."""
    seen, waiting = {node}, [node]
    while waiting:
        fresh = set(graph.into(waiting.pop(), kind)) - seen
        seen |= fresh
        waiting += fresh - graph.visible
    return seen & graph.visible


def around(
    graph: RecordStore, root: str, hops: int, cap: int, kinds: Sequence[str], label: Callable[[str], str]
) -> Topology:
    """Return what is within some hops of a node, links being followed either way, at most `cap` nodes.

    Links of these kinds are followed and shown; where the cap cuts, those named first are kept.
    """
    both_ways = partial(either_way, graph, kinds=kinds)
    reached = expand([root], both_ways, hops, cap + 1, kinds, lambda node: 0)
    hop_of = {one.id: one.parts["hop"] for one in reached[:cap]}
    nodes = [
        {"id": node, "label": label(node), "visible": node in graph.visible, "hop": hop}
        for node, hop in hop_of.items()
    ]
    links = [
        {"from": node, "to": link.to, "type": link.kind, "weight": link.weight}
        for node in hop_of
        for link in graph.links(node)
        if link.to in hop_of and link.kind in kinds
    ]
    return Topology({"root": root, "nodes": nodes, "links": links}, len(reached) > cap)


# ── from ranked records to evidence: each turn once, or a record in its own words ─────────────────


OMITTED = " … "
"""Between pieces of a turn that do not follow each other."""

Own = TypeVar("Own")
Records = tuple[RecordStore, VectorIndex, *tuple[Any, ...]]
Spans = tuple[tuple[int, int], ...]
"""Characters of a turn's text, ascending, with more than blanks between any two."""


class RecordSearch(ABC, Generic[Own]):
    """A question to a snapshot, by a strategy's own reader; what does not fit is passed over.

    Args:
        held: the records of the snapshot and where they lie, then what else the strategy holds.
        budget: tokens of all texts together; a quarter of it at most is for what no record holds.
        llm: is asked for an answer's evidence alone.
    """

    def __init__(self, view: View, held: Records, query: str, budget: int, own: Own, llm: LLM) -> None:
        self.view, self.held, self.query, self.own, self.llm = view, held, query, own, llm
        self.store, self.index = held[0], held[1]
        self.trace = Trace()
        self.trace.add(Stage("query", (query,)))
        self._others = pack(self._without_record(), budget // 4)
        self.budget = budget - size(self._others)

    def open_turns(self) -> Iterable[int]:
        """Return the seqs of turns in no record that are found by words, unless the search does it itself."""
        return ()

    def _without_record(self) -> Iterator[Retrieved]:
        """By words: open turns, unreadable records' files, and people's notes."""
        view, unread, waiting = self.view, self.store.unread, set(self.open_turns())
        if lost := {seq for name in unread for seq in held_by(view.document(name))}:
            waiting |= lost - {ref.seq for record in self.store.records.values() for ref in record.refs}
        if not waiting and len(view.ids()) == sum(len(view.below(folder)) for folder in view.spec.live):
            return
        for item in searcher(view).entries(self.query, MOST):
            is_open = item.doc_id.startswith(EVIDENCE) and waiting.issuperset(item.seqs)
            if view.is_note(item.doc_id) or item.doc_id in unread or is_open:
                yield item

    @property
    def by_vectors(self) -> bool:
        """Whether records are ranked by vectors alone; else by the library's own search."""
        return "cosine" in (getattr(self.own, name, "") for name in ("rank", "rerank"))

    @cached_property
    def row(self) -> Matrix:
        """The vector of the question."""
        return self.index.embed(self.query)

    @cached_property
    def turn_scores(self) -> Mapping[int, float]:
        """Turns with what the library's search makes of them, by words and vectors; the best first."""
        found: dict[int, float] = {}
        for _, seq, score in searcher(self.view).scores(self.query, MOST, "evidence"):
            if seq:
                found.setdefault(seq, score)
        return found

    @cached_property
    def record_scores(self) -> Mapping[str, Mapping[str, float]]:
        """The same of the records of each folder that readers see."""
        found: dict[str, dict[str, float]] = {kind.folder: {} for kind in self.store.spec.kinds}
        for doc_id, _, score in searcher(self.view).scores(self.query, MOST):
            folder, _, name = doc_id.rpartition("/")
            if f"{folder}/" in found and name in self.store:
                found[f"{folder}/"].setdefault(name, score)
        return found

    def nearest(self, folder: str, count: int) -> list[Candidate]:
        """The records of a folder that are nearest to the question, best first."""
        if self.by_vectors:
            near = self.index.nearest(self.row, count, (folder,))
            return [Candidate(name, {"cosine": cosine}, cosine) for name, cosine in near]
        found = [*self.record_scores[folder].items()][:count]
        return [Candidate(name, {"words": score}, score) for name, score in found]

    @abstractmethod
    def by_rank(self) -> Evidence:
        """Turns by rank; asks no model."""

    @abstractmethod
    def for_answer(self) -> Evidence:
        """Evidence that an answer is read from."""

    def note(self, stage: str, found: list[Candidate]) -> list[Candidate]:
        """Note in the trace what a stage found, and return it."""
        self.trace.add(Stage(stage, found=tuple(found)))
        return found

    def best_turns(self, parts: Mapping[int, Mapping[str, float]]) -> list[Candidate]:
        """Rank turns by the best of what shows them."""
        rows = (Candidate(str(seq), those) for seq, those in parts.items())
        return ranked(rows, lambda those: max(those.values()), lambda turn: int(turn.id))

    def evidence(self, items: Iterable[Retrieved]) -> Evidence:
        """Return these and what no record holds, with the trace."""
        return self.trace.evidence([*items, *self._others])

    def turns(self, ranked: Iterable[Candidate]) -> list[Retrieved]:
        """Return turns, named by their seqs, as far as they fit."""
        room = EvidenceBuilder(self.store, self.budget)
        for turn in ranked:
            room.add(turn.score, (self.store.quote(Ref(int(turn.id))),))
        return room.by_rank()

    def record(self, name: str, score: float) -> Retrieved:
        """Return a record in words of its own, which cites the turns that it names."""
        record = self.store.records[name]
        document = self.view.document(record.doc_id)
        rows = (at for at, line in enumerate(document.lines, 1) if line.startswith("summary:"))
        start = document.header.end + 1 if record.prose else next(rows, 1)
        turns = [turn for said in self.store.quotes(name) if (turn := self.store.turn(said.ref.seq))]
        sources = {turn.entry.source for turn in turns}
        return Retrieved(
            record.doc_id,
            start,
            start + record.prose.count("\n"),
            record.prose or record.summary,
            score,
            origin=tuple(dict.fromkeys(turn.seq for turn in turns)),
            time=record.time,
            when=record.when,
            source=sources.pop() if len(sources) == 1 else None,
            physical=True,
        )


class EvidenceBuilder:
    """The evidence of records that are added one by one, each turn once, within a budget of tokens."""

    def __init__(self, store: RecordStore, budget: int) -> None:
        self._store = store
        self._budget = budget
        self._pieces = Pieces(store.view)
        self._turns: dict[int, Retrieved] = {}
        self._spans: dict[int, Spans] = {}
        self.tokens = 0
        """That its texts take."""

    def shows(self, quotes: Iterable[Quote]) -> bool:
        """Whether something of the turn of one of these is shown."""
        return any(said.ref.seq in self._turns for said in quotes)

    def add(self, score: float, quotes: Sequence[Quote], when: str | None = None) -> bool:
        """Take in what a record shows beyond what is shown already, if all of it fits; whether it did."""
        spans: dict[int, Spans] = {}
        fresh: dict[int, Retrieved] = {}
        for said in quotes:
            seq, place = said.ref.seq, self._store.turn(said.ref.seq)
            if place is None or not said.text.strip():  # it was forgotten, or a person cut it short
                continue
            text, start = place.entry.text, said.ref.span[0] if said.ref.span else 0
            old = spans.get(seq) or self._spans.get(seq, ())
            new = _joined(text, (*old, (start, start + len(said.text))))
            if new != old:
                item = (
                    fresh.get(seq) or self._turns.get(seq) or replace(self._pieces.entry(place), score=score)
                )
                shown = OMITTED.join(text[start:end].strip() for start, end in new)
                spans[seq], fresh[seq] = new, replace(item, text=shown, when=item.when or when)
        more = size(fresh.values()) - size(self._turns[seq] for seq in fresh if seq in self._turns)
        if self.tokens + more > self._budget:
            return False
        self._turns |= fresh
        self._spans |= spans
        self.tokens += more
        return True

    def by_rank(self) -> list[Retrieved]:
        """The turns in the order in which they came."""
        return [*self._turns.values()]

    def by_time(self) -> list[Retrieved]:
        """The turns in the order in which they were said, those without a time last (Eq. 42)."""
        times = {seq: moment(turn.time) for seq, turn in self._turns.items()}
        order = sorted(self._turns, key=lambda seq: (times[seq] == datetime.min, times[seq], seq))
        return [self._turns[seq] for seq in order]


def _joined(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans of a text as few as they can be: those with nothing but blanks between them are one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not text[start:end].strip():
            continue
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


class RecordStrategy(ABC):
    """Part of a strategy (strategies/base.py); how it writes, and its own search, is for each to say."""

    spec: StrategySpec
    own: Any
    """The settings of its group; `block_tokens` among them bounds what an answer is read from."""
    shown = 1
    """How often a model is shown a turn, about, until it is in a record."""

    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.llm = llm
        self.own = settings.of(self.spec.settings or object)
        self.readers: tuple[str, ...] = (*self.spec.readers, *READERS)
        self._writing = Loaded()
        self._reading = Loaded()
        """Another than for writing, which holds it while a model thinks."""

    def rebuild(self, view: View) -> Plans:
        """Take all that it wrote away; the evidence, of which none is held then, gives it anew."""
        records = [Put(doc_id, None) for doc_id in view.below(self.spec.writes[0])]
        for at in range(0, len(records), AT_ONCE):
            yield Plan(op="rebuild", records=tuple(records[at : at + AT_ONCE]))

    def estimate(self, view: View) -> int:
        """What is in no record, as often as a model is shown it."""
        return self.shown * sum(map(size, open_turns(view).values()))

    def held(self, view: View) -> AbstractContextManager[Any]:
        """Give what `search` needs of a view."""
        return self._reading.at(view)

    @abstractmethod
    def search(self, view: View, held: Any, query: str, budget: int) -> RecordSearch[Any]:
        """Return its own search for a question."""

    def retrieve(self, view: View, query: str, budget: int) -> Evidence:
        """Turns by rank within `budget` tokens. Calls no model."""
        with self.held(view) as held:
            return self.search(view, held, query, budget).by_rank()

    def read(self, view: View, question: str, reader: str, budget: int) -> Evidence:
        """Evidence for an answer: by its own search, or by one of the readers that all share."""
        if reader not in self.spec.readers:
            return collect(self.llm, view, question, reader, budget)
        budget = min(budget, getattr(self.own, "block_tokens", budget))
        with self.held(view) as held:
            return self.search(view, held, question, budget).for_answer()

    def graph(self, view: View, name: str | None, hops: int) -> Topology:
        """What is linked to a record, either way (strategies/base.py: Linked)."""
        with self._reading.at(view) as (records, index):
            store, kinds = self.drawn(view, records, index)
            root, links = named(store, index, name), (*self.spec.links, *kinds)
            return around(store, root, hops, SHOWN, links, partial(self.label, store))

    def drawn(self, view: View, store: RecordStore, index: VectorIndex) -> tuple[RecordStore, Sequence[str]]:
        """Return the records as a picture links them, and kinds of links beside those of the strategy."""
        return store, ()

    def label(self, store: RecordStore, name: str) -> str:
        """Return what a picture says of a record."""
        return store.records[name].summary or store.text(name)

    def faults(self, store: RecordStore, only: Collection[str] | None = None) -> list[Finding]:
        """What does not hold, of all records or of some."""
        return faults(store, only)

    def check(self, view: View) -> list[Finding]:
        """What must hold: also that bodies quote the evidence, that a turn is in one record of a kind that
        holds turns alone, and that two of the surface are not made of the same record."""
        store, held = view.derived(RecordStore.load), dict[tuple[str, str], str]()
        found = self.faults(store)
        for name, record in sorted(store.records.items()):
            quoted = store.render(name).split("\n---\n", 1)[1]
            if view.document(record.doc_id).body.rstrip("\n") != quoted.rstrip("\n"):
                what = f"what it quotes is not its evidence as it stands; {ANEW}"
                found.append(Finding("note", what, record.doc_id))
            turns = [f"turn {ref.seq}" for ref in record.refs if record.kind.alone]
            for part in (*turns, *(record.sources if record.visible else ())):
                if (other := held.setdefault((record.kind.name, part), name)) != name:
                    what = f"{part} is in {other} too; take the line out of one"
                    found.append(Finding("error", what, record.doc_id))
        return found
