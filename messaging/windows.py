"""What a conversation page reads: a window of a task's events, with the texts that belong to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from cowork.models import Task
from messaging import collaboration, transcript
from messaging.models import Receipt
from timeline import log
from timeline.models import Event
from timeline.projection import Facts

SIZE = 50
_QUEUE_SHOWN = 200
_HANDOFFS = 50


@dataclass(frozen=True, slots=True)
class Window:
    """Some consecutive lines of a transcript."""

    items: list[transcript.Item]
    earlier: int  # how many lines are before the first
    before: int  # the number to ask for them
    last_seq: int  # the newest event when it was read


def read(task: Task, *, before: int | None = None) -> Window:
    """The newest lines of a transcript, or those before an event's number.

    What was only admitted belongs to the newest.
    """
    last_seq = log.last_seq(task.stream)
    lines = Event.objects.filter(stream=task.stream, type__in=transcript.SHOWN)
    if before is not None:
        lines = lines.filter(seq__lt=before)
    shown = list(lines.order_by("-seq")[:SIZE])
    first = shown[-1].seq if shown else 0
    earlier = lines.filter(seq__lt=first).count() if len(shown) == SIZE else 0
    texts = _waiting_texts(task) if before is None else {}
    return Window(_items(task, [event.pk for event in shown], texts), earlier, first, last_seq)


def read_after(task: Task, after: int) -> Window:
    """The lines whose own events are younger than a number, at most a window of them."""
    last_seq = log.last_seq(task.stream)
    young = Event.objects.filter(stream=task.stream, seq__gt=after)
    shown = list(young.filter(type__in=transcript.SHOWN).order_by("-seq")[:SIZE])
    admitted = young.filter(type="agent_follow_up_scheduled").values("subject")
    texts = _waiting_texts(task, Q(pk__in=admitted))
    items = _items(task, [event.pk for event in shown], texts)
    return Window(items, 0, after, last_seq)


def read_some(task: Task, receipts: Iterable[UUID]) -> list[transcript.Item]:
    """The lines of some messages."""
    wanted = list(receipts)
    lines = Event.objects.filter(
        stream=task.stream, subject__in=wanted, type__in=transcript.SHOWN
    ).values_list("pk", flat=True)
    return _items(task, list(lines), _waiting_texts(task, Q(pk__in=wanted)))


def read_one(task: Task, key: str) -> transcript.Item | None:
    """The line with a key, as the page gives it."""
    kind, _, rest = key.partition("_")
    if kind != "msg":
        return None
    if rest.isascii() and rest.isdigit():
        lines = Event.objects.filter(stream=task.stream, seq=int(rest), type="assistant_message")
        found = _items(task, list(lines.values_list("pk", flat=True)), {})
    else:
        try:
            found = read_some(task, [UUID(rest)])
        except ValueError:
            return None
    return found[0] if found else None


def header(task: Task, *, own_name: str) -> collaboration.Header | None:
    """The collaboration header of a task."""
    stream = Event.objects.filter(stream=task.stream)
    sent = stream.filter(type="agent_message").order_by("-seq")
    got = stream.filter(type="user_message").order_by("-seq")
    open_ones = Receipt.objects.filter(sender_task=task).filter(
        Q(reply_status=Receipt.ReplyStatus.PENDING)
        | Q(status__in=(Receipt.Status.FAILED, Receipt.Status.QUARANTINED), closed_at__isnull=True)
    )
    turns = stream.filter(type__in=("turn_started", "turn_ended")).order_by("-seq")
    said = stream.filter(type="assistant_message").order_by("-seq")
    human = got.exclude(payload__source="agent")
    wanted = [
        *sent.values_list("pk", flat=True)[:_HANDOFFS],
        *sent.filter(subject__in=open_ones.values("pk")).values_list("pk", flat=True)[:_HANDOFFS],
        *got.values_list("pk", flat=True)[:_HANDOFFS],
        *human.values_list("pk", flat=True)[:1],
        *turns.values_list("pk", flat=True)[:1],
        *said.values_list("pk", flat=True)[:1],
    ]
    return collaboration.header(_with_states(task, wanted), own_name=own_name)


def _items(
    task: Task, lines: Iterable[UUID], texts: Mapping[UUID, str | None]
) -> list[transcript.Item]:
    admitted = Event.objects.filter(
        stream=task.stream, type="agent_follow_up_scheduled", subject__in=list(texts)
    ).values_list("pk", flat=True)
    events = _with_states(task, [*lines, *admitted])
    return transcript.items(events, {str(key): text for key, text in texts.items()})


def _with_states(task: Task, lines: Iterable[UUID]) -> list[Facts]:
    """Events with all that tells of the state of the messages among them, oldest first."""
    chosen = Event.objects.filter(pk__in=list(lines)).select_related("body")
    found = {event.seq: event for event in chosen}
    subjects = {event.subject for event in found.values() if "receipt_id" in event.payload}
    states = Event.objects.filter(
        stream=task.stream,
        subject__in=subjects,
        type__in=("message_status", "agent_follow_up_scheduled"),
    )
    found.update({event.seq: event for event in states})
    return [log.as_json(found[seq]) for seq in sorted(found)]


def _waiting_texts(task: Task, which: Q | None = None) -> dict[UUID, str | None]:
    """The texts of messages that were admitted and not taken in, by receipt."""
    rows = Receipt.objects.filter(recipient=task).exclude(status=Receipt.Status.DELIVERED)
    if which is not None:
        rows = rows.filter(which)
    newest = rows.order_by("-sequence").values_list("pk", "body__text")[:_QUEUE_SHOWN]
    return dict(newest)
