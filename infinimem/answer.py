"""From evidence to an answer with citations; shared by all strategies, which differ in what they find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from infinimem import tokens
from infinimem.index.arcs import telling
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply
from infinimem.markdown.characters import one_line
from infinimem.markdown.signature import parse_entry
from infinimem.model import Citation, Evidence, Retrieved
from infinimem.operations.provenance import replaced_by
from infinimem.store.spec import ARCHIVE, EVIDENCE, MEMORIES, STANDING
from infinimem.strategies.readers.pipeline import ARC, Search, Trace

QUOTED = 3  # lines that are cited where a model made up its citations
LINE_LENGTH = 2000
"""Characters of one line that are shown, about; a document pasted as one message must not fill the prompt."""
_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")
NOTHING = "The memory holds nothing about it."
UNREADABLE = "The model gave no usable answer ({failure}). The best line of the evidence: {line}"


@dataclass(frozen=True)
class _EvidenceLine:
    """One line of evidence as the model is shown it, and where it stands."""

    id: str
    text: str
    time: str | None
    source: str | None
    citation: Citation
    speaker: str | None = None
    when: str | None = None
    refers: str | None = None
    label: str | None = None
    superseded_by: str | None = None

    @property
    def is_heading(self) -> bool:
        return _HEADING.match(self.text) is not None and not self.citation.seqs

    @property
    def shown(self) -> dict[str, str]:
        if self.is_heading:
            return {"heading": self.text.lstrip("#").strip()}
        keys = ("id", "time", "source", "speaker", "text", "when", "refers", "label", "superseded_by")
        return {key: value for key in keys if (value := getattr(self, key))}


@dataclass(frozen=True)
class Answered:
    """An answer, the lines that it relies on, and all the evidence that was shown for it, with its trace."""

    text: str
    citations: tuple[Citation, ...]
    evidence: Evidence


def answer(
    llm: LLM, question: str, evidence: Evidence, now: str, budget: int, search: Search | None = None
) -> Answered:
    """Ask the model, and find the places of the lines that it relied upon.

    For a model that cites only lines that do not exist the best ones are cited; of one that answers nothing
    readable that is said, and the best line is quoted. With `search` it may ask for more.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    items = list(evidence.items)
    seen, names = set[str](), dict[str, str]()
    lines = _within(budget, _lines(question, items, seen, names))
    is_course = any(step.stage == ARC for step in evidence.trace)
    kinds: dict[str, list[_EvidenceLine]] = {kind: [] for kind in ("evidence", *evidence.apart)}
    for line in lines:
        kinds.get(line.citation.doc_id.split("/")[-2:][0], kinds["evidence"]).append(line)
    shown = {kind: _arranged(is_course, some) for kind, some in kinds.items()}
    variables = {"question": question, "now": now, **shown}
    trace, reply = Trace(evidence.trace[:-1]), None
    if search:
        for new in search.rounds(llm, variables, items, budget, trace):
            fresh = list(_lines(question, new, seen, names))
            kept = [line for line in lines if line.id in search.cited]
            before = _arranged(is_course, kept) if kept else variables["evidence"]
            variables["evidence"] = [*before, *_arranged(search.is_course, fresh)]
            items, lines = [*items, *new], [*lines, *fresh]
        evidence, reply = trace.evidence(items), search.reply
    if not lines:
        return Answered(NOTHING, (), evidence)
    task = replace(tasks.ANSWER, variables=tasks.ANSWER.variables.union(kinds))
    return Answered(*_read(reply or llm.complete(task, variables), lines), evidence)


def shown(question: str, evidence: Evidence, budget: int) -> Answered:
    """Return the evidence as a model would be shown it, for an agent that answers itself."""
    lines = _within(budget, _lines(question, evidence.items, set(), {}))
    is_course = any(step.stage == ARC for step in evidence.trace)
    citations = tuple(line.citation for line in lines if not line.is_heading)
    return Answered(tasks.shown(_arranged(is_course, lines)) if lines else NOTHING, citations, evidence)


