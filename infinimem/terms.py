"""One tokenizer for every index, every ranking and every comparison of wording.

Words are lower-cased, freed of accents and stemmed in the library's language; scripts written without spaces
become pairs of characters; numbers and dates are kept whole and in parts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

from infinimem.markdown.characters import normalize

_ENGLISH = Path(__file__).with_name("english.txt").read_text(encoding="utf-8").split("\n# ")
_FUNCTION_WORDS, _IRREGULAR_FORMS = (part.partition("\n")[2] for part in _ENGLISH[1:])
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Dropped from queries (never from the index): function words, before stemming."""

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()

_IRREGULAR = {form: forms[0] for forms in map(str.split, _IRREGULAR_FORMS.split(",")) for form in forms[1:]}
"""What no suffix rule finds: went, children."""

# Scripts without spaces between words, and Hangul, whose particles cling to the word.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
# Pictures, a flag of two letters as one, without what only colours or joins them.
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"
    "|[\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
# 2023-05-08  14:05  3.11.2  1,200 | a run of such a script | a word, perhaps with apostrophes | an emoji
_TOKEN = re.compile(
    rf"(\d+(?:[-./:,]\d+)+)|([{_SPACELESS}]+)"
    rf"|((?:(?![{_SPACELESS}_])\w)+(?:'(?:(?![{_SPACELESS}_])\w)+)*|{_EMOJI})"
)
_ASCII_TOKEN = re.compile(r"(\d+(?:[-./:,]\d+)+)|((?!))|([a-z0-9]+(?:'[a-z0-9]+)*)")
"""The same for text without any of these scripts, several times as fast."""
_PLAIN = bytes(
    32 if chr(code) in '!"#$%&()*+;<=>?@[\\]^_`{|}~' else ord(chr(code).lower()) if code < 128 else code
    for code in range(256)
)
"""ASCII in lower case, with a space for what stands in no token, so that a word in brackets is the word.
Bytes of other characters stay."""
_MOST_KNOWN, _LONGEST_KNOWN = 1 << 18, 40
_CUT, _MOST_CUT = 4, 50
"""Letters of a word from which on it may be a compound: wifi; and so many words of a query are looked at."""
_ACCENTS = re.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_WORD = re.compile(r"\w+")
_CLITIC = re.compile(r"(?:n't|'(?:s|m|re|ve|ll|d|t))$")
_CONTRACTED = {"can't": "can", "won't": "will", "shan't": "shall"}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_SHORT = 7  # characters of a short commit hash: a longer one is found by so many
_HASH = re.compile(rf"[0-9a-f]{{{_SHORT},64}}")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


