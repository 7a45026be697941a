"""Wakes: a promise is kept while something may start, and dropped when nothing does (SPEC §6.5)."""

from datetime import timedelta

import pytest

from cowork import draining, runtimes
from cowork.models import OutboxEntry
from messaging import leaving, wakes
from tests.build import fresh
from timeline.transactions import action


class Told:
    """A runtime that hears of tasks and claims nothing."""

    def __init__(self):
        self.tasks = []

    def wake(self, task, _entry):
        self.tasks.append(task.id)


@pytest.fixture
def told(monkeypatch):
    runtime = Told()
    monkeypatch.setitem(runtimes._PORTS, "external", runtime)
    return runtime


def drain(clock):
    return draining.drain(owner="test", clock=clock)


def wake_of(task):
    return OutboxEntry.objects.filter(target=task.id, kind="wake-task").first()


def test_the_runtime_is_told_and_the_promise_waits(build, clock, told, pilot, cook):
    build.send(pilot, cook)

    drain(clock)

    assert cook.id in told.tasks
    assert (wake_of(cook).status, wake_of(cook).attempts) == ("waiting", 0)


def test_a_runtime_out_of_reach_is_told_again_at_growing_intervals(build, clock, told, pilot, cook):
    build.send(pilot, cook)
    drain(clock)
    for seconds in (1, 5, 15, 60, 300, 300):
        count = len(told.tasks)
        assert wake_of(cook).not_before == clock.now() + timedelta(seconds=seconds)
        clock.advance(seconds - 0.001)
        drain(clock)
        assert len(told.tasks) == count
        clock.advance(0.001)
        drain(clock)
        assert len(told.tasks) == count + 1

    assert wake_of(cook).attempts == 0


def test_younger_input_wakes_at_once(build, clock, told, pilot, cook):
    build.send(pilot, cook)
    for seconds in (0, 1, 5, 15):
        clock.advance(seconds)
        drain(clock)
    clock.advance(1)

    build.send(pilot, cook)
    drain(clock)

    assert len(told.tasks) == 5
    assert OutboxEntry.objects.count() == 1


def test_a_running_task_keeps_its_promise_for_the_end(build, clock, told, pilot, cook):
    build.send(pilot, cook)
    turn = build.claimed(cook).turn
    build.send(pilot, cook)
    drain(clock)
    told.tasks.clear()
    build.incorporate(turn)

    build.end(turn)
    drain(clock)

    assert cook.id in told.tasks


def test_a_promise_without_a_cause_is_dropped(build, clock, told, pilot, cook, team):
    build.send(pilot, cook)
    leaving.change_team(team.id, is_active=False, by=build.founder, clock=clock)

    drain(clock)
    clock.advance(1)
    drain(clock)

    assert wake_of(cook) is None


def test_a_promise_for_later_is_brought_forward_and_never_put_off(build, clock, pilot, cook):
    @action
    def enqueue(seconds):
        now = clock.now()
        wakes.enqueue_wake(cook, now=now, not_before=now + timedelta(seconds=seconds))

    enqueue(60)
    enqueue(30)
    enqueue(90)

    assert wake_of(cook).not_before == clock.now() + timedelta(seconds=30)
    build.send(pilot, cook)
    assert wake_of(cook).not_before == clock.now()
    assert OutboxEntry.objects.count() == 1


def test_many_messages_are_one_promise(build, pilot, scout, cook):
    for _ in range(3):
        build.send(pilot, cook)
        build.send(scout, cook)

    assert OutboxEntry.objects.count() == 1


def test_what_was_taken_by_a_claim_is_owed_no_more(build, clock, told, pilot, cook):
    build.send(pilot, cook)
    drain(clock)
    build.take_in(cook)

    assert wake_of(cook) is None
    assert fresh(cook).status == "idle"
