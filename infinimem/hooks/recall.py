"""What of a memory a session is shown, and why: one block, at its first prompt.

In: a prompt, and the folder that it is typed in. Out: lines of three parts, each with its reason, between
marks by which importers leave them out; docs/CLAUDE_CODE.md says which are shown, and which never. Words of
the same matter are those of index/kin.txt. Of lines that hold the same words the one that is most about them
is shown, or a newer one that is as much.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from heapq import nlargest
from pathlib import Path, PurePath
from typing import Any

from infinimem.errors import InfinimemError
from infinimem.estimate import for_turns
from infinimem.grounding.sentences import any_of, common_terms
from infinimem.hooks import Event
from infinimem.importers.fields import BEGIN, END, without_recalled
from infinimem.index.questions import kin, related
from infinimem.index.search import searcher
from infinimem.llm.base import AGENT
from infinimem.markdown.characters import fenced, name
from infinimem.memory import Memory
from infinimem.model import Entry, Located
from infinimem.operations.provenance import replaced_by
from infinimem.reader import Reader
from infinimem.store.view import View, archive_of, folders_of
from infinimem.terms import DAYS, MONTHS, Analyzer, analyzer, tokens
from infinimem.tokens import estimate
from infinimem.tools.tool import LABEL, closest, shown
from infinimem.user_folders import first_today

NEEDED, ONE, BRIEF = 1.1, 1.0, 2
"""Weight that a line needs: more than one word has; in a prompt of few words (`BRIEF`) one rare word, if it
asks for the person, or who, where or when."""
RARE, RARE_SHARE = 10, 0.02
"""Lines, evidence too, or their share of all, up to which a word that so many hold is rare."""
KIN, WEAK, WORK, DAY = 0.7, 0.4, 0.5, 0.3
"""Weights of words: of the same matter; not rare, or in what is pasted below the prompt's first line; of
everyday work; a day of the week. A rare word weighs 1, and in its own project any."""
HEAD = 12  # words at the start of a line, which say what it is about: behind them a word weighs less and less
ABOUT, FAR = 0.8, 0.5
"""Shares of the best: from which on a line is as much about a word; below which it is left out."""
ALIKE = 0.85  # likeness from which on an unknown word counts as a misspelling
FEW = 6  # words from which on a line says more than that it takes note
LINES, SCANNED, CANDIDATES = 6, 5000, 2000
"""Lines of each part at most; the newest lines that are looked through; tokens of what search finds."""
ENOUGH = 30  # turns from which on it is worth an agent's while to sort them
SENSITIVE = ("health", "faith", "intimacy", "law", "money")
MORE = "More: infinimem search WORDS, or the tool search; archive and evidence have scopes of their own."

STANDING, CLOSEST, CONSTRAINT = "standing", "closest", "constraint"
_WORK = Path(__file__).with_name("work.txt").read_text(encoding="utf-8")
_PERSONAL = re.compile(r"\b(?:I|i|my|mine|me)\b|\A\s*(?i:which|where|when|who|whose)\b")
_SHORT = re.compile(r"\b[A-Z][A-Z0-9]\b")
_ONESELF = re.compile(r"\b(?:I|I['’]\w+|my|mine|me|[Tt]he user)\b")
_SPEAKING = re.compile(r"\b(?:I(?:['’]\w+)?|[Tt]he user)\b")
_HERE = re.compile(r"\b(?:this|the|our) (?:project|repo\w*|code\w*|branch|app|site|shop)\b|\bhere\b", re.I)


@cache
def _terms(words: str) -> frozenset[str]:
    return frozenset(term for word in words.split() for term in tokens(word))


@cache
def _common() -> frozenset[str]:
    """What tells nothing: function words and common words, but not the names of days and months."""
    return common_terms() - _terms(" ".join((*DAYS, *MONTHS)))


@lru_cache(1 << 16)  # of the newest lines the same is asked at each prompt, and it takes a second for 8,000
def _is_like(name: str, text: str) -> bool:
    return bool(re.search(any_of(name), text, re.IGNORECASE))


def read(prompt: str, cwd: str, words: Analyzer) -> dict[str, float]:
    """Return the telling words of a prompt and their worth, less below its first line: that is pasted."""
    apart = prompt.replace("-", " ").replace("_", " ")  # joined words
    first, _, given = apart.strip().partition("\n")
    pasted = {*words.query_terms(given)} - {*words.tokens(cwd)}  # paths of the folder tell nothing
    terms = dict.fromkeys(sorted(pasted), WEAK) | dict.fromkeys(words.query_terms(first), 1.0)
    # A word of one or two letters tells nothing in an alphabet; "CI" does.
    short = {term for word in _SHORT.findall(first) for term in words.tokens(word)}
    return {
        term: worth
        for term, worth in terms.items()
        if term not in _common() and (not term.isascii() or len(term) > 2 or term in short)
    }


def weights(
    asked: Mapping[str, float], line: Sequence[str], here: bool, rare: Collection[str]
) -> dict[str, float]:
    """Return the words, with weights, that a prompt shares with a line, said `here`: in its project."""
    counted, work = dict[str, float](), _terms(_WORK)
    for term, worth in asked.items():
        if term in line and (here or term not in work):
            worth *= DAY if term in _terms(" ".join(DAYS)) else WORK if term in work else 1.0
            counted[term] = worth * (1.0 if here or term in rare else WEAK) * _headed(line, term)
        elif term not in work:
            told = kin().get(term, frozenset()).intersection(line) - work - counted.keys()
            for one in sorted(told)[: 2 if here else 1]:
                counted[one] = worth * KIN * _headed(line, one)
    return counted


def _needed(asked: Collection[str], prompt: str, here: bool) -> float:
    """Return the weight that a line needs; `here`: said in the prompt's project."""
    if len(asked) > BRIEF:
        return KIN if here else NEEDED
    return WORK if here else ONE if _PERSONAL.search(prompt) else NEEDED


