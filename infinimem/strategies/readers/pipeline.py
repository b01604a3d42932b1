"""The readers that all strategies share: each collects the evidence for an answer; and what they are made of.

    hybrid, summary   documents that a model selects by their summaries, with the best partitions of all
                      others, or alone
    bm25              the best entries, as the library ranks them; no model is asked
    agent             a model asks for more, round by round, by the tools, under one of two policies:
                      "answering" (ours): whoever answers, by the same prompt, so that an easy question costs
                      one call; what its calls show comes behind the evidence, which begins with entries.
                      "paper": one model begins with the catalog alone and names lines and documents, and
                      another answers from them.

A stage is a plain function; it says what it found as candidates, whose score is made of named parts by one
formula (`ranked`), and `Trace` notes it. Both stand in one file, in which a reader is followed to its end.
Promise: no reader passes its budget, and whatever a model asks for costs rounds and nothing else.

Source: Infini Memory-H, its ablations, and Infini Memory-A (Algorithm 3, prompt E; the stops by budget and by
rounds without news are its section 3.4), arXiv 2606.10677.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from time import perf_counter
from typing import Any

from infinimem import tokens
from infinimem.errors import DocumentNotFound, UsageError
from infinimem.grounding.sentences import asks
from infinimem.index.arcs import PEOPLE, beside, course, shortened, telling
from infinimem.index.pieces import LONG, Pieces
from infinimem.index.questions import asked_of
from infinimem.index.search import searcher
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply
from infinimem.markdown.document import Document
from infinimem.markdown.signature import text_start
from infinimem.model import CURRENT, Candidate, Evidence, Located, Retrieved, Stage
from infinimem.operations.provenance import replaced_by
from infinimem.store.spec import INSTRUCTIONS, STANDING, TOPICS
from infinimem.store.view import View, archive_of, only
from infinimem.terms import analyzer
from infinimem.tools import Result, Toolbox
from infinimem.tools.tool import rows, scope_of

OFFERED, TITLES, SUMMARIES = 200, 8, 50
"""Documents that a model is told of, the nearest to the question: to select of, and where it searches with
their titles or summaries; then by id, so that all rounds begin with the same text, which a server keeps."""
CALLS = 8
"""Tool calls of one round, at most."""
ROUND = 768
"""Tokens of lines that are shown at first, and that one round adds, at most."""
AROUND = 1
"""Lines before and after what grep matches, where a call does not say how many."""
RECENT = 20
"""Entries of CURRENT that are shown beside what was found, at most."""
RANKED, MOST = 50, 200
"""Pieces that are ranked for a budget: at first, and where they leave room."""
ROOM = 16
"""Tokens; what is shorter is hardly worth a place."""
COURSE = 7000
"""Tokens of a course at most; an eighth of a budget is left to search on."""
STANDING_TOKENS = 200
"""Of instructions, and as much of preferences, at most; of a small budget a quarter each."""
SUPERSEDED_TOKENS, BESIDE_TOKENS = 200, 300
WISHES = "prefer like want"
"""Words of a preference, which is shown by the part that has them."""
FIRST = 5
"""Pieces that stay before the user's wishes: who takes few of a ranking takes what was asked for."""
FLOOR = 0.3
"""Of the best entry's score; what has less is not shown. It costs 0.1 % of LoCoMo's gold turns in 1,024
tokens and saves 8 % of the tokens; 0.4 costs 0.6 %."""
ARC = "arc"
"""The stage by which evidence is known as a course, which is shown in order of time."""
MANY = 300
"""Documents and uncited turns up to which each partition is looked at; of more the index ranks."""

_SEQS = re.compile(r" \{([0-9]{1,18}(?:, [0-9]{1,18})*)\}(?=\n|\Z)")

Call = Mapping[str, Any]


