"""Remedies: what an operator does to a message that is held, failed or doubted (SPEC §5.3, §7.6).

One function per remedy; all are called with the row that `locked` or `locked_together` returned,
and refuse before they write anything. One message or many: the actions that call them differ in
nothing else.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.db.models import Q, QuerySet

from cowork import locks
from messaging import authority, boundary, receipts, repeats
from messaging.models import Receipt
from teams.permissions import Principal
from timeline import audit
from timeline.refusals import Refusal
from timeline.transitions import invalid


class StillQuarantined(Refusal):
    """It can't be released yet: {reason} Repair that first; releasing repairs nothing."""

    code = "BOT_MESSAGE_QUARANTINED"
    status = 409
    shown = ("reason",)


class Remedy(Protocol):
    """One step for one locked message, audited."""

    def __call__(self, receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None: ...


def locked(receipt: Receipt) -> Receipt:
    """Lock a message's team and its recipient; the message as it stands after that."""
    [fresh] = locked_together(receipt.recipient_id, Receipt.objects.filter(pk=receipt.pk))
    return fresh


def locked_together(recipient_id: UUID, chosen: QuerySet[Receipt]) -> list[Receipt]:
    """The same for several messages of one recipient, in the order of their places."""
    teams = chosen.filter(team__isnull=False).order_by("team_id").values_list("team_id", flat=True)
    for team_id in teams.distinct():
        locks.lock_team(team_id)
    recipient = locks.lock_task(recipient_id)
    rows: QuerySet[Receipt] = receipts.in_full(chosen.filter(recipient_id=recipient_id))
    found = list(rows.order_by("sequence"))
    for receipt in found:
        receipt.recipient = recipient  # one row for all, as it counts the places
    return found


def retry(receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    """Failed → queued again, at the tail; it wakes.

    Raises InvalidTransition, ReceiptClosed, ConversationUnavailable.
    """
    requeue_failed(receipt, by=by, now=now)
    _record("retry", receipt, by=by, note=note, now=now)


def requeue_failed(receipt: Receipt, *, by: Principal, now: datetime) -> None:
    """The same for its sender, who uses nobody's authority: it is not audited."""
    receipts.require_open(receipt)
    if receipt.status != Receipt.Status.FAILED:
        raise invalid(receipt, receipt.status)
    repeats.retry(receipt, by=by, now=now)


def release(receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    """Quarantined → queued again, at the tail, if its team stands and its conversation takes it.

    Raises InvalidTransition, ReceiptClosed, StillQuarantined naming what still fails.
    """
    if receipt.status != Receipt.Status.QUARANTINED:
        raise invalid(receipt, receipt.status)
    receipts.require_open(receipt)
    if not boundary.takes(receipt, receipt.recipient):
        raise StillQuarantined(reason="Its conversation takes no messages any more.")
    reason = authority.why_not(receipt)
    if reason is not None:
        raise StillQuarantined(reason=reason)
    receipts.queue_again(
        receipt, actor=by.actor, now=now, wakes=not receipt.is_closing, released_by=by.label
    )
    if receipt.delivery_mode == Receipt.Mode.FOLLOW_UP:
        receipts.make_due(receipt.recipient, now=now)
    _record("release", receipt, by=by, note=note, now=now)


def let_go(receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    """Let a message that the loop guard holds wake its recipient. Raises InvalidTransition."""
    receipts.let_go(receipt, actor=by.actor, now=now)
    _record("let_go", receipt, by=by, note=note, now=now)


def discard(receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    """Close a failed or quarantined message for good. Raises InvalidTransition, ReceiptClosed."""
    receipts.discard(receipt, actor=by.actor, now=now)
    _record("discard", receipt, by=by, note=note, now=now)


def quarantine(receipt: Receipt, *, by: Principal, note: str, now: datetime) -> None:
    """Set a queued message aside because a person doubts it. Raises InvalidTransition."""
    if receipt.status != Receipt.Status.QUEUED:
        raise invalid(receipt, receipt.status)
    reason = note or "A person has set it aside."
    boundary.hold(receipt, code=receipts.MESSAGE_UNSAFE, reason=reason, actor=by.actor, now=now)
    _record("quarantine", receipt, by=by, note=note, now=now)


_OPEN = Q(closed_at__isnull=True)
# What each remedy is for, as a query: what a filter of many messages finds.
CURABLE: Mapping[str, Q] = {
    "retry": Q(status=Receipt.Status.FAILED) & _OPEN,
    "release": Q(status=Receipt.Status.QUARANTINED) & _OPEN,
    "discard": Q(status__in=[Receipt.Status.FAILED, Receipt.Status.QUARANTINED]) & _OPEN,
    "quarantine": Q(status=Receipt.Status.QUEUED),
    "let_go": Q(status=Receipt.Status.QUEUED, is_held=True),
}
REMEDIES: Mapping[str, Remedy] = {
    "retry": retry,
    "release": release,
    "discard": discard,
    "quarantine": quarantine,
    "let_go": let_go,
}


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
