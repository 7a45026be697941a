"""Receipts, tasks and turns as the wire shows them (docs/wire.md)."""

from datetime import datetime
from typing import Any

from cowork.models import Task, Turn
from cowork.turns import running_turn
from messaging import boundary, collaboration, prompt, replies
from messaging.models import Receipt
from messaging.repeats import Sent
from messaging.taking import Claimed
from timeline import log
from timeline.event_types import EventType
from timeline.log import wire_time
from timeline.models import Event

_TIMES = (
    "accepted_at",
    "queued_at",
    "started_at",
    "delivered_at",
    "failed_at",
    "quarantined_at",
)


def shown_time(moment: datetime | None) -> str | None:
    return wire_time(moment) if moment is not None else None


def party(task: Task) -> dict[str, Any]:
    """`{task_id, bot, label, status}` of a recipient."""
    return {
        "task_id": str(task.id),
        "bot": task.bot.handle if task.bot else None,
        "label": task.bot.display_name if task.bot else task.title,
        "status": task.status,
    }


def sent(answer: Sent) -> dict[str, Any]:
    """The answer to a send (SPEC §4.6): ids, state and times, never the text."""
    receipt = answer.receipt
    return {
        "success": True,
        "duplicate": answer.is_duplicate,
        "queued": receipt.status == Receipt.Status.QUEUED,
        "receipt_id": str(receipt.id),
        "message_id": receipt.message_id,
        "delivery_mode": receipt.delivery_mode,
        "delivery_status": receipt.status,
        "attempt": receipt.attempt,
        "ahead": answer.ahead,
        "sequence": receipt.sequence,
        "sender_task_id": str(receipt.sender_task_id) if receipt.sender_task_id else None,
        "target_task_id": str(receipt.recipient_id),
        "recipient": party(receipt.recipient),
        **{name: shown_time(getattr(receipt, name)) for name in _TIMES},
        "failure_code": receipt.failure_code or None,
        "failure_reason": receipt.failure_reason or None,
        "reply_status": receipt.reply_status,
        "summary": _summary(receipt),
    }


def _summary(receipt: Receipt) -> str:
    task = receipt.recipient
    name = task.bot.display_name if task.bot else task.title
    return {
        Receipt.Status.QUEUED: f"Queued for {name}'s next turn.",
        Receipt.Status.STARTED: f"{name} has begun a turn with it and has not taken it in yet.",
        Receipt.Status.DELIVERED: f"Delivered to {name}.",
        Receipt.Status.FAILED: f"Not delivered to {name}.",
        Receipt.Status.QUARANTINED: f"Held back from {name} until a person releases it.",
    }[Receipt.Status(receipt.status)]


def receipt(row: Receipt) -> dict[str, Any]:
    """A receipt, everywhere the same."""
    reply = row.reply
    return {
        "id": str(row.id),
        "message_id": row.message_id,
        "delivery_mode": row.delivery_mode,
        "source": row.source,
        "delivery_status": row.status,
        "attempt": row.attempt,
        "sequence": row.sequence,
        "wakes": row.wakes,
        "sender": {
            "kind": row.source,
            "task_id": str(row.sender_task_id) if row.sender_task_id else None,
            "bot": row.sender_bot.handle if row.sender_bot else None,
            "label": row.sender_label,
        },
        "recipient": party(row.recipient),
        "message_hash": row.message_hash,
        "in_reply_to": row.in_reply_to.message_id if row.in_reply_to else None,
        "in_reply_to_task_id": (
            str(row.in_reply_to.sender_task_id) if row.in_reply_to is not None else None
        ),
        "handoff": row.is_handoff,
        "closing": row.is_closing,
        "automatic": row.is_automatic,
        "reply_status": row.reply_status,
        "reply_message_id": reply.message_id if reply else None,
        "reply_task_id": str(reply.sender_task_id) if reply else None,
        "replied_at": shown_time(row.replied_at),
        "reply_deadline_at": shown_time(row.reply_deadline_at),
        **{name: shown_time(getattr(row, name)) for name in _TIMES},
        "closed_at": shown_time(row.closed_at),
        "failure_code": row.failure_code or None,
        "failure_reason": row.failure_reason or None,
        "released_by": row.released_by or None,
        "cause": {
            "kind": row.cause_kind,
            "id": row.cause_id or None,
            "chain": str(row.chain),
            "hop": row.hop,
        },
    }


def receipt_in_full(row: Receipt) -> dict[str, Any]:
    """One receipt with its text and its history, which its events tell."""
    events = Event.objects.filter(
        subject=row.id, stream_id=row.recipient_id, type=EventType.MESSAGE_STATUS
    )
    steps = [
        {
            "from": event.payload["from"],
            "to": event.payload["to"],
            "attempt": event.payload["attempt"],
            "code": event.payload["code"],
            "reason": event.payload["reason"],
            "actor": {
                "kind": event.actor_kind,
                "id": event.actor_id,
                "label": event.actor_label,
            },
            "at": wire_time(event.created_at),
        }
        for event in events.order_by("seq")
        if event.payload["from"] != event.payload["to"]
    ]
    return {**receipt(row), "message": row.body.text, "transitions": steps}


