"""Interrupting: what is asked for, and what has come about (SPEC §6.1, §6.9)."""

import pytest

from cowork import draining, editing, interrupting
from cowork.models import OutboxEntry, Turn
from cowork.turns import StaleTurn
from messaging import boundary, finishing, output, recovering, wakes
from messaging.models import Receipt
from tests.build import events, fresh
from timeline.event_types import TurnLimit
from timeline.refusals import Forbidden
from timeline.transactions import action
from timeline.transitions import InvalidTransition

INTERRUPT = ("agent_interrupt_requested", "agent_interrupt_confirmed")


def pause(build, task, reason="", by=None):
    return interrupting.pause(task, by=by or build.founder, reason=reason, clock=build.clock)


def resume(build, task, reason=""):
    return interrupting.resume(task, by=build.founder, reason=reason, clock=build.clock)


def stop(build, task, reason="", by=None):
    return interrupting.stop(task, by=by or build.founder, reason=reason, clock=build.clock)


def end_with(build, task, outcome):
    finishing.complete(task, outcome=outcome, summary="", by=build.founder, clock=build.clock)


def a_task(build, task, status):
    """A conversation in a status, reached as in life."""
    if status == "running":
        build.a_turn(task)
    elif status == "paused":
        pause(build, task)
    elif status == "interrupted":
        stop(build, task)
    elif status in ("completed", "failed"):
        end_with(build, task, status)
    elif status == "archived":
        editing.edit(task, archived=True, by=build.founder, clock=build.clock)
    return fresh(task)


def wakes_of(task):
    return OutboxEntry.objects.filter(target=task.id, kind=wakes.WAKE_TASK)


# The table of SPEC §6.1


@pytest.mark.parametrize("status", ["paused", "interrupted"])
def test_a_new_message_is_queued_and_starts_nothing(build, pilot, cook, status):
    task = a_task(build, cook, status)

    receipt = build.send(pilot, task).receipt

    assert (receipt.status, receipt.wakes) == ("queued", True)
    assert not wakes_of(task).exists()
    assert build.claim(task) is None
    assert boundary.claimable_tasks(build.key_of(task), now=build.clock.now()) == []


@pytest.mark.parametrize("status", ["paused", "interrupted"])
def test_a_send_by_handle_uses_it_and_undoes_nothing(build, pilot, cook, cook_bot, status):
    """SPEC §3.4"""
    task = a_task(build, cook, status)

    receipt = build.send(pilot, cook_bot).receipt

    assert receipt.recipient == task
    assert fresh(task).status == status


def test_a_follow_up_lifts_a_stop_and_takes_what_has_waited(build, pilot, cook, otto):
    stop(build, cook)
    older = build.send(pilot, cook).receipt

    asked = build.follow_up(cook, otto).receipt

    assert wakes_of(cook).count() == 1
    claimed = build.claimed(fresh(cook))
    assert [row.id for row in claimed.inputs] == [older.id, asked.id]
    assert claimed.turn.cause_kind == "follow_up"
    build.incorporate(claimed.turn)
    build.end(claimed.turn)
    assert fresh(cook).status == "idle"


def test_a_follow_up_to_a_paused_task_waits_for_resume(build, cook, otto):
    pause(build, cook)
    build.follow_up(cook, otto)
    assert build.claim(fresh(cook)) is None

    resume(build, cook)

    assert wakes_of(cook).count() == 1
    assert build.claimed(fresh(cook)).turn.cause_kind == "follow_up"


@pytest.mark.parametrize("how", ["message", "resume"])
def test_nothing_but_a_follow_up_lifts_a_stop(build, pilot, cook, otto, how):
    stop(build, cook)
    build.send(pilot, cook)
    build.tell(cook, otto)
    if how == "resume":
        with pytest.raises(InvalidTransition) as refused:
            resume(build, cook)
        assert refused.value.extra == {"status": "interrupted"}

    recovering.recover(clock=build.clock)

    assert fresh(cook).status == "interrupted"
    assert build.claim(fresh(cook)) is None


@pytest.mark.parametrize("status", ["paused", "interrupted"])
def test_an_agent_does_not_lift_it_by_input_of_its_own(build, pilot, cook, status):
    """C056: a loop that starts turns by itself comes to rest too."""
    task = a_task(build, cook, status)
    build.send(pilot, task)

    with pytest.raises(InvalidTransition) as refused:
        build.claim(task, start=True)

    assert refused.value.extra == {"status": status}
    assert fresh(task).status == status
    assert not Turn.objects.filter(task=task).exists()


