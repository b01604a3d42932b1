"""The nouns of the write path: topics, their facts as a model is shown them, titles, slugs, packing; and
what a model named of them, read: each line in the one place that it is named first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from infinimem import terms, tokens
from infinimem.grounding import sentences
from infinimem.llm.base import LLM, Task
from infinimem.markdown.characters import clean_text, normalised, one_line
from infinimem.markdown.document import Document, plain_title
from infinimem.model import CURRENT, Entry, Located, Plan, Reason, Withheld
from infinimem.store.lines import ALIAS, STEM, fold
from infinimem.store.spec import TOPICS, is_device, slug
from infinimem.store.view import View
from infinimem.strategies.records.asking import Asker, Data, seq_of

INBOX = f"{TOPICS}inbox"
"""Where lines go that no document is near to."""
TITLE_LENGTH, SLUG_LENGTH = 80, 60


@dataclass(frozen=True)
class Topic:
    """Lines that belong together, under a title; `given` if they came with it."""

    title: str
    entries: tuple[Entry, ...]
    given: bool = False


class Account(Asker):
    """An asker that also keeps what the next plan is to say: notes, and archivings that need approval."""

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self.notes: dict[str, None] = {}
        self.withheld: list[Withheld] = []

    def note(self, *texts: object) -> None:
        self.notes |= {one_line(clean_text(str(text))): None for text in texts}

    def close(self, plan: Plan) -> Plan:
        """Return the plan with all that was kept for it; an account for the next one begins."""
        notes, withheld, self.notes, self.withheld = self.notes, self.withheld, {}, []
        told = tuple(dict.fromkeys((*plan.notes, *notes)))
        return replace(plan, notes=told, withheld=tuple(withheld), rejected=self.rejected())

    def ask_groups(
        self,
        task: Task,
        variables: Mapping[str, Any],
        known: Collection[int],
        items_of: Callable[[Data], Sequence[Data]] = lambda data: next(iter(data.values())),
    ) -> tuple[list[Data] | None, Sequence[Reason]]:
        """Ask for groups of facts: items with "fact_ids", the reply's one list unless `items_of` reads it
        otherwise.

        Returns the items of the better reply with their "seqs", each fact where it is named first, None if no
        reply can be read; and what is wrong with it.
        """
        data, wrong = self.ask_checked(task, variables, lambda data: _placed(items_of(data), known)[1])
        return None if data is None else _placed(items_of(data), known)[0], wrong


def _placed(items: Iterable[Data], known: Collection[int]) -> tuple[list[Data], list[Reason]]:
    placed, unknown = list[Data](), list[str]()
    seen, repeated = set[int](), set[int]()
    for item in items:
        seqs: list[int] = []
        for name in item["fact_ids"]:
            seq = seq_of(name)
            if seq is None or seq not in known:
                unknown.append(name[:20])
            elif seq in seen:
                repeated.add(seq)
            else:
                seen.add(seq)
                seqs.append(seq)
        placed.append({**item, "seqs": seqs})
    wrong = {"MISSING": set(known) - seen, "REPEATED": repeated}
    reasons = [Reason(code, tuple(sorted(seqs))) for code, seqs in wrong.items() if seqs]
    return placed, reasons + ([Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else [])


# ── wording ─────────────────────────────────────────────────────────────────────────────────────

_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ENDS = ".!?…:;\"'”’)»"
_FULL_STOPS = "。！？"  # no space follows them
_BULLET = re.compile(r"(?:\A|\n)[-*+•] \Z")
_BREAK = re.compile(rf"(?<=[.!?…])(?<!\d\.)\s+|(?<=[{_FULL_STOPS}])|\n+")  # "280. " may head a list item


def unsupported(text: str, origins: Sequence[str], people: Iterable[str] = ()) -> list[str]:
    """What the origins, or `people` for "I" and "you", do not bear out; or that no word is shared."""
    missing = sentences.unsupported(text, [*origins, *people])
    if not missing and set(terms.tokens("\n".join(origins))).isdisjoint(terms.tokens(text)):
        return ["no word in common"]
    return missing


def verbatim(text: str, origin: str) -> bool:
    """Tell whether the text is the origin or a run of whole sentences or lines of it, but for white space.
    Half a sentence is not: it may have lost a "not"."""
    said, lines = " ".join(text.split()), _LINES.sub("\n", _SPACE.sub(" ", origin)).strip()
    flat = lines.replace("\n", " ")
    at = flat.find(said) if said else -1
    while at >= 0:
        before, after = lines[max(at - 3, 0) : at], lines[at + len(said) : at + len(said) + 1]
        begins = before[-1:] in ("", "\n", *_FULL_STOPS) or (before[-1] == " " and before[-2:-1] in [*_ENDS])
        ends = after in ("", "\n") or said[-1] in _FULL_STOPS or (said[-1] in _ENDS and after == " ")
        if ends and (begins or _BULLET.search(before)):
            return True
        at = flat.find(said, at + 1)
    return False


def cut(text: str, limit: int) -> list[str]:
    """Return the text in pieces of about `limit` tokens, cut after sentences or lines, else anywhere."""
    ends = [0, *(match.end() for match in _BREAK.finditer(text)), len(text)]
    parts = (
        text[at : min(at + 2 * limit, end)]
        for start, end in pairwise(ends)
        for at in range(start, end, 2 * limit)
    )
    return [piece for piece in map("".join, tokens.packed(parts, limit, tokens.count)) if piece.strip()]


# ── lines and topics ────────────────────────────────────────────────────────────────────────────


def fact(entry: Entry) -> dict[str, str | None]:
    """An entry as data (llm/tasks.py, shape `fact`), with speaker, `when` and label where it has them."""
    told = {
        "id": str(entry.seq),
        "time": entry.known_time or None,
        "source": entry.source,
        "text": entry.text,
    }
    return told | {key: entry.fields[key] for key in ("speaker", "when", "label") if key in entry.fields}


def brief(entry: Entry) -> dict[str, str | None]:
    """The same without the speaker, where the text names them."""
    told = fact(entry)
    return {**told, "speaker": None} if (told.get("speaker") or "") in entry.text else told


def size(entries: Iterable[Entry]) -> int:
    """Tokens of the entries' lines."""
    return sum(tokens.count(entry.line) + 1 for entry in entries)


