"""Releasing and discarding: an operator's deliberate steps for what is held (SPEC §5.3)."""

from datetime import datetime

from cowork import locks
from cowork.models import Task
from messaging import authority, boundary, receipts, wakes
from messaging.models import Receipt
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import Refusal
from timeline.transactions import action
from timeline.transitions import invalid


class StillQuarantined(Refusal):
    """It can't be released yet: {reason} Repair that first; releasing repairs nothing."""

    code = "BOT_MESSAGE_QUARANTINED"
    status = 409
    shown = ("reason",)


@action
def release(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Queue a quarantined message again after its team stands: at the tail, next attempt, audited.

    Raises Forbidden, InvalidTransition, ReceiptClosed, StillQuarantined naming what still fails.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh, recipient = _locked(receipt)
    if fresh.status != Receipt.Status.QUARANTINED:
        raise invalid(fresh, fresh.status)
    receipts.require_open(fresh)
    if not boundary.takes(fresh, recipient):
        raise StillQuarantined(reason="Its conversation takes no messages any more.")
    reason = authority.why_not(fresh)
    if reason is not None:
        raise StillQuarantined(reason=reason)
    now = clock.now()
    receipts.queue_again(
        fresh, actor=by.actor, now=now, wakes=not fresh.is_closing, released_by=by.label
    )
    if fresh.delivery_mode == Receipt.Mode.FOLLOW_UP:
        receipts.make_due(recipient, now=now)
    _record("release", fresh, by=by, note=note, now=now)
    wakes.enqueue_what_waits(recipient, now=now)
    return fresh


@action
def let_go(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Let a message that the loop guard has held wake its recipient (SPEC §7.6); audited.

    Raises Forbidden, InvalidTransition.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh, recipient = _locked(receipt)
    now = clock.now()
    receipts.let_go(fresh, actor=by.actor, now=now)
    _record("let_go", fresh, by=by, note=note, now=now)
    wakes.enqueue_what_waits(recipient, now=now)
    return fresh


@action
def discard(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Close a failed or quarantined message for good; its text is kept.

    Raises Forbidden, InvalidTransition, ReceiptClosed.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh, _recipient = _locked(receipt)
    now = clock.now()
    receipts.discard(fresh, actor=by.actor, now=now)
    _record("discard", fresh, by=by, note=note, now=now)
    return fresh


def _locked(receipt: Receipt) -> tuple[Receipt, Task]:
    if receipt.team_id is not None:
        locks.lock_team(receipt.team_id)
    recipient = locks.lock_task(receipt.recipient_id)
    fresh: Receipt = receipts.in_full(Receipt.objects.filter(pk=receipt.pk)).get()
    fresh.recipient = recipient
    return fresh, recipient


def _record(what: str, receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    audit.record(
        what,
        workspace_id=receipt.workspace_id,
        actor=by.actor,
        target_kind="receipt",
        target_id=receipt.id,
        note=note,
        now=now,
        attempt=receipt.attempt,
    )