def task(row: Task) -> dict[str, Any]:
    """A task, everywhere the same."""
    running = running_turn(row)
    return {
        "id": str(row.id),
        "workspace": row.workspace.slug,
        "kind": row.kind,
        "title": row.title,
        "status": row.status,
        "runtime_mode": row.runtime_mode,
        "mode_ceiling": None,
        "interaction_mode": row.interaction_mode,
        "runtime": row.runtime.name,
        "bot": row.bot.handle if row.bot else None,
        "team": str(row.team_id) if row.team_id else None,
        "parent": None,
        "root": str(row.id),
        "depth": 0,
        "branch_from": str(row.branch_from_id) if row.branch_from_id else None,
        "session": str(row.session_id) if row.session_id else None,
        "archived": row.is_archived,
        "batch_inputs": row.batch_inputs,
        "running_turn": (
            {
                "id": str(running.id),
                "number": running.number,
                "started_at": wire_time(running.started_at),
            }
            if running
            else None
        ),
        "requested": (
            {"action": row.requested_action, "at": shown_time(row.requested_at)}
            if row.requested_action
            else None
        ),
        "queued": boundary.queue_length(row),
        "last_seq": log.last_seq(row.stream),
        "blocked_on": blocked_on(row),
        "result": (
            {"outcome": row.result_outcome, "summary": row.result_summary}
            if row.result_outcome
            else None
        ),
        "created_at": wire_time(row.created_at),
        "updated_at": wire_time(row.updated_at),
    }


def blocked_on(row: Task) -> dict[str, Any] | None:
    """Whom an idle task waits for; computed, never stored (SPEC §6.1, §7.4)."""
    if row.status != Task.Status.IDLE:
        return None
    waiting = replies.waits_for(row).select_related("recipient__bot").first()
    if waiting is None:
        return None
    name = party(waiting.recipient)["label"]
    return {
        "text": f"Waiting on {name}",
        "task_id": str(waiting.recipient_id),
        "message_id": waiting.message_id,
    }


def header(found: collaboration.Header | None) -> dict[str, Any]:
    """The collaboration header; empty for a task that never dealt with a teammate."""
    if found is None:
        return {
            "state": None,
            "text": "",
            "teammates": [],
            "handoffs": [],
            "latest": None,
            "attention": [],
        }
    return {
        "state": found.state.value,
        "text": found.text,
        "teammates": found.teammates,
        "handoffs": [_handoff(row) for row in found.handoffs],
        "latest": found.latest,
        "attention": [_handoff(row) for row in found.attention],
    }


def _handoff(row: collaboration.Handoff) -> dict[str, Any]:
    return {
        "direction": "sent" if row.is_sent else "received",
        "teammate": row.teammate,
        "preview": row.preview,
        "receipt_id": row.delivery.receipt_id,
        "message_id": row.delivery.message_id,
        "delivery_status": row.delivery.status,
        "reply_status": row.delivery.reply_status,
        "at": wire_time(row.at),
    }


def turn(row: Turn) -> dict[str, Any]:
    """A turn for everybody who may see its task; its fence is its claimer's alone."""
    return {
        "id": str(row.id),
        "task_id": str(row.task_id),
        "number": row.number,
        "status": row.status,
        "cause": cause(row),
        "runtime_mode": row.runtime_mode,
        "interaction_mode": row.interaction_mode,
        "lease_expires_at": wire_time(row.lease_expires_at),
        "started_at": wire_time(row.started_at),
        "incorporated_at": shown_time(row.incorporated_at),
        "ended_at": shown_time(row.ended_at),
    }


def cause(row: Turn) -> dict[str, Any]:
    return {
        "kind": row.cause_kind,
        "id": row.cause_id or None,
        "chain": str(row.chain),
        "hop": row.hop,
    }


def claimed(answer: Claimed, *, now: datetime) -> dict[str, Any]:
    """The answer to a claim: the turn, its fence, its input and the prompt made of it."""
    row = answer.turn
    bot = answer.task.bot
    return {
        "id": str(row.id),
        "number": row.number,
        "fence": row.fence,
        "lease_expires_at": wire_time(row.lease_expires_at),
        "cause": cause(row),
        "runtime_mode": row.runtime_mode,
        "interaction_mode": row.interaction_mode,
        "instructions": bot.instructions if bot else "",
        "prompt": prompt.render(answer.inputs, now=now),
        "inputs": [_input(receipt, now=now) for receipt in answer.inputs],
        "notices": [],
        "notes": [],
        "assignments": [],
    }


def _input(row: Receipt, *, now: datetime) -> dict[str, Any]:
    return {
        "receipt_id": str(row.id),
        "message_id": row.message_id,
        "source": row.source,
        "sender": {
            "task_id": str(row.sender_task_id) if row.sender_task_id else None,
            "label": row.sender_label,
            "bot": row.sender_bot.handle if row.sender_bot else None,
        },
        "message": row.body.text,
        "sent_at": wire_time(row.accepted_at),
        "age_seconds": prompt.age_of(row, now=now),
        "sequence": row.sequence,
        "in_reply_to": row.in_reply_to.message_id if row.in_reply_to else None,
        "attempt": row.attempt,
        "shown_before": row.was_shown,
    }
