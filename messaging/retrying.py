"""Retrying: a failed message is queued again (SPEC §5)."""

from cowork import locks
from messaging import authority, receipts, repeats
from messaging.models import Receipt
from teams.permissions import May, Principal, may
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import Forbidden
from timeline.transactions import action
from timeline.transitions import invalid


@action
def retry(receipt: Receipt, *, by: Principal, clock: Clock, note: str = "") -> Receipt:
    """Queue a failed receipt again, at the tail, with the next attempt; it wakes.

    For its sender and operators. Raises Forbidden, InvalidTransition, ReceiptClosed,
    ConversationUnavailable when its recipient can't take it any more.
    """
    is_sender = authority.is_sender(by, receipt)
    if not is_sender and not may(by, May.HANDLE_RECEIPTS):
        raise Forbidden
    if receipt.team_id is not None:
        locks.lock_team(receipt.team_id)
    recipient = locks.lock_task(receipt.recipient_id)
    fresh: Receipt = receipts.in_full(Receipt.objects.filter(pk=receipt.pk)).get()
    fresh.recipient = recipient
    receipts.require_open(fresh)
    if fresh.status != Receipt.Status.FAILED:
        raise invalid(fresh, fresh.status)
    now = clock.now()
    repeats.retry(fresh, by=by, now=now)
    if not is_sender:
        audit.record(
            "retry",
            workspace_id=fresh.workspace_id,
            actor=by.actor,
            target_kind="receipt",
            target_id=fresh.id,
            note=note,
            now=now,
        )
    return fresh
