"""Withdrawing: a sender takes back what nobody has begun to read (SPEC §5.4)."""

import pytest

from messaging import withdrawing
from messaging.models import Receipt
from tests.build import events, fresh
from timeline.refusals import Forbidden
from timeline.transitions import InvalidTransition


def test_a_queued_message_is_closed(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    clock.advance(1)

    withdrawing.withdraw(receipt, by=build.key_of(pilot), clock=clock)

    gone = fresh(receipt)
    assert (gone.status, gone.failure_code, gone.reply_status) == ("failed", "WITHDRAWN", None)
    assert gone.failed_at == gone.closed_at == clock.now()
    assert build.claim(cook) is None
    for task in (pilot, cook):
        assert events(task)[-1].payload["code"] == "WITHDRAWN"


@pytest.mark.parametrize("status", [s for s in Receipt.Status.values if s != "queued"])
def test_nothing_else_is_taken_back(build, clock, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)

    with pytest.raises(InvalidTransition) as refused:
        withdrawing.withdraw(receipt, by=build.key_of(pilot), clock=clock)

    assert refused.value.extra == {"delivery_status": status}
    assert fresh(receipt).status == status


def test_only_its_sender_takes_it_back(build, clock, pilot, cook, otto, ops):
    receipt = build.send(pilot, cook).receipt

    for caller in (build.key_of(cook), build.principal(otto), ops, build.founder):
        with pytest.raises(Forbidden):
            withdrawing.withdraw(receipt, by=caller, clock=clock)
    assert fresh(receipt).status == "queued"


def test_a_person_and_a_service_take_back_their_own(build, clock, cook, otto, ops):
    mia = build.principal(build.a_person("mia", role="manager"))
    for caller in (build.principal(otto), ops):
        receipt = build.follow_up(cook, caller).receipt
        with pytest.raises(Forbidden):
            withdrawing.withdraw(receipt, by=mia, clock=clock)

        withdrawing.withdraw(receipt, by=caller, clock=clock)

        assert fresh(receipt).failure_code == "WITHDRAWN"
