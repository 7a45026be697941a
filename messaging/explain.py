"""Explain: what blocks a receipt, since when, what happens next, and what the caller can do
(SPEC §6.12)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cowork.models import Task
from cowork.turns import running_turn
from messaging import authority, boundary
from messaging.models import Receipt
from teams.permissions import May, Principal, may
from timeline.event_types import EventType
from timeline.log import wire_time
from timeline.models import Event


@dataclass(frozen=True, slots=True)
class Blocker:
    """What stands in the way: its name on the wire, since when, and what follows."""

    name: str
    since: datetime | None
    next: str


def explain(receipt: Receipt, *, by: Principal, now: datetime) -> dict[str, Any]:
    """`{delivery_status, blocker, since, next, remedies}`; remedies are what the caller may do."""
    found = blocker_of(receipt, now=now)
    return {
        "delivery_status": receipt.status,
        "blocker": found.name,
        "since": wire_time(found.since) if found.since else None,
        "next": found.next,
        "remedies": remedies(receipt, found, by=by),
    }


def blocker_of(receipt: Receipt, *, now: datetime) -> Blocker:
    """What blocks a receipt in the state that it is in."""
    if receipt.closed_at is not None:
        return Blocker("closed", receipt.closed_at, "Nothing: it is closed.")
    match receipt.status:
        case Receipt.Status.DELIVERED:
            return Blocker("none", receipt.delivered_at, "Nothing: it is delivered.")
        case Receipt.Status.FAILED:
            return Blocker("failed", receipt.failed_at, "It waits to be sent again or discarded.")
        case Receipt.Status.QUARANTINED:
            return Blocker(
                "quarantined", receipt.quarantined_at, "It waits for a person to release it."
            )
        case Receipt.Status.STARTED:
            return Blocker(
                "recipient_running",
                receipt.started_at,
                "Its turn says that it was taken in, or gives it back.",
            )
    return _blocker_of_queued(receipt, receipt.recipient, now=now)


def _blocker_of_queued(receipt: Receipt, task: Task, *, now: datetime) -> Blocker:
    if authority.why_not(receipt) is not None:
        return Blocker("authorization", receipt.queued_at, "It is quarantined at the next look.")
    turn = running_turn(task)
    if turn is not None:
        return Blocker("recipient_running", turn.started_at, "It is taken after this turn.")
    if task.status == Task.Status.PAUSED:
        return Blocker("recipient_paused", _status_since(task), "It is taken after a resume.")
    if task.status == Task.Status.INTERRUPTED and not boundary.has_wakers(task):
        return Blocker("recipient_stopped", _status_since(task), "It is taken after a follow-up.")
    has_wakers = boundary.has_wakers(task)
    if boundary.ahead_of(receipt) > 0 and has_wakers:
        return Blocker("behind_others", receipt.queued_at, "It is taken after those ahead of it.")
    if receipt.due_at > now:
        return Blocker("retry_wait", receipt.queued_at, f"Again at {wire_time(receipt.due_at)}.")
    if receipt.is_held and not has_wakers:
        return Blocker(
            "loop_guard", receipt.queued_at, "Its chain is too long: a person lets it go."
        )
    if not has_wakers:
        return Blocker("idle_child", receipt.queued_at, "It is taken with the next input.")
    return Blocker(
        "no_runtime", receipt.queued_at, "It is taken when the recipient's agent asks for a turn."
    )


def _status_since(task: Task) -> datetime:
    """When the task came into its present status."""
    told = Event.objects.filter(stream_id=task.stream, type=EventType.TASK_STATUS)
    newest = told.order_by("-seq").values_list("created_at", flat=True).first()
    return newest or task.created_at


_REMEDIES: dict[str, list[tuple[str, str, May]]] = {
    "recipient_running": [("stop", "Stop the recipient", May.INTERRUPT)],
    "recipient_paused": [("resume", "Resume the recipient", May.INTERRUPT)],
    "recipient_stopped": [("follow_ups", "Follow up", May.FOLLOW_UP)],
    "idle_child": [("follow_ups", "Follow up", May.FOLLOW_UP)],
    "loop_guard": [("let_go", "Let it go", May.HANDLE_RECEIPTS)],
    "failed": [
        ("retry", "Retry the same message", May.HANDLE_RECEIPTS),
        ("discard", "Discard it", May.HANDLE_RECEIPTS),
    ],
    "quarantined": [
        ("release", "Release it", May.HANDLE_RECEIPTS),
        ("discard", "Discard it", May.HANDLE_RECEIPTS),
    ],
}
_OF_THE_TASK = frozenset({"stop", "resume", "follow_ups"})


def remedies(receipt: Receipt, found: Blocker, *, by: Principal) -> list[dict[str, str]]:
    """What this caller can do about it, each as the call that does it."""
    offered = [
        (action, label)
        for action, label, permission in _REMEDIES.get(found.name, [])
        if may(by, permission)
    ]
    is_sender = authority.is_sender(by, receipt)
    if is_sender and found.name == "failed" and not offered:
        offered = [("retry", "Retry the same message")]
    if is_sender and receipt.status == Receipt.Status.QUEUED:
        offered.append(("withdraw", "Withdraw it"))
    return [
        {
            "action": action,
            "label": label,
            "method": "POST",
            "url": (
                f"/api/v1/tasks/{receipt.recipient_id}/{action}"
                if action in _OF_THE_TASK
                else f"/api/v1/receipts/{receipt.id}/{action}"
            ),
        }
        for action, label in offered
    ]