def entries_of(topics: Iterable[Topic]) -> tuple[Entry, ...]:
    """All entries, in the topics' order."""
    return tuple(entry for topic in topics for entry in topic.entries)


def movable(document: Document, view: View) -> tuple[Located, ...]:
    """Lines whose seq stands nowhere else; of a doubled one no one can say which is meant."""
    doubled, times = view.lines.doubled, Counter(place.seq for place in document.entries)
    return tuple(
        place
        for place in document.entries
        if place.seq not in doubled or (times[place.seq] == 1 and view.lines.place(place.seq) == document.id)
    )


def heading_of(place: Located) -> str:
    """The section in which a line stands, "" before the first heading."""
    return place.headings[-1] if place.headings else ""


def sections(places: Iterable[Located], untitled: str = "") -> tuple[Topic, ...]:
    """Lines grouped by the section in which they stand, in order of first appearance."""
    groups: dict[str, list[Entry]] = {}
    for place in places:
        groups.setdefault(heading_of(place) or untitled, []).append(place.entry)
    return tuple(Topic(title, tuple(entries)) for title, entries in groups.items())


def joined(topics: Iterable[Topic]) -> tuple[Topic, ...]:
    """Topics of equal titles as one, the lines of each by seq; empty ones are left out."""
    groups: dict[str, Topic] = {}
    for topic in topics:
        first = groups.setdefault(normalised(topic.title), replace(topic, entries=()))
        entries = sorted((*first.entries, *topic.entries), key=lambda entry: entry.seq)
        groups[normalised(topic.title)] = replace(first, entries=tuple(entries))
    return tuple(topic for topic in groups.values() if topic.entries)


def packed(topics: Sequence[Topic], limit: int) -> list[list[Topic]]:
    """Whole topics in order in chunks of at most `limit` tokens; a larger one stands alone (algorithm 2,
    SplitByHeading)."""
    return tokens.packed(topics, limit, lambda topic: size(topic.entries))


def halves(topics: Sequence[Topic]) -> list[list[Topic]]:
    """The lines cut in two near the middle, between two topics if one ends within a quarter of it
    (algorithm 2, RecursiveFallbackSplit)."""
    seqs = [entry.seq for entry in entries_of(topics)]
    middle = len(seqs) // 2
    borders = [at for at in accumulate(len(topic.entries) for topic in topics) if 0 < at < len(seqs)]
    near = [at for at in borders if abs(at - middle) <= len(seqs) // 4]
    cut = min(near, key=lambda at: (abs(at - middle), at), default=middle)
    return parted(topics, (seqs[:cut], seqs[cut:]))


def parted(topics: Sequence[Topic], groups: Iterable[Collection[int]]) -> list[list[Topic]]:
    """For each group of seqs the part of the topics that has these lines."""
    parts = []
    for seqs in map(frozenset, groups):
        of_topic = (replace(one, entries=tuple(e for e in one.entries if e.seq in seqs)) for one in topics)
        parts.append([topic for topic in of_topic if topic.entries])
    return parts


# ── titles and slugs ────────────────────────────────────────────────────────────────────────────


def clean_title(text: str) -> str:
    """A title that reads back as it was written under "# ": one line, no marks around it, not too long."""
    return plain_title(" ".join(one_line(clean_text(text)).split()).lstrip("# ")[:TITLE_LENGTH])


def unsorted(view: View) -> str:
    """The title for lines that no one named one for."""
    return f"Unsorted {view.epoch + 1}"


def title_of(doc_id: str, view: View) -> str:
    """What a document is called: its own title, else its slug in words."""
    own = view.document(doc_id).title if doc_id in view else ""
    return own or doc_id.rsplit("/", 1)[-1].replace("-", " ").capitalize()


def slugify(title: str) -> str:
    """A file name for a title: a-z, 0-9 and hyphens, at most 60 characters, never empty, no device's."""
    name = slug(title)
    if len(name) > SLUG_LENGTH:
        name = name[: SLUG_LENGTH + 1].rpartition("-")[0] or name[:SLUG_LENGTH]
    name = name.strip("-") or "topic"
    return f"{name}-topic" if is_device(name) else name


def new_id(title: str, view: View, given: set[str]) -> str:
    """The id `topics/<slug>` for a new document, with -2, -3 … where a document, an archive, an alias or one
    of those that were `given` has the slug; it is put to these."""
    name = first = slugify(title)
    number = 1
    while name in {*given, fold(CURRENT)} or any(view.lines.named(kind, name) for kind in (STEM, ALIAS)):
        number += 1
        name = f"{first}-{number}"
    given.add(name)
    return f"{TOPICS}{name}"
