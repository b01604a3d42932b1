"""Which characters may be stored and shown. Knows nothing of entries or documents.

What was said is never refused. What would make a line lie to its reader, or break the file, is written
as a visible escape instead: NUL, lone surrogates, and bidi or tag controls outside the sequences that
have a lawful use.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Literal

_SUSPECT = re.compile(r"[\x00\r\ud800-\udfff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_HIDDEN = re.compile(r"[\x00\ud800-\udfff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BIDI = re.compile(r"[\n\u202a-\u202e\u2066-\u2069]")
_PIECE_LENGTH = 256
_PIECE = re.compile(rf"(?s).{{1,{_PIECE_LENGTH}}}(?=[\x00-\x7f]|\Z)|.{{1,{_PIECE_LENGTH}}}")
_FOLD = re.compile(r"[ \t]*+\n[ \t\n]*+")

# The flags of England, Scotland, Wales and their like: the only tag sequences in use.
_FLAG = re.compile(r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")

# Control characters, line separators, and Unicode's Default_Ignorable_Code_Point with the annotation marks.
_STEERS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"
_BLANK = (
    r"\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_VARIES = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINS = r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u200c-\u200f\u3164\uffa0"
_TURNS = r"\u202a-\u202e\u2066-\u2069"
_SEEN = rf"[^\x00-\x7f{_STEERS}{_BLANK}{_VARIES}{_JOINS}{_TURNS}]"
_UNSEEN = re.compile(
    rf"({_FLAG.pattern})|[{_STEERS}{_BLANK}]"
    rf"|[{_VARIES}]{{2,}}"  # one variation selector may stand behind a character
    # What scripts and emoji need joined, parted or turned; anywhere else it only hides.
    rf"|(?<!{_SEEN})[{_JOINS}](?!{_SEEN})"
)
_UNSEEN_OR_TURNED = re.compile(rf"{_UNSEEN.pattern}|[\u061c\u200e\u200f{_TURNS}]")

_CLOSES = {"\u202c": "\u202a\u202b", "\u2069": "\u2066\u2067\u2068"}
"""What ends an embedding and what ends an isolate, with what begins them. Overrides (U+202D, U+202E) are
absent: they show text in another order than it stands, so they never pass."""


def clean_text(text: str) -> str:
    """Return `text` as it may be stored; cleaning twice changes nothing more.

    CRLF and a lone CR become LF. NUL, lone surrogates, bidi overrides, bidi controls that are not closed on
    their line and tag characters outside a flag become visible escapes such as `\\u202e`.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lawful = _lawful(text)

    def shown(run: re.Match[str]) -> str:
        return "".join(c if at in lawful else _escape(c) for at, c in enumerate(run[0], run.start()))

    return _HIDDEN.sub(shown, text)


def one_line(text: str) -> str:
    """Put `text` on one line: a line break and the blanks around it become a space; blanks at the ends go."""
    return _FOLD.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip(" \t")


def sound(text: str) -> str:
    """Show every undecodable byte (a lone surrogate) as U+FFFD: for showing, never for writing."""
    try:
        text.encode()  # several times as fast as the expression
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def visible(text: str, turned: bool = True) -> str:
    """Escape, as `\\x1b`, each character that moves a cursor, changes colours, ends a line where none ends or
    hides; tabs and newlines stay. `turned`: whether bidi controls may stand, as right-to-left scripts use
    them: a model reads in the order of the characters, but a screen shows them in another."""
    if text.isascii() and text.isprintable():
        return text
    unseen = _UNSEEN if turned else _UNSEEN_OR_TURNED
    return unseen.sub(lambda match: match[1] or "".join(map(_escape, match[0])), text)


def name(text: str) -> str:
    """Return a name as it is shown in text: on one line, and `visible`."""
    return visible(one_line(clean_text(text)))


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block whose fence it cannot end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalize as `unicodedata` does, in time linear in the text: that one takes the square of a run of
    combining marks. A long text is taken in pieces, cut where a character surely begins if it can be."""
    if len(text) <= _PIECE_LENGTH or text.isascii():
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _PIECE.findall(text))


def _lawful(text: str) -> set[int]:
    """Return the positions of the bidi and tag characters that stand in a lawful sequence."""
    lawful = {at for flag in _FLAG.finditer(text) for at in range(flag.start(), flag.end())}
    open_: list[tuple[str, int]] = []
    for match in _BIDI.finditer(text):
        char, at = match[0], match.start()
        if char == "\n":
            open_.clear()
        elif char not in _CLOSES:
            open_.append((char, at))
        elif open_ and open_[-1][0] in _CLOSES[char]:
            lawful |= {open_.pop()[1], at}
    return lawful


@cache
def _escape(char: str) -> str:
    code = ord(char)
    if 0 < code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_AROUND = ".,;:!?\"'()[]…“”"


@lru_cache(maxsize=4096)
def normalised(text: str) -> str:
    """Return text for comparing: NFKC, case-folded, without punctuation around words (but "C++")."""
    text = normalize("NFKC", text).replace("’", "'")
    words = (word.strip(_AROUND) for word in text.casefold().split())
    return " ".join(word for word in words if word) or text


def text_key(text: str) -> bytes:
    """Return the 16 bytes that name a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
