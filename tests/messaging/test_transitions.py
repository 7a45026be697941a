"""A status changes along its table only: every step of it, and none besides (SPEC §5, §6)."""

from itertools import product

import pytest

from cowork import interrupting, tasks, turns
from cowork.models import Task, Turn
from messaging import receipts
from messaging.models import Receipt
from teams import members
from teams.models import Member
from tests.build import events, fresh
from timeline.log import SYSTEM
from timeline.transactions import action
from timeline.transitions import InvalidTransition, transition

# The tables as they are specified; the rows of models.py have to say the same.
RECEIPTS = {
    ("queued", "started"),
    ("queued", "failed"),
    ("queued", "quarantined"),
    ("started", "queued"),
    ("started", "delivered"),
    ("started", "failed"),
    ("started", "quarantined"),
    ("failed", "queued"),
    ("quarantined", "queued"),
}
TASKS = {
    *(("idle", to) for to in ("running", "paused", "interrupted", "completed", "failed")),
    *(("running", to) for to in ("idle", "paused", "interrupted", "completed", "failed")),
    *(("paused", to) for to in ("idle", "interrupted", "completed", "failed")),
    *(("interrupted", to) for to in ("running", "completed", "failed")),
    *(("completed", to) for to in ("running", "paused", "failed")),
    *(("failed", to) for to in ("running", "completed")),
}
TURNS = {("running", to) for to in ("done", "aborted", "error", "lost")}
MEMBERS = {("active", "removed"), ("removed", "active")}


def steps(model):
    return list(product(model.Status.values, repeat=2))


@pytest.mark.parametrize(
    ("model", "table"),
    [(Receipt, RECEIPTS), (Task, TASKS), (Turn, TURNS), (Member, MEMBERS)],
)
def test_the_tables_are_as_specified(model, table):
    assert {
        (str(before), str(to)) for before, row in model.TRANSITIONS.items() for to in row
    } == table
    assert set(model.TRANSITIONS) == set(model.Status.values)


def moves(build, receipt, turn):
    """The rule that makes each step, as one transaction."""
    now = build.clock.now()
    told = {"actor": SYSTEM, "now": now}
    return {
        "queued": lambda: (
            receipts.give_back(receipt, due_at=now, counts={}, now=now)
            if receipt.status == "started"
            else receipts.queue_again(receipt, **told)
        ),
        "started": lambda: receipts.start(receipt, turn=turn, **told),
        "delivered": lambda: receipts.deliver(receipt, **told),
        "failed": lambda: receipts.fail(receipt, code="RUNTIME_ERROR", reason="x", **told),
        "quarantined": lambda: receipts.quarantine(receipt, code="Q", reason="x", **told),
    }


@pytest.mark.parametrize(("before", "to"), steps(Receipt))
def test_a_receipt_takes_the_steps_of_its_table_only(build, pilot, cook, scout, before, to):
    """CW-45 CW-46 CW-47"""
    receipt = build.a_receipt(before, sender=pilot, recipient=cook)
    turn = receipt.turn or build.a_turn(scout)
    step = action(moves(build, receipt, turn)[to])
    facts = Receipt.objects.filter(pk=receipt.pk).values()
    told = len(events(cook)), len(events(pilot))
    stood = facts.get()

    if (before, to) in RECEIPTS:
        step()
        assert fresh(receipt).status == to
        for task, count in ((cook, told[0]), (pilot, told[1])):
            [told_of] = [event for event in events(task)[count:] if event.type == "message_status"]
            assert (told_of.payload["from"], told_of.payload["to"]) == (before, to)
        return
    with pytest.raises(InvalidTransition) as refused:
        step()
    assert refused.value.extra == {"delivery_status": before}
    assert facts.get() == stood
    assert (len(events(cook)), len(events(pilot))) == told


@pytest.mark.parametrize(("before", "to"), sorted(RECEIPTS))
def test_a_step_from_a_status_that_has_changed_meanwhile_is_refused(
    build, pilot, cook, scout, before, to
):
    receipt = build.a_receipt(before, sender=pilot, recipient=cook)
    turn = receipt.turn or build.a_turn(scout)
    stale = fresh(receipt)
    action(moves(build, receipt, turn)[to])()
    stands = Receipt.objects.filter(pk=receipt.pk).values().get()

    with pytest.raises(InvalidTransition) as refused:
        action(moves(build, stale, turn)[to])()

    assert refused.value.extra == {"delivery_status": to}
    assert Receipt.objects.filter(pk=receipt.pk).values().get() == stands


def a_task(build, cook, status):
    now = build.clock.now()
    steps_taken = {"paused": interrupting.pause, "interrupted": interrupting.stop}
    if status == "running":
        build.a_turn(cook)
    elif status in steps_taken:
        steps_taken[status](cook, by=build.founder, clock=build.clock)
    elif status != "idle":
        action(tasks.conclude)(cook, status, summary="", actor=SYSTEM, now=now)
    return fresh(cook)


@pytest.mark.parametrize(("before", "to"), steps(Task))
def test_a_task_takes_the_steps_of_its_table_only(build, cook, before, to):
    task = a_task(build, cook, before)
    count = len(events(task))
    Task.objects.filter(pk=task.pk).update(is_current=False)

    def step():
        tasks.set_status(task, to, actor=SYSTEM, now=build.clock.now())

    if (before, to) in TASKS:
        action(step)()
        [told] = events(task)[count:]
        assert (told.payload["from"], told.payload["to"]) == (before, to)
        assert fresh(task).status == to
        return
    with pytest.raises(InvalidTransition):
        action(step)()
    assert fresh(task).status == before
    assert len(events(task)) == count


@pytest.mark.parametrize(("before", "to"), steps(Turn))
def test_a_turn_takes_the_steps_of_its_table_only(build, cook, before, to):
    turn = build.a_turn(cook, before)
    now = build.clock.now()

    def step():
        turns.end(turn, to, task=fresh(cook), actor=SYSTEM, now=now)

    if (before, to) in TURNS:
        action(step)()
        assert fresh(turn).status == to
        assert fresh(turn).ended_at == now
        return
    with pytest.raises(InvalidTransition):
        action(step)()
    assert fresh(turn).status == before


@pytest.mark.parametrize(("before", "to"), steps(Member))
def test_a_member_takes_the_steps_of_its_table_only(build, team, before, to):
    now = build.clock.now()
    member = members.member_of(team, "cook")
    if before == "removed":
        action(members.remove)(member, team=team, now=now)

    def step():
        transition(member, to, left_at=now if to == "removed" else None)

    if (before, to) in MEMBERS:
        action(step)()
        assert fresh(member).status == to
        return
    with pytest.raises(InvalidTransition):
        action(step)()
    assert fresh(member).status == before