class Analyzer:
    """Turns text of one language, as snowball calls it, into terms."""

    def __init__(self, language: str = "english") -> None:
        import snowballstemmer  # in C where PyStemmer is installed, and the same words either way

        self._english = language == "english"
        self._language = language
        self._stemmer = snowballstemmer.stemmer(language)
        self._stemming = threading.Lock()  # a stemmer keeps the word that it works on
        self.term = lru_cache(maxsize=1 << 16)(self._stemmed)
        """The term of one word in lower case, kept."""
        self._plain = lru_cache(maxsize=1 << 14)(self._bare)
        self._known = _TermsByChunk(self._chunk)
        self.kept = lru_cache(maxsize=1 << 14)(self.joined_terms)
        """As `joined_terms`, kept: a turn is context of those around it, a heading of all below."""

    @cached_property
    def fingerprint(self) -> str:
        """What tells analyzers apart: the terms of a fixed text, by this version of the stemmer too."""
        sample = (
            f"{_FUNCTION_WORDS} {_IRREGULAR_FORMS} 2023-05-08 1,200 3rd l'eau don't H\u00e4user \u4eac\u90fd"
            " \U0001f951"
        )
        return blake2b(" ".join(self.tokens(sample)).encode(), digest_size=8).hexdigest()

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text, in its order, with repeats: what an index counts."""
        return self.joined_terms(text).split()

    def joined_terms(self, text: str) -> str:
        """Return the `tokens` with a space between two, without an object for each."""
        return " ".join(filter(None, map(self._known.__getitem__, _plain(text).split())))

    def held(self, text: str, terms: frozenset[str]) -> list[int]:
        """Count how many of some terms each line of a text holds."""
        chunks = (map(self._known.__getitem__, line.split()) for line in _plain(text).split("\n"))
        return [len(terms.intersection(" ".join(line).split())) for line in chunks]

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms to look for, in order; stop words only if there is nothing else."""
        wanted: dict[str, None] = {}
        rest: dict[str, None] = {}
        stop_words = self._stop_words(text)
        for number, run, word in _scan(text):
            if word:
                terms = dict.fromkeys(self.term(word).split())
                (rest if self._plain(word) in stop_words else wanted).update(terms)
            else:
                wanted.update(dict.fromkeys((_pairs(run) or [run]) if run else _number(number)))
        return list(wanted or rest)

    def joined(self, text: str) -> list[str]:
        """Return the terms of two words side by side in a query, as if they were one: "road trip"."""
        words = self._words(text)
        return [self.term(first + second) for first, second in pairwise(words) if first and second]

    def cut(self, text: str) -> dict[str, list[tuple[str, str]]]:
        """Return each word of a query by its term, cut in two wherever it can be: most parts are no words."""
        stop_words = STOP_WORDS if self._english else frozenset[str]()
        return {
            self.term(word): [
                (word[:at], word[at:])
                for at in range(1, len(word))
                if word[:at] not in stop_words and word[at:] not in stop_words
            ]
            for word in self._words(text)
            if len(word) >= _CUT
        }

    def _words(self, text: str) -> list[str]:
        stop_words = self._stop_words(text)
        words = [self._plain(word) for _, _, word in _scan(text)][:_MOST_CUT]
        return [
            word if word.isalpha() and len(word) < _LONGEST_KNOWN and word not in stop_words else ""
            for word in words
        ]

    def _chunk(self, chunk: str) -> str:
        if chunk.isascii() and (word := chunk.strip("'-./:,")).isalnum():
            return self.term(word)  # as most are, faster
        terms: list[str] = []
        for number, run, word in _scan(chunk):
            if word:
                terms.append(self.term(word))
            else:  # of a run single characters too, so that a query of one finds them
                terms += [*run, *_pairs(run)] if run else _number(number)
        return " ".join(terms)

    def _stop_words(self, text: str) -> frozenset[str]:
        if self._english:
            return STOP_WORDS
        from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

        try:
            kept = TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stopword(self._language)).build()
        except ValueError:  # there is no list for it
            return frozenset()
        return frozenset(fold(word) for word in _WORD.findall(text.lower()) if not kept.analyze(word))

    def _bare(self, word: str) -> str:
        """Return a word without what clings to it: `caroline's`, `she'll`, `don't`; `l'eau`."""
        if not self._english:
            return max(word.split("'"), key=len)
        return _CONTRACTED.get(word) or _CLITIC.sub("", word).replace("'", "") or word.replace("'", "")

    def _stemmed(self, word: str) -> str:
        plain = self._plain(word) if "'" in word else word
        if not plain.isalpha():
            if plain.isdigit():
                return plain.lstrip("0") or "0"
            if _HASH.fullmatch(plain):
                return f"{plain} {plain[:_SHORT]}" if len(plain) > _SHORT else plain
            if self._english and (ordinal := _ORDINAL.fullmatch(plain)):
                return ordinal[1]
        if len(plain) > 64:  # encoded data; stemming it is slow and means nothing
            return plain
        with self._stemming:
            return str(self._stemmer.stemWord(_IRREGULAR.get(plain, plain) if self._english else plain))


class _TermsByChunk(dict[str, str]):
    """The joined terms of what stands between two spaces: no token reaches over one, and most come again."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read

    def __missing__(self, chunk: str) -> str:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        terms = self._read(chunk)
        if len(chunk) <= _LONGEST_KNOWN:
            self[chunk] = terms
        return terms


analyzer = cache(Analyzer)


def tokens(text: str) -> list[str]:
    """Return the terms of a text as English: `Analyzer.tokens`."""
    return analyzer("english").tokens(text)


def query_terms(text: str) -> list[str]:
    """Return the terms to look for, as English: `Analyzer.query_terms`."""
    return analyzer("english").query_terms(text)


def fold(text: str) -> str:
    """Return lower case without accents or compatibility forms; typographic apostrophes become plain."""
    if text.isascii():
        return text.lower()
    text = normalize("NFKD", text.casefold()).casefold()  # a compatibility form may hide a capital: "™"
    text = _ACCENTS.sub("", text)
    return normalize("NFC", text).replace("\u2019", "'").replace("\u02bc", "'")


def _plain(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").translate(_PLAIN).decode("utf-8", "surrogatepass")


def _scan(text: str) -> list[tuple[str, str, str]]:
    """Return the tokens of a text as (number, run, word), of which one is filled."""
    folded = fold(text)
    tokens: list[tuple[str, str, str]] = (_ASCII_TOKEN if folded.isascii() else _TOKEN).findall(folded)
    return tokens


def _number(token: str) -> list[str]:
    """Return a number or date as written and each of its parts without leading zeros."""
    if _THOUSANDS.fullmatch(token):
        return [token.replace(",", "")]
    return [token, *(part.lstrip("0") or "0" for part in re.split(r"\D", token))]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]
