"""Receipts: queued at a place, moved along their table, told in both timelines (SPEC §5).

One function per transition; nothing else writes a receipt's status.
"""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from cowork.models import Task, Turn
from messaging import timelines
from messaging.models import Receipt
from timeline.clock import latest
from timeline.log import SYSTEM, Actor
from timeline.models import Body
from timeline.refusals import Refusal
from timeline.transactions import require_transaction
from timeline.transitions import invalid, transition

RECIPIENT_ENDED = "RECIPIENT_ENDED"
WITHDRAWN = "WITHDRAWN"
DISCARDED = "DISCARDED"
RUNTIME_ERROR = "RUNTIME_ERROR"
RUNTIME_LIMIT = "RUNTIME_LIMIT"
POISON_MESSAGE = "POISON_MESSAGE"
AUTHORIZATION_REVOKED = "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED"
MESSAGE_UNSAFE = "MESSAGE_UNSAFE"
REPLY_TIMEOUT = "BOT_HANDOFF_REPLY_TIMEOUT"


class ReceiptClosed(Refusal):
    """This message is closed ({code_kept}) and is not sent again. Use a new id."""

    code = "RECEIPT_CLOSED"
    status = 409


def queue(*, recipient: Task, text: Body, actor: Actor, now: datetime, **fields: Any) -> Receipt:
    """Queue a message at the tail of its recipient's queue and tell both timelines.

    The recipient is locked; `fields` are the rest of the receipt's.
    """
    require_transaction()
    receipt = Receipt.objects.create(
        workspace_id=recipient.workspace_id,
        recipient=recipient,
        sequence=_next_place(recipient),
        body=text,
        message_hash=text.sha256,
        accepted_at=now,
        queued_at=now,
        due_at=now,
        **fields,
    )
    timelines.tell_acceptance(receipt, text, actor=actor, now=now)
    timelines.tell_status(receipt, None, actor=actor, now=now)
    return receipt


def start(receipt: Receipt, *, turn: Turn, actor: Actor, now: datetime) -> None:
    """Queued → started: a turn holds it now, and has not taken it in yet."""
    before = receipt.status
    started_at = latest(now, receipt.queued_at)
    transition(receipt, Receipt.Status.STARTED, turn=turn, started_at=started_at)
    timelines.tell_start(receipt, turn=turn, actor=actor, now=now)
    timelines.tell_status(receipt, before, actor=actor, now=now)


