"""What of a text could stand elsewhere: whole, a line or sentence of it, escaped. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property

from infinimem.markdown.header import quote
from infinimem.model import Located
from infinimem.spec import strategies
from infinimem.store.spec import slug

Finds = Callable[[str], Sequence[str]]
"""Gives what a pattern finds in a line of text."""

SENTENCE = 20
"""Characters; a longer sentence of a text, or a line of it, is looked for by itself."""
SHORTEST = 4
"""Characters; a shorter text cannot be told from other bytes."""
_BOUNDED = 12
"""Bytes; a shorter text counts only where it is not a part of a word."""
_KEY = 8
_RUN = 200
"""So many lines are searched at once; one by one only where something is found."""
_MANY = 64
"""From so many texts on, a file is passed through once for all of them."""

_END = re.compile(r"(?<=[.!?…。！？])\s+|\n")
_WORD = re.compile(r"[^\W_]{4,}")
_SUM = re.compile(rb"\b[0-9a-f]{64}\b")
_DATE = re.compile(rb"(?:19|20)[0-9]{2}[0-9:.tz+-]*|[0-9:.tz+-]{1,3}")
_FORMAT = b"""
    id kind summary token_count created_time update_log op receipt added archived aux from unverified true
    aliases evidence session date participants topics archive journal memories buffer audit
    current_epoch infinimem create consolidate append split merge stamp rename undo forget review memory
    write strategy model usage calls tokens_in tokens_out seconds high was now why files sha256 before
    after nothing notes as it was moved by hand merged edited renumbered cites deleted superseded
    duplicate rewritten removed undone forgotten people none offline client memory-tool seq time
    source user ai tool human origin speaker turn key observed refers role label pin heading plan moves
    adds marks stood code keywords links ref span record unit type version near
    markdown diff other
"""
"""What files hold whatever was said: words of the format. `_format` adds the names that strategies give."""


def pieces(text: str) -> set[str]:
    """A text, and each of its lines and sentences that is long enough to be nobody else's."""
    whole = text.strip()
    parts = {part.strip() for part in (*_END.split(text), *text.split("\n"))}
    return {
        part for part in (whole, *parts) if len(part) > SENTENCE or (part == whole and len(part) >= SHORTEST)
    }


def forms(piece: str) -> set[bytes]:
    """How it reads in a document, a header, a signature, a table, JSON, or on one line; in lower case."""
    quoted = quote(piece, flow=True)
    written = {
        piece,
        piece.replace("\n", "\n  "),
        " ".join(piece.split()),
        quoted[1:-1] if quoted.startswith('"') else quoted,
        piece.replace("\\", "\\\\").replace('"', '\\"'),
        re.sub(r"[|\\]", r"\\\g<0>", piece),
        json.dumps(piece)[1:-1],
        json.dumps(piece, ensure_ascii=False)[1:-1],
    }
    return {lowered(form) for form in written}


