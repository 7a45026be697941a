"""What always holds of stored messages and their timelines (SPEC §16.6).

Each check reads and tells; what can be mended is mended by `messaging/mending.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, F, Max, Min, Q

from cowork.models import OutboxEntry, Task, Turn
from messaging import boundary, wakes
from messaging.models import Receipt
from timeline.event_types import EventType
from timeline.models import Event, Stream

CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be: the rule, the ids that it concerns, a sentence."""

    rule: str
    ids: list[str]
    text: str
    # The receipt whose timelines can be completed from it.
    receipt_id: UUID | None = None
    task_id: UUID | None = None


def findings(*, now: datetime) -> Iterator[Finding]:
    """All that is wrong; nothing when all is well."""
    for check in CHECKS:
        yield from check(now)


def _gapless(_now: datetime) -> Iterator[Finding]:
    """The numbers of a stream run from 1 to its newest without a gap."""
    stands = Event.objects.values("stream_id").annotate(
        count=Count("seq"), first=Min("seq"), last=Max("seq")
    )
    told = {row["stream_id"]: row for row in stands.order_by()}
    for stream in Stream.objects.order_by("key").iterator(CHUNK):
        row = told.get(stream.key, {"count": 0, "first": 1, "last": 0})
        is_whole = row["count"] == row["last"] == stream.last_seq and row["first"] == 1
        if not is_whole:
            text = (
                f"{row['count']} events up to {row['last']}, and the stream says {stream.last_seq}"
            )
            yield Finding("gapless_seq", [str(stream.key)], text)


def _acceptances(_now: datetime) -> Iterator[Finding]:
    """Each side is told once that a message was accepted."""
    kinds = (EventType.AGENT_MESSAGE, EventType.AGENT_FOLLOW_UP_SCHEDULED)
    for chunk in _chunks():
        told = Event.objects.filter(subject__in=chunk.keys(), type__in=kinds)
        lines = set(told.values_list("subject", "stream_id", "type"))
        for receipt in chunk.values():
            wanted = {(receipt.recipient_id, EventType.AGENT_FOLLOW_UP_SCHEDULED)}
            if receipt.sender_task_id is not None:
                wanted.add((receipt.sender_task_id, EventType.AGENT_MESSAGE))
            for stream, kind in sorted(wanted, key=lambda pair: pair[1]):
                if (receipt.id, stream, kind) not in lines:
                    text = f"{kind} is not told in {stream}"
                    yield Finding("told_acceptance", [str(receipt.id)], text, receipt.id)


def _transcript(_now: datetime) -> Iterator[Finding]:
    """A receipt is delivered exactly when it stands once in its recipient's transcript."""
    for chunk in _chunks():
        lines: dict[UUID | None, int] = defaultdict(int)
        told = Event.objects.filter(subject__in=chunk.keys(), type=EventType.USER_MESSAGE)
        for subject in told.values_list("subject", flat=True):
            lines[subject] += 1
        for receipt in chunk.values():
            wanted = int(receipt.status == Receipt.Status.DELIVERED)
            if lines[receipt.id] != wanted:
                text = f"{receipt.status} and {lines[receipt.id]} times in the transcript"
                yield Finding("delivered_once", [str(receipt.id)], text, receipt_id=receipt.id)


def _views(_now: datetime) -> Iterator[Finding]:
    """Sender and recipient are told the same, and what is stored."""
    for chunk in _chunks():
        told: dict[tuple[UUID | None, str], tuple[str, int, str | None]] = {}
        events = Event.objects.filter(subject__in=chunk.keys(), type=EventType.MESSAGE_STATUS)
        for event in events.order_by("stream_id", "seq"):
            facts = event.payload
            told[event.subject, facts["side"]] = (
                facts["to"],
                facts["attempt"],
                facts["reply_status"],
            )
        for receipt in chunk.values():
            stored = (receipt.status, receipt.attempt, receipt.reply_status)
            for side in ("sender", "recipient") if receipt.sender_task_id else ("recipient",):
                if told.get((receipt.id, side)) != stored:
                    text = f"the {side} was told {told.get((receipt.id, side))}, stored is {stored}"
                    yield Finding("views_agree", [str(receipt.id)], text, receipt_id=receipt.id)


