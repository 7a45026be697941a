"""How long a handoff waits for its answer (SPEC §7.3).

The wait has no end while the message is queued and while the turn that holds it lives, unless its
sender has set one. It ends some time after that turn has ended without an answer, or the message
has failed; at once when its recipient has ended. An answer on its way protects it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from pydantic import BaseModel, ConfigDict

from cowork import locks, outbox
from cowork.kinds import DONE, Answer, Kind, Wait
from cowork.models import OutboxEntry, Task, Turn
from messaging import naps, receipts
from messaging.models import Receipt
from timeline.log import Actor

REPLY_DEADLINE = "reply-deadline"
ON_ITS_WAY = (Receipt.Status.QUEUED, Receipt.Status.STARTED)


class ReplyDeadline(BaseModel):
    """The handoff that waits."""

    model_config = ConfigDict(extra="forbid")

    receipt_id: UUID


def begin(started: Iterable[Receipt], *, now: datetime) -> None:
    """A turn holds these messages now: a wait that its sender has bounded begins."""
    for handoff in started:
        if _waits(handoff) and handoff.reply_timeout is not None:
            _set(handoff, now + handoff.reply_timeout, now=now)


def after_turn(read: Iterable[Receipt], *, now: datetime) -> None:
    """The turn that held these messages has ended: those without an answer have their time."""
    for handoff in read:
        if _waits(handoff) and handoff.reply_timeout is None and not has_answer(handoff):
            _set(handoff, now + settings.COWORK_REPLY_TIMEOUT, now=now)


def after_failure(handoff: Receipt, *, now: datetime) -> None:
    """The message was not delivered: its sender waits some time for a repair."""
    if _waits(handoff):
        _set(handoff, now + settings.COWORK_REPLY_TIMEOUT, now=now)


def clear(handoff: Receipt) -> None:
    """The message is queued again: its wait has no end for now."""
    if handoff.reply_deadline_at is not None:
        receipts.set_deadline(handoff, None)


def recipient_ended(task: Task, *, actor: Actor, now: datetime) -> None:
    """The recipient takes nothing any more: who waits for it without an answer on its way has
    waited long enough."""
    for handoff in receipts.in_full(pending().filter(recipient=task)).order_by("sequence"):
        if not has_answer(handoff):
            receipts.time_out(handoff, now=now)


def has_answer(handoff: Receipt) -> bool:
    """Whether an answer was accepted that may still be taken in."""
    return Receipt.objects.filter(in_reply_to=handoff, status__in=ON_ITS_WAY).exists()


def pending() -> QuerySet[Receipt]:
    """The handoffs whose senders wait."""
    return Receipt.objects.filter(reply_status=Receipt.ReplyStatus.PENDING)


def length_of(handoff: Receipt) -> timedelta:
    """How long its sender waits, once the time runs."""
    return handoff.reply_timeout or settings.COWORK_REPLY_TIMEOUT


def endless() -> QuerySet[Receipt]:
    """Those that wait with no end although no turn holds them: the answer that was on its way when
    the turn ended came to nothing."""
    answers = Receipt.objects.filter(in_reply_to=OuterRef("pk"), status__in=ON_ITS_WAY)
    at_rest = (Receipt.Status.DELIVERED, Receipt.Status.FAILED, Receipt.Status.QUARANTINED)
    rows = pending().filter(reply_deadline_at__isnull=True, status__in=at_rest)
    return rows.exclude(turn__status=Turn.Status.RUNNING).filter(~Exists(answers))


def bound(handoff: Receipt, *, now: datetime) -> None:
    """Let a wait that had no end have one."""
    _set(handoff, now + settings.COWORK_REPLY_TIMEOUT, now=now)


def reply_deadline(entry: OutboxEntry, _nothing: object, now: datetime) -> Answer:
    """End a wait whose time is over; later when it was given more, or an answer is on its way."""
    receipt_id = ReplyDeadline(**entry.payload).receipt_id
    found = pending().filter(pk=receipt_id).values_list("sender_task_id", "recipient_id").first()
    if found is None:
        return DONE
    locks.lock_tasks(*(task_id for task_id in found if task_id is not None))
    handoff: Receipt | None = receipts.in_full(pending().filter(pk=receipt_id)).first()
    if handoff is None or handoff.reply_deadline_at is None:
        return DONE
    if handoff.reply_deadline_at > now:
        return Wait(until=handoff.reply_deadline_at)
    if has_answer(handoff):
        return Wait(until=now + settings.COWORK_REPLY_TIMEOUT)
    if naps.has_ended(watched_since=handoff.reply_deadline_at - length_of(handoff), now=now):
        return Wait(until=now + settings.COWORK_SWEEP)  # the next tick gives it more
    receipts.time_out(handoff, now=now)
    return DONE


def _waits(handoff: Receipt) -> bool:
    return handoff.reply_status == Receipt.ReplyStatus.PENDING


def _set(handoff: Receipt, at: datetime, *, now: datetime) -> None:
    receipts.set_deadline(handoff, at)
    outbox.enqueue(
        REPLY_DEADLINE,
        target=handoff.id,
        workspace_id=handoff.workspace_id,
        payload=ReplyDeadline(receipt_id=handoff.id),
        now=now,
        not_before=at,
        unique=True,
    )


KIND = Kind(name=REPLY_DEADLINE, payload=ReplyDeadline, inside=reply_deadline)
