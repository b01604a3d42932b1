"""One document rewritten in the model's own words: the paper's rewriting, kept for comparison.

A new line names the lines that it stands for, and they go to the archive. Where its wording holds something
that they do not, they stay as they are; so does a line that nobody names, and one that is a person's.

Source: Infini Memory, prompts D and M2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infinimem.llm.tasks import LAYOUT_FREE
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Entry, NewEntry, Reason
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker, Data, once, seqs_of
from infinimem.strategies.infini.claims import Claim
from infinimem.strategies.infini.layout import Laid, Target, clipped, plain, question, shown_whole
from infinimem.strategies.infini.topics import clean_title, entries_of, packed, spoken
from infinimem.strategies.infini.wording import unsupported


@dataclass(frozen=True)
class _Line:
    """A line that the model wrote, and the seqs that it names as its sources."""

    heading: str
    text: str
    sources: tuple[int, ...]


def write_anew(target: Target, view: View, asker: Asker) -> Laid:
    """Ask for the document's new lines, in several calls if more comes in than one can hold.

    Raises:
        ModelUnavailable: nothing is written.
    """
    base = plain(target)
    shows = () if target.fixed else shown_whole(target, view)
    headings = dict(base.headings)
    adds: list[NewEntry] = []
    claims: list[Claim] = []
    notes: list[str] = []
    summary = ""
    for chunk in packed(target.topics, view.settings.infini.markdown_length) or [[]]:
        known = {entry.seq: entry for entry in (*(place.entry for place in shows), *entries_of(chunk))}

        def check(data: Data, known: Mapping[int, Entry] = known) -> list[Reason]:
            named = [name for part in data["layout"] for item in part["entries"] for name in item["from"]]
            unknown = [name for name in named if not seqs_of([name], known)]
            told = dict.fromkeys(str(seq) for line in _lines(data, known) for seq in line.sources)
            return once([told, unknown], known)[1]

        asked = question(target, shows, chunk, (add.heading for add in adds), view)
        reply, wrong = asker.ask(LAYOUT_FREE, asked, check)
        notes += [f"layout of {target.doc_id}: {reason}" for reason in wrong]
        if (data := reply.data) is None:
            continue
        lines, refused = _faithful(_lines(data, known), known)
        asker.reject(LAYOUT_FREE, reply, refused)
        notes += [f"layout of {target.doc_id}: {reason}; kept verbatim" for reason in refused]
        gone = {seq for add in adds for seq in add.replaces}
        for line in lines:
            heading = _heading(target, line, base.headings)
            same = next((seq for seq in line.sources if known[seq].text == line.text), None)
            if same is not None:
                headings |= dict.fromkeys(line.sources, heading)
                claims += [Claim(seq, same, "duplicate") for seq in line.sources if seq != same]
                continue
            replaces = tuple(seq for seq in line.sources if seq not in gone)
            gone.update(replaces)
            adds.append(
                NewEntry(line.text, line.sources, target.doc_id, heading, by="model", replaces=replaces)
            )
        summary = clipped(data["summary"], view.settings.infini.summary_length) or summary
    gone = {seq for add in adds for seq in add.replaces}
    moving = {
        seq: heading
        for seq, heading in headings.items()
        if seq not in gone and target.standing.get(seq) != heading
    }
    return Laid(moving, summary or base.summary, tuple(claims), tuple(adds), tuple(notes))


def _lines(data: Data, known: Mapping[int, Entry]) -> list[_Line]:
    """The lines of a reply that say something and name a source; one said twice is said once."""
    lines: dict[str, _Line] = {}
    for section in data["layout"]:
        for item in section["entries"]:
            text = one_line(clean_text(item["text"])).strip()
            sources = tuple(dict.fromkeys(seqs_of(item["from"], known)))
            if text and sources:
                lines.setdefault(text, _Line(clean_title(section["heading"]), text, sources))
    return list(lines.values())


def _faithful(lines: Sequence[_Line], known: Mapping[int, Entry]) -> tuple[list[_Line], list[Reason]]:
    """The lines whose sources may all be replaced by them; of the others the sources stay verbatim.

    A source that stays is not also retold: what else names it is dropped, and so on.
    """
    refused: list[Reason] = []
    stays = {seq for seq, entry in known.items() if entry.pinned or entry.source == "human"}
    told = []
    for line in lines:
        missing = unsupported(line.text, [spoken(known[seq]) for seq in line.sources])
        if missing:
            refused.append(Reason("UNSUPPORTED", line.sources, ", ".join(missing)))
            stays.update(line.sources)
        else:
            told.append(line)
    copies = [line for line in told if any(known[seq].text == line.text for seq in line.sources)]
    owned: set[int] = set()
    for line in copies:
        owned.update(line.sources)
    written = [line for line in told if line not in copies]
    while dropped := [line for line in written if not (stays | owned).isdisjoint(line.sources)]:
        written = [line for line in written if line not in dropped]
        stays.update(seq for line in dropped for seq in line.sources)
    return [*copies, *written], refused


def _heading(target: Target, line: _Line, base: Mapping[int, str]) -> str:
    """Where a line goes: as the model says, but under its topic's title in a document that is a person's."""
    first = line.sources[0]
    given = target.standing.get(first) or base.get(first, "")
    if target.fixed or not line.heading:
        return given
    return target.spelling.get(line.heading.casefold(), line.heading)