def deliver(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    """Started → delivered: the runtime holds it, and it stands in the transcript (SPEC §5.6)."""
    before = receipt.status
    delivered_at = latest(now, receipt.started_at)
    transition(
        receipt,
        Receipt.Status.DELIVERED,
        delivered_at=delivered_at,
        end_count=0,
        loss_count=0,
        limit_count=0,
    )
    timelines.tell_transcript(receipt, actor=actor, now=now)
    timelines.tell_status(receipt, before, actor=actor, now=now)


def give_back(receipt: Receipt, *, due_at: datetime, counts: dict[str, int], now: datetime) -> None:
    """Started → queued at its old place: its turn ended before it was taken in (SPEC §6.5)."""
    before = receipt.status
    transition(
        receipt,
        Receipt.Status.QUEUED,
        queued_at=latest(now, receipt.started_at),
        started_at=None,
        turn=None,
        due_at=due_at,
        was_shown=True,
        **counts,
    )
    timelines.tell_status(receipt, before, actor=SYSTEM, now=now)


def queue_again(receipt: Receipt, *, actor: Actor, now: datetime, **more: Any) -> None:
    """Failed or quarantined → queued at the tail, with the next attempt (SPEC §5, §4.5)."""
    before = receipt.status
    last = latest(now, receipt.queued_at, receipt.failed_at, receipt.quarantined_at)
    if receipt.reply_status == Receipt.ReplyStatus.TIMED_OUT:
        more["reply_status"] = Receipt.ReplyStatus.PENDING  # its sender waits anew
    transition(
        receipt,
        Receipt.Status.QUEUED,
        sequence=_next_place(receipt.recipient),
        attempt=receipt.attempt + 1,
        queued_at=last,
        due_at=last,
        started_at=None,
        failed_at=None,
        quarantined_at=None,
        failure_code="",
        failure_reason="",
        turn=None,
        end_count=0,
        loss_count=0,
        limit_count=0,
        is_held=False,
        reply_deadline_at=None,
        **more,
    )
    timelines.tell_status(receipt, before, actor=actor, now=now)


def fail(
    receipt: Receipt,
    *,
    code: str,
    reason: str,
    actor: Actor,
    now: datetime,
    is_closed: bool = False,
    **more: Any,
) -> None:
    """Queued or started → failed; a closed one is never queued again (SPEC §5.3)."""
    before = receipt.status
    at = latest(now, receipt.queued_at, receipt.started_at)
    transition(
        receipt,
        Receipt.Status.FAILED,
        failed_at=at,
        closed_at=at if is_closed else None,
        failure_code=code,
        failure_reason=reason,
        turn=None,
        **more,
    )
    timelines.tell_status(receipt, before, actor=actor, now=now)


def withdraw(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    """Queued → failed and closed, by its sender; a handoff waits for nothing any more."""
    if receipt.status != Receipt.Status.QUEUED:
        raise invalid(receipt, receipt.status)
    fail(
        receipt,
        code=WITHDRAWN,
        reason="Its sender took it back.",
        actor=actor,
        now=now,
        is_closed=True,
        reply_status=None,
    )


def quarantine(receipt: Receipt, *, code: str, reason: str, actor: Actor, now: datetime) -> None:
    """Queued or started → quarantined: it waits for a person's deliberate step (SPEC §5.3)."""
    before = receipt.status
    transition(
        receipt,
        Receipt.Status.QUARANTINED,
        quarantined_at=latest(now, receipt.queued_at, receipt.started_at),
        started_at=None,
        failure_code=code,
        failure_reason=reason,
        turn=None,
    )
    timelines.tell_status(receipt, before, actor=actor, now=now)


def discard(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    """Close a failed or quarantined receipt for good; its status stays (SPEC §5.3)."""
    require_transaction()
    at_rest = (Receipt.Status.FAILED, Receipt.Status.QUARANTINED)
    if receipt.status not in at_rest:
        raise invalid(receipt, receipt.status)
    require_open(receipt)
    values: dict[str, Any] = {"closed_at": latest(now, receipt.failed_at, receipt.quarantined_at)}
    if receipt.status == Receipt.Status.FAILED:
        values["failure_code"] = DISCARDED
    _set_fields(receipt, **values)
    timelines.tell_status(receipt, receipt.status, actor=actor, now=now)


def close_queue(task: Task, *, actor: Actor, now: datetime) -> None:
    """Close what is queued for a task that takes no input any more (SPEC §5.5)."""
    for receipt in in_full(Receipt.objects.queued().filter(recipient=task)).order_by("sequence"):
        fail(
            receipt,
            code=RECIPIENT_ENDED,
            reason="Its recipient takes no input any more.",
            actor=actor,
            now=now,
            is_closed=True,
        )


def make_due(recipient: Task, *, now: datetime) -> None:
    """Let the head of a queue be taken at once although it came back (SPEC §6.5)."""
    require_transaction()
    head = Receipt.objects.queued().filter(recipient=recipient).order_by("sequence").first()
    if head is not None and head.due_at > now:
        _set_fields(head, due_at=now)


def link_reply(handoff: Receipt, reply: Receipt, *, actor: Actor, now: datetime) -> None:
    """Write `received`; its only writer is the transaction that incorporates the reply (§7.1)."""
    values: dict[str, Any] = {
        "reply_status": Receipt.ReplyStatus.RECEIVED,
        "reply": reply,
        "replied_at": latest(now, handoff.delivered_at),
        "reply_deadline_at": None,
    }
    if handoff.failure_code == REPLY_TIMEOUT:
        values |= {"failure_code": "", "failure_reason": ""}
    _set_fields(handoff, **values)
    timelines.tell_status(handoff, handoff.status, actor=actor, now=now)


def let_go(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    """Let a message wake its recipient although the loop guard had held it (SPEC §7.6)."""
    if receipt.status != Receipt.Status.QUEUED or not receipt.is_held:
        raise invalid(receipt, receipt.status)
    _set_fields(receipt, is_held=False, wakes=not receipt.is_closing)
    timelines.tell_status(receipt, receipt.status, actor=actor, now=now)


def time_out(handoff: Receipt, *, now: datetime) -> None:
    """End the wait for an answer; a reply taken in later is received all the same (SPEC §7.3)."""
    _set_fields(
        handoff,
        reply_status=Receipt.ReplyStatus.TIMED_OUT,
        failure_code=handoff.failure_code or REPLY_TIMEOUT,
        failure_reason=handoff.failure_reason or "No answer has come in time.",
    )
    timelines.tell_status(handoff, handoff.status, actor=SYSTEM, now=now)


def set_deadline(handoff: Receipt, at: datetime | None) -> None:
    """Say when the wait for an answer ends as things stand."""
    require_transaction()
    _set_fields(handoff, reply_deadline_at=at)


def require_open(receipt: Receipt) -> None:
    """Raise ReceiptClosed for one that is closed."""
    if receipt.closed_at is not None:
        raise ReceiptClosed(code_kept=receipt.failure_code)


def in_full(rows: Any) -> Any:
    """The query with all that telling of a receipt needs, in one round trip."""
    return rows.select_related(
        "recipient__bot", "sender_task", "sender_bot", "in_reply_to", "reply", "body"
    )


def in_order(rows: QuerySet[Receipt]) -> list[Receipt]:
    """The receipts of one recipient in full, by their place.

    Sorted here: over so many columns Django takes longer to say how to sort than to read.
    """
    found: list[Receipt] = list(in_full(rows.order_by()))
    return sorted(found, key=lambda receipt: receipt.sequence)


def _next_place(recipient: Task) -> int:
    recipient.last_sequence += 1
    Task.objects.filter(pk=recipient.pk).update(last_sequence=recipient.last_sequence)
    return recipient.last_sequence


def _set_fields(receipt: Receipt, **values: Any) -> None:
    Receipt.objects.filter(pk=receipt.pk).update(**values)
    for name, value in values.items():
        setattr(receipt, name, value)
