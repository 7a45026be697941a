"""What both timelines are told of a receipt (SPEC §5.1, §5.6, §14.2).

Events hold ids and codes; the text stands in the receipt's body row.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat

from cowork.models import Task, Turn
from messaging.models import Receipt
from timeline import log
from timeline.event_types import (
    AgentFollowUpScheduled,
    AgentFollowUpStarted,
    AgentMessage,
    EventType,
    MessageStatus,
    Party,
    UserMessage,
)
from timeline.log import SYSTEM, Actor
from timeline.models import Body, Event
from timeline.transactions import require_transaction

Side = Literal["sender", "recipient"]


def tell_acceptance(receipt: Receipt, text: Body, *, actor: Actor, now: datetime) -> None:
    """Accepted: `agent_message` at an agent that sends, and scheduled at the recipient."""
    if receipt.sender_task_id is not None:
        _tell_sent(receipt, receipt.sender_task_id, text, actor=actor, now=now)
    _tell_scheduled(receipt, actor=actor, now=now)


def _tell_sent(receipt: Receipt, stream: UUID, text: Body, *, actor: Actor, now: datetime) -> None:
    sent = AgentMessage(
        message_id=receipt.message_id,
        receipt_id=receipt.id,
        recipient=party_of(receipt.recipient),
        in_reply_to=receipt.in_reply_to.message_id if receipt.in_reply_to else None,
        handoff=receipt.is_handoff,
        automatic=receipt.is_automatic,
    )
    log.append(stream, sent, actor=actor, now=now, text=text, subject=receipt.id)


def _tell_scheduled(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    scheduled = AgentFollowUpScheduled(
        message_id=receipt.message_id,
        receipt_id=receipt.id,
        source=receipt.source,
        sender=sender_of(receipt),
        delivery_mode=receipt.delivery_mode,
    )
    stream = receipt.recipient.stream
    log.append(stream, scheduled, actor=actor, now=now, subject=receipt.id)


def tell_start(receipt: Receipt, *, turn: Turn, actor: Actor, now: datetime) -> None:
    """A turn holds it now; told once per attempt."""
    told = AgentFollowUpStarted(
        message_id=receipt.message_id,
        receipt_id=receipt.id,
        turn_id=turn.id,
        attempt=receipt.attempt,
    )
    stream = receipt.recipient.stream
    log.append(stream, told, actor=actor, now=now, subject=receipt.id)


def tell_transcript(receipt: Receipt, *, actor: Actor, now: datetime) -> None:
    """Taken in: it stands in the recipient's transcript, once."""
    told = UserMessage(
        message_id=receipt.message_id,
        receipt_id=receipt.id,
        source=receipt.source,
        sender=sender_of(receipt),
        sequence=receipt.sequence,
        in_reply_to=receipt.in_reply_to.message_id if receipt.in_reply_to else None,
        attempt=receipt.attempt,
    )
    stream = receipt.recipient.stream
    log.append(stream, told, actor=actor, now=now, text=receipt.body, subject=receipt.id)


def tell_status(receipt: Receipt, before: str | None, *, actor: Actor, now: datetime) -> None:
    """The status that it has now, and the one before, to both sides alike."""
    for side, stream in _sides(receipt):
        _tell_side(receipt, before, side, stream, actor=actor, now=now)


def _sides(receipt: Receipt) -> list[tuple[Side, UUID]]:
    sides: list[tuple[Side, UUID]] = [("recipient", receipt.recipient_id)]
    if receipt.sender_task_id is not None:
        sides.append(("sender", receipt.sender_task_id))
    return sides


def _tell_side(
    receipt: Receipt, before: str | None, side: Side, stream: UUID, *, actor: Actor, now: datetime
) -> None:
    told = MessageStatus(
        message_id=receipt.message_id,
        receipt_id=receipt.id,
        side=side,
        before=before,
        to=receipt.status,
        attempt=receipt.attempt,
        code=receipt.failure_code or None,
        reason=receipt.failure_reason or None,
        reply_status=receipt.reply_status,
        reply_message_id=receipt.reply.message_id if receipt.reply else None,
    )
    log.append(stream, told, actor=actor, now=now, subject=receipt.id)


