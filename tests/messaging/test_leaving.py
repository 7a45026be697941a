"""Leaving and quarantine: a revocation reaches what is queued, and a person lets it go on
(SPEC §2.4, §5.3, §5.5)."""

import pytest

from cowork import draining, editing
from cowork.models import OutboxEntry
from messaging import leaving, quarantining, releasing
from messaging.models import Receipt
from messaging.receipts import ReceiptClosed
from messaging.remedies import StillQuarantined
from teams import repairing
from tests.build import events, fresh
from timeline.models import AuditEntry
from timeline.refusals import Forbidden
from timeline.transitions import InvalidTransition


@pytest.fixture
def out(build, clock):
    return {"by": build.founder, "clock": clock}


def drain(clock):
    draining.drain(owner="test", clock=clock)


def release(build, receipt):
    return releasing.release(receipt, by=build.founder, note="repaired", clock=build.clock)


CHANGES = {
    "removed": lambda team, out: leaving.remove_member(team.id, handle="cook", **out),
    "inactive": lambda team, out: leaving.change_team(team.id, is_active=False, **out),
    "not persistent": lambda team, out: leaving.change_team(team.id, is_persistent=False, **out),
    "another lead": lambda team, out: leaving.change_team(team.id, lead="cook", **out),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_revocation_reaches_what_is_queued_without_a_claim(
    build, clock, pilot, cook, scout, team, out, how
):
    """CW-69"""
    receipt = build.send(pilot, cook).receipt
    started = build.a_receipt("started", sender=pilot, recipient=scout)

    CHANGES[how](team, out)
    drain(clock)

    held = fresh(receipt)
    assert (held.status, held.failure_code) == (
        "quarantined",
        "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED",
    )
    assert held.failure_reason
    assert held.quarantined_at == clock.now()
    for task in (pilot, cook):
        assert events(task, "message_status")[-1].payload["to"] == "quarantined"
    # Its text has left the server already.
    assert fresh(started).status == "started"


def test_a_started_one_is_asked_about_again_when_it_comes_back(
    build, clock, pilot, cook, team, out
):
    receipt = build.a_receipt("started", sender=pilot, recipient=cook)
    leaving.change_team(team.id, is_active=False, **out)
    drain(clock)
    assert fresh(receipt).status == "started"

    build.lose(receipt.turn)
    clock.advance(1)

    assert build.claim(cook) is None
    assert fresh(receipt).status == "quarantined"


def test_others_of_the_team_go_on(build, clock, pilot, scout, cook, team, out):
    fine = build.send(pilot, scout).receipt
    build.send(pilot, cook)

    leaving.remove_member(team.id, handle="cook", **out)
    drain(clock)

    assert fresh(fine).status == "queued"


def test_a_repair_alone_releases_nothing(build, clock, pilot, cook, team, out):
    """CW-72"""
    receipt = build.send(pilot, cook).receipt
    leaving.change_team(team.id, is_active=False, **out)
    drain(clock)

    leaving.change_team(team.id, is_active=True, **out)
    drain(clock)

    assert fresh(receipt).status == "quarantined"
    release(build, receipt)
    again = fresh(receipt)
    assert (again.status, again.attempt, again.released_by) == ("queued", 2, "The founder")
    assert AuditEntry.objects.filter(action="release").count() == 1
    assert build.claimed(cook).inputs == [again]


def test_a_release_repairs_nothing(build, clock, pilot, cook, team, out):
    receipt = build.send(pilot, cook).receipt
    leaving.remove_member(team.id, handle="cook", **out)
    drain(clock)

    with pytest.raises(StillQuarantined) as refused:
        release(build, receipt)
    assert "Cook" in refused.value.extra["reason"]
    assert fresh(receipt).status == "quarantined"

    repairing.restore(team.id, handle="cook", **out)
    release(build, receipt)
    assert fresh(receipt).status == "queued"


def test_a_deactivated_bots_queue_is_closed(build, clock, pilot, cook, out):
    receipt = build.send(pilot, cook).receipt

    leaving.deactivate_bot("cook", **out)
    drain(clock)

    closed = fresh(receipt)
    assert (closed.status, closed.failure_code, closed.closed_at) == (
        "failed",
        "RECIPIENT_ENDED",
        clock.now(),
    )
    assert events(pilot, "message_status")[-1].payload["code"] == "RECIPIENT_ENDED"


def test_an_archived_tasks_queue_is_closed_and_what_is_held_stays(build, pilot, cook, otto, out):
    queued = build.send(pilot, cook).receipt
    followed = build.follow_up(cook, otto).receipt
    held = build.a_receipt("quarantined", sender=pilot, recipient=cook)

    editing.edit(cook, archived=True, **out)

    assert {fresh(row).failure_code for row in (queued, followed)} == {"RECIPIENT_ENDED"}
    assert (fresh(held).status, fresh(held).closed_at) == ("quarantined", None)
    with pytest.raises(StillQuarantined):
        release(build, held)


def test_a_task_can_not_be_archived_while_a_turn_runs(build, cook, out):
    from cowork.tasks import TurnRunning

    build.a_turn(cook)

    with pytest.raises(TurnRunning):
        editing.edit(cook, archived=True, **out)


def test_a_tasks_own_history_outlives_the_archive(build, pilot, cook, out):
    """C137"""
    build.send(pilot, cook)
    build.take_in(cook)
    editing.edit(cook, archived=True, **out)

    editing.edit(cook, archived=False, **out)

    assert len(events(cook, "user_message")) == 1
    assert fresh(cook).is_current
    assert build.send(pilot, "cook").receipt.recipient_id == cook.id


# An operator's steps


@pytest.mark.parametrize("status", Receipt.Status.values)
@pytest.mark.parametrize("step", ["quarantine", "release", "discard"])
def test_an_operators_steps_go_along_the_table(build, clock, pilot, cook, otto, status, step):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)
    steps = {
        "quarantine": (quarantining.quarantine, {"queued"}),
        "release": (releasing.release, {"quarantined"}),
        "discard": (releasing.discard, {"failed", "quarantined"}),
    }
    call, takes = steps[step]
    given = {"by": build.principal(otto), "note": "so", "clock": clock}

    if status in takes:
        call(receipt, **given)
        assert AuditEntry.objects.filter(target_id=str(receipt.id), note="so").count() == 1
        return
    with pytest.raises(InvalidTransition) as refused:
        call(receipt, **given)
    assert refused.value.extra == {"delivery_status": status}