class Texts:
    """What is to be nowhere.

    Args:
        said: in the lines that go, without their signatures.
        words: what was asked for: what a pattern found in them, a session; within other words too.
        finds: the pattern; gives what it finds in a text.
        others: every reading of the lines that stay.
        whole: what was asked for counts as whole words alone.
    """

    def __init__(
        self,
        said: Sequence[str],
        words: Iterable[str] = (),
        finds: Finds | None = None,
        others: Sequence[Located] = (),
        whole: bool = False,
    ) -> None:
        texts = {form for text in said for piece in pieces(text) for form in forms(piece)}
        told = {form for word in words for form in {*forms(word), slug(word).encode()} if len(form) > 1}
        short = {form for form in texts if len(form) < _BOUNDED}
        short |= {form for form in told if whole or len(form) < SHORTEST or form.isdigit()}
        telling = {form for form in texts | told if not _is_format(form)}
        self._all = _Literals(telling & short, telling - short)
        self._words = _Literals(told & short, told - short)
        self._said, self._others = frozenset(word for text in said for word in _long_words(text)), others
        self._finds = finds or (lambda line: ())
        self.repeated: list[Located] = []
        """Lines that stay and say some of it in their own right."""
        for start in range(0, len(others), _RUN):
            some = others[start : start + _RUN]
            if self._all.within(lowered("\n".join(f"{one.text}\n{one.entry.line}" for one in some))):
                self.repeated += [one for one in some if self.within(f"{one.text}\n{one.entry.line}")]
        lines = {
            line for one in self.repeated for line in (*one.text.split("\n"), *one.entry.line.split("\n"))
        }
        own = {form for line in lines if self.within(line) for form in forms(line)}
        self._own = sorted(own, key=lambda form: (-len(form), form))

    def hinted(self, title: str) -> bool:
        """As `named`, or whether a longer word of it stands in a title that no line has which stays."""
        words = _long_words(title)
        rare = not self._said.isdisjoint(words) and not self._rare.isdisjoint(words)
        return rare or self.named(title)

    @cached_property
    def _rare(self) -> frozenset[str]:
        """Words of what goes that no line has which stays."""
        return self._said.difference(*(_long_words(one.text) for one in self._others))

    def within(self, data: bytes | str) -> bool:
        """Whether any of it stands in bytes or text; what files hold whatever was said does not count."""
        data = lowered(data)
        return self._all.within(data) and self._all.within(_SUM.sub(b"", data))

    def holds(self, data: bytes | str, names: Iterable[str] = ()) -> bool:
        """As `within`, but for what others say in their own right, and for these names."""
        if not self.within(data):
            return False
        data = lowered(data)
        for words in (*self._own, *map(lowered, names)):
            data = data.replace(words, b"")
        return self.within(data)

    def named(self, text: str) -> bool:
        """Whether any of it, or what was asked for, stands in a name."""
        spaced = f"{text}\n{text.replace('-', ' ')}"
        found = any(word for line in spaced.split("\n") for word in self._finds(line))
        return found or self._words.within(lowered(spaced)) or self.within(spaced)


class _Literals:
    """Byte strings to look for; the short ones count only where they are no part of a word."""

    def __init__(self, short: Collection[bytes], long: Collection[bytes]) -> None:
        self._short, self._long = short, long
        self._size = min(_KEY, *map(len, long), _KEY)
        self._keys: dict[bytes, list[bytes]] = {}
        for form in long:
            self._keys.setdefault(form[: self._size], []).append(form)

    def within(self, data: bytes) -> bool:
        if any(_stands_alone(form, data) for form in self._short):
            return True
        if len(self._long) < _MANY:
            return any(form in data for form in self._long)
        keys, size = self._keys, self._size
        return any(
            any(data.startswith(form, at) for form in keys[key])
            for at in range(len(data) - size + 1)
            if (key := data[at : at + size]) in keys
        )


def _long_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def lowered(data: bytes | str) -> bytes:
    """Text in which upper and lower case are the same."""
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    return text.casefold().encode("utf-8", "surrogateescape")


def _is_format(form: bytes) -> bool:
    """Whether it is a word of the format, or part of one; a year, or a small number."""
    stands = _stands_alone(form, _format()) if len(form) < SHORTEST else form in _format()
    return stands or _DATE.fullmatch(form) is not None


@cache
def _format() -> bytes:
    specs = strategies().values()
    rows = ((spec.name, *spec.folders, *spec.links, *(kind.name for kind in spec.kinds)) for spec in specs)
    return _FORMAT + " ".join(name for row in rows for name in row).replace("/", " ").encode()


def _stands_alone(form: bytes, data: bytes) -> bool:
    at = data.find(form)
    while at >= 0:
        end = at + len(form)
        joined = _is_word(data[at - 1 : at] if at else b"") and _is_word(form[:1])
        if not joined and not (_is_word(form[-1:]) and _is_word(data[end : end + 1])):
            return True
        at = data.find(form, at + 1)
    return False


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte >= b"\x80"