def _headed(line: Sequence[str], term: str) -> float:
    return min(1.0, HEAD / (line.index(term) + 1))


@dataclass(frozen=True)
class Hit:
    """A line that came near, the `words` of the prompt in it, and `why` it is not shown ("" if it is)."""

    where: str
    text: str
    part: str
    score: float = 0.0
    words: tuple[str, ...] = ()
    why: str = ""


class Recall:
    def __init__(self, memory: Reader) -> None:
        self._memory = memory
        self._shown: dict[str, set[str]] = {}
        """What each session was shown; nothing where its context begins (anew), whatever its log says."""

    def text(self, event: Event) -> str:
        """Return the block once, as `[hooks] recall` says, and after the context was cleared or compacted."""
        try:
            wanted, starts = self._memory.view.settings.hooks.recall, event.hook_event_name == "SessionStart"
            if starts and event.source != "resume":
                self.missed(event)
            prompt = "" if wanted == "start" else said(event.prompt)
            if wanted == "off" or (wanted == "first" and (starts or not prompt)):
                return ""
            hits = list[Hit]()
            known = self._shown.get(event.session_id)
            if not known and (known is not None or not _was_shown(event.transcript_path)):
                hits = self.block(prompt, event.cwd)
            elif wanted == "prompt":
                hits = self._fitting(self._near(prompt, event.cwd))
            known = known or set()
            if new := [hit for hit in hits if not hit.why and hit.where not in known]:
                self._shown[event.session_id] = known.union(hit.where for hit in new)
            return _marked(new, event.cwd)
        except (InfinimemError, OSError):  # a library that is being changed, or harmed: next time
            return ""

    def preview(self, prompt: str, cwd: str) -> dict[str, Any]:
        """Return what a first prompt is shown, and what came near; nothing counts as shown by it."""
        hits = self.block(said(prompt), cwd)
        return {"text": _marked([hit for hit in hits if not hit.why], cwd), "lines": [*map(asdict, hits)]}

    def missed(self, event: Event) -> None:
        """The text did not arrive, so it will be shown again."""
        self._shown[event.session_id] = set()

    def block(self, prompt: str, cwd: str) -> list[Hit]:
        """Return the lines for a session that begins with a prompt in a folder, and those that came near."""
        near, opening = self._near(prompt, cwd), self._opening(cwd)
        shown = {hit.where for hit in near if not hit.why}
        standing = {hit.where for hit in opening} - shown
        kept = [hit for hit in near if hit.where not in standing]
        return self._fitting([*kept, *(hit for hit in opening if hit.where in standing)])

    def _near(self, prompt: str, cwd: str) -> list[Hit]:
        """Return the lines that a prompt in a folder deserves, the best first, and those that came near."""
        view = self._memory.view.for_models
        words = analyzer(view.settings.search.language)
        asked = self._corrected(read(prompt, cwd, words), cwd)
        if not asked:
            return []
        counts, lines = searcher(view).frequencies(asked)
        rare = {term for term, count in counts.items() if count <= max(RARE, RARE_SHARE * lines)}
        items = self._memory.retrieve(" ".join((*asked, *related(asked))), CANDIDATES).items
        hits, leads = list[Hit](), dict[str, dict[str, float]]()
        for item in sorted(items, key=lambda one: (one.time or "", one.doc_id, one.start_line)):
            turns = [place.entry for place in map(view.entry, item.origin) if place]
            folders = frozenset(folder for turn in turns for folder in _projects(view, turn, cwd))
            here, line = is_of(folders, cwd), words.tokens(item.text)
            why = _unfit(view, item.doc_id, item.text, item.source, folders, cwd, prompt)
            counted = weights(asked, line, here, rare)
            score = sum(counted.values()) / _needed(asked, prompt, here)
            at = closest(item.text, item.text, frozenset(asked), words)
            row = _row(item.text, item.time, item.source, item.speaker, at=at)
            where = f"{item.doc_id}:{item.start_line}"
            why = why or ("too few telling words" if score < 1 else "")
            row += "" if why else _replaced(view, item.doc_id, item.seqs)
            hits.append(Hit(where, row, CLOSEST, round(score, 2), tuple(counted), why))
            soon = {term: HEAD / (HEAD + line.index(term)) for term in counted}
            leads[where] = {term: share * min(3, line.count(term)) for term, share in soon.items()}
        return _telling(hits, leads)

    def _corrected(self, asked: dict[str, float], cwd: str) -> dict[str, float]:
        """Put for a word that no line holds the one of the project that is most like it: people mistype."""
        view = self._memory.view.for_models
        counts, _ = searcher(view).frequencies(asked)
        missing = [term for term in asked if not counts[term] and len(term) > 3 and term not in _terms(_WORK)]
        words = analyzer(view.settings.search.language)
        lines = (words.tokens(place.text) for place, _ in self._lines(cwd)) if missing else ()
        known = sorted({term for line in lines for term in line})
        like = {
            term: get_close_matches(term, [one for one in known if one[:2] == term[:2]], 1, ALIKE)
            for term in missing
        }
        return {(like.get(term) or [term])[0]: worth for term, worth in asked.items()}

    def _opening(self, cwd: str) -> list[Hit]:
        """Return the project's standing instructions and the person's constraints, newest first."""
        view = self._memory.view.for_models
        hits, room = list[Hit](), {STANDING: 2 * LINES, CONSTRAINT: 2 * LINES}  # some are shown as closest
        for place, here in self._lines(cwd):
            entry = place.entry  # what is asked for in a project ("my sentences") is asked for there alone
            is_own = bool(_SPEAKING.search(entry.text)) or not _projects(view, entry, cwd)
            part = STANDING if here and _is_like("standing", entry.text) else ""
            part = part or (CONSTRAINT if is_own and _is_like("constraints", entry.text) else "")
            if part and room[part]:
                room[part] -= 1
                row = _row(entry.text, entry.time, entry.source, entry.fields.get("speaker"))
                row += _replaced(view, place.doc_id, (place.seq,))
                hits.append(Hit(f"{place.doc_id}:{place.start_line}", row, part))
            if not any(room.values()):
                break
        return hits

    def _lines(self, cwd: str) -> Iterator[tuple[Located, bool]]:
        """Yield what may be shown of the newest lines, newest first, and whether it is of the project."""
        view = self._memory.view.for_models
        places = [*view.entries()] or view.entries("evidence")  # of a strategy that keeps records
        for place in nlargest(SCANNED, places, key=lambda place: place.seq):
            entry, folders = place.entry, _projects(view, place.entry, cwd)
            if not _unfit(view, place.doc_id, entry.text, entry.source, folders, cwd, ""):
                yield place, is_of(folders, cwd)

    def _fitting(self, hits: Iterable[Hit]) -> list[Hit]:
        left, count, fitting = self._memory.view.settings.hooks.budget, Counter[str](), []
        for hit in hits:
            if not hit.why:
                left, count[hit.part] = left - estimate(f"{hit.where} {hit.text}"), count[hit.part] + 1
                hit = replace(hit, why="over budget") if left < 0 or count[hit.part] > LINES else hit
            fitting.append(hit)
        return fitting


