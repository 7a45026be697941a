"""Attention: each kind of item appears when it should and goes when it is done (SPEC §15)."""

from datetime import timedelta

import pytest

from cowork import draining, editing, interrupting, runtimes, unparking
from cowork.models import OutboxEntry
from messaging import attention, quarantining, releasing, retrying
from tests.build import Build, fresh
from timeline.event_types import TurnLimit

MILLISECOND = timedelta(milliseconds=1)


def codes(build):
    found = attention.items(build.workspace.id, now=build.clock.now())
    return [item.code for item in found]


def the_item(build, by=None):
    [item] = attention.items(build.workspace.id, now=build.clock.now())
    return attention.shown(item, by=by or build.founder, now=build.clock.now())


def actions(item):
    return [row["action"] for row in item["remedies"]]


def test_nothing_to_look_at(build, pilot, cook):
    build.a_receipt("delivered", sender=pilot, recipient=cook)

    assert codes(build) == []


@pytest.mark.parametrize("how", ["released", "discarded"])
def test_quarantined(build, pilot, cook, how):
    receipt = build.a_receipt("quarantined", sender=pilot, recipient=cook)

    item = the_item(build)
    assert (item["code"], item["receipt_id"], item["task_id"], item["bot"]) == (
        "QUARANTINED",
        str(receipt.id),
        str(cook.id),
        "cook",
    )
    assert (item["text"], actions(item)) == ("Odd.", ["release", "discard"])
    step = releasing.release if how == "released" else releasing.discard
    step(receipt, by=build.founder, note="", clock=build.clock)
    assert codes(build) == []


@pytest.mark.parametrize("how", ["retried", "discarded"])
def test_failed(build, pilot, cook, how):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)

    item = the_item(build)
    assert (item["code"], item["text"]) == ("FAILED", "It broke.")
    assert actions(item) == ["retry", "discard"]
    if how == "retried":
        retrying.retry(receipt, by=build.founder, clock=build.clock)
    else:
        releasing.discard(receipt, by=build.founder, note="", clock=build.clock)
    assert codes(build) == []


@pytest.mark.parametrize("how", ["let go", "withdrawn"])
def test_held_by_the_loop_guard(build, pilot, cook, settings, how):
    settings.COWORK_MAX_HOPS = 0
    receipt = build.send(pilot, cook).receipt

    item = the_item(build)
    assert (item["code"], actions(item)) == ("LOOP_GUARD", ["let_go"])
    if how == "let go":
        releasing.let_go(receipt, by=build.founder, note="", clock=build.clock)
    else:
        quarantining.quarantine(receipt, by=build.founder, note="", clock=build.clock)
        releasing.discard(receipt, by=build.founder, note="", clock=build.clock)
    assert codes(build) == []


def a_timed_out_handoff(build, pilot, cook, scout):
    """Cook, who waits for scout, has not answered pilot."""
    handoff = build.a_receipt("delivered", sender=pilot, recipient=cook)
    build.send(cook, scout)
    build.end(handoff.turn)
    build.clock.advance(120)
    draining.drain(owner="test:1", clock=build.clock)
    assert fresh(handoff).reply_status == "timed_out"
    return handoff


@pytest.mark.parametrize("how", ["answered", "a person speaks"])
def test_a_reply_that_has_not_come(build, pilot, cook, scout, otto, how):
    handoff = a_timed_out_handoff(build, pilot, cook, scout)

    item = the_item(build)
    assert (item["code"], item["receipt_id"]) == ("REPLY_TIMED_OUT", str(handoff.id))
    assert (item["task_id"], actions(item)) == (str(pilot.id), ["follow_ups"])
    if how == "answered":
        build.a_turn(fresh(cook))
        build.send(cook, pilot, "late", in_reply_to=handoff.message_id)
        build.take_in(fresh(pilot))
    else:
        build.follow_up(pilot, otto)
        build.take_in(fresh(pilot))
    assert codes(build) == []


def test_a_queue_that_nobody_takes_from(build, clock, pilot, cook):
    """C066"""
    receipt = build.send(pilot, cook).receipt
    build.send(pilot, cook)
    clock.advance(300)

    item = the_item(build)
    assert (item["code"], item["receipt_id"]) == ("STALE_QUEUE", str(receipt.id))
    build.claimed(cook)
    assert codes(build) == []


