"""The text of HTML: paragraphs, items and line breaks stay lines; styles, scripts and quoted mails go."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset(
    "address article blockquote br dd div dl dt fieldset footer h1 h2 h3 h4 h5 h6 header hr li ol p pre "
    "section table tr ul".split()
)
_HIDDEN = frozenset(("head", "script", "style", "template", "title"))
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_QUOTED = re.compile(r"gmail_quote|yahoo_quoted|moz-cite-prefix|protonmail_quote")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._open: list[tuple[str, bool]] = []  # tags, and whether what is inside is left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n\n" if tag in ("p", "hr") else "\n")
        if tag in ("td", "th"):
            self.parts.append(" ")
        if tag not in _VOID:
            given = dict(attrs)
            quoted = tag == "blockquote" and given.get("type") == "cite"
            quoted = quoted or bool(_QUOTED.search(given.get("class") or ""))
            self._open.append((tag, quoted or tag in _HIDDEN or self._hidden))

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")
        while any(name == tag for name, _ in self._open):
            if self._open.pop()[0] == tag:
                break

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))

    @property
    def _hidden(self) -> bool:
        return bool(self._open) and self._open[-1][1]


def text_of_html(html: str) -> str:
    """The words of a page or a fragment as plain text, with lines where a reader sees lines."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (re.sub(r" {2,}", " ", line).strip() for line in "".join(parser.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("- \n", "- ").strip()
