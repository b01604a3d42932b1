"""Results as lines for a model, which says of a line only what the line above it does not share.

7 2023-05-08 Ana: I moved to Lisbon last month.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from infinimem.markdown.characters import name
from infinimem.markdown.signature import parse_entry, unsign

from .tool import Result, shown

_NOTED = ("when", "refers")


@dataclass(frozen=True)
class _Passage:
    """Lines of a document that a result shows, each with the mark behind its number."""

    doc_id: str
    heading: str
    lines: Iterable[tuple[int, str, str]]


def rows(
    result: Result,
    ids: bool = False,
    dated: Callable[[str], str] | None = None,
    raw: Callable[[str, int], str] | None = None,
) -> Iterator[str]:
    """Return the lines of a result of one of the five, whose last row is a total; or rows as they are.

    With `ids` entries are told with their numbers; `dated` tells a day in other words; `raw` gives a line as
    it stands in the file, and all are told so, blank ones too.
    """
    if "rows" in result:
        yield from map(shown, result["rows"])
        return
    if "docs" in result:
        for doc in result["docs"]:
            archived = f", {doc['archived']} archived lines" if doc["archived"] else ""
            about = ": ".join(filter(None, (doc["title"], doc["summary"])))
            yield f"{doc['id']} ({doc['tokens']} tokens{archived}) {about}".rstrip()
        yield f"{len(result['docs'])} of {result['total']} documents"
        return
    for passage in _passages(result, raw is not None):
        if raw:
            told = [f"{n}{mark} {raw(passage.doc_id, n)}" if n else text for n, mark, text in passage.lines]
        else:
            told = list(_told(passage.lines, passage.heading.rpartition(" > ")[2], ids, dated))
        if told and "lines" not in result:
            yield f"{passage.doc_id} {passage.heading}".rstrip()
            told = [f"  {row}" for row in told]
        yield from told
    yield _total(result)


def _passages(result: Result, raw: bool) -> Iterator[_Passage]:
    for hit in result.get("hits", ()):
        stem = hit["doc_id"].rpartition("/")[2].replace("-", " ")
        evident = {"", stem.casefold(), hit["heading"].partition(" > ")[0].casefold()}
        above = () if hit["title"].casefold() in evident else (hit["title"],)
        heading = " > ".join(filter(None, (*above, hit["heading"])))
        yield _Passage(hit["doc_id"], heading, ((number, "", text) for number, text in numbered(hit)))
    found: dict[str, dict[int, tuple[str, str]]] = {}
    for match in result.get("matches", ()):
        around = found.setdefault(match["doc_id"], {})
        first = match["line"] - len(match["before"])
        for number, text in enumerate([*match["before"], match["text"], *match["after"]], first):
            around.setdefault(number, ("-", text))
        around[match["line"]] = (":", match["text"])
    for doc_id, around in found.items():
        yield _Passage(doc_id, "", [(number, *around[number]) for number in sorted(around)])
    if "lines" in result:
        lines = ((line["line"], "", line["text"]) for line in result["lines"])
        first = 0 if raw else result["header_lines"]
        yield _Passage(result["doc_id"], "", [line for line in lines if line[0] > first])


def numbered(hit: Result) -> Iterator[tuple[int, str]]:
    """The lines of a hit with their numbers; 0 for the "…" between two runs of them."""
    texts = iter(hit["snippet"].split("\n"))
    for first, last in hit.get("ranges") or [(hit["start_line"], hit["end_line"])]:
        if first > hit["start_line"]:
            yield 0, next(texts)
        yield from zip(range(first, last + 1), texts, strict=False)


def _told(
    lines: Iterable[tuple[int, str, str]], heading: str, ids: bool, dated: Callable[[str], str] | None
) -> Iterator[str]:
    """Rows of one passage, without blank lines and the heading that stands above them."""
    above = ("", "")
    for number, mark, text in lines:
        if not text.strip() or (heading and not mark and text.lstrip("#").strip() == heading):
            continue
        number_of = ""
        if entry := parse_entry(text):
            speaker = entry.fields.get("speaker", "")
            source = "" if entry.source in ("user", "human") else f"({entry.source})"
            who = " ".join(filter(None, (name(speaker), source))) or "user"
            day = (entry.time or "")[:10]
            fresh = [
                part or "no day" for part, before in zip((day, who), above, strict=True) if part != before
            ]
            if dated and day and fresh[:1] == [day]:
                fresh = [", ".join((dated(day), *fresh[1:]))]
            head = f"{' '.join(fresh)}:" if fresh else "-"
            above = (day, who)
            words = entry.text.removeprefix(f"{speaker}:").lstrip() if speaker else entry.text
            noted = ", ".join(f"{key} {name(entry.fields[key])}" for key in _NOTED if entry.fields.get(key))
            number_of = f"[{entry.seq}] " if ids else ""
            text = f"{head} {words}" + (f" ({noted})" if noted else "")
        yield f"{number or ''}{mark} {number_of}{unsign(text)}".strip()


def _total(result: Result) -> str:
    if "hits" in result:
        return f"{len(result['hits'])} section{'' if len(result['hits']) == 1 else 's'}"
    if "matches" in result:
        return f"{len(result['matches'])} of {result['total_matches']} matches"
    header, total = result["header_lines"], result["total_lines"]
    numbers = [line["line"] for line in result["lines"] if line["line"] > header]
    if numbers and (numbers[0], numbers[-1]) == (header + 1, total):
        return f"all of {total} lines"
    shown = f"lines {numbers[0]}-{numbers[-1]}" if numbers else "no lines"
    return f"{result['doc_id']}, {shown} of {total}"
