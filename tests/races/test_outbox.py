"""Drains beside each other, and beside those who owe: real threads, real commits."""

import threading
from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from cowork import draining, outbox
from cowork.kinds import DONE, WAIT, Answer
from cowork.models import OutboxEntry, OutboxLane
from tests.cowork.kind_of_work import Work
from tests.races.at_once import at_once
from timeline.clock import ManualClock
from timeline.ids import new_id
from timeline.transactions import action

DRAINS = 4


def drains(clock: ManualClock) -> list[Any]:
    return [
        partial(draining.drain, owner=f"test:{number}", clock=clock) for number in range(DRAINS)
    ]


def test_several_drains_run_each_entry_once(work: Work, clock: ManualClock) -> None:
    targets = [new_id() for _target in range(6)]
    words = [f"{number}" for number in range(48)]
    for number, word in enumerate(words):
        work.owe(word, target=targets[number % len(targets)])

    while OutboxEntry.objects.exists():
        at_once(drains(clock))

    assert Counter(work.ran) == Counter(words)
    for first in range(len(targets)):
        ran = [int(word) for word in work.ran if int(word) % len(targets) == first]
        assert ran == sorted(ran)
    assert not OutboxLane.objects.exists()


def test_two_drains_never_run_one_lane_at_the_same_time(work: Work, clock: ManualClock) -> None:
    shared = new_id()
    running: set[str] = set()
    guard = threading.Lock()
    overlaps: list[str] = []

    def look(entry: OutboxEntry) -> None:
        with guard:
            if running:
                overlaps.append(entry.payload["word"])
            running.add(entry.payload["word"])
        threading.Event().wait(0.01)
        with guard:
            running.discard(entry.payload["word"])

    work.outside = look
    for number in range(10):
        work.owe(f"{number}", target=new_id(), lanes=[shared])

    while OutboxEntry.objects.exists():
        at_once(drains(clock))

    assert overlaps == []
    assert sorted(map(int, work.ran)) == list(range(10))


@pytest.mark.parametrize("_round", range(5))
def test_a_wake_beside_a_decision_to_wait_is_not_lost(
    work: Work, clock: ManualClock, target: UUID, _round: int
) -> None:
    """The fact is there with the wake: either the handler sees it, or it runs again."""
    fact = threading.Event()
    seen: list[bool] = []

    def decide(_entry: OutboxEntry, _result: Any, _now: datetime) -> Answer:
        seen.append(fact.is_set())
        return DONE if fact.is_set() else WAIT

    def tell() -> None:
        @action
        def wake() -> None:
            outbox.wake(target, now=clock.now())
            fact.set()

        wake()

    work.inside = decide
    work.owe(target=target)
    at_once([tell, *drains(clock)])
    draining.drain(owner="test:last", clock=clock)

    assert seen[-1]
    assert not OutboxEntry.objects.exists()


@pytest.mark.parametrize("_round", range(5))
def test_a_unique_promise_beside_a_drain_is_kept(
    work: Work, clock: ManualClock, target: UUID, _round: int
) -> None:
    """Whatever was promised after a handler looked is looked at again."""
    looked: list[int] = []
    promised = 0

    def look(_entry: OutboxEntry, _result: Any, _now: datetime) -> Answer:
        looked.append(promised)
        return DONE

    def promise() -> None:
        nonlocal promised
        for _promise in range(10):
            promised += 1
            work.owe(target=target, unique=True)

    work.inside = look
    work.owe(target=target, unique=True)
    at_once([promise, *drains(clock)])
    draining.drain(owner="test:last", clock=clock)

    assert looked[-1] == promised
    assert not OutboxEntry.objects.exists()


def test_removing_beside_taking_leaves_nothing(work: Work, clock: ManualClock) -> None:
    targets = [new_id() for _target in range(20)]
    for one in targets:
        work.owe(target=one)

    def remove() -> None:
        for one in targets:
            action(outbox.remove)(one, "test-work")

    at_once([remove, *drains(clock)])

    assert not OutboxEntry.objects.exists()
    assert not OutboxLane.objects.exists()
