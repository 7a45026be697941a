"""Recovering: what a death left behind is taken up again (SPEC §6.7, §6.8, §16.4)."""

from datetime import timedelta

import pytest

from cowork import draining, runtimes
from cowork.models import OutboxEntry, Slot, Turn
from messaging import finishing, recovering, reporting, wakes
from messaging.models import Receipt
from tests.build import events, fresh
from timeline.refusals import DatabaseBusy

MILLISECOND = timedelta(milliseconds=1)


def wakes_of(task):
    return OutboxEntry.objects.filter(target=task.id, kind="wake-task")


# Leases (SPEC §6.8)


def test_a_turn_is_lost_when_its_lease_has_run_out(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    turn = build.claimed(cook).turn
    clock.move_to(turn.lease_expires_at - MILLISECOND)
    assert recovering.lose_silent_turns(clock=clock) == 0
    clock.move_to(turn.lease_expires_at)

    assert recovering.lose_silent_turns(clock=clock) == 1
    assert recovering.lose_silent_turns(clock=clock) == 0

    assert fresh(turn).status == "lost"
    assert (fresh(receipt).status, fresh(cook).status) == ("queued", "idle")
    [told] = events(cook, "turn_ended")
    assert (told.payload["status"], told.actor_kind) == ("lost", "system")


def test_what_was_shown_in_a_lost_turn_stays_delivered_and_is_not_run_again(
    build, clock, pilot, cook
):
    """CW-77"""
    receipt = build.a_receipt("delivered", sender=pilot, recipient=cook)

    build.lose(receipt.turn)

    assert fresh(receipt).status == "delivered"
    assert build.claim(cook) is None


def test_the_next_turn_of_a_lost_one_is_promised(build, clock, pilot, cook):
    build.send(pilot, cook)
    build.lose(build.claimed(cook).turn)

    [promise] = wakes_of(cook)
    assert promise.not_before == clock.now() + timedelta(seconds=1)


def test_a_report_that_came_in_time_keeps_the_turn(build, clock, cook, monkeypatch):
    """The sweep saw the lease run out; the report was stored before its lock."""
    turn = build.a_turn(cook)
    clock.move_to(turn.lease_expires_at)
    senders_of = reporting.senders_of

    def after_a_report(given):
        Turn.objects.filter(pk=given.pk).update(lease_expires_at=clock.now() + MILLISECOND)
        return senders_of(given)

    monkeypatch.setattr(reporting, "senders_of", after_a_report)

    assert recovering.lose_silent_turns(clock=clock) == 0
    assert fresh(turn).status == "running"


# Gap grace


def sweep(clock, *, seconds=15.0):
    clock.advance(seconds)
    recovering.recover(clock=clock)


def test_a_start_extends_every_lease_by_its_length(build, clock, cook, scout):
    short = build.a_turn(cook)
    long = build.claimed(scout, start=True, lease=timedelta(seconds=900)).turn
    clock.advance(3600)

    recovering.recover(clock=clock, is_start=True)

    assert (fresh(short).status, fresh(long).status) == ("running", "running")
    assert fresh(short).lease_expires_at == clock.now() + timedelta(seconds=60)
    assert fresh(long).lease_expires_at == clock.now() + timedelta(seconds=900)


def test_a_gap_extends_the_leases_once(build, clock, cook):
    turn = build.a_turn(cook)
    sweep(clock)
    before = fresh(turn).lease_expires_at

    sweep(clock, seconds=31)
    extended = fresh(turn).lease_expires_at
    sweep(clock)

    assert extended == before + timedelta(seconds=60)
    assert fresh(turn).lease_expires_at == extended


def test_a_long_gap_loses_nothing(build, clock, cook):
    turn = build.a_turn(cook)
    sweep(clock)

    sweep(clock, seconds=7200)

    assert fresh(turn).status == "running"
    assert fresh(turn).lease_expires_at == clock.now() + timedelta(seconds=60)
    for _ in range(4):
        sweep(clock)
    assert fresh(turn).status == "lost"


def test_without_a_gap_a_silent_turn_is_lost(build, clock, cook):
    turn = build.a_turn(cook)
    for _ in range(4):
        sweep(clock)

    assert fresh(turn).status == "lost"


def test_a_server_that_had_nothing_to_watch_has_not_slept(build, clock, cook):
    sweep(clock)
    clock.advance(86_400)
    turn = build.a_turn(cook)
    before = turn.lease_expires_at

    sweep(clock)

    assert fresh(turn).lease_expires_at == before
    assert Slot.objects.get(name="tick").beat_at == clock.now()


# What waits (SPEC §6.7)


def test_a_task_without_its_promise_gets_one(build, clock, pilot, cook):
    """CW-65"""
    build.send(pilot, cook)
    wakes_of(cook).delete()

    assert recovering.wake_what_waits(clock=clock) == 1
    assert recovering.wake_what_waits(clock=clock) == 0

    assert wakes_of(cook).count() == 1


def test_what_is_due_later_is_promised_for_then(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    build.fail_before(cook)
    wakes_of(cook).delete()

    recovering.wake_what_waits(clock=clock)

    assert wakes_of(cook).get().not_before == fresh(receipt).due_at


def test_nobody_is_woken_who_may_not_start(build, clock, pilot, cook, scout, otto):
    build.tell(cook, otto)
    build.a_turn(scout)
    build.send(pilot, scout)
    root = build.a_root(bot=cook.bot)
    build.a_turn(root)
    build.tell(root, otto)
    finishing.complete(root, outcome="completed", summary="", by=build.key_of(cook), clock=clock)
    OutboxEntry.objects.all().delete()

    assert recovering.wake_what_waits(clock=clock) == 0
    assert not OutboxEntry.objects.exists()


def test_a_wake_that_was_given_up_waits_for_a_person_and_new_input_wakes_anew(
    build, clock, pilot, cook, monkeypatch
):
    build.send(pilot, cook)
    monkeypatch.setattr(runtimes, "port_of", None)  # the handler fails
    for _ in range(4):
        draining.drain(owner="test", clock=clock)
        clock.advance(30)
    assert [entry.status for entry in wakes_of(cook)] == ["parked"]

    recovering.recover(clock=clock)
    assert [entry.status for entry in wakes_of(cook)] == ["parked"]

    build.send(pilot, cook)
    assert sorted(entry.status for entry in wakes_of(cook)) == ["due", "parked"]
    assert build.claim(cook) is not None


# One that fails does not keep the others (CW-73)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), DatabaseBusy()])
def test_one_that_fails_leaves_the_others(build, clock, pilot, cook, scout, monkeypatch, error):
    """CW-73"""
    for task in (cook, scout):
        build.send(pilot, task)
    OutboxEntry.objects.all().delete()
    enqueue = wakes.enqueue_wake

    def fails_for_cook(task, **options):
        if task.id == cook.id:
            raise error
        enqueue(task, **options)

    monkeypatch.setattr(wakes, "enqueue_wake", fails_for_cook)

    assert recovering.wake_what_waits(clock=clock) == 1
    assert wakes_of(scout).count() == 1
    assert Receipt.objects.queued().count() == 2


def test_recovery_is_safe_to_repeat(build, clock, pilot, cook, scout):
    build.send(pilot, cook)
    build.a_receipt("delivered", sender=pilot, recipient=scout)
    for _ in range(3):
        recovering.recover(clock=clock, is_start=True)
        recovering.recover(clock=clock)

    assert wakes_of(cook).count() == 1
    assert Receipt.objects.count() == 2
