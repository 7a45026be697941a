"""Drains beside each other, and beside those who owe: real threads, real commits."""

import threading
import time
from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from cowork import draining, outbox, runs
from cowork.kinds import DONE, WAIT, Answer
from cowork.models import OutboxEntry, OutboxLane
from tests.cowork.kind_of_work import Work
from tests.races.together import at_once
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
        at_once(*drains(clock))

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
        at_once(*drains(clock))

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
    at_once(tell, *drains(clock))
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
    at_once(promise, *drains(clock))
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

    at_once(remove, *drains(clock))

    assert not OutboxEntry.objects.exists()
    assert not OutboxLane.objects.exists()


def test_lanes_that_cross_are_held_by_one_at_a_time(work: Work, clock: ManualClock) -> None:
    here, there = new_id(), new_id()
    guard = threading.Lock()
    active: set[str] = set()

    def occupy(entry: OutboxEntry) -> None:
        with guard:
            assert not active.intersection(entry.lanes), "a lane is taken twice"
            active.update(entry.lanes)
        time.sleep(0.005)
        with guard:
            active.difference_update(entry.lanes)

    work.outside = occupy
    for number in range(5):
        work.owe(f"both {number}", target=here, lanes=[there])
        work.owe(f"here {number}", target=here)
        work.owe(f"back {number}", target=there, lanes=[here])

    while OutboxEntry.objects.exists():
        at_once(*drains(clock))

    assert len(work.ran) == len(set(work.ran)) == 15


def test_promises_made_at_once_have_places_of_their_own(work: Work) -> None:
    targets = [new_id() for _target in range(8)]

    def owe_five(target: UUID) -> None:
        for number in range(5):
            work.owe(f"{target}:{number}", target=target)

    at_once(*[partial(owe_five, target) for target in targets])

    places = list(OutboxEntry.objects.order_by("sequence").values_list("sequence", flat=True))
    assert len(set(places)) == 40
    for target in targets:
        rows = OutboxEntry.objects.filter(target=target).order_by("sequence")
        words = [row.payload["word"] for row in rows]
        assert words == [f"{target}:{number}" for number in range(5)]


def test_what_is_taken_while_it_is_taken_back_keeps_its_lanes(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """Who takes promises back has seen it at rest; meanwhile a drain has begun to run it."""
    entry = work.owe(target=target)
    taken = threading.Event()

    @action
    def take() -> None:
        assert runs.take(entry, owner="test:1", now=clock.now())
        taken.set()
        if connection.vendor == "postgresql":
            _wait_for_somebody_who_waits()

    @action
    def take_back() -> int:
        return outbox.remove_at_rest(target, "test-work")

    def take_back_meanwhile() -> int:
        assert taken.wait(10)
        return take_back()

    _nothing, count = at_once(take, take_back_meanwhile)

    assert count == 0
    assert OutboxEntry.objects.get().status == "running"
    assert OutboxLane.objects.count() == 1


def _wait_for_somebody_who_waits() -> None:
    """Until another connection waits for a row that this transaction has written."""
    with transaction.atomic(), connection.cursor() as cursor:
        for _look in range(1000):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")
