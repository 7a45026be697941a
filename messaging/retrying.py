"""Retrying: a failed message is queued again (SPEC §5)."""

from cowork import conversations, locks
from messaging import authority, receipts, wakes
from messaging.models import Receipt
from messaging.repeats import ConversationUnavailable
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
    is_sender = receipt.sender_task is not None and authority.covers(by, receipt.sender_task)
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
    is_usable = conversations.is_usable(recipient)
    is_follow_up = fresh.delivery_mode == Receipt.Mode.FOLLOW_UP and not recipient.is_archived
    if not (is_usable or is_follow_up) or authority.why_not(fresh) is not None:
        raise ConversationUnavailable
    now = clock.now()
    receipts.queue_again(fresh, actor=by.actor, now=now, wakes=not fresh.is_closing)
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
    wakes.enqueue_what_waits(recipient, now=now)
    return fresh