def test_a_paused_task_keeps_the_turn_that_is_due_after_a_limit(build, clock, cook):
    turn = build.a_turn(cook)
    reset = clock.now().replace(hour=18)
    build.end(turn, limit=TurnLimit(kind="usage", resets_at=reset))
    pause(build, fresh(cook))
    clock.move_to(reset)
    assert build.claim(fresh(cook)) is None

    resume(build, fresh(cook))

    assert build.claimed(fresh(cook)).turn.cause_kind == "schedule"


def test_a_stop_drops_the_turn_that_is_due_after_a_limit(build, clock, cook, otto):
    turn = build.a_turn(cook)
    reset = clock.now().replace(hour=18)
    build.end(turn, limit=TurnLimit(kind="usage", resets_at=reset))

    stop(build, fresh(cook))

    assert fresh(cook).resumes_at is None
    clock.move_to(reset)
    assert build.claim(fresh(cook)) is None
    build.follow_up(cook, otto)
    build.take_in(fresh(cook))
    assert build.claim(fresh(cook)) is None


def test_a_limit_met_by_a_stopped_turn_starts_none(build, clock, cook, otto):
    turn = build.a_turn(cook)
    stop(build, cook)
    reset = clock.now().replace(hour=18)

    build.end(turn, "aborted", limit=TurnLimit(kind="usage", resets_at=reset))
    clock.move_to(reset)

    assert build.claim(fresh(cook)) is None
    build.follow_up(cook, otto)
    assert build.claimed(fresh(cook)).turn.cause_kind == "follow_up"


# Pause and resume


@pytest.mark.parametrize("status", ["idle", "completed"])
def test_a_pause_is_confirmed_at_once_where_nothing_runs(build, cook, status):
    task = a_task(build, cook, status)

    paused = pause(build, task, "lunch")

    assert (paused.status, fresh(cook).requested_action) == ("paused", "")
    told = events(cook, "task_status")[-1]
    assert told.payload == {"from": status, "to": "paused", "reason": "lunch"}
    assert not events(cook, *INTERRUPT, "note")


def test_a_pause_of_a_running_task_is_requested_then_confirmed(build, clock, cook, otto):
    """C065"""
    turn = build.a_turn(cook)
    asked_at = clock.now()

    asked = pause(build, cook, "lunch", by=build.principal(otto))

    shown = output.task(asked)
    assert (shown["status"], shown["requested"]["action"]) == ("running", "pause")
    assert fresh(cook).requested_at == asked_at
    [note] = events(cook, "note")
    assert (note.payload["key"], note.actor_label) == ("pause_requested", otto.user.username)
    assert note.body is not None
    assert note.body.text == "A pause was asked for. It begins when this turn ends."
    clock.advance(5)
    assert build.end(turn) is False
    after = fresh(cook)
    assert (after.status, after.requested_action, after.requested_at) == ("paused", "", None)
    told = events(cook, "task_status")[-1]
    assert told.payload == {"from": "running", "to": "paused", "reason": "lunch"}
    assert told.actor_label == otto.user.username


def test_what_waits_stays_when_the_pause_begins(build, pilot, cook):
    turn = build.a_turn(cook)
    waiting = build.send(pilot, cook).receipt
    pause(build, cook)

    assert build.end(turn) is False

    assert fresh(waiting).status == "queued"
    assert build.claim(fresh(cook)) is None
    assert not wakes_of(cook).exists()


def test_a_pause_is_confirmed_when_the_turn_is_lost(build, cook):
    turn = build.a_turn(cook)
    pause(build, cook)

    build.lose(turn)

    assert (fresh(cook).status, fresh(cook).requested_action) == ("paused", "")


def test_a_second_pause_changes_nothing(build, clock, cook):
    turn = build.a_turn(cook)
    pause(build, cook)
    asked_at, count = fresh(cook).requested_at, len(events(cook))
    clock.advance(1)

    pause(build, cook)

    assert (fresh(cook).requested_at, len(events(cook))) == (asked_at, count)
    build.end(turn)
    count = len(events(cook))
    assert pause(build, cook).status == "paused"
    assert len(events(cook)) == count