def complete(receipt: Receipt, *, now: datetime) -> bool:
    """Tell each timeline what it was not told of the receipt; whether something was missing."""
    require_transaction()
    told = Event.objects.filter(subject=receipt.id)
    is_whole = True
    kinds = set(told.filter(stream_id=receipt.recipient_id).values_list("type", flat=True))
    if EventType.AGENT_FOLLOW_UP_SCHEDULED not in kinds:
        _tell_scheduled(receipt, actor=SYSTEM, now=now)
        is_whole = False
    sender = receipt.sender_task_id
    if (
        sender is not None
        and not told.filter(stream_id=sender, type=EventType.AGENT_MESSAGE).exists()
    ):
        _tell_sent(receipt, sender, receipt.body, actor=SYSTEM, now=now)
        is_whole = False
    if receipt.status == Receipt.Status.DELIVERED and EventType.USER_MESSAGE not in kinds:
        tell_transcript(receipt, actor=SYSTEM, now=now)
        is_whole = False
    stored = (receipt.status, receipt.attempt, receipt.reply_status)
    for side, stream in _sides(receipt):
        lines = told.filter(stream_id=stream, type=EventType.MESSAGE_STATUS).order_by("-seq")
        newest = next((line.payload for line in lines if line.payload["side"] == side), None)
        known = newest and (newest["to"], newest["attempt"], newest["reply_status"])
        if known != stored:
            before = newest["to"] if newest else None
            _tell_side(receipt, before, side, stream, actor=SYSTEM, now=now)
            is_whole = False
    return not is_whole


def incomplete() -> QuerySet[Receipt]:
    """The receipts of which a timeline was not told all: what `complete` asks, as one query."""
    at_recipient, at_sender = _told("recipient_id"), _told("sender_task_id")
    has_sender = Q(sender_task__isnull=False)
    is_delivered = Q(status=Receipt.Status.DELIVERED)
    compared = Receipt.objects.alias(
        stored=_joined(F("status"), F("attempt"), F("reply_status")),
        told_recipient=_newest_status(at_recipient),
        told_sender=_newest_status(at_sender),
    )
    return compared.filter(
        ~Exists(at_recipient.filter(type=EventType.AGENT_FOLLOW_UP_SCHEDULED))
        | ~Q(told_recipient=F("stored"))
        | (has_sender & ~Exists(at_sender.filter(type=EventType.AGENT_MESSAGE)))
        | (has_sender & ~Q(told_sender=F("stored")))
        | (is_delivered & ~Exists(at_recipient.filter(type=EventType.USER_MESSAGE)))
    )


def _told(side: str) -> QuerySet[Event]:
    """What the timeline of a side was told of the receipt of an outer query."""
    return Event.objects.filter(subject=OuterRef("pk"), stream_id=OuterRef(side))


def _newest_status(told: QuerySet[Event]) -> Coalesce:
    lines = told.filter(type=EventType.MESSAGE_STATUS).order_by("-seq")
    facts = _joined(KT("payload__to"), KT("payload__attempt"), KT("payload__reply_status"))
    newest = Subquery(lines.values_list(facts)[:1])
    return Coalesce(newest, Value(""), output_field=TextField())


def _joined(status: Combinable, attempt: Combinable, reply_status: Combinable) -> Concat:
    """What a status line tells, as one text; no reply status is `null`, as in JSON."""
    waits = Coalesce(Cast(reply_status, TextField()), Value("null"), output_field=TextField())
    words = (Cast(status, TextField()), Cast(attempt, TextField()), waits)
    return Concat(
        *(Concat(word, Value(" "), output_field=TextField()) for word in words),
        output_field=TextField(),
    )


def party_of(task: Task) -> Party:
    """A task as events name it."""
    return Party(
        kind="agent",
        task_id=task.id,
        bot=task.bot.handle if task.bot else None,
        label=task.bot.display_name if task.bot else task.title,
    )


def sender_of(receipt: Receipt) -> Party:
    """The sender as events name it."""
    return Party(
        kind=receipt.source,
        task_id=receipt.sender_task_id,
        bot=receipt.sender_bot.handle if receipt.sender_bot else None,
        label=receipt.sender_label,
    )
