"""How long a handoff waits for its answer (SPEC §7.3), to the millisecond."""

from datetime import timedelta

import pytest

from cowork import draining, editing
from cowork.models import OutboxEntry
from messaging import (
    deadlines,
    finishing,
    leaving,
    quarantining,
    recovering,
    releasing,
    retrying,
    withdrawing,
)
from messaging.models import Receipt
from teams import repairing
from tests.build import events, fresh
from timeline.event_types import TurnLimit

MILLISECOND = timedelta(milliseconds=1)
SOFT = timedelta(seconds=120)


def drain(clock):
    return draining.drain(owner="test:1", clock=clock)


def asked(build, pilot, cook, **more):
    """A handoff that cook has taken in; its turn runs."""
    return build.a_receipt("delivered", sender=pilot, recipient=cook, **more)


def waits_itself(build, cook, scout):
    """Cook asks scout and waits: it owes no automatic reply meanwhile (SPEC §7.5)."""
    return build.send(cook, scout, "and you?").receipt


def times_out_at(clock, handoff, at):
    """The wait ends then and not a millisecond before."""
    clock.move_to(at - MILLISECOND)
    drain(clock)
    assert fresh(handoff).reply_status == "pending"
    clock.move_to(at)
    drain(clock)
    assert fresh(handoff).reply_status == "timed_out"


# Without a limit of its own


def test_it_does_not_run_while_the_message_is_queued(build, clock, pilot, cook):
    handoff = build.send(pilot, cook).receipt

    clock.advance(86_400)
    drain(clock)

    assert fresh(handoff).reply_status == "pending"
    assert fresh(handoff).reply_deadline_at is None


def test_it_does_not_run_while_the_turn_lives(build, clock, pilot, cook):
    """CW-93"""
    handoff = asked(build, pilot, cook)
    for _ in range(10):
        clock.advance(59)
        build.report(handoff.turn, {"type": "note", "text": "at it"})
        drain(clock)

    assert fresh(handoff).reply_status == "pending"
    assert fresh(handoff).reply_deadline_at is None


def test_it_runs_from_the_end_of_the_turn_that_held_it(build, clock, pilot, cook, scout):
    """CW-93"""
    handoff = asked(build, pilot, cook)
    waits_itself(build, cook, scout)
    clock.advance(50)
    build.end(handoff.turn)

    assert fresh(handoff).reply_deadline_at == clock.now() + SOFT
    times_out_at(clock, handoff, clock.now() + SOFT)
    told = fresh(handoff)
    assert (told.status, told.failure_code) == ("delivered", "BOT_HANDOFF_REPLY_TIMEOUT")
    for task in (pilot, cook):
        last = events(task, "message_status")[-1]
        assert last.payload["reply_status"] == "timed_out"
        assert last.payload["code"] == "BOT_HANDOFF_REPLY_TIMEOUT"
    assert not OutboxEntry.objects.filter(kind=deadlines.REPLY_DEADLINE).exists()


def test_it_runs_from_the_loss_of_that_turn(build, clock, pilot, cook, scout):
    handoff = asked(build, pilot, cook)
    waits_itself(build, cook, scout)
    build.lose(handoff.turn)

    times_out_at(clock, handoff, clock.now() + SOFT)


def test_an_answer_ends_it(build, clock, pilot, cook):
    handoff = asked(build, pilot, cook)
    build.send(cook, pilot, "yes")
    build.end(handoff.turn)
    assert fresh(handoff).reply_deadline_at is None
    build.take_in(pilot)

    clock.advance(3600)
    drain(clock)

    assert fresh(handoff).reply_status == "received"


@pytest.mark.parametrize("status", ["queued", "started"])
def test_an_answer_on_its_way_protects(build, clock, pilot, cook, scout, status):
    handoff = asked(build, pilot, cook)
    waiting = waits_itself(build, cook, scout)
    build.end(handoff.turn)
    clock.advance(100)
    build.a_turn(cook)
    build.send(cook, pilot, "yes", in_reply_to=handoff.message_id)
    if status == "started":
        build.claimed(pilot)

    clock.advance(3600)
    drain(clock)

    assert fresh(handoff).reply_status == "pending"
    assert fresh(waiting).reply_status == "pending"


@pytest.mark.parametrize("how", ["withdrawn", "quarantined", "failed"])
def test_an_answer_that_was_lost_protects_no_more(build, clock, pilot, cook, scout, how):
    handoff = asked(build, pilot, cook)
    reply = build.send(cook, pilot, "yes").receipt
    waits_itself(build, cook, scout)
    build.end(handoff.turn)
    assert fresh(handoff).reply_deadline_at is None

    if how == "withdrawn":
        withdrawing.withdraw(reply, by=build.key_of(cook), clock=clock)
    elif how == "quarantined":
        quarantining.quarantine(reply, by=build.founder, note="Odd.", clock=clock)
    else:
        while fresh(reply).status != "failed":
            clock.move_to(max(clock.now(), fresh(reply).due_at))
            build.fail_before(pilot)
    recovering.recover(clock=clock)

    times_out_at(clock, handoff, clock.now() + SOFT)


