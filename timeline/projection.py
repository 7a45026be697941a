"""What the events of a task say about its messages: one receipt, one row (SPEC §14.3).

Pure functions of events as readers get them (`timeline.log.as_json`), oldest first. Running one
again over the same events gives the same; nothing here is stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.utils.translation import gettext_lazy as _

from timeline.log import as_json, preview, wire_time
from timeline.models import Event

Facts = Mapping[str, Any]  # one event, as `timeline.log.as_json` gives it
Party = Mapping[str, Any]  # who sent or receives, as `event_types.Party` says


class Step(models.TextChoices):
    """Where a message stands, as people read it. Accepted is a boundary, no resting state."""

    ACCEPTED = "accepted", _("Accepted")
    QUEUED = "queued", _("Queued")
    STARTED = "started", _("Started")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")
    QUARANTINED = "quarantined", _("Quarantined")


# A closed message will not move again; its code says why (SPEC §5.3).
CLOSED = {
    "WITHDRAWN": _("Withdrawn"),
    "DISCARDED": _("Discarded"),
    "RECIPIENT_ENDED": _("Recipient ended"),
}
REASONS = {
    "BOT_TEAM_UNAVAILABLE": _("Team unavailable"),
    "BOT_MEMBERSHIP_REVOKED": _("No longer in this team"),
    "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED": _("No longer in this team (quarantined)"),
    "BOT_CONVERSATION_UNAVAILABLE": _("Conversation unavailable"),
    "BOT_RUNTIME_UNAVAILABLE": _("Runtime not answering"),
}
UNKNOWN_REASON = _("Something went wrong")


@dataclass(slots=True)
class Delivery:
    """One message to one recipient, as far as the events of a task tell."""

    receipt_id: str
    message_id: str = ""
    status: str = Step.ACCEPTED.value
    attempt: int = 1
    code: str | None = None
    reason: str | None = None
    reply_status: str | None = None
    reply_message_id: str | None = None
    accepted_at: datetime | None = None
    at: datetime | None = None
    times: dict[str, datetime] = field(default_factory=dict)  # of the steps of this attempt
    replied_at: datetime | None = None

    @property
    def is_closed(self) -> bool:
        return self.code in CLOSED

    @property
    def is_delivered(self) -> bool:
        return self.status == Step.DELIVERED

    @property
    def is_failed(self) -> bool:
        return self.status == Step.FAILED

    @property
    def is_quarantined(self) -> bool:
        return self.status == Step.QUARANTINED

    @property
    def is_waiting(self) -> bool:
        return self.status in (Step.ACCEPTED, Step.QUEUED, Step.STARTED)

    @property
    def needs_a_person(self) -> bool:
        """Whether it is stuck until somebody retries, repairs or closes it."""
        return (self.is_failed or self.is_quarantined) and not self.is_closed

    @property
    def is_awaited(self) -> bool:
        """Whether its sender still waits for a reply to it."""
        return self.reply_status == "pending"

    @property
    def label(self) -> str:
        return str(CLOSED[self.code] if self.code in CLOSED else Step(self.status).label)

    @property
    def why(self) -> str:
        """The reason in words, where it did not arrive."""
        if not self.code or self.is_closed:
            return ""
        return str(REASONS.get(self.code, UNKNOWN_REASON))

    @property
    def steps(self) -> list[tuple[str, datetime]]:
        """The steps that were reached, with their times, in order."""
        reached = {Step.ACCEPTED.value: self.accepted_at, **self.times}
        return [(str(step.label), at) for step in Step if (at := reached.get(step.value))]

    def move(self, told: Mapping[str, Any], at: datetime) -> None:
        """Take over what one `message_status` event tells."""
        if told["to"] != told["from"]:
            self._step(told["to"], at)
        self.attempt = told["attempt"]
        self.code, self.reason = told["code"], told["reason"]
        if told["reply_status"] == "received" and self.reply_status != "received":
            self.replied_at = at
        self.reply_status = told["reply_status"]
        self.reply_message_id = told["reply_message_id"]

    def _step(self, to: str, at: datetime) -> None:
        if to == Step.QUEUED:
            self.times = {}  # it begins anew; the earlier attempt's times stay in the events
        self.times[to] = at
        self.status, self.at = to, at


def deliveries(events: Iterable[Facts]) -> dict[str, Delivery]:
    """Where each message stands, by the id of its receipt."""
    found: dict[str, Delivery] = {}
    for event in events:
        told = event["payload"]
        if "receipt_id" not in told or not told.get("message_id"):
            continue
        one = found.setdefault(told["receipt_id"], Delivery(told["receipt_id"]))
        one.message_id = told["message_id"]
        at = moment(event)
        if event["type"] == "message_status":
            one.move(told, at)
        if one.accepted_at is None:
            one.accepted_at = one.at = at
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a task's timeline."""

    kind: str
    seq: int
    message_id: str
    receipt_id: str
    title: str
    preview: str | None
    recipient: Party | None
    delivery_status: str
    label: str
    error: dict[str, str | None] | None
    open: str | None  # the task that can be opened from it
    at: datetime

    def as_json(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in self.__slots__}
        return {**named, "at": wire_time(self.at)}