def test_a_queue_is_stale_to_the_millisecond(build, clock, pilot, cook):
    build.send(pilot, cook)

    clock.move_to(clock.now() + timedelta(seconds=300) - MILLISECOND)
    assert codes(build) == []
    clock.advance(0.001)
    assert codes(build) == ["STALE_QUEUE"]


@pytest.mark.parametrize("how", ["paused", "stopped", "running"])
def test_a_queue_that_a_person_or_a_turn_holds_is_not_stale(build, clock, pilot, cook, how):
    build.send(pilot, cook)
    if how == "running":
        build.claimed(cook, lease=timedelta(hours=1))
        build.send(pilot, cook)
    else:
        step = interrupting.pause if how == "paused" else interrupting.stop
        step(cook, by=build.founder, clock=clock)
    clock.advance(600)

    assert codes(build) == []


def test_a_runtime_at_its_limit_for_long(build, clock, pilot, cook):
    """SPEC §6.5: it costs no attempt, and people are told."""
    build.send(pilot, cook)
    reset = clock.now() + timedelta(hours=5)
    build.fail_before(cook, limit=TurnLimit(kind="usage", resets_at=reset))
    assert codes(build) == []

    clock.advance(300)

    assert codes(build) == ["STALE_QUEUE"]
    clock.move_to(reset)
    build.claimed(fresh(cook))
    assert codes(build) == []


@pytest.mark.parametrize("how", ["the next turn", "archived"])
def test_a_turn_that_was_lost_after_it_had_read(build, cook, otto, how):
    build.follow_up(cook, otto)
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    build.lose(turn)

    item = the_item(build)
    assert (item["code"], item["task_id"], item["bot"]) == ("TURN_LOST", str(cook.id), "cook")
    assert [(row["label"], row["url"]) for row in item["remedies"]] == [
        ("Continue", f"/api/v1/tasks/{cook.id}/follow_ups")
    ]
    if how == "archived":
        editing.edit(fresh(cook), archived=True, by=build.founder, clock=build.clock)
    else:
        build.follow_up(cook, otto)
        build.take_in(fresh(cook))
    assert codes(build) == []


def test_a_turn_that_was_lost_before_is_run_again_and_needs_nobody(build, pilot, cook):
    build.send(pilot, cook)
    build.lose(build.claimed(cook).turn)

    assert codes(build) == []


@pytest.mark.parametrize("how", ["retry", "discard"])
def test_work_that_was_given_up(build, clock, pilot, cook, monkeypatch, how):
    def fails(_entry):
        raise RuntimeError("a fault")

    monkeypatch.setattr(runtimes, "port_of", fails)
    build.send(pilot, cook)
    for _ in range(4):
        draining.drain(owner="test:1", clock=clock)
        clock.advance(31)
    [entry] = OutboxEntry.objects.filter(status="parked")

    item = the_item(build)
    assert (item["code"], item["outbox_id"]) == ("PARKED", str(entry.id))
    assert "wake-task was given up" in item["text"]
    assert actions(item) == ["retry", "discard"]
    getattr(unparking, how)(entry.id, by=build.founder, clock=clock)
    assert codes(build) == []


def test_newest_first_and_with_ids_that_stay(build, clock, pilot, cook, scout):
    build.a_receipt("quarantined", sender=pilot, recipient=cook)
    clock.advance(1)
    build.a_receipt("quarantined", sender=pilot, recipient=scout)

    twice = [attention.items(build.workspace.id, now=clock.now()) for _ in range(2)]

    assert [item.task for item in twice[0]] == [scout, cook]
    assert [item.id for item in twice[0]] == [item.id for item in twice[1]]


def test_a_viewer_is_offered_nothing(build, pilot, cook):
    build.a_receipt("failed", sender=pilot, recipient=cook)

    assert the_item(build, build.principal(build.a_person(role="viewer")))["remedies"] == []


def test_each_workspace_has_its_own(build, clock, pilot, cook):
    build.a_receipt("failed", sender=pilot, recipient=cook)

    assert codes(Build(clock, slug="other")) == []
