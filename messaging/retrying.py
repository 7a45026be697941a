"""Retrying: a failed message is queued again (SPEC §5)."""

from messaging import authority, remedies
from messaging.models import Receipt
from teams.permissions import May, Principal, may
from timeline.clock import Clock
from timeline.refusals import Forbidden
from timeline.transactions import action


@action
def retry(receipt: Receipt, *, by: Principal, clock: Clock, note: str = "") -> Receipt:
    """Queue a failed receipt again, at the tail, with the next attempt; it wakes.

    For its sender and operators. Raises Forbidden, InvalidTransition, ReceiptClosed,
    ConversationUnavailable when its recipient can't take it any more.
    """
    is_sender = authority.is_sender(by, receipt)
    if not is_sender and not may(by, May.HANDLE_RECEIPTS):
        raise Forbidden
    fresh = remedies.locked(receipt)
    now = clock.now()
    if is_sender:
        remedies.requeue_failed(fresh, by=by, now=now)
    else:
        remedies.retry(fresh, by=by, note=note, now=now)
    return fresh
