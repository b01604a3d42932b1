"""Files as accidents and strangers make them: mutated from real ones, grown from junk, written by hand.

All from a seed; the same seed gives the same files.
"""

from __future__ import annotations

import random
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

LARGEST = 60_000
"""Bytes; real files above are no base for mutations, and a mutation stops growing here."""

TOKENS, HEADERS = (
    tuple(line.encode().decode("unicode_escape").encode("latin-1") for line in part.split("\n"))
    for part in Path(__file__).with_name("fault_tokens.txt").read_text().strip("\n").split("\n\n")
)
"""Bytes that mean something to somebody, and headers; one a line, escaped as in Python."""


def _merge_bomb() -> bytes:
    levels = [b"a0: &a0 {x: 1}"]
    levels += [b"a%d: &a%d {<<: [%s]}" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 25)]
    return b"---\n" + b"\n".join(levels) + b"\n---\nx\n"


def _laughs() -> bytes:
    levels = [b"a: &a [lol, lol]"]
    levels += [b"%c: &%c [%s]" % (c + 1, c + 1, b", ".join([b"*%c" % c] * 9)) for c in range(97, 115)]
    return b"---\n" + b"\n".join(levels) + b"\n---\n"


def by_hand() -> dict[str, bytes]:
    """The bombs that have names; some hundred thousand bytes each."""
    entries = b"".join(b"- <seq=%d,source=user> fact %d\n" % (n, n) for n in range(5000, 9000))
    return {
        "empty": b"",
        "newline": b"\n",
        "bom alone": b"\xef\xbb\xbf",
        "nul alone": b"\x00",
        "nul page": b"\x00" * 70_000,
        "brackets": b"[" * 100_000,
        "brackets in a header": b"---\nk: " + b"[" * 100_000 + b"\n---\n",
        "brackets in a small header": b"---\nk: " + b"[" * 16_000 + b"\n---\n- x\n",
        "braces in a small header": b"---\nk: " + b"{a: " * 4000 + b"\n---\n- x\n",
        "sequence of sequences": b"---\n" + b"- " * 8000 + b"\n---\n",
        "deep block mapping": b"---\n" + b"".join(b" " * n + b"k:\n" for n in range(170)) + b"---\n",
        "merge bomb": _merge_bomb(),
        "billion laughs": _laughs(),
        "anchors": b"---\n" + b"".join(b"k%d: &a%d x\n" % (n, n) for n in range(800)) + b"---\n",
        "flow keys": b"---\nk: {" + b"a: b, " * 2500 + b"}\n---\n",
        "one key of 15 KiB": b"---\n" + b"k" * 15_000 + b": v\n---\n- x\n",
        "quoted forever": b'---\nk: "' + b"\\\n" * 7000 + b"\n---\n",
        "header of 16 KiB": b"---\nk: " + b"v" * (16_384 - 14) + b"\n---\n- x\n",
        "header over 16 KiB": b"---\nk: " + b"v" * 16_400 + b"\n---\n- x\n",
        "header of a megabyte": b"---\n" + b"key: value\n" * 95_000 + b"---\n- x\n",
        "openers": b"---\n" * 30_000,
        "colons": b"---\n" + b"a:" * 8000 + b"\n---\n",
        "headings": b"# h\n" * 60_000,
        "deeper headings": b"".join(b"#" * (n % 6 + 1) + b" h%d\n" % n for n in range(20_000)),
        "hashes": b"#" * 200_000,
        "open fences": b"```\n~~~\n" * 10_001 + b"````\n- <seq=1> x\n",
        "longer and longer fences": b"".join(b"`" * n + b"\n" for n in range(3, 700)),
        "one line": b"x" * 1_000_000,
        "words on one line": b"word " * 100_000,
        "one entry": b"- <seq=900,source=user> " + b"long " * 60_000 + b"\n",
        "one field": b"- <seq=900,key=" + b"k" * 500_000 + b"> x\n",
        "open quotation": b'- <seq=900,key="' + b"\\\\" * 250_000 + b"> x\n",
        "commas": b"- <" + b"a=b," * 100_000 + b"> x\n",
        "less-than": b"- <" * 150_000,
        "item of dashes": b"- " * 200_000,
        "a rule of stars": b"* " * 200_000 + b"x\n",
        "blanks": b" " * 500_000 + b"x\n" + b"-" + b"\t" * 300_000 + b"x\n",
        "blank lines": b"\n" * 300_000,
        "carriage returns": b"- x\r" * 50_000,
        "origins": b"".join(b"- <seq=%d,origin=1-90000> x\n" % n for n in range(900, 930)),
        "an endless span": b"- <seq=900,origin=1-999999999999999999> x\n",
        "many spans": b"- <seq=900,origin=" + b"+".join(b"%d" % n for n in range(1, 80_000, 2)) + b"> x\n",
        "the last seq": b"- <seq=999999999999999999,source=user> x\n- typed\n",
        "digits": b"- <seq=" + b"9" * 100_000 + b"> x\n---\ntoken_count: " + b"9" * 9000 + b"\n",
        "long numbers": b"---\ntoken_count: " + b"9" * 9000 + b"\ncurrent_epoch: " + b"1" * 5000 + b"\n---\n",
        "one seq for all": b"- <seq=5,source=user> the same\n" * 400,
        "four thousand entries": entries,
        "cyclic origins": b"- <seq=901,origin=902> a\n- <seq=902,origin=901> b\n- <seq=903,origin=903> c\n",
        "marks": b"- e" + "\u0301\u0323".encode() * 8000 + b"\n",
        "joiners": "👨\u200d".encode() * 20_000,
        "tags": b"- a" + b"\xf3\xa0\x81\xa1" * 20_000 + b"\n",
        "bidi": "- \u202e\u2066\u202a".encode() * 20_000,
        "surrogates": b"- \xed\xa0\xbd\xed\xb8\x80" * 10_000,
        "utf-16": "---\nid: x\n---\n- <seq=900> x\n".encode("utf-16"),
        "line separators": b"- <seq=900,source=user> x"
        + "\u2028- <seq=901,source=human> y\u2029# h\x85".encode() * 500
        + b"\n",
        "links": b"[[" * 50_000 + b"]]" * 50_000,
        "tables": b"| 1 | a | b | moved |\n" * 8000,
        "a table row of bars": b"| " * 100_000 + b" |\n",
        "conflict": b"<<<<<<< HEAD\n- <seq=900> a\n=======\n- <seq=900> b\n>>>>>>> theirs\n",
        "a diff of a receipt": b"---\nop: x\n---\n## Before\n--- a\n+++ b\n@@ -1,99999999999 +1 @@\n" * 200,
        "json bomb": b'{"steps": ' * 30_000,
        "json of a path": b'{"steps": [{"path": "../../x.md", "old": "-", "new": "-", "staged": "../x"}]}',
        "json of other kinds": b'{"steps": [1, null, {"path": 5}], "version": {}}',
        "toml brackets": b"a = " + b"[" * 100_000,
        "toml tables": b"[" + b"a." * 20_000 + b"a]\n",
        "toml digits": b"format = " + b"9" * 9000 + b"\n",
        "toml nan": b"[reader]\nmin_tokens = nan\n",
        "toml format": b"format = 99\n",
        "toml key": b'"a\\nb" = 1\n',
    }