def test_resume_takes_back_what_is_not_confirmed_yet(build, pilot, cook):
    turn = build.a_turn(cook)
    build.send(pilot, cook)
    pause(build, cook)

    resumed = resume(build, cook)

    assert (resumed.status, resumed.requested_action) == ("running", "")
    assert [note.body.text for note in events(cook, "note") if note.body] == [
        "A pause was asked for. It begins when this turn ends.",
        "The pause was taken back before it began.",
    ]
    assert build.end(turn) is True
    assert fresh(cook).status == "idle"


def test_a_resume_looks_at_once_for_what_waits(build, pilot, cook):
    pause(build, cook)
    build.send(pilot, cook)

    assert resume(build, cook, "back").status == "idle"

    assert wakes_of(cook).count() == 1
    told = events(cook, "task_status")[-1]
    assert told.payload == {"from": "paused", "to": "idle", "reason": "back"}
    assert build.claimed(fresh(cook)).turn.cause_kind == "message"


def test_a_resume_with_nothing_waiting_wakes_nobody(build, cook):
    pause(build, cook)

    resume(build, cook)

    assert not wakes_of(cook).exists()


@pytest.mark.parametrize("status", ["interrupted", "failed", "archived"])
def test_what_is_stopped_or_has_ended_is_not_paused(build, cook, status):
    task = a_task(build, cook, status)
    count = len(events(task))

    with pytest.raises(InvalidTransition) as refused:
        pause(build, task)

    assert refused.value.extra == {"status": task.status}
    assert len(events(task)) == count


@pytest.mark.parametrize("status", ["idle", "running", "interrupted", "completed", "failed"])
def test_only_what_is_paused_is_resumed(build, cook, status):
    task = a_task(build, cook, status)

    with pytest.raises(InvalidTransition):
        resume(build, task)

    assert fresh(task).status == status


# Stop


def test_a_stop_of_an_idle_task_is_confirmed_at_once(build, clock, cook):
    stopped = stop(build, cook, "enough")

    assert (stopped.status, fresh(cook).requested_action) == ("interrupted", "")
    requested, confirmed = events(cook, *INTERRUPT)
    assert (requested.type, confirmed.type) == INTERRUPT
    assert requested.payload == confirmed.payload
    assert requested.payload["reason"] == "enough"
    assert not fresh(cook).has_turn


def test_a_stop_of_a_paused_task_is_confirmed_at_once(build, cook):
    pause(build, cook)

    assert stop(build, cook).status == "interrupted"

    assert [event.type for event in events(cook, *INTERRUPT)] == list(INTERRUPT)


@pytest.mark.parametrize("status", ["interrupted", "completed", "failed", "archived"])
def test_a_stop_of_what_has_ended_says_nothing(build, cook, status):
    """CW-111"""
    task = a_task(build, cook, status)
    count = len(events(task))

    assert stop(build, task).status == task.status

    assert len(events(task)) == count


def test_a_running_turn_is_asked_and_confirms_once(build, clock, cook):
    """CW-111"""
    turn = build.a_turn(cook)

    asked = stop(build, cook, "wrong way")

    assert asked.status == "interrupted"
    assert output.task(asked)["requested"]["action"] == "stop"
    assert fresh(turn).status == "running"
    assert [event.type for event in events(cook, *INTERRUPT)] == [INTERRUPT[0]]
    clock.advance(7)
    count = len(events(cook))
    assert stop(build, cook).status == "interrupted"  # asked already
    assert len(events(cook)) == count
    build.end(turn, "aborted", events=[{"type": "stopped"}])
    requested, confirmed = events(cook, *INTERRUPT)
    assert requested.payload == confirmed.payload
    assert confirmed.created_at > requested.created_at
    assert (fresh(turn).status, fresh(cook).status) == ("aborted", "interrupted")
    assert output.task(fresh(cook))["requested"] is None


@pytest.mark.parametrize("status", ["done", "aborted", "error"])
def test_any_end_of_the_turn_confirms_a_stop(build, cook, status):
    turn = build.a_turn(cook)
    stop(build, cook)

    build.end(turn, status)

    assert [event.type for event in events(cook, *INTERRUPT)] == list(INTERRUPT)
    assert fresh(cook).status == "interrupted"