def offer(memory: Memory) -> str:
    """Return once a day what waits for the agent as the model, and its cost; "" if that is little."""
    view = memory.view.for_models
    if view.settings.llm.model != AGENT or (waiting := len(view.pending(AGENT))) < ENOUGH:
        return ""
    if not first_today("offer", str(memory.library.root.resolve())):
        return ""
    cost = max(1000, round(for_turns(view).tokens, -3))
    command = f"/infinimem:consolidate takes about {cost:,} tokens"
    return f"infinimem: {waiting} turns wait; {command}, besides what a subagent reads again"


def _telling(hits: Sequence[Hit], leads: Mapping[str, Mapping[str, float]]) -> list[Hit]:
    """Leave out what others tell better, or anew; `leads`: how much each hit is about its words, by place."""
    fit = [hit for hit in hits if not hit.why]
    most, again = dict[str, float](), set[str]()
    for at, hit in enumerate(fit):
        own = leads[hit.where]
        most |= {term: max(most.get(term, 0.0), lead) for term, lead in own.items()}
        for newer in (leads[other.where] for other in fit[at + 1 :]):
            if all(newer.get(term, 0.0) >= ABOUT * lead for term, lead in own.items()):
                again.add(hit.where)
    ranked, held, least = list[Hit](), set[str](), 0.0
    for hit in sorted(hits, key=lambda hit: hit.score)[::-1]:  # of equal ones the newest first
        if not hit.why:
            best = {term for term, lead in leads[hit.where].items() if lead >= ABOUT * most[term]}
            least = least or FAR * hit.score
            if hit.where in again or best <= held or hit.score < least:
                hit = replace(hit, why="another line tells more")
            else:
                held.update(hit.words)
        ranked.append(hit)
    return ranked


