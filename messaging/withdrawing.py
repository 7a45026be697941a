"""Withdrawing: a sender takes back what nobody has begun to read (SPEC §5.4)."""

from cowork import locks
from messaging import authority, receipts
from messaging.models import Receipt
from teams.permissions import Principal
from timeline.clock import Clock
from timeline.refusals import Forbidden
from timeline.transactions import action


@action
def withdraw(receipt: Receipt, *, by: Principal, clock: Clock) -> Receipt:
    """Fail a queued receipt as withdrawn and close it. Of this and a claim, one wins.

    Raises Forbidden for anybody but its sender, InvalidTransition with the present status.
    """
    if not authority.is_sender(by, receipt):
        raise Forbidden
    locks.lock_task(receipt.recipient_id)
    fresh: Receipt = receipts.in_full(Receipt.objects.filter(pk=receipt.pk)).get()
    receipts.withdraw(fresh, actor=by.actor, now=clock.now())
    return fresh
