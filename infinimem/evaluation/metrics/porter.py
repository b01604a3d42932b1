"""Porter's stemmer with NLTK's changes: the stems by which LoCoMo's scorer compares words.

Sources: Porter, An algorithm for suffix stripping (1980); NLTK's description of what it changed (short words
and a few irregular ones stay as they are, "flies" and "dies" part, "-fully", "-ology" and "-ally" are taken
off). The stems of the search index are others (terms.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

_IRREGULAR = {
    form: base
    for base, forms in {
        "sky": "sky skies",
        "die": "dying",
        "lie": "lying",
        "tie": "tying",
        "inning": "inning innings",
        "outing": "outing outings",
        "canning": "canning cannings",
        **{word: word for word in ("news", "howe", "proceed", "exceed", "succeed")},
    }.items()
    for form in forms.split()
}


def _endings(rules: str) -> dict[str, str]:
    return dict(rule.split(">") for rule in rules.split())


# Of each step the first ending that fits decides, whether or not what stands before it is long enough.
_DOUBLE = _endings(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous "
    "ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive "
    "biliti>ble fulli>ful"
)
_SINGLE = _endings("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_LAST = _endings(
    "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive> ize>"
)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _past(_plural(word))
    if word.endswith("y") and len(word) > 2 and _consonants(word)[-2]:
        word = word[:-1] + "i"
    word = _swapped(_doubled(word), _SINGLE, lambda before: _length(before) > 0)
    word = _swapped(word, _LAST, lambda before: _length(before) > 1, "ion", ("s", "t"))
    return _tidied(word)


def _consonants(text: str) -> list[bool]:
    """Which letters are: "y" is where it comes first or after a vowel."""
    kinds: list[bool] = []
    for letter in text:
        kinds.append(not kinds or not kinds[-1] if letter == "y" else letter not in "aeiou")
    return kinds


def _length(text: str) -> int:
    """Porter's measure: how often a consonant comes after a vowel."""
    return sum(after and not before for before, after in pairwise(_consonants(text)))


def _ends_short(text: str) -> bool:
    """Consonant, vowel, consonant at the end, as in "hop"; or nothing but vowel and consonant, as in "at"."""
    kinds = _consonants(text)
    if len(text) >= 3:
        return kinds[-3:] == [True, False, True] and text[-1] not in "wxy"
    return kinds == [False, True]


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _length(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and not all(_consonants(before := word.removesuffix(ending))):
            return _mended(before)
    return word


def _mended(word: str) -> str:
    """What is left when "-ed" or "-ing" is gone, as the base form is written."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _consonants(word)[-1]:
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _length(word) == 1 and _ends_short(word) else word


def _doubled(word: str) -> str:
    if word.endswith("alli") and _length(word[:-4]) > 0:
        return _doubled(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _length(word[:-3]) > 0 else word
    return _swapped(word, _DOUBLE, lambda before: _length(before) > 0)


def _swapped(
    word: str,
    endings: dict[str, str],
    wants: Callable[[str], bool],
    picky: str = "",
    after: tuple[str, ...] = (),
) -> str:
    """The word with its ending replaced; the ending `picky` counts only behind the letters `after`."""
    for ending, instead in endings.items():
        if word.endswith(ending):
            before = word[: -len(ending)]
            if ending == picky and not before.endswith(after):
                return word
            return before + instead if wants(before) else word
    return word


def _tidied(word: str) -> str:
    if word.endswith("e"):
        before = word[:-1]
        length = _length(before)
        if length > 1 or (length == 1 and not _ends_short(before)):
            word = before
    return word[:-1] if word.endswith("ll") and _length(word[:-1]) > 1 else word