def collect(llm: LLM, view: View, question: str, reader: str, budget: int) -> Evidence:
    """Return evidence for an answer, within a budget of tokens; UsageError for a reader that is none.

    The newest entries of CURRENT, where the strategy has one, get up to a quarter of what is shown at first;
    what belongs beside all that may go beyond it.

    Where a question asks for the order of things, or for a summary, that is their course, whoever reads, but
    for the paper's agent.
    """
    if reader not in _READERS:
        raise UsageError(f"{view.spec.name} has no reader {reader!r}; choose {', '.join(READERS)}")
    first = budget
    if search(view, question, reader):
        first, reader = min(budget, ROUND), "bm25"
    if asks("all", question) and reader != "agent":
        return arc(view, question, min(COURSE, budget - budget // 8))
    request = _Request(llm, view, question, first, Trace())
    found = _READERS[reader](request)
    kept = view.spec.buffer is not None and CURRENT in view
    newest = searcher(view).entries_at(CURRENT, 1, len(view.buffer.lines)) if kept else []
    newest = newest[: -RECENT - 1 : -1]
    room = min(first // 4, size(newest))
    best = with_beside(view, question, pack(found, first - room), budget - room)
    return request.trace.evidence(pack([*best, *pack(newest, room)], budget))


def arc(view: View, question: str, budget: int) -> Evidence:
    """Return as evidence the course of something, in order of time, and the wishes that concern it."""
    trace, wishes = Trace(), standing(view, question, budget)
    lines = course(view, question, budget - size(wishes))
    trace.add(Stage(ARC, (question,), candidates(lines)))
    return trace.evidence([*lines, *wishes], question)


@dataclass(frozen=True)
class _Request:
    llm: LLM
    view: View
    question: str
    budget: int
    trace: Trace

    def note(self, stage: str, found: list[Retrieved]) -> list[Retrieved]:
        """Note in the trace what a stage found, and return it."""
        self.trace.add(Stage(stage, (self.question,), candidates(found)))
        return found


def _entries(request: _Request) -> list[Retrieved]:
    view, question = request.view, request.question

    def ranked(limit: int) -> list[Retrieved]:
        return shortened(view, question, near(searcher(view).entries(question, limit)))

    if not asked_of(question, ()).oneself:
        return request.note("entries", best_that_fit(ranked, request.budget))
    items = ranked(MOST)  # of who asks for what they said themselves
    own = pack((item for item in items if item.source in PEOPLE), request.budget * 3 // 4)
    others = pack((item for item in items if item.source not in PEOPLE), request.budget - size(own))
    return request.note("entries", sorted([*own, *others], key=items.index))


def _hybrid(request: _Request) -> list[Retrieved]:
    chosen = _select(request)
    found = _bodies(request, chosen, request.budget * 2 // 3)
    ranked = partial(best_partitions, request.view, request.question, without=chosen)
    found += request.note("partitions", best_that_fit(ranked, request.budget - size(found)))
    return found or _entries(request)


def _named(request: _Request) -> list[Retrieved]:
    """What a model that searches names; where that is little, the best partitions beside it (Algorithm 3)."""
    view, question, own = request.view, request.question, request.view.settings.reader
    search = Selection(view, question)
    for _ in search.rounds(request.llm, {"question": question}, (), request.budget, request.trace):
        pass
    blocks = dict.fromkeys(block for lines in search.snippets for block in searcher(view).blocks_at(*lines))
    found = request.note("named", [*blocks, *_bodies(request, search.docs, request.budget)])
    if size(found) >= own.min_retrieval_tokens:
        return found
    rest = best_partitions(view, question, own.fallback_topk)
    return found + request.note("partitions", rest)


_READERS: Mapping[str, Callable[[_Request], list[Retrieved]]] = {
    "agent": _named,
    "hybrid": _hybrid,
    "bm25": _entries,
    "summary": lambda request: _bodies(request, _select(request), request.budget),
}
READERS = tuple(_READERS)


def _select(request: _Request) -> list[str]:
    view, question, limit = request.view, request.question, request.view.settings.reader.search_limit
    nearest = map(view.document, searcher(view).documents(question, OFFERED))
    offered = {document.id: document for document in nearest if document.header.end < len(document.lines)}
    docs = [*map(_listed, offered.values())]
    reply = request.llm.complete(tasks.SELECT, {"question": question, "docs": docs, "limit": str(limit)})
    named = dict.fromkeys(reply.data["ids"] if reply.data else ())
    chosen = [doc_id for doc_id in named if doc_id in offered][:limit]
    found = tuple(map(Candidate, chosen))
    request.trace.add(Stage("select", (question,), found, failure=reply.failure or ""))
    return chosen


def _listed(document: Document) -> dict[str, str]:
    told = {"id": document.id, "summary": document.summary}
    return told | ({"title": document.title} if document.title else {})


def _bodies(request: _Request, doc_ids: Iterable[str], budget: int) -> list[Retrieved]:
    """Whole documents while they fit the budget; of one that does not, the best blocks that do."""
    view, found = request.view, list[Retrieved]()
    for doc_id in doc_ids:
        left, body = budget - size(found), shown(view, doc_id)
        if tokens.count(body.text) <= left:
            found.append(body)
        else:
            blocks = searcher(view).blocks_at(body.doc_id, 1, body.end_line)
            parts = [shown(view, doc_id, block.start_line, block.end_line) for block in blocks]
            found += pack(searcher(view).order(request.question, parts), left)
    return [item for item in found if item.text.strip()]


def search(view: View, question: str, reader: str) -> Search | None:
    """What an answer's model may search with, where the agentic reader lets it."""
    is_ours = reader == "agent" and view.settings.reader.agent == "answering"
    return Search(view, question) if is_ours else None


class Search:
    """A search under way, by whoever answers."""

    task = tasks.SEARCHING
    last = 0
    """Requests that are still made once a round brings nothing new."""

    def __init__(self, view: View, question: str) -> None:
        self._view = view
        self._question = question
        self._tools = Toolbox(lambda: view)
        self._calls: list[dict[str, Any]] = []
        self.rounds_left = view.settings.reader.max_iterations - 1 + self.last
        self.reply: Reply | None = None
        """The one that ended it, if one did."""
        self.cited: frozenset[str] = frozenset()
        """Lines that the last reply wants to see again; if it names none, all of them."""
        self.is_course = False
        """Whether what the last round brought is one."""

    def rounds(
        self, llm: LLM, variables: Mapping[str, Any], shown: Iterable[Retrieved], budget: int, trace: Trace
    ) -> Iterator[list[Retrieved]]:
        """Ask, and make the calls of each reply until one ends the search; yield what each round brings.
        `shown` is what the model sees already, `budget` the tokens of what it sees in the end."""
        shown, known = list(shown), {"catalog": self._catalog(), "tools": self._tools.extra}
        while self.rounds_left > 0:
            known |= {"calls": list(self._calls), "rounds_left": str(self.rounds_left)}
            reply = llm.complete(self.task, {**variables, **known})
            if self._ends(reply.data or {}):
                self.reply = reply
                return
            self.cited = frozenset(name.strip(" #[]<>") for name in (reply.data or {}).get("cites", ()))
            calls = (reply.data or {}).get("calls", [])[:CALLS]
            self.is_course = any(_is_course(call) for call in calls)
            left = min(budget - size(shown), COURSE if self.is_course else ROUND)
            new, news = list[Retrieved](), False
            for made, call in enumerate(calls):
                beside = {"context_lines": AROUND} if call["name"].startswith("grep") else {}
                result = self._tools.call(call["name"], {**beside, **call["arguments"]})
                seen = {place for piece in (*shown, *new) for place in _places(piece)}
                pieces = dict.fromkeys(self._pieces(call, result))
                fresh = [piece for piece in pieces if seen.isdisjoint(_places(piece))]
                kept = pack(fresh, (left - size(new)) // (len(calls) - made))
                self._note(_told(call, result, len(kept), len(fresh)), kept)
                new += kept
                news = news or bool(kept or result.get("docs") or result.get("rows"))
            if reply.failure:
                self._note([reply.failure], ())
            self.rounds_left = self.rounds_left - 1 if news else min(self.rounds_left - 1, self.last)
            stop = "" if news else "nothing new" if calls else "no calls"
            asked = tuple(_asked(call)[:200] for call in calls)
            trace.add(Stage("round", asked, candidates(new), stop=stop, failure=reply.failure or ""))
            shown += new
            yield new

    def _catalog(self) -> list[dict[str, Any]]:
        rows = []
        for name in sorted(searcher(self._view).documents(self._question, TITLES)):
            title = self._view.document(name).title
            says_it = re.sub(r"[\W_]+", "-", title.casefold()).startswith(name.rpartition("/")[2])
            rows.append({"told": [name if says_it else f"{name} {title}".rstrip()]})
        return rows

    def _ends(self, data: Mapping[str, Any]) -> bool:
        """Take in what a reply says; return whether it is the last."""
        return bool(data.get("answer", "").strip())

    def _note(self, told: list[str], new: Sequence[Retrieved]) -> None:
        self._calls.append({"told": told})

    def _pieces(self, call: Call, result: Mapping[str, Any]) -> Iterator[Retrieved]:
        """What a search finds as entries; of other results the lines, matches first."""
        if call["name"] == "search" and "hits" in result:
            given = call["arguments"]
            by, query = str(given.get("by") or ""), str(given["query"])
            view = only(self._view, {by}) if by else self._view
            if _is_course(call):
                yield from course(view, query, COURSE)
            else:
                scope, skip = scope_of(given.get("scope") or "default"), max(int(given.get("offset") or 0), 0)
                yield from near(searcher(view).entries(query, skip + FIRST, scope)[skip:])
            return
        for hit in result.get("hits", ()):
            yield from self._at(hit["doc_id"], hit["start_line"], hit["end_line"])
        matches = result.get("matches", ())
        for match in matches:
            for piece in self._at(match["doc_id"], match["line"], match["line"]):
                # Of a long line what the tool shows: all of it would not fit.
                text = match["text"][text_start(match["text"]) :]
                yield replace(piece, text=text) if len(piece.text) > LONG else piece
        for match in matches:
            first, last = match["line"] - len(match["before"]), match["line"] + len(match["after"])
            around = self._at(match["doc_id"], first, last)
            yield from (piece for piece in around if piece.start_line != match["line"])
        if lines := result.get("lines"):
            yield from self._at(result["doc_id"], lines[0]["line"], lines[-1]["line"])

    def _at(self, doc_id: str, start: int, end: int) -> list[Retrieved]:
        """Lines of a document's body: its entries, and each other line that is not blank."""
        search, document = searcher(self._view), self._view.document(doc_id)
        start, end = max(start, document.header.end + 1), min(end, len(document.lines))
        found: list[Retrieved] = []
        bare = set(range(start, end + 1))
        for place in document.entries_in(start, end):
            found += search.entries_at(doc_id, place.start_line, place.start_line)
            bare.difference_update(range(place.start_line, place.end_line + 1))
        filled = (line for line in bare if document.text_line(line).strip())
        found += (search.lines_at(doc_id, line, line) for line in filled)
        return sorted(found, key=lambda piece: piece.start_line)


class Selection(Search):
    """A search under way in the paper's way: by a model that names what is to be read and answers nothing."""

    task = tasks.SEEK
    last = 1

    def __init__(self, view: View, question: str) -> None:
        super().__init__(view, question)
        self.docs: dict[str, None] = {}
        """Ids of documents that were named, to be read whole."""
        self.snippets: dict[tuple[str, int, int], None] = {}
        """Lines that were named."""

    def _catalog(self) -> list[dict[str, Any]]:
        nearest = sorted(searcher(self._view).documents(self._question, SUMMARIES))
        return [_listed(self._view.document(doc_id)) for doc_id in nearest]

    def _ends(self, data: Mapping[str, Any]) -> bool:
        for name in data.get("relevant_docs", ()):
            with suppress(DocumentNotFound):
                self.docs[self._view.resolve(name)] = None
        for row in data.get("relevant_snippets", ()):
            with suppress(DocumentNotFound):
                self.snippets[self._view.resolve(row["doc_id"]), row["start_line"], row["end_line"]] = None
        return bool(data.get("done"))

    def _note(self, told: list[str], new: Sequence[Retrieved]) -> None:
        super()._note(told, new)
        for piece in new:
            line = {"id": f"{piece.doc_id}:{piece.start_line}-{piece.end_line}", "text": piece.text}
            self._calls.append({**line, "time": piece.time, "source": piece.source, "speaker": piece.speaker})


def _places(piece: Retrieved) -> set[str]:
    part = piece.text if "…" in piece.text else ""  # of one line other parts are news
    return {f"{piece.doc_id}:{line} {part}" for line in range(piece.start_line, piece.end_line + 1)}


def _is_course(call: Call) -> bool:
    return call["name"] == "search" and str(call["arguments"].get("arc")).lower() in ("true", "1")


def _asked(call: Call) -> str:
    return f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"


def _told(call: Call, result: Result, kept: int, count: int) -> list[str]:
    """A call and what came of it; the lines themselves are told apart."""
    if "error" in result:
        return [f"{_asked(call)}: {result['error']}"]
    if "docs" in result or "rows" in result:
        return [_asked(call), *rows(result)]
    new = f"{kept} new lines" if kept == count else f"{kept} of {count} new lines, the rest on asking again"
    more = ["it has more: give an offset"] if result.get("truncated") else []
    return [f"{_asked(call)}: {new}", *more, *result.get("notes", ())]


def best_that_fit(ranked: Callable[[int], Sequence[Retrieved]], budget: int) -> list[Retrieved]:
    """The best pieces that fit, as many being ranked as it takes to spend the budget."""
    items = ranked(RANKED)
    packed = pack(items, budget)
    more = len(items) == RANKED and budget - size(packed) >= ROOM
    return pack(ranked(MOST), budget) if more else packed


def pack(
    items: Iterable[Retrieved], budget: int, count: Callable[[str], int] = tokens.count
) -> list[Retrieved]:
    """Return the best items that fit, in their order, without lines that an earlier piece already shows."""
    packed: list[Retrieved] = []
    left = budget
    for item in items:
        if any(
            taken.doc_id == item.doc_id
            and taken.start_line <= item.start_line
            and item.end_line <= taken.end_line
            for taken in packed
        ):
            continue
        if (length := count(item.text)) <= left:
            packed.append(item)
            left -= length
    return packed


def size(items: Iterable[Retrieved | Located]) -> int:
    """Tokens of all texts together."""
    return sum(tokens.count(item.text) for item in items)


def near(found: Sequence[Retrieved]) -> list[Retrieved]:
    """These, best first, without those that are nothing beside the first."""
    return [piece for piece in found if piece.score >= FLOOR * found[0].score]


def ranked(
    found: Iterable[Candidate],
    formula: Callable[[Mapping[str, float]], float],
    ties: Callable[[Candidate], Any],
) -> list[Candidate]:
    """Return candidates with their scores by a formula of their parts, best first; `ties` ends in an id."""
    scored = (replace(one, score=formula(one.parts)) for one in found)
    return sorted(scored, key=lambda one: (-one.score, ties(one)))


# ── documents as they are shown, or the texts that were written of them, and partitions of both ──


def text_id(view: View, doc_id: str) -> str:
    """Return the id that the text of a document has."""
    return view.spec.texts + doc_id.split("/", 1)[-1]


def digest(document: Document, of: Collection[int] | None = None) -> str:
    """Return what a text of these lines, or `of` some of them, wherever they stand, says of itself."""
    some = (place for place in document.entries if of is None or place.seq in of)
    lines = sorted((place.seq, place.entry.line.rstrip()) for place in some)
    return sha256("\n".join(line for _, line in lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def current_text(view: View, doc_id: str) -> Document | None:
    """Return the text of a document if one was written of the very lines that stand in it."""
    if not view.spec.texts or not doc_id.startswith(view.spec.writes):
        return None
    name = text_id(view, doc_id)
    text = view.document(name) if name in view else None
    is_current = text and text.header.values.get("digest") == digest(view.document(doc_id))
    return text if is_current else None


def as_shown(view: View, doc_id: str) -> Document:
    """Return what readers show for a document: itself, or its text if the strategy `shows` those."""
    own = view.settings.of(view.spec.settings) if view.spec.settings else None
    text = current_text(view, doc_id) if getattr(own, "shows", "") == "free" else None
    return text or view.document(doc_id)


def shown(view: View, doc_id: str, start: int = 1, end: int | None = None) -> Retrieved:
    """Return a document's body as readers show it, or some lines of that. A text cites the turns behind
    the lines that it names (`{41, 43}` ends an item); if it names none, behind all lines of the document."""
    search, document = searcher(view), as_shown(view, doc_id)
    told = search.lines_at(document.id, start, end or len(document.lines))
    if document.id == doc_id:
        return told
    lines = search.entries_at(doc_id, 1, len(view.document(doc_id).lines))
    here = set(chain.from_iterable(line.seqs for line in lines))
    ends = (_SEQS.search(line) for line in told.text.split("\n"))
    seqs = tuple(
        tuple(seq for seq in map(int, end[1].split(", ")) if seq in here) if end else () for end in ends
    )
    named = set(chain.from_iterable(seqs))
    behind = [line for line in lines if named.intersection(line.seqs)] or lines
    sources = {line.source for line in behind}
    return replace(
        told,
        text=_SEQS.sub("", told.text),
        told=seqs,
        origin=tuple(dict.fromkeys(seq for line in behind for seq in line.origin)),
        source=sources.pop() if len(sources) == 1 else None,
    )


class _Partitions:
    """Heading blocks, and turns that no entry cites yet: document, first and last line as that is shown."""

    def __init__(self, view: View, *_: object) -> None:
        from rank_bm25 import BM25Okapi

        pieces = Pieces(view)
        terms = {
            (doc_id, block.start_line, block.end_line): terms
            for doc_id in view.ids()
            for block, terms in pieces.parts(as_shown(view, doc_id))
        }
        for place in filter(None, map(view.entry, sorted(view.unfiled))):
            lines = (place.start_line, place.end_line)
            terms[place.doc_id, *lines] = pieces.terms_at(view.document(place.doc_id), *lines)
        self.terms = {place: some.split() for place, some in terms.items() if some}
        self.engine = BM25Okapi([*self.terms.values()]) if self.terms else None


def best_partitions(view: View, question: str, limit: int, without: Collection[str] = ()) -> list[Retrieved]:
    """Return the partitions that answer a question best by Okapi BM25; of a large library the index ranks."""
    if len(view.ids()) + len(view.unfiled) > MANY:
        found = searcher(view).blocks(question, limit * (len(without) + 1))
        return [block for block in found if block.doc_id not in without][:limit]
    held = view.derived(_Partitions)
    terms = analyzer(view.settings.search.language).query_terms(question)
    wanted = frozenset(terms)
    rows = {
        at: place
        for at, (place, own) in enumerate(held.terms.items())
        if place[0] not in without and not wanted.isdisjoint(own)
    }
    scores = held.engine.get_batch_scores(terms, [*rows]) if held.engine else ()
    best = sorted((-round(score, 6), place) for score, place in zip(scores, rows.values(), strict=True))
    return [replace(shown(view, *place), score=-score) for score, place in best[:limit]]


# ── lines, and what belongs beside them ─────────────────────────────────────────────────────────


def with_beside(view: View, question: str, items: Sequence[Retrieved], budget: int) -> list[Retrieved]:
    """The pieces, best first, with what the user asked for once and for all, and with what they replaced if
    the question is about the past, within a budget of tokens."""
    share = budget // 8
    past = superseded(view, items, min(SUPERSEDED_TOKENS, share)) if asks("past", question) else {}
    found = [
        piece for item in items for piece in (item, *(old for seq in item.seqs for old in past.get(seq, ())))
    ]
    more = pack(beside(view, question, items[:FIRST]), min(BESIDE_TOKENS, budget // 4))
    return pack([*found[:FIRST], *more, *standing(view, question, budget), *found[FIRST:]], budget)


def standing(view: View, question: str, budget: int) -> list[Retrieved]:
    """Return the newest instructions, and the preferences that share a word with the question, or all if it
    asks for advice, within a share."""
    if STANDING not in view or view.group(STANDING) != "live":  # another strategy's
        return []
    search, document = searcher(view), view.document(STANDING)
    lines = search.order(question, search.entries_at(STANDING, 1, len(document.lines)))
    always = [line for line in lines if line.headings[-1:] == (INSTRUCTIONS,)]
    advised = asks("advice", question)
    others = (line for line in lines if line not in always and (line.score or advised))
    others = (replace(line, text=telling(f"{WISHES} {question}", line.text)) for line in others)
    newest = sorted(always, key=lambda line: (line.time or "", line.seqs), reverse=True)
    share = min(STANDING_TOKENS, budget // 4)
    return [*pack(newest, share), *pack(others, share)]


def superseded(view: View, items: Iterable[Retrieved], room: int) -> dict[int, list[Retrieved]]:
    """The archived lines that lines of these pieces replaced, by the seq of the one that replaced them."""
    shown = {seq: item.doc_id for item in items for seq in item.seqs if item.doc_id.startswith(TOPICS)}
    archives = (archive_of(doc_id) for doc_id in dict.fromkeys(shown.values()))
    places = (place for doc_id in archives if doc_id in view for place in view.document(doc_id).entries)
    gone = (place for place in places if replaced_by(place.headings) in shown)
    lines = (searcher(view).entries_at(old.doc_id, old.start_line, old.end_line)[0] for old in gone)
    found: dict[int, list[Retrieved]] = {}
    for line in pack(lines, room):
        found.setdefault(replaced_by(line.headings), []).append(line)
    return found


class Trace:
    """The steps of a reader as they end, behind those `before`, each with its time."""

    def __init__(self, before: Iterable[Stage] = ()) -> None:
        self._steps = list(before)
        self._began = perf_counter()

    def add(self, step: Stage) -> None:
        """Note a stage that ends now."""
        now = perf_counter()
        self._steps.append(replace(step, ms=round((now - self._began) * 1000, 3)))
        self._began = now

    def evidence(self, items: Iterable[Retrieved], *asked: str) -> Evidence:
        """What is shown in the end, which is the last step."""
        shown = tuple(items)
        self.add(Stage("evidence", asked, candidates(shown), size(shown)))
        return Evidence(shown, tuple(self._steps))


def candidates(items: Iterable[Retrieved]) -> tuple[Candidate, ...]:
    """Pieces as a step names them."""
    return tuple(
        Candidate(f"{item.doc_id}:{item.start_line}-{item.end_line}", score=item.score) for item in items
    )
