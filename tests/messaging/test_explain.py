"""Explain: what blocks a receipt, since when, what follows, and what helps (SPEC §6.12)."""

from datetime import timedelta

import pytest

from cowork import editing, interrupting
from messaging import explain, finishing, leaving, releasing, withdrawing
from tests.build import fresh
from timeline.log import wire_time

ROLES = ("sender", "recipient", "viewer", "operator", "service")


@pytest.fixture
def callers(build, pilot, cook, otto, ops):
    """One of each who may read a receipt."""
    return {
        "sender": build.key_of(pilot),
        "recipient": build.key_of(cook),
        "viewer": build.principal(build.a_person("vera", role="viewer")),
        "operator": build.principal(otto),
        "service": ops,
    }


def explained(build, receipt, by=None):
    return explain.explain(fresh(receipt), by=by or build.founder, now=build.clock.now())


def stands(build, receipt, callers, blocker, since, **offered):
    """The blocker, and which calls each caller is offered; nothing for those not named."""
    found = explained(build, receipt)
    assert (found["blocker"], found["since"]) == (blocker, wire_time(since))
    assert found["delivery_status"] == fresh(receipt).status
    assert found["next"].endswith(".")
    told = {
        role: [row["action"] for row in explained(build, receipt, callers[role])["remedies"]]
        for role in ROLES
    }
    assert told == {role: list(offered.get(role, ())) for role in ROLES}


def test_one_behind_a_running_turn(build, clock, pilot, cook, callers):
    turn = build.a_turn(cook)
    clock.advance(5)
    receipt = build.send(pilot, cook).receipt

    stands(
        build,
        receipt,
        callers,
        "recipient_running",
        turn.started_at,
        sender=["withdraw"],
        operator=["stop"],
        service=["stop"],
    )


def test_one_that_a_turn_holds(build, clock, pilot, cook, callers):
    receipt = build.a_receipt("started", sender=pilot, recipient=cook)

    stands(
        build,
        receipt,
        callers,
        "recipient_running",
        receipt.started_at,
        operator=["stop"],
        service=["stop"],
    )


def test_one_for_a_paused_task(build, clock, pilot, cook, callers):
    interrupting.pause(cook, by=build.founder, clock=clock)
    paused_at = clock.now()
    clock.advance(5)
    receipt = build.send(pilot, cook).receipt

    stands(
        build,
        receipt,
        callers,
        "recipient_paused",
        paused_at,
        sender=["withdraw"],
        operator=["resume"],
        service=["resume"],
    )
    [remedy] = explained(build, receipt, callers["operator"])["remedies"]
    assert remedy == {
        "action": "resume",
        "label": "Resume the recipient",
        "method": "POST",
        "url": f"/api/v1/tasks/{cook.id}/resume",
    }


def test_one_for_a_stopped_task(build, clock, pilot, cook, callers):
    interrupting.stop(cook, by=build.founder, clock=clock)
    stopped_at = clock.now()
    clock.advance(5)
    receipt = build.send(pilot, cook).receipt

    stands(
        build,
        receipt,
        callers,
        "recipient_stopped",
        stopped_at,
        sender=["withdraw"],
        operator=["follow_ups"],
        service=["follow_ups"],
    )


def test_one_behind_others(build, pilot, cook, callers):
    build.send(pilot, cook)
    receipt = build.send(pilot, cook).receipt

    stands(build, receipt, callers, "behind_others", receipt.queued_at, sender=["withdraw"])


def test_one_that_waits_for_its_next_attempt(build, clock, pilot, cook, callers):
    receipt = build.send(pilot, cook).receipt
    build.fail_before(cook)
    waiting = fresh(receipt)

    stands(build, receipt, callers, "retry_wait", waiting.queued_at, sender=["withdraw"])
    assert wire_time(waiting.due_at) in explained(build, receipt)["next"]


def test_one_that_nobody_takes(build, pilot, cook, callers):
    receipt = build.send(pilot, cook).receipt

    stands(build, receipt, callers, "no_runtime", receipt.queued_at, sender=["withdraw"])


