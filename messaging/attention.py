"""Attention: what a person should look at, computed from what is stored (SPEC §15)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F, QuerySet

from cowork.models import OutboxEntry, Task, Turn
from messaging import boundary, explain, receipts
from messaging.models import Receipt
from teams.permissions import May, Principal, may
from timeline.log import wire_time


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at; it goes when what it tells of has changed."""

    code: str
    text: str
    since: datetime
    task: Task | None = None
    receipt: Receipt | None = None
    entry: OutboxEntry | None = None

    @property
    def id(self) -> str:
        """The same for the same thing, however often it is asked for."""
        about = self.receipt or self.entry or self.task
        return f"{self.code}:{about.pk if about else ''}".lower()


def items(workspace_id: UUID, *, now: datetime) -> list[Item]:
    """All of a workspace's, newest first."""
    found = [
        *_held(workspace_id),
        *_unanswered(workspace_id),
        *_stale(workspace_id, now=now),
        *_lost(workspace_id),
        *_parked(workspace_id),
    ]
    return sorted(found, key=lambda item: (item.since, item.id), reverse=True)


def _receipts(workspace_id: UUID) -> QuerySet[Receipt]:
    rows: QuerySet[Receipt] = receipts.in_full(Receipt.objects.filter(workspace_id=workspace_id))
    return rows


def _held(workspace_id: UUID) -> Iterator[Item]:
    """Messages that wait for a person: quarantined, failed, or held by the loop guard."""
    at_rest = _receipts(workspace_id).filter(
        status__in=(Receipt.Status.FAILED, Receipt.Status.QUARANTINED), closed_at__isnull=True
    )
    for row in at_rest:
        is_failed = row.status == Receipt.Status.FAILED
        since = row.failed_at if is_failed else row.quarantined_at
        code = "FAILED" if is_failed else "QUARANTINED"
        yield Item(code, row.failure_reason, since or row.queued_at, row.recipient, row)
    for row in _receipts(workspace_id).filter(status=Receipt.Status.QUEUED, is_held=True):
        text = "A chain of messages has gone on for too long; this one wakes nobody."
        yield Item("LOOP_GUARD", text, row.queued_at, row.recipient, row)


def _unanswered(workspace_id: UUID) -> Iterator[Item]:
    """Handoffs of the current human turn whose answer has not come in time."""
    rows = _receipts(workspace_id).filter(
        reply_status=Receipt.ReplyStatus.TIMED_OUT,
        sender_turn__gte=F("sender_task__human_turn"),
    )
    for row in rows:
        since = row.reply_deadline_at or row.delivered_at or row.queued_at
        text = "An answer to this message has not come in time."
        yield Item("REPLY_TIMED_OUT", text, since, row.sender_task, row)


def _stale(workspace_id: UUID, *, now: datetime) -> Iterator[Item]:
    """Messages that could be taken for a while and nobody takes."""
    rows = _receipts(workspace_id).filter(
        status=Receipt.Status.QUEUED,
        wakes=True,
        queued_at__lte=now - settings.COWORK_STALE_QUEUE,
    )
    seen: set[UUID] = set()
    for row in rows.order_by("recipient_id", "sequence"):
        if row.recipient_id in seen:
            continue
        seen.add(row.recipient_id)
        due_at = boundary.due_at(row.recipient, now=now)
        if due_at is not None and due_at <= now:
            text = "Its recipient is free and has not asked for it."
            yield Item("STALE_QUEUE", text, row.queued_at, row.recipient, row)
        elif due_at is not None and row.limit_count:
            text = "Its recipient's runtime has met a limit; it is tried again later."
            yield Item("STALE_QUEUE", text, row.queued_at, row.recipient, row)


def _lost(workspace_id: UUID) -> Iterator[Item]:
    """Turns that were lost after they had taken their input in, and are not run again."""
    rows = Turn.objects.filter(
        task__workspace_id=workspace_id,
        status=Turn.Status.LOST,
        incorporated_at__isnull=False,
        number=F("task__last_turn"),
        task__archived_at__isnull=True,
    )
    for turn in rows.select_related("task__bot"):
        text = "Its turn was lost after it had taken its input in. It is not run again by itself."
        yield Item("TURN_LOST", text, turn.ended_at or turn.started_at, turn.task)


def _parked(workspace_id: UUID) -> Iterator[Item]:
    given_up = (OutboxEntry.State.PARKED, OutboxEntry.State.POISON)
    rows = OutboxEntry.objects.filter(workspace_id=workspace_id, status__in=given_up)
    for entry in rows:
        text = f"{entry.kind} was given up: {entry.last_error}"
        yield Item("PARKED", text, entry.updated_at, entry=entry)


def shown(item: Item, *, by: Principal, now: datetime) -> dict[str, Any]:
    """An item as the wire shows it, with what this caller can do about it."""
    task = item.task
    return {
        "id": item.id,
        "code": item.code,
        "task_id": str(task.id) if task else None,
        "receipt_id": str(item.receipt.id) if item.receipt else None,
        "assignment_id": None,
        "request_id": None,
        "outbox_id": str(item.entry.id) if item.entry else None,
        "bot": task.bot.handle if task and task.bot else None,
        "text": item.text,
        "since": wire_time(item.since),
        "remedies": _remedies(item, by=by, now=now),
    }


def _remedies(item: Item, *, by: Principal, now: datetime) -> list[dict[str, str]]:
    if item.entry is not None:
        return [
            _call(action, label, f"/api/v1/outbox/{item.entry.id}/{action}")
            for action, label in (("retry", "Retry"), ("discard", "Discard"))
            if may(by, May.HANDLE_OUTBOX)
        ]
    if item.code in ("TURN_LOST", "REPLY_TIMED_OUT") and item.task is not None:
        url = f"/api/v1/tasks/{item.task.id}/follow_ups"
        return [_call("follow_ups", "Continue", url)] if may(by, May.FOLLOW_UP) else []
    if item.receipt is not None:
        found = explain.blocker_of(item.receipt, now=now)
        return explain.remedies(item.receipt, found, by=by)
    return []


def _call(action: str, label: str, url: str) -> dict[str, str]:
    return {"action": action, "label": label, "method": "POST", "url": url}