def rows(events: Iterable[Facts]) -> list[Row]:
    """One row per receipt, where it first appeared, filled with what is known of it now."""
    events = list(events)
    standing = deliveries(events)
    made: dict[str, Row] = {}
    for event in events:
        make = _MAKERS.get(event["type"])
        if make is None:
            continue
        receipt_id = event["payload"]["receipt_id"]
        row = make(event, standing[receipt_id], made.get(receipt_id))
        made[receipt_id] = row
    return sorted(made.values(), key=lambda row: row.seq)


def _sent(event: Facts, standing: Delivery, _earlier: Row | None) -> Row:
    told = event["payload"]
    recipient = told["recipient"]
    return _row(
        event,
        standing,
        title=f"Messaged {recipient['label']}",
        preview=told["preview"],
        recipient=recipient,
        open=recipient["task_id"],
    )


def _scheduled(event: Facts, standing: Delivery, _earlier: Row | None) -> Row:
    return _row(event, standing, title=f"Message from {event['payload']['sender']['label']}")


def _received(event: Facts, standing: Delivery, earlier: Row | None) -> Row:
    told = event["payload"]
    row = _row(
        event,
        standing,
        title=f"Message from {told['sender']['label']}",
        preview=preview(told["text"]),
        open=told["sender"]["task_id"],
    )
    return row if earlier is None else replace(row, seq=earlier.seq)


_MAKERS = {
    "agent_message": _sent,
    "agent_follow_up_scheduled": _scheduled,
    "user_message": _received,
}
_TYPES = (*_MAKERS, "message_status")


def _row(event: Facts, standing: Delivery, *, title: str, **more: Any) -> Row:
    failed = standing.code and not standing.is_delivered
    return Row(
        kind=event["type"],
        seq=event["seq"],
        message_id=standing.message_id,
        receipt_id=standing.receipt_id,
        title=title,
        preview=more.get("preview"),
        recipient=more.get("recipient"),
        delivery_status=standing.status,
        label=standing.label,
        error={"code": standing.code, "reason": standing.reason} if failed else None,
        open=more.get("open"),
        at=standing.at or moment(event),
    )


def rows_of(stream: UUID) -> list[dict[str, Any]]:
    """The timeline of a stream, for the wire."""
    events = Event.objects.filter(stream=stream, type__in=_TYPES).select_related("body")
    return [row.as_json() for row in rows(as_json(event) for event in events.order_by("seq"))]


def moment(event: Facts) -> datetime:
    """When an event was written."""
    return datetime.fromisoformat(event["created_at"])
