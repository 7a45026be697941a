"""Finishing: what becomes of a turn's input, and what starts the next one (SPEC §6.5, §6.7)."""

from datetime import timedelta

import pytest

from cowork.models import OutboxEntry, Turn
from cowork.tasks import TurnRunning
from cowork.turns import StaleTurn
from messaging import boundary, finishing, recovering, reporting
from messaging.models import Receipt
from tests.build import events, fresh, text_of
from timeline.event_types import TurnLimit
from timeline.refusals import Forbidden

MILLISECOND = timedelta(milliseconds=1)
ENDS = ["error", "aborted", "done", "lost"]


def end_somehow(build, turn, how, **more):
    if how == "lost":
        build.lose(turn)
    else:
        build.end(turn, how, **more)


def usage(resets_at=None):
    return TurnLimit(kind="usage", resets_at=resets_at)


# A turn that ends before incorporation (SPEC §6.5)


@pytest.mark.parametrize("how", ENDS)
def test_an_agents_message_comes_back_to_its_place(build, clock, pilot, cook, how):
    receipt = build.send(pilot, cook, "first").receipt
    build.send(pilot, cook, "second")
    started = build.claimed(cook)
    clock.advance(1)

    end_somehow(build, started.turn, how)

    back = fresh(receipt)
    assert (back.status, back.attempt, back.sequence) == ("queued", 2, receipt.sequence)
    assert (back.started_at, back.turn_id) == (None, None)
    assert (back.queued_at, back.accepted_at) == (clock.now(), receipt.accepted_at)
    assert back.due_at == clock.now() + timedelta(seconds=1)
    assert fresh(cook).status == "idle"


@pytest.mark.parametrize("how", ENDS)
def test_it_is_due_after_1_5_and_30_seconds_and_fails_with_the_fourth_end(
    build, clock, pilot, cook, how
):
    """CW-42"""
    receipt = build.send(pilot, cook).receipt
    build.send(pilot, cook, "younger")
    for attempt, seconds in enumerate((1, 5, 30), start=1):
        end_somehow(build, build.claimed(cook).turn, how)
        assert fresh(receipt).attempt == attempt + 1
        clock.move_to(clock.now() + timedelta(seconds=seconds) - MILLISECOND)
        assert build.claim(cook) is None
        clock.move_to(clock.now() + MILLISECOND)

    end_somehow(build, build.claimed(cook).turn, how)

    failed = fresh(receipt)
    code = "POISON_MESSAGE" if how == "lost" else "RUNTIME_ERROR"
    assert (failed.status, failed.attempt, failed.failure_code) == ("failed", 4, code)
    assert (failed.failed_at, failed.closed_at) == (clock.now(), None)
    assert failed.failure_reason
    for task in (pilot, cook):
        told = [row for row in events(task, "message_status") if row.subject == receipt.id]
        assert told[-1].payload["attempt"] == 4
        assert told[-1].payload["code"] == code
    assert build.claimed(cook).inputs[0].body.text == "younger"