def test_the_loss_of_its_lease_confirms_a_stop(build, cook):
    turn = build.a_turn(cook)
    stop(build, cook)

    build.lose(turn)
    recovering.recover(clock=build.clock)

    requested, confirmed = events(cook, *INTERRUPT)
    assert requested.payload == confirmed.payload
    assert confirmed.actor_kind == "system"
    with pytest.raises(StaleTurn):
        build.end(turn, "aborted")


@pytest.mark.parametrize("status", ["done", "aborted", "error"])
def test_an_end_after_the_report_is_answered(build, cook, status):
    turn = build.a_turn(cook)
    stop(build, cook)
    build.end(turn, "aborted", events=[{"type": "stopped"}])
    count = len(events(cook))

    assert build.end(turn, status) is False

    assert fresh(turn).status == "aborted"
    assert len(events(cook)) == count


def test_no_turn_starts_while_a_stopping_one_runs(build, cook, otto):
    turn = build.a_turn(cook)
    stop(build, cook)
    asked = build.follow_up(cook, otto).receipt
    assert boundary.due_at(fresh(cook), now=build.clock.now()) is None

    assert build.end(turn, "aborted") is True

    assert build.claimed(fresh(cook)).inputs == [asked]
    assert fresh(cook).status == "running"


def test_a_stop_takes_over_from_a_pause_that_was_asked_for(build, cook):
    turn = build.a_turn(cook)
    pause(build, cook)
    stop(build, cook)

    build.end(turn, "aborted")

    assert fresh(cook).status == "interrupted"
    assert [event.type for event in events(cook, *INTERRUPT)] == list(INTERRUPT)


def test_a_stop_removes_what_would_start_the_task_again(build, pilot, cook):
    build.send(pilot, cook)
    assert wakes_of(cook).count() == 1

    stop(build, cook)

    assert not wakes_of(cook).exists()
    assert Receipt.objects.queued().filter(recipient=cook).count() == 1


def test_a_wake_that_runs_later_is_skipped(build, clock, pilot, cook):
    stop(build, cook)
    build.send(pilot, cook)
    action(wakes.enqueue_wake)(fresh(cook), now=clock.now())

    draining.drain(owner="test:1", clock=clock)

    [told] = events(cook, "wake_skipped")
    assert told.payload["why"] == "stopped"
    assert not wakes_of(cook).exists()
    assert build.claim(fresh(cook)) is None


def test_a_wake_of_a_paused_task_is_kept_for_its_resume(build, clock, pilot, cook):
    build.send(pilot, cook)
    pause(build, cook)

    draining.drain(owner="test:1", clock=clock)

    assert not events(cook, "wake_skipped")
    resume(build, cook)
    assert wakes_of(cook).count() == 1


def test_what_a_stopped_turn_had_not_read_waits_for_a_follow_up(build, clock, pilot, cook, otto):
    receipt = build.a_receipt("started", sender=pilot, recipient=cook)
    stop(build, cook)
    build.end(receipt.turn, "aborted", events=[{"type": "stopped"}])
    clock.advance(30)
    recovering.recover(clock=clock)

    assert (fresh(receipt).status, fresh(receipt).attempt) == ("queued", 2)
    assert build.claim(fresh(cook)) is None
    asked = build.follow_up(cook, otto).receipt
    assert build.claimed(fresh(cook)).inputs == [receipt, asked]


def test_an_own_agent_may_complete_while_it_is_stopped(build, cook):
    turn = build.a_turn(cook)
    stop(build, cook)

    finishing.complete(
        cook, outcome="completed", summary="", by=build.claimer_of(turn), clock=build.clock
    )

    assert fresh(cook).status == "completed"
    assert [event.type for event in events(cook, *INTERRUPT)] == list(INTERRUPT)


# Who may


@pytest.mark.parametrize("step", [interrupting.pause, interrupting.resume, interrupting.stop])
def test_operators_and_services_may_interrupt(build, cook, step, otto, ops):
    viewer = build.principal(build.a_person("vera", role="viewer"))
    for caller in (build.key_of(cook), viewer):
        with pytest.raises(Forbidden):
            step(cook, by=caller, clock=build.clock)
    for caller in (build.principal(otto), ops):
        if step is interrupting.resume:
            pause(build, fresh(cook))
        step(fresh(cook), by=caller, clock=build.clock)