def test_an_answer_after_the_time_is_received_and_clears_the_code(build, clock, pilot, cook, scout):
    handoff = asked(build, pilot, cook)
    waits_itself(build, cook, scout)
    build.end(handoff.turn)
    times_out_at(clock, handoff, clock.now() + SOFT)
    build.a_turn(cook)
    reply = build.send(cook, pilot, "late", in_reply_to=handoff.message_id).receipt

    build.take_in(pilot)

    told = fresh(handoff)
    assert (told.reply_status, told.reply_id) == ("received", reply.id)
    assert (told.failure_code, told.failure_reason, told.reply_deadline_at) == ("", "", None)
    history = [event.payload["reply_status"] for event in events(pilot, "message_status")]
    assert "timed_out" in history  # it stays in the history


# A message that is not delivered


def test_a_failed_one_waits_that_long_for_a_repair(build, clock, pilot, cook):
    handoff = build.a_receipt("failed", sender=pilot, recipient=cook)

    times_out_at(clock, handoff, clock.now() + SOFT)
    assert fresh(handoff).failure_code == "RUNTIME_ERROR"  # it has one


def test_so_does_a_quarantined_one(build, clock, pilot, cook):
    handoff = build.a_receipt("quarantined", sender=pilot, recipient=cook)

    times_out_at(clock, handoff, clock.now() + SOFT)
    assert fresh(handoff).failure_code == "MESSAGE_UNSAFE"


def test_so_does_one_that_went_back_to_a_queue_it_may_not_be_in(build, clock, pilot, cook, team):
    """Quarantined at the loss of its turn (SPEC §2.4)."""
    handoff = build.a_receipt("started", sender=pilot, recipient=cook)
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=clock)
    build.lose(handoff.turn)
    assert fresh(handoff).status == "quarantined"

    times_out_at(clock, handoff, clock.now() + SOFT)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("how", ["failed", "quarantined"])
def test_a_repair_lets_it_wait_anew(build, clock, pilot, cook, how, is_late):
    handoff = build.a_receipt(how, sender=pilot, recipient=cook)
    clock.advance(120 if is_late else 60)
    drain(clock)
    assert fresh(handoff).reply_status == ("timed_out" if is_late else "pending")

    if how == "failed":
        retrying.retry(handoff, by=build.key_of(pilot), clock=clock)
    else:
        releasing.release(handoff, by=build.founder, note="", clock=clock)

    queued = fresh(handoff)
    assert (queued.reply_status, queued.reply_deadline_at) == ("pending", None)
    assert queued.failure_code == ""
    clock.advance(3600)
    drain(clock)
    assert fresh(handoff).reply_status == "pending"


def test_a_withdrawn_one_waits_for_nothing(build, clock, pilot, cook):
    handoff = build.send(pilot, cook).receipt

    withdrawing.withdraw(handoff, by=build.key_of(pilot), clock=clock)
    clock.advance(3600)
    drain(clock)

    assert fresh(handoff).reply_status is None
    assert fresh(handoff).failure_code == "WITHDRAWN"


def test_a_turn_that_ended_before_it_read_ends_no_wait(build, clock, pilot, cook):
    handoff = build.send(pilot, cook).receipt
    build.fail_before(cook)

    assert fresh(handoff).reply_deadline_at is None


# A limit of its own


def test_a_hard_limit_runs_from_the_start(build, clock, pilot, cook):
    handoff = build.send(pilot, cook, reply_timeout_seconds=5).receipt
    clock.advance(3600)
    drain(clock)
    assert fresh(handoff).reply_status == "pending"
    build.claimed(cook)

    started_at = fresh(handoff).started_at
    assert fresh(handoff).reply_deadline_at == started_at + timedelta(seconds=5)
    times_out_at(clock, handoff, started_at + timedelta(seconds=5))
    assert fresh(cook).status == "running"


def test_a_hard_limit_begins_anew_with_each_start(build, clock, pilot, cook):
    handoff = build.send(pilot, cook, reply_timeout_seconds=30).receipt
    build.fail_before(cook)
    assert fresh(handoff).reply_deadline_at is None
    clock.advance(3600)
    drain(clock)
    assert fresh(handoff).reply_status == "pending"

    build.claimed(cook)

    times_out_at(clock, handoff, clock.now() + timedelta(seconds=30))


def test_a_limit_of_the_runtime_stops_the_clock(build, clock, pilot, cook):
    handoff = build.send(pilot, cook, reply_timeout_seconds=30).receipt

    build.fail_before(cook, limit=TurnLimit(kind="usage"))

    assert fresh(handoff).reply_deadline_at is None


def test_a_hard_limit_is_not_lengthened_by_the_end_of_the_turn(build, clock, pilot, cook, scout):
    handoff = build.send(pilot, cook, reply_timeout_seconds=10).receipt
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    waits_itself(build, cook, scout)
    clock.advance(9)
    build.end(turn)

    times_out_at(clock, handoff, clock.now() + timedelta(seconds=1))


