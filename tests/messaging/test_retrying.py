"""Retrying: a failed message is queued again, by its sender or an operator (SPEC §5)."""

import pytest

from cowork import editing
from messaging import leaving, releasing, retrying, withdrawing
from messaging.models import Receipt
from messaging.receipts import ReceiptClosed
from messaging.repeats import ConversationUnavailable
from tests.build import fresh
from timeline.models import AuditEntry
from timeline.refusals import Forbidden
from timeline.transitions import InvalidTransition


def test_it_goes_to_the_tail_and_wakes(build, clock, pilot, cook, otto):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)
    build.send(pilot, cook, "younger")

    retrying.retry(receipt, by=build.principal(otto), note="again", clock=clock)

    again = fresh(receipt)
    assert (again.status, again.attempt, again.wakes) == ("queued", receipt.attempt + 1, True)
    assert build.claimed(cook).inputs[0].body.text == "younger"
    audited = AuditEntry.objects.get(action="retry")
    assert audited.target_id == str(receipt.id)


def test_a_retry_begins_a_new_row_of_attempts(build, clock, pilot, cook):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)

    retrying.retry(receipt, by=build.key_of(pilot), clock=clock)
    for _ in range(3):
        clock.move_to(max(clock.now(), fresh(receipt).due_at))
        build.fail_before(cook)

    assert (fresh(receipt).status, fresh(receipt).attempt) == ("queued", 8)


@pytest.mark.parametrize("status", ["queued", "started", "delivered", "quarantined"])
def test_only_a_failed_one_is_retried(build, clock, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)

    with pytest.raises(InvalidTransition):
        retrying.retry(receipt, by=build.key_of(pilot), clock=clock)

    assert fresh(receipt).status == status


def test_a_closed_one_is_not_retried(build, clock, pilot, cook, scout):
    withdrawn = build.send(pilot, cook).receipt
    withdrawing.withdraw(withdrawn, by=build.key_of(pilot), clock=clock)
    discarded = build.a_receipt("failed", sender=pilot, recipient=cook)
    releasing.discard(discarded, by=build.founder, note="", clock=clock)
    held = build.a_receipt("quarantined", sender=pilot, recipient=cook)
    releasing.discard(held, by=build.founder, note="", clock=clock)
    ended = build.send(pilot, scout).receipt
    editing.edit(scout, archived=True, by=build.founder, clock=clock)

    for receipt in (withdrawn, discarded, held, ended):
        with pytest.raises(ReceiptClosed):
            retrying.retry(receipt, by=build.key_of(pilot), clock=clock)


def test_its_conversation_has_to_take_it(build, clock, pilot, cook, team):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=clock)

    with pytest.raises(ConversationUnavailable):
        retrying.retry(receipt, by=build.key_of(pilot), clock=clock)

    assert fresh(receipt).status == "failed"


def test_senders_and_operators_retry_and_nobody_else(build, clock, pilot, cook, scout, ops):
    receipt = build.a_receipt("failed", sender=pilot, recipient=cook)
    viewer = build.principal(build.a_person(role="viewer"))

    for caller in (build.key_of(cook), build.key_of(scout), viewer, ops):
        with pytest.raises(Forbidden):
            retrying.retry(receipt, by=caller, clock=clock)
    assert fresh(receipt).status == "failed"


def test_a_service_retries_its_own_input(build, clock, cook, ops):
    receipt = build.a_receipt("failed", sender=ops, recipient=cook)

    retrying.retry(receipt, by=ops, clock=clock)

    assert fresh(receipt).status == "queued"


def test_a_persons_message_that_woke_nobody_wakes_when_it_is_retried(build, clock, cook, otto):
    build.tell(cook, otto)
    build.end(build.claimed(cook, start=True).turn, "error")
    receipt = Receipt.objects.get()
    assert (receipt.status, receipt.wakes) == ("failed", False)

    retrying.retry(receipt, by=build.principal(otto), clock=clock)

    assert fresh(receipt).wakes
    assert build.claim(cook) is not None


def test_a_retried_follow_up_lets_the_head_be_taken_at_once(build, clock, pilot, cook, otto):
    failed = build.a_receipt("failed", sender=otto, recipient=cook)
    build.send(pilot, cook, "first")
    build.fail_before(cook)
    assert build.claim(cook) is None

    retrying.retry(failed, by=build.principal(otto), clock=clock)

    assert [row.body.text for row in build.claimed(cook).inputs] == ["first", "hello"]