def _wakes(now: datetime) -> Iterator[Finding]:
    """What may start has a promise of a wake, and no promise is for nothing."""
    standing = OutboxEntry.objects.filter(kind=wakes.WAKE_TASK)
    promised = set(standing.values_list("target", flat=True))
    orphans = promised - set(Task.objects.filter(pk__in=promised).values_list("pk", flat=True))
    for target in sorted(orphans):
        yield Finding("orphan_wake", [str(target)], "a wake of a task that does not exist")
    waiting = Task.objects.filter(
        Q(inbox__status=Receipt.Status.QUEUED, inbox__wakes=True) | Q(resumes_at__isnull=False)
    )
    # One that was given up waits for a person: it is no finding.
    for task in wakes.unpromised(waiting).distinct().order_by("pk").iterator(CHUNK):
        if boundary.due_at(task, now=now) is not None:
            text = "something waits and no wake is promised"
            yield Finding("missing_wake", [str(task.id)], text, task_id=task.id)


def _turns(_now: datetime) -> Iterator[Finding]:
    """A task is running exactly while a turn of it runs; what is started is held by that turn."""
    running = Turn.objects.filter(status=Turn.Status.RUNNING).values("task_id")
    for task in Task.objects.with_turn().exclude(pk__in=running):
        yield Finding("turn_runs", [str(task.id)], f"{task.status}, and no turn of it runs")
    for task in Task.objects.without_turn().filter(pk__in=running):
        yield Finding("turn_runs", [str(task.id)], f"{task.status}, and a turn of it runs")
    started = Receipt.objects.filter(status=Receipt.Status.STARTED)
    for receipt in started.exclude(turn__status=Turn.Status.RUNNING):
        yield Finding("started_in_a_turn", [str(receipt.id)], "started in a turn that has ended")


def _replies(_now: datetime) -> Iterator[Finding]:
    """A handoff is received exactly through a delivered reply of the one that was asked."""
    received = Receipt.objects.filter(reply_status=Receipt.ReplyStatus.RECEIVED)
    wrong = received.exclude(
        reply__status=Receipt.Status.DELIVERED,
        reply__sender_task=F("recipient"),
        reply__recipient=F("sender_task"),
    )
    for handoff in wrong.order_by("pk"):
        text = "received, and its reply was not taken in by the one that asked"
        yield Finding("received_by_reply", [str(handoff.id), str(handoff.reply_id)], text)
    answers = Receipt.objects.filter(
        status=Receipt.Status.DELIVERED,
        is_closing=False,
        is_handoff=False,
        in_reply_to__is_handoff=True,
        in_reply_to__recipient=F("sender_task"),
        in_reply_to__sender_task=F("recipient"),
    )
    for answer in answers.exclude(in_reply_to__reply_status=Receipt.ReplyStatus.RECEIVED).order_by(
        "pk"
    ):
        ids = [str(answer.in_reply_to_id), str(answer.id)]
        yield Finding("received_by_reply", ids, "its reply was taken in, and it is not received")


CHECKS: tuple[Callable[[datetime], Iterator[Finding]], ...] = (
    _gapless,
    _acceptances,
    _transcript,
    _views,
    _wakes,
    _turns,
    _replies,
)


def _chunks() -> Iterator[dict[UUID, Receipt]]:
    """All receipts, some at a time."""
    last: UUID | None = None
    while True:
        rows = Receipt.objects.order_by("pk")
        found = list((rows.filter(pk__gt=last) if last else rows)[:CHUNK])
        if not found:
            return
        last = found[-1].pk
        yield {receipt.id: receipt for receipt in found}
