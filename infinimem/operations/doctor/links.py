"""Links to nowhere: `[[names]]` and relative links to Markdown files, in live documents and people's notes.

Not looked at: evidence, also where a record quotes it, code, URLs, anchors, and files that are not Markdown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from infinimem.errors import DocumentNotFound
from infinimem.markdown.document import Document
from infinimem.markdown.scan import fences
from infinimem.model import Finding
from infinimem.operations.doctor.inspection import Inspection
from infinimem.spec import ledger_folders
from infinimem.store.lines import fold
from infinimem.store.view import View

# Bounded and without nested repetition: notes are anybody's text.
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_INLINE = re.compile(r"\]\(\s{0,3}(?:<([^<>\n]{1,300})>|([^()<>\s]{1,300}))")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{0,2000}(?<!`)\1(?!`)")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,30}:")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")


def nowhere(inspection: Inspection) -> Iterator[Finding]:
    """A note for each link that leads nowhere."""
    names = _Names(inspection.view)
    for doc_id in inspection.view.ids():
        document = inspection.documents.get(doc_id)
        if document is None or (doc_id.startswith(ledger_folders()) and not inspection.view.is_note(doc_id)):
            continue
        for number, line in _prose(document):
            for target in _targets(line, doc_id):
                if not names.holds(target):
                    what = f"links to {target}, which does not exist"
                    yield Finding("note", what, f"{doc_id}:{number}")


def _prose(document: Document) -> Iterator[tuple[int, str]]:
    """Lines below the header and outside fences that hold a bracket, with their numbers."""
    start, end = document.header.end, 0
    closed = fences(document.lines, start, indented=True)
    for number, line in enumerate(document.lines[start:], start + 1):
        end = max(end, closed.get(number, 0))
        if number > end and ("](" in line or "[[" in line):
            yield number, document.text_line(number)


def _targets(line: str, doc_id: str) -> Iterator[str]:
    """Names, or paths from the root without `.md`."""
    line = _CODE.sub("", line)
    for match in _WIKI.finditer(line):
        name = re.split(r"[|#^\\]", match[1], maxsplit=1)[0].strip()
        if name and not _SCHEME.match(name) and (name.endswith(".md") or not _SUFFIX.search(name)):
            yield name.removesuffix(".md")
    for match in _INLINE.finditer(line):
        path = unquote((match[1] or match[2]).split("#", 1)[0])
        if path.endswith(".md") and not _SCHEME.match(path):
            base = "" if path.startswith("/") else posixpath.dirname(doc_id)
            full = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
            if not full.startswith("../"):  # outside the folder is not ours to say
                yield full.removesuffix(".md")


class _Names:
    """What a link may name: ids, the ends of their paths, aliases."""

    def __init__(self, view: View) -> None:
        self._view = view
        # Logseq writes a/b as a___b, and what no file system takes as %3F.
        meant = (name for i in view.ids("all") for name in (i, unquote(i.replace("___", "/"))))
        ids = [fold(name).split("/") for name in meant]
        self._ends = {"/".join(parts[at:]) for parts in ids for at in range(len(parts))}

    def holds(self, target: str) -> bool:
        if fold(target.strip("/")) in self._ends:
            return True
        try:
            self._view.resolve(target)
        except DocumentNotFound:
            return False
        return True