def _read(reply: Reply, lines: Sequence[_EvidenceLine]) -> tuple[str, tuple[Citation, ...]]:
    stating = [line for line in lines if not line.is_heading]
    if reply.data is None or not reply.data["answer"].strip():
        best = next(iter(stating), lines[0])
        quoted = f"{best.speaker}: {best.text}" if best.speaker else best.text
        return UNREADABLE.format(failure=reply.failure or "EMPTY", line=quoted), (best.citation,)
    known = {f"{line.citation.doc_id}:{line.citation.start_line}": line.citation for line in stating}
    known |= {line.id: line.citation for line in stating}
    cited = (name.strip(" #[]<>") for name in reply.data["cites"])
    citations = tuple(known[name] for name in dict.fromkeys(cited) if name in known)
    if reply.data["cites"] and not citations:
        citations = tuple(line.citation for line in stating[:QUOTED])
    return reply.data["answer"].strip(), citations


def _lines(
    question: str, items: Iterable[Retrieved], seen: set[str], names: dict[str, str]
) -> Iterator[_EvidenceLine]:
    """Yield the lines of the evidence not seen before; `names` are short ones of documents, `d3`."""
    for item in items:
        for line in _split(item, names.setdefault(item.doc_id, f"d{len(names) + 1}")):
            line = replace(line, text=one_line(telling(question, line.text, LINE_LENGTH)))
            key = f"{line.id} {line.text}"  # of a long line several parts may be shown
            if key not in seen:
                seen.add(key)
                yield line


def _split(item: Retrieved, name: str) -> Iterator[_EvidenceLine]:
    """Yield an entry as one line; of a block signed lines, and others, which go on with the one before."""
    if len(item.seqs) == 1 and not item.physical:
        place = Citation(item.doc_id, item.start_line, item.end_line, item.seqs, item.text)
        newer = str(replaced_by(item.headings) or "") if item.doc_id.startswith(ARCHIVE) else None
        about = (item.speaker, item.when, item.refers, item.label, newer)
        yield _EvidenceLine(str(item.seqs[0]), item.text, item.time, item.source, place, *about)
        return
    quoted = () if item.seqs else item.origin  # of a record, which shows what turns said
    source = item.source if quoted or item.doc_id.startswith((EVIDENCE, MEMORIES)) else "human"
    for number, text in enumerate(item.text.split("\n"), item.start_line):
        entry = parse_entry(text)
        if entry and entry.seq in item.seqs:
            place = Citation(item.doc_id, number, number, (entry.seq,), entry.text)
            fields = (entry.fields.get(key) for key in ("speaker", "when", "refers", "label"))
            yield _EvidenceLine(str(entry.seq), entry.text, entry.time, entry.source, place, *fields)
            source = entry.source if item.doc_id.startswith(EVIDENCE) else source
        elif text.strip():
            seqs = item.told[number - item.start_line] if item.told else quoted
            seqs = seqs or (() if _HEADING.match(text) else quoted)
            place = Citation(item.doc_id, number, number, seqs, text.strip())
            time = item.time if quoted else None
            yield _EvidenceLine(f"{name}:{number}", text.strip(), time, source, place)


def _within(budget: int, lines: Iterable[_EvidenceLine]) -> list[_EvidenceLine]:
    kept: list[_EvidenceLine] = []
    for line in lines:
        budget -= tokens.count(line.text)
        if budget < 0 and kept:
            break
        kept.append(line)
    return kept


def _arranged(is_course: bool, lines: Sequence[_EvidenceLine]) -> list[dict[str, Any]]:
    if not is_course:
        return _by_document(lines)
    dated = [line for line in lines if line.time and line.citation.doc_id != STANDING]
    dated.sort(key=lambda line: (line.time or "", line.citation.seqs, line.citation.start_line))
    by_day = groupby(dated, key=lambda line: (line.time or "")[:10])
    days = [{"day": day, "lines": [line.shown for line in some]} for day, some in by_day]
    others = (line for line in lines if line.citation.doc_id == STANDING or not line.time)
    return [*days, *_by_document(line for line in others if not line.is_heading)]


def _by_document(lines: Iterable[_EvidenceLine]) -> list[dict[str, Any]]:
    """Return documents by their best line, the lines of each in their order: in a session that of time."""
    documents: dict[str, list[_EvidenceLine]] = {}
    for line in lines:
        documents.setdefault(line.citation.doc_id, []).append(line)
    rows = []
    for doc_id, some in documents.items():
        some.sort(key=lambda line: line.citation.start_line)
        span = f"{some[0].citation.start_line}-{some[-1].citation.end_line}"
        rows.append({"doc_id": doc_id, "span": span, "lines": [line.shown for line in some]})
    return rows