def test_one_that_the_loop_guard_holds(build, pilot, cook, callers, settings):
    settings.COWORK_MAX_HOPS = 0
    receipt = build.send(pilot, cook).receipt

    stands(
        build,
        receipt,
        callers,
        "loop_guard",
        receipt.queued_at,
        sender=["withdraw"],
        operator=["let_go"],
    )


def test_a_held_one_that_goes_along_is_not_blocked_by_the_guard(build, pilot, cook, settings):
    settings.COWORK_MAX_HOPS = 0
    receipt = build.send(pilot, cook).receipt
    settings.COWORK_MAX_HOPS = 8
    build.send(pilot, cook)

    assert explained(build, receipt)["blocker"] == "no_runtime"


def test_one_that_starts_nothing(build, cook, otto, callers):
    receipt = build.tell(cook, otto).receipt

    stands(
        build,
        receipt,
        callers,
        "idle_child",
        receipt.queued_at,
        operator=["follow_ups", "withdraw"],
        service=["follow_ups"],
    )


def test_one_that_may_not_be_delivered_any_more(build, clock, pilot, cook, team, callers):
    receipt = build.send(pilot, cook).receipt
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=clock)

    stands(build, receipt, callers, "authorization", receipt.queued_at, sender=["withdraw"])


def test_a_quarantined_one(build, pilot, cook, callers):
    receipt = build.a_receipt("quarantined", sender=pilot, recipient=cook)

    stands(
        build,
        receipt,
        callers,
        "quarantined",
        receipt.quarantined_at,
        operator=["release", "discard"],
    )


def test_a_failed_one(build, pilot, cook, callers):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)

    stands(
        build,
        receipt,
        callers,
        "failed",
        receipt.failed_at,
        sender=["retry"],
        operator=["retry", "discard"],
    )


def test_a_persons_own_failed_one(build, cook, otto, callers):
    receipt = build.follow_up(cook, otto).receipt
    build.fail_before(cook)

    told = [row["action"] for row in explained(build, receipt, callers["operator"])["remedies"]]

    assert told == ["retry", "discard"]


def test_a_services_own(build, cook, ops, callers):
    receipt = build.tell(cook, ops).receipt
    told = [row["action"] for row in explained(build, receipt, callers["service"])["remedies"]]
    assert told == ["follow_ups", "withdraw"]
    build.follow_up(cook, ops)
    build.fail_before(cook)

    told = [row["action"] for row in explained(build, receipt, callers["service"])["remedies"]]

    assert told == ["retry"]


def test_a_delivered_one(build, pilot, cook, callers):
    receipt = build.a_receipt("delivered", sender=pilot, recipient=cook)

    stands(build, receipt, callers, "none", receipt.delivered_at)


@pytest.mark.parametrize("how", ["withdrawn", "discarded", "discarded in quarantine", "ended"])
def test_a_closed_one(build, clock, pilot, cook, callers, how):
    told = {"by": build.founder, "clock": clock}
    if how == "withdrawn":
        receipt = build.send(pilot, cook).receipt
        withdrawing.withdraw(receipt, by=build.key_of(pilot), clock=clock)
    elif how == "ended":
        receipt = build.send(pilot, cook).receipt
        editing.edit(cook, archived=True, **told)
    else:
        status = "failed" if how == "discarded" else "quarantined"
        receipt = build.a_receipt(status, sender=pilot, recipient=cook)
        releasing.discard(receipt, note="", **told)
    clock.advance(5)

    stands(build, receipt, callers, "closed", clock.now() - timedelta(seconds=5))


def test_one_in_a_failed_conversation_waits_for_a_follow_up(build, pilot, cook, callers):
    receipt = build.send(pilot, cook).receipt
    finishing.complete(cook, outcome="failed", summary="", by=build.founder, clock=build.clock)

    stands(
        build,
        receipt,
        callers,
        "idle_child",
        receipt.queued_at,
        sender=["withdraw"],
        operator=["follow_ups"],
        service=["follow_ups"],
    )
