"""Clients under several threads: no call is lost from the account, results stand in the order of asking."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from infinimem.errors import ModelUnavailable, SpendingCapReached
from infinimem.llm.base import Reply
from infinimem.llm.offline.client import OfflineClient
from infinimem.llm.parallel import in_order
from infinimem.llm.replies import Cached
from infinimem.model import Usage
from infinimem.strategies.allmem import tasks
from infinimem.testing import ScriptedLLM


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_no_call_is_lost_from_the_account(restless: None) -> None:
    turn = {"id": "1", "role": "user", "speaker": None, "time": None, "text": "I live in Rome."}
    llm = Cached(OfflineClient())
    in_order(lambda _: llm.complete(tasks.DESCRIBE, {"context": [], "turns": [turn]}), range(200), 8)
    assert llm.usage == llm.spent == Usage(calls=200)


def test_results_stand_in_the_order_of_what_was_asked() -> None:
    begun = []

    def slow(item: int) -> int:
        begun.append(item)
        time.sleep(0.02 if item % 3 == 0 else 0)
        return item * 2

    assert in_order(slow, range(30), 8) == [item * 2 for item in range(30)]
    assert in_order(slow, [], 8) == []
    begun.clear()
    assert in_order(slow, range(4), 1) == [0, 2, 4, 6]
    assert begun == [0, 1, 2, 3]


def test_the_first_error_is_raised_and_what_has_not_begun_never_does() -> None:
    begun = []
    gate = threading.Event()

    def call(item: int) -> int:
        begun.append(item)
        if item == 1:
            raise ModelUnavailable("down")
        gate.wait(5 if item else 0)
        return item

    timer = threading.Timer(0.2, gate.set)
    timer.start()
    with pytest.raises(ModelUnavailable):
        in_order(call, range(100), 3)
    timer.join()
    assert len(begun) < 10


def test_a_cap_holds_for_calls_side_by_side() -> None:
    answer = Reply({"cards": []}, usage=Usage(1, 100, 0))

    paid = ScriptedLLM({"describe": lambda _: answer})
    capped = Cached(paid)
    with capped.cap(1000), pytest.raises(SpendingCapReached):
        in_order(lambda _: capped.complete(tasks.DESCRIBE, {"context": [], "turns": []}), range(100), 4)
    assert 10 <= len(paid.calls) < 14