def test_losses_among_other_ends_are_no_poison(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    for how in ("lost", "lost", "error", "lost"):
        clock.move_to(max(clock.now(), fresh(receipt).due_at))
        end_somehow(build, build.claimed(cook).turn, how)

    assert fresh(receipt).failure_code == "RUNTIME_ERROR"


@pytest.mark.parametrize("caller", ["person", "service"])
@pytest.mark.parametrize("how", ["error", "aborted", "done"])
def test_a_persons_input_fails_at_once_and_holds_nobody_up(
    build, pilot, cook, otto, ops, how, caller
):
    """CW-133"""
    receipt = build.follow_up(cook, otto if caller == "person" else ops).receipt
    build.send(pilot, cook, "younger")
    turn = build.claimed(cook).turn

    assert build.end(turn, how, error="It broke." if how == "error" else "") is True

    failed = fresh(receipt)
    assert (failed.status, failed.failure_code, failed.closed_at) == (
        "failed",
        "RUNTIME_ERROR",
        None,
    )
    assert build.claimed(cook).inputs[0].body.text == "younger"


def test_a_persons_input_comes_back_after_a_loss(build, clock, cook, otto):
    receipt = build.follow_up(cook, otto).receipt
    build.lose(build.claimed(cook).turn)

    assert (fresh(receipt).status, fresh(receipt).attempt) == ("queued", 2)
    assert fresh(receipt).due_at == clock.now() + timedelta(seconds=1)
    for _ in range(3):
        clock.move_to(max(clock.now(), fresh(receipt).due_at))
        build.lose(build.claimed(cook).turn)
    assert fresh(receipt).failure_code == "POISON_MESSAGE"


def test_a_persons_input_that_met_a_limit_says_so(build, cook, otto):
    receipt = build.follow_up(cook, otto).receipt
    build.end(build.claimed(cook).turn, "error", limit=TurnLimit(kind="overload"))

    assert (fresh(receipt).status, fresh(receipt).failure_code) == ("failed", "RUNTIME_LIMIT")


def test_a_limit_costs_an_agents_message_no_attempt(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    for seconds in (1, 5, 15, 60, 300, 300):
        build.end(build.claimed(cook).turn, "error", limit=TurnLimit(kind="overload"))
        back = fresh(receipt)
        assert (back.status, back.attempt, back.end_count) == ("queued", 1, 0)
        assert back.due_at == clock.now() + timedelta(seconds=seconds)
        clock.move_to(back.due_at)
    build.take_in(cook)
    assert (fresh(receipt).status, fresh(receipt).attempt) == ("delivered", 1)


def test_a_limit_with_a_reset_is_waited_for(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    resets_at = clock.now() + timedelta(hours=2)
    build.end(build.claimed(cook).turn, "error", limit=usage(resets_at))

    assert fresh(receipt).due_at == resets_at
    clock.move_to(resets_at - MILLISECOND)
    assert build.claim(cook) is None
    clock.move_to(resets_at)
    assert build.claim(cook) is not None


def test_an_end_after_incorporation_leaves_it_delivered(build, pilot, cook):
    """CW-57"""
    for how in ("error", "aborted", "done", "lost"):
        receipt = build.send(pilot, cook).receipt
        turn = build.claimed(cook).turn
        build.incorporate(turn)
        end_somehow(build, turn, how)
        assert (fresh(receipt).status, fresh(receipt).attempt) == ("delivered", 1)
        assert build.claim(cook) is None


# A usage limit after incorporation is followed by a turn at its reset


@pytest.fixture
def limited(build, clock, pilot, cook):
    """A turn that has taken its message in and met a usage limit; when that ends."""
    build.send(pilot, cook, "before")
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    resets_at = clock.now() + timedelta(minutes=10)
    build.end(turn, "error", limit=usage(resets_at))
    return resets_at


def test_a_turn_follows_at_the_reset(build, clock, cook, limited):
    [promise] = OutboxEntry.objects.filter(target=cook.id)
    assert promise.not_before == limited
    clock.move_to(limited - MILLISECOND)
    assert build.claim(cook) is None
    assert boundary.claimable_tasks(build.key_of(cook), now=clock.now()) == []
    clock.move_to(limited)
    assert boundary.claimable_tasks(build.key_of(cook), now=clock.now()) == [cook.id]

    claimed = build.claimed(cook)

    assert (claimed.turn.cause_kind, claimed.inputs) == ("schedule", [])
    build.incorporate(claimed.turn)
    build.end(claimed.turn)
    assert build.claim(cook) is None


def test_wakes_wait_for_the_reset(build, clock, pilot, cook, limited):
    build.send(pilot, cook, "after")
    assert build.claim(cook) is None

    clock.move_to(limited)
    claimed = build.claimed(cook)

    assert claimed.turn.cause_kind == "schedule"
    assert [row.body.text for row in claimed.inputs] == ["after"]


def test_a_follow_up_does_not_wait_for_the_reset(build, clock, cook, otto, limited):
    build.follow_up(cook, otto)

    assert build.claimed(cook).turn.cause_kind == "follow_up"
    assert fresh(cook).resumes_at is None


def test_a_turn_that_ran_before_takes_the_place_of_the_scheduled_one(
    build, clock, pilot, cook, limited
):
    build.end(build.claimed(cook, start=True).turn)
    clock.move_to(limited)

    assert build.claim(cook) is None


def test_a_scheduled_turn_that_meets_the_limit_again_is_followed_by_another(
    build, clock, cook, limited
):
    clock.move_to(limited)
    later = limited + timedelta(minutes=5)
    build.end(build.claimed(cook).turn, "error", limit=usage(later))

    assert fresh(cook).resumes_at == later


@pytest.mark.parametrize("limit", [usage(), TurnLimit(kind="overload")])
def test_without_a_time_no_turn_follows(build, pilot, cook, limit):
    build.send(pilot, cook)
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    build.end(turn, "error", limit=limit)

    assert fresh(cook).resumes_at is None
    assert build.claim(cook) is None


# The end (SPEC §6.7, §6.8)


def test_an_end_says_whether_something_waits(build, pilot, cook):
    build.send(pilot, cook, "first")
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    build.send(pilot, cook, "second")

    assert build.end(turn) is True
    assert OutboxEntry.objects.filter(target=cook.id, status="due").count() == 1
    assert build.end(turn) is True


def test_an_end_without_anything_promises_nothing(build, cook):
    turn = build.a_turn(cook)

    assert build.end(turn) is False
    assert not OutboxEntry.objects.exists()


def test_what_waited_for_a_turn_starts_the_next_one(build, cook, otto):
    turn = build.a_turn(cook)
    Receipt.objects.filter(pk=build.tell(cook, otto).receipt.pk).update(wakes=False)

    assert build.end(turn) is True
    assert Receipt.objects.get().wakes


def test_the_last_reports_and_words_come_with_the_end(build, pilot, cook):
    build.send(pilot, cook)
    turn = build.claimed(cook).turn
    last = [{"type": "incorporated", "event_id": "e-1"}]

    for _ in range(2):
        build.end(turn, text="done with it", events=last)

    told = events(cook, "user_message", "assistant_message", "turn_ended")
    assert [(event.type, text_of(event)) for event in told] == [
        ("user_message", "hello"),
        ("assistant_message", "done with it"),
        ("turn_ended", None),
    ]


def test_an_error_is_told_once(build, cook):
    build.end(build.a_turn(cook), "error", error="  The provider answered 500. ")

    [ended], [told] = events(cook, "turn_ended"), events(cook, "error")
    assert ended.payload["status"] == "error"
    assert (told.payload["code"], text_of(told)) == (
        "RUNTIME_ERROR",
        "The provider answered 500.",
    )


@pytest.mark.parametrize("first", ["done", "aborted", "error"])
@pytest.mark.parametrize("second", ["done", "aborted", "error"])
def test_only_the_same_end_is_answered_again(build, cook, first, second):
    turn = build.a_turn(cook)
    build.end(turn, first)
    count = len(events(cook))

    if first == second:
        assert build.end(turn, second) is False
    else:
        with pytest.raises(StaleTurn):
            build.end(turn, second)
    with pytest.raises(StaleTurn):
        build.end(turn, first, fence=turn.fence + 1)
    assert len(events(cook)) == count


def test_the_same_end_twice_at_once_is_one_end(build, cook, monkeypatch):
    """The second call reads the turn before the first has ended it."""
    turn = build.a_turn(cook)
    stale = reporting.own_turn(turn.id, by=build.key_of(cook))
    build.end(turn)
    monkeypatch.setattr(reporting, "own_turn", lambda _turn_id, by: stale)

    assert build.end(turn) is False
    assert len(events(cook, "turn_ended")) == 1


def test_a_lost_turn_ends_no_more(build, cook):
    turn = build.a_turn(cook, "lost")

    with pytest.raises(StaleTurn):
        build.end(turn)


# Completing (SPEC §6.11)


def complete(build, task, outcome="completed", by=None):
    return finishing.complete(
        task, outcome=outcome, summary="So it is.", by=by or build.founder, clock=build.clock
    )


def test_a_delivery_completes_nothing(build, pilot, cook):
    build.send(pilot, cook)
    build.take_in(cook)

    assert fresh(cook).status == "idle"


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_a_task_is_completed_by_an_event_of_its_own(build, cook, outcome):
    done = complete(build, cook, outcome)

    assert (done.status, done.result_outcome, done.result_summary) == (
        outcome,
        outcome,
        "So it is.",
    )
    assert events(cook)[-1].payload == {"from": "idle", "to": outcome, "reason": "So it is."}
    assert fresh(cook).is_current is (outcome == "completed")


def test_people_wait_for_a_turn_to_end(build, cook, otto):
    build.a_turn(cook)

    with pytest.raises(TurnRunning):
        complete(build, cook, by=build.principal(otto))


def test_its_own_credential_ends_its_turn_with_it(build, cook, cook_bot):
    turn = build.a_turn(cook)

    with pytest.raises(Forbidden):
        complete(build, cook, by=build.a_credential(cook_bot))
    complete(build, cook, by=build.key_of(cook))

    assert (fresh(turn).status, fresh(cook).status) == ("done", "completed")


def test_others_complete_nothing(build, cook, pilot, ops):
    viewer = build.principal(build.a_person(role="viewer"))
    for caller in (build.key_of(pilot), ops, viewer):
        with pytest.raises(Forbidden):
            complete(build, cook, by=caller)


def test_a_turn_that_was_lost_ends_with_its_task_idle(build, cook):
    turn = build.a_turn(cook, "lost")

    assert fresh(turn).ended_at == build.clock.now()
    assert fresh(cook).status == "idle"
    assert recovering.lose_silent_turns(clock=build.clock) == 0
    assert Turn.objects.filter(status="running").count() == 0