@pytest.mark.parametrize(
    ("status", "code"), [("failed", "DISCARDED"), ("quarantined", "MESSAGE_UNSAFE")]
)
def test_a_discarded_one_keeps_its_status_and_its_text(build, clock, pilot, cook, status, code):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)

    releasing.discard(receipt, by=build.founder, note="", clock=clock)

    closed = fresh(receipt)
    assert (closed.status, closed.failure_code) == (status, code)
    assert closed.closed_at == clock.now()
    assert closed.body.text == "hello"
    for step in (releasing.discard, releasing.release):
        with pytest.raises((ReceiptClosed, InvalidTransition)):
            step(fresh(receipt), by=build.founder, note="", clock=clock)


def test_only_operators_take_them(build, clock, pilot, cook, ops):
    receipt = build.a_receipt("queued", sender=pilot, recipient=cook)
    viewer = build.principal(build.a_person(role="viewer"))

    for caller in (build.key_of(pilot), build.key_of(cook), ops, viewer):
        for step in (quarantining.quarantine, releasing.release, releasing.discard):
            with pytest.raises(Forbidden):
                step(receipt, by=caller, note="", clock=clock)
    assert fresh(receipt).status == "queued"


def test_a_released_follow_up_starts_a_task_that_has_failed(build, clock, cook, otto):
    from messaging import finishing

    receipt = build.a_receipt("quarantined", sender=otto, recipient=cook)
    finishing.complete(cook, outcome="failed", summary="", by=build.founder, clock=clock)

    release(build, receipt)

    assert build.claim(fresh(cook)) is not None
    assert OutboxEntry.objects.count() == 0