def corpus(sample: Path, data: Path) -> list[bytes]:
    """Real files: the sample library, and notes that people wrote where they are to be had."""
    found = [path.read_bytes() for path in sorted(sample.rglob("*")) if path.is_file()]
    for packed in sorted(data.glob("notes_*.tar.xz")):
        with tarfile.open(packed) as archive:
            for _, member in zip(range(150), archive, strict=False):
                file = archive.extractfile(member) if member.name.endswith(".md") else None
                found += [file.read()] if file else []
    return [text for text in found if len(text) <= LARGEST]


def generated(seed: int, count: int, real: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """`count` files, each with the name that makes it again."""
    for number in range(count):
        name = f"{seed}:{number}"
        chance = random.Random(name)
        text = _grown(chance) if chance.random() < 0.35 else chance.choice(real)
        for _ in range(chance.choice((0, 1, 1, 2, 3, 6))):
            text = chance.choice(_MUTATIONS)(chance, text)[:LARGEST]
        yield name, text


def _grown(chance: random.Random) -> bytes:
    parts = [chance.choice((b"", *HEADERS))]
    for _ in range(chance.randrange(25)):
        kind = chance.random()
        if kind < 0.4:
            fields = b",".join(_field(chance) for _ in range(chance.randrange(4)))
            signature = b"seq=%d%s%s" % (chance.randrange(300), b"," * bool(fields), fields)
            parts.append(b"- <%s> %s\n" % (signature, _words(chance)))
        elif kind < 0.6:
            parts.append(chance.choice(_STARTS) + _words(chance) + b"\n")
        else:
            parts.append(chance.choice(TOKENS) + chance.choice((b"", b"\n", b"\n\n", b"\r\n")))
    return b"".join(parts)


_STARTS = (b"- ", b"* ", b"# ", b"## ", b"", b"  ", b"1. ", b"> ")
_KEYS = b"time source origin speaker key pin by Time seq".split()
_VALUES = (*b'2024-01-02 user AI tool human 1-3+7 "\\"" \xff'.split(), b'"a b"', b"", b"a b", b"x" * 40)
_WORDS = (*b"oat milk Ana 1,200 2024-05-06 never ``` <seq=1>".split(), "é漢😀".encode(), *TOKENS[-24:])


def _field(chance: random.Random) -> bytes:
    return chance.choice(_KEYS) + b"=" + chance.choice(_VALUES)


def _words(chance: random.Random) -> bytes:
    return b" ".join(chance.choice(_WORDS) for _ in range(chance.randrange(8)))


def _place(chance: random.Random, text: bytes) -> int:
    """Anywhere, but often at the begin of a line, where Markdown is decided."""
    at = chance.randrange(len(text) + 1)
    return text.rfind(b"\n", 0, at) + 1 if chance.random() < 0.5 else at


def _flip(chance: random.Random, text: bytes) -> bytes:
    changed = bytearray(text)
    for _ in range(min(len(changed), chance.choice((1, 3, 20)))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _insert(chance: random.Random, text: bytes) -> bytes:
    at = _place(chance, text)
    return text[:at] + chance.choice(TOKENS) * chance.choice((1, 1, 1, 2, 30)) + text[at:]


def _cut(chance: random.Random, text: bytes) -> bytes:
    return text[: _place(chance, text)]


def _drop(chance: random.Random, text: bytes) -> bytes:
    first, last = sorted((_place(chance, text), _place(chance, text)))
    return text[:first] + text[last:]


def _double(chance: random.Random, text: bytes) -> bytes:
    first, last = sorted((_place(chance, text), _place(chance, text)))
    return text[:last] + text[first:last] * chance.choice((1, 1, 5)) + text[last:]


def _swap(chance: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _ends(chance: random.Random, text: bytes) -> bytes:
    end = chance.choice((b"\r\n", b"\r", b"\n\n", "\u2028".encode(), b"\x0b"))
    lines = text.split(b"\n")
    share = chance.choice((0.1, 0.5, 1.0))
    return b"".join(line + (end if chance.random() < share else b"\n") for line in lines)


def _number(chance: random.Random, text: bytes) -> bytes:
    at = next((at for at in range(_place(chance, text), len(text)) if 48 <= text[at] < 58), len(text))
    new = chance.choice((b"0", b"-1", b"999999999999999998", b"9" * 40, b"1-5", b""))
    return text[:at] + new + text[at + 1 :]


_MUTATIONS = (_flip, _insert, _insert, _insert, _cut, _drop, _double, _swap, _ends, _number)