# A recipient that has ended


@pytest.mark.parametrize("how", ["archived", "failed", "deactivated"])
def test_a_recipient_that_has_ended_answers_nothing_any_more(build, clock, pilot, cook, scout, how):
    """CW-95"""
    handoff = asked(build, pilot, cook)
    waits_itself(build, cook, scout)
    build.end(handoff.turn)

    end_recipient(build, cook, how)

    assert fresh(handoff).reply_status == "timed_out"


@pytest.mark.parametrize("how", ["archived", "failed", "deactivated"])
def test_an_answer_in_flight_protects_then_too(build, clock, pilot, cook, how):
    handoff = asked(build, pilot, cook)
    build.send(cook, pilot, "yes")
    build.end(handoff.turn)

    end_recipient(build, cook, how)
    clock.advance(3600)
    drain(clock)

    assert fresh(handoff).reply_status == "pending"


@pytest.mark.parametrize("how", ["archived", "deactivated"])
def test_what_was_queued_for_it_times_out_at_once(build, clock, pilot, cook, how):
    handoff = build.send(pilot, cook).receipt

    end_recipient(build, cook, how)

    told = fresh(handoff)
    assert (told.reply_status, told.failure_code) == ("timed_out", "RECIPIENT_ENDED")


def end_recipient(build, cook, how):
    if how == "archived":
        editing.edit(fresh(cook), archived=True, by=build.founder, clock=build.clock)
    elif how == "failed":
        finishing.complete(
            fresh(cook), outcome="failed", summary="", by=build.founder, clock=build.clock
        )
    else:
        leaving.deactivate_bot("cook", by=build.founder, clock=build.clock)


# While the server was asleep (SPEC §6.8)


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("is_start", [False, True])
def test_a_gap_extends_it_by_its_full_length_once(
    build, clock, pilot, cook, scout, is_start, is_hard
):
    handoff, length = a_bounded_wait(build, pilot, cook, scout, is_hard=is_hard)
    recovering.recover(clock=clock)
    clock.advance(7200)

    recovering.recover(clock=clock, is_start=is_start)
    recovering.recover(clock=clock)

    assert fresh(handoff).reply_deadline_at == clock.now() + length
    stay_awake(clock, fresh(handoff).reply_deadline_at)
    times_out_at(clock, handoff, fresh(handoff).reply_deadline_at)


def stay_awake(clock, until):
    """Sweep as a server does until shortly before a time."""
    recovering.recover(clock=clock)
    while clock.now() + timedelta(seconds=15) < until:
        clock.advance(15)
        recovering.recover(clock=clock)
        drain(clock)


def test_after_a_gap_no_drain_is_quicker_than_the_grace(build, clock, pilot, cook, scout):
    handoff, length = a_bounded_wait(build, pilot, cook, scout, is_hard=False)
    recovering.recover(clock=clock)
    clock.advance(7200)

    drain(clock)
    assert fresh(handoff).reply_status == "pending"
    stay_awake(clock, clock.now() + length)

    assert fresh(handoff).reply_status == "pending"
    times_out_at(clock, handoff, fresh(handoff).reply_deadline_at)


def test_without_a_gap_nothing_is_extended(build, clock, pilot, cook, scout):
    handoff, _length = a_bounded_wait(build, pilot, cook, scout, is_hard=False)
    at = fresh(handoff).reply_deadline_at
    stay_awake(clock, at)

    times_out_at(clock, handoff, at)


def a_bounded_wait(build, pilot, cook, scout, *, is_hard):
    """A handoff with a deadline, and no turn anywhere."""
    more = {"reply_timeout_seconds": 600} if is_hard else {}
    handoff = asked(build, pilot, cook, **more)
    waits_itself(build, cook, scout)
    build.end(handoff.turn)
    return handoff, timedelta(seconds=600) if is_hard else SOFT


def test_a_second_look_at_one_that_is_over_changes_nothing(build, clock, pilot, cook):
    handoff = build.a_receipt("quarantined", sender=pilot, recipient=cook)
    [entry] = OutboxEntry.objects.filter(kind=deadlines.REPLY_DEADLINE)
    times_out_at(clock, handoff, clock.now() + SOFT)
    count = len(events(pilot))
    entry.pk = None
    OutboxEntry.objects.bulk_create([entry])

    drain(clock)

    assert len(events(pilot)) == count
    assert not OutboxEntry.objects.filter(kind=deadlines.REPLY_DEADLINE).exists()


def test_a_restored_team_alone_ends_no_wait(build, clock, pilot, cook, team):
    handoff = build.send(pilot, cook).receipt
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=clock)
    drain(clock)
    repairing.restore(team.id, handle="cook", by=build.founder, clock=clock)

    at = fresh(handoff).reply_deadline_at

    assert fresh(handoff).status == "quarantined"
    times_out_at(clock, handoff, at)
    assert Receipt.objects.get(pk=handoff.pk).failure_code.startswith("BOT_MESSAGE_TEAM")
