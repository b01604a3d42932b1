"""The text of HTML: paragraphs, items and line breaks stay lines; styles, scripts and quoted mails go.

Not by html.parser: it looks for the end of each open tag anew, minutes for a hostile page of 300 kB.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

from infinimem.errors import ImportFormatError

_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|head|title|template)\b[^<>]*>.*?(?:</\1\b[^<>]*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)\b([^<>]*)>|<[!?/][^<>]*>", re.IGNORECASE)
_QUOTED = re.compile(
    r"class=[\"']?[^\"']*(?:gmail_quote|yahoo_quoted|moz-cite-prefix|protonmail_quote)|type=[\"']?cite",
    re.IGNORECASE,
)
_BREAKS = dict.fromkeys(
    "address article blockquote br dd div dl dt footer h1 h2 h3 h4 h5 h6 header ol pre section table tr ul"
    "".split(),
    "\n",
) | {"p": "\n\n", "hr": "\n\n", "li": "\n- ", "td": " ", "th": " "}
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


MAX_TAGS = 2**20


def text_of_html(html: str) -> str:
    """The words of a page or a fragment as plain text, with lines where a reader sees lines.

    Raises:
        ImportFormatError: it holds more than `MAX_TAGS` tags.
    """
    if html.count("<") > MAX_TAGS:
        raise ImportFormatError(f"a page holds over {MAX_TAGS} tags: save its text")
    parts: list[str] = []
    open_: list[tuple[str, bool]] = []  # tags, and whether a quoted mail is inside
    times: Counter[str] = Counter()  # a tag is open
    at, html = 0, _UNSEEN.sub("", html)
    for tag in _TAG.finditer(html):
        quoted = bool(open_) and open_[-1][1]
        if not quoted:
            parts.append(re.sub(r"\s+", " ", html[at : tag.start()]))
        at, name = tag.end(), (tag[2] or "").lower()
        parts.append(
            "" if quoted else "\n" if tag[1] and name == "p" else _BREAKS.get(name, "") * (not tag[1])
        )
        if not tag[1] and name and name not in _VOID:
            open_.append((name, quoted or bool(_QUOTED.search(tag[3]))))
            times[name] += 1
        left = ""
        while tag[1] and times[name] and left != name:  # what is inside and was not closed ends with it
            left, _ = open_.pop()
            times[left] -= 1
    if not (open_ and open_[-1][1]):
        parts.append(re.sub(r"\s+", " ", html[at:]))
    lines = (re.sub(r" {2,}", " ", line).strip() for line in unescape("".join(parts)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("-\n", "- ").strip()