def _marked(hits: Sequence[Hit], cwd: str) -> str:
    project = name(PurePath(cwd).name)
    titles = {
        STANDING: f"standing in {project}",
        CLOSEST: "closest to the prompt",
        CONSTRAINT: "of the person",
    }
    lines = list[str]()
    for part, title in titles.items():
        rows = [f"{hit.where} {hit.text}" for hit in hits if hit.part == part]
        lines += [f"[{title}]", *rows] if rows else []
    return "\n".join((BEGIN, LABEL, fenced("\n".join(lines), "memory"), MORE, END)) if lines else ""


def _unfit(
    view: View, doc_id: str, text: str, source: str | None, folders: frozenset[str], cwd: str, prompt: str
) -> str:
    """Return why a line is never shown to a prompt in a folder; "" if it may be."""
    here = is_of(folders, cwd)
    if folders and not here and not about_oneself(text):
        return "said in another project"
    if view.group(doc_id) == "archive":
        return "superseded"
    if source == "AI":
        return "an assistant said it"
    if text.rstrip().endswith("?"):
        return "it only asks"
    if len(text.split()) < FEW and re.match(any_of("acknowledgements"), text, re.I):
        return "it only takes note"
    if _is_like("over", text):
        return "it says that it is over"
    if (not here or about_oneself(text)) and not _is_like("constraints", text):
        for matter in SENSITIVE:
            if _is_like(f"sensitive {matter}", text) and not _is_like(f"sensitive {matter}", prompt):
                return f"about {matter}, which the prompt is not"
    return ""


def _was_shown(transcript: str) -> bool:
    """Return whether a session's log tells that memory was shown: another process knew of it."""
    with suppress(OSError):
        return bool(transcript) and BEGIN.encode() in Path(transcript).read_bytes()
    return False


def _projects(view: View, entry: Entry, cwd: str) -> frozenset[str]:
    """Return the folders that a line was said in; the home folder is no project, but for a session in it."""
    return frozenset(one for one in folders_of(view, entry) if one == cwd or not _is_home(one))


@lru_cache(4096)
def _is_home(folder: str) -> bool:
    """Return whether it is the home folder, or around it: what lies in it belongs to many projects."""
    return PurePath(os.path.realpath(os.environ.get("HOME") or "/")).is_relative_to(folder)


@lru_cache(4096)
def is_of(folders: frozenset[str], cwd: str) -> bool:
    """Return whether one of the folders is of the same project: it lies in `cwd`, or around it."""
    ways = [(PurePath(one), PurePath(cwd)) for one in folders]
    return any(
        here.is_relative_to(one) or (one.is_relative_to(here) and not _is_home(cwd)) for one, here in ways
    )


def about_oneself(text: str) -> bool:
    """Return whether a line tells of the person who said it, and not of the place."""
    return bool(_ONESELF.search(text)) and not _HERE.search(text)


def said(prompt: str) -> str:
    text, _ = without_recalled(prompt)
    return "" if text.lstrip().startswith("/") else text


def _row(text: str, *about: str | None, at: int = 0) -> str:
    """One line, however many the text has: no line of it can pose as a mark."""
    return f"({', '.join(map(name, filter(None, about)))}) {' '.join(shown(text, at).split())}"


def _replaced(view: View, doc_id: str, seqs: Collection[int]) -> str:
    """Return what a line of a topic replaced, as " (was: …)", the newest alone; "" if nothing."""
    archive = archive_of(doc_id)
    older = view.document(archive).entries if archive in view else ()
    gone = [place.text for place in older if replaced_by(place.headings) in seqs]
    return f" (was: {' '.join(shown(gone[-1]).split())})" if gone else ""
