"""Workers that meet at the outbox: each promise is kept once, and no wake is lost."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from cowork import draining, outbox, runs
from cowork.kinds import WAIT, Answer
from cowork.models import OutboxEntry, OutboxLane
from tests.cowork.kind_of_work import WORKSPACE, Note, Work
from tests.races.together import at_once
from timeline.clock import ManualClock
from timeline.ids import new_id
from timeline.models import Body
from timeline.transactions import action

ROUNDS = 20


@pytest.fixture
def workers(clock: ManualClock) -> list[Callable[[], int]]:
    """Four that drain."""
    return [partial(draining.drain, owner=f"test:{number}", clock=clock) for number in range(4)]


def test_workers_that_meet_run_each_promise_once(
    work: Work, workers: list[Callable[[], int]]
) -> None:
    targets = [new_id() for _target in range(4)]
    for number in range(20):
        work.owe(f"{number}", target=targets[number % 4])

    at_once(*workers)
    at_once(*workers)  # what was held by its target's lane when everybody looked

    assert sorted(work.ran, key=int) == [str(number) for number in range(20)]
    for lane in range(4):
        of_target = [int(word) for word in work.ran if int(word) % 4 == lane]
        assert of_target == sorted(of_target)
    assert not OutboxEntry.objects.exists()
    assert not OutboxLane.objects.exists()


def test_on_a_lane_one_runs_at_a_time(work: Work, workers: list[Callable[[], int]]) -> None:
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
        at_once(*workers)

    assert len(work.ran) == len(set(work.ran)) == 15


@action
def _note_and(promise: Callable[[], Any]) -> None:
    """A note, and in the same transaction what makes somebody look at it."""
    Body.objects.create(
        workspace_id=WORKSPACE,
        text="seen",
        sha256="",
        byte_count=0,
        created_at=datetime.fromisoformat("2026-03-01T12:00Z"),
    )
    promise()


def test_what_is_promised_while_the_same_promise_is_kept_is_looked_at(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    looks: list[bool] = []
    work.outside = lambda _entry: looks.append(Body.objects.exists())

    def promise() -> None:
        outbox.enqueue(
            "test-work",
            target=target,
            workspace_id=WORKSPACE,
            payload=Note(),
            now=clock.now(),
            unique=True,
        )

    for _round in range(ROUNDS):
        Body.objects.all().delete()
        work.owe(target=target, unique=True)

        at_once(
            lambda: draining.drain(owner="test:1", clock=clock),
            lambda: _note_and(promise),
            lambda: draining.drain(owner="test:2", clock=clock),
        )
        draining.drain(owner="test:3", clock=clock)

        assert looks[-1], "the last look was before the note"
        assert not OutboxEntry.objects.exists()


def test_a_wake_while_a_handler_decides_to_wait_is_heard(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    looks: list[bool] = []

    def look_and_wait(_entry: OutboxEntry, _result: Any, _now: datetime) -> Answer:
        looks.append(Body.objects.exists())
        return WAIT

    work.inside = look_and_wait
    work.owe(target=target)
    for _round in range(ROUNDS):
        Body.objects.all().delete()
        work.wake(target)

        at_once(
            lambda: draining.drain(owner="test:1", clock=clock),
            lambda: _note_and(lambda: outbox.wake(target, now=clock.now())),
        )
        draining.drain(owner="test:3", clock=clock)

        assert looks[-1], "the last look was before the note"
        assert OutboxEntry.objects.get().status == "waiting"


def test_promises_made_at_once_have_places_of_their_own(
    work: Work, clock: ManualClock, workers: list[Callable[[], int]]
) -> None:
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
    work.owe(target=target)
    taken = threading.Event()

    @action
    def take() -> None:
        assert runs.take(owner="test:1", now=clock.now()) is not None
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
