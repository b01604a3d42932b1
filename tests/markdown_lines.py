"""Documents of awkward lines, and how tests look at them; shared by the tests of markdown/."""

from __future__ import annotations

from hypothesis import strategies as st

from infinimem.markdown.document import Document

PIECES = [
    *(
        "- <seq=1> a",
        "- <seq=2,source=human> b",
        "- <seq=3> c",
        "- <seq=x> bad",
        "- <b>bold</b>",
        "- item",
        "* item",
    ),
    *(
        "# One",
        "## Two",
        "# Two ##",
        "   ### Three",
        "#no",
        "prose",
        "  indented",
        "    deep",
        "",
        "",
        " ",
        "  ",
        "\t",
    ),
    *(
        "```",
        "```py",
        "~~~",
        "````",
        "  ```",
        "---",
        "id: x",
        "a: [b",
        "...",
        "<<<<<<< ours",
        "- ",
        "-",
        "* * *",
    ),
    *("\u2028- <seq=9> no", "\x85", "\v", "\f", "\ufeff", "\0", "\udcff", "- <seq=4> \udcff", "é"),
]
LINES = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", "\n", "\r\n", "\r\r\n"])), max_size=24
)
DOCUMENTS = st.tuples(LINES, st.sampled_from(["", "\n", "x", "\ufeff"]), st.booleans()).map(
    lambda drawn: ("\ufeff" * drawn[2] + "".join(a + b for a, b in drawn[0]) + drawn[1]).encode(
        "utf-8", "surrogateescape"
    )
)
OWN = st.sampled_from(["topics/t", "evidence/e", "CURRENT"])
IDS = OWN | st.just("notes/n")
NEW = "- <seq=77,source=user> new"


def numbered(document: Document) -> list[tuple[int, str]]:
    return [(place.entry.seq, place.entry.line) for place in document.entries]


def is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)
