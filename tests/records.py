"""Whether the records agree with each other, asked of the rows themselves.

Nothing lost, nothing twice, nothing called delivered too early, order kept, both timelines as the
receipt says (SPEC §5, §6, §14.1). `check()` names every fault that it finds.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from cowork import outbox
from cowork.models import OutboxEntry, OutboxLane, Task, Turn
from cowork.turns import STOP
from messaging import boundary, invariants
from messaging.models import Receipt
from messaging.wakes import WAKE_TASK
from timeline.models import Event, Stream

ADMITTED = {"sender": "agent_message", "recipient": "agent_follow_up_scheduled"}


def check(*, now: datetime) -> None:
    """Assert that nothing is wrong."""
    found = [
        *_numbers(),
        *_receipts(),
        *_order(),
        *_turns(),
        *_conversations(),
        *unpromised(now=now),
        *_outbox(),
        *(f"doctor: {finding.text}" for finding in invariants.findings(now=now)),
    ]
    assert not found, "\n".join(found)


def unpromised(*, now: datetime) -> list[str]:
    """Tasks that something waits for and that nobody will look at, or that two promises wake."""
    found = []
    for task in Task.objects.all():
        wakes = OutboxEntry.objects.filter(target=task.id, kind=WAKE_TASK, status__in=outbox.LIVE)
        count = wakes.count()
        if count == 0 and boundary.due_at(task, now=now) is not None:
            found.append(f"{task} has input that wakes, and no wake")
        if count > 1:
            found.append(f"{task} has {count} wakes")
    return found


def _numbers() -> Iterator[str]:
    """Each timeline is numbered from 1 without a gap, and its times do not run backwards."""
    for stream in Stream.objects.all():
        events = list(Event.objects.filter(stream=stream).order_by("seq"))
        if [event.seq for event in events] != list(range(1, stream.last_seq + 1)):
            yield f"{stream} has the numbers {[event.seq for event in events]}"
        times = [event.created_at for event in events]
        if times != sorted(times):
            yield f"{stream} has times that run backwards"


def _receipts() -> Iterator[str]:
    for receipt in Receipt.objects.select_related("reply"):
        sides = {"recipient": receipt.recipient_id}
        if receipt.sender_task_id is not None:
            sides["sender"] = receipt.sender_task_id
        told = {side: _told(receipt, stream, side) for side, stream in sides.items()}
        yield from _path(receipt, told["recipient"])
        if told.get("sender", told["recipient"]) != told["recipient"]:
            yield f"{receipt}: its sender's timeline tells something else than its recipient's"
        for side, stream in sides.items():
            if _count(receipt, stream, ADMITTED[side]) != 1:
                yield f"{receipt}: its acceptance is not told once to its {side}"
        yield from _delivery(receipt)
        yield from _answer(receipt)


Step = tuple[str | None, str, int, str | None, str | None]


def _told(receipt: Receipt, stream: UUID, side: str) -> list[Step]:
    rows = Event.objects.filter(stream_id=stream, subject=receipt.id, type="message_status")
    return [
        (
            event.payload["from"],
            event.payload["to"],
            event.payload["attempt"],
            event.payload["code"],
            event.payload["reply_status"],
        )
        for event in rows.order_by("seq")
        if event.payload["side"] == side
    ]


def _path(receipt: Receipt, steps: list[Step]) -> Iterator[str]:
    """What is told leads from acceptance to the present state, along the table."""
    at: str | None = None
    for before, to, *_ in steps:
        if before != at or (
            before is not None and to != before and to not in Receipt.TRANSITIONS[before]
        ):
            yield f"{receipt}: told to go from {before} to {to} when it was {at}"
        at = to
    last = steps[-1] if steps else None
    present = (receipt.status, receipt.attempt, receipt.failure_code or None, receipt.reply_status)
    if last is None or last[1:] != present:
        yield f"{receipt}: it is {present}, the last that is told is {last}"


def _delivery(receipt: Receipt) -> Iterator[str]:
    """In the transcript exactly once when it is delivered, else never; and not before its turn."""
    taken = Event.objects.filter(subject=receipt.id, type="user_message")
    is_delivered = receipt.status == Receipt.Status.DELIVERED
    if taken.count() != int(is_delivered):
        yield f"{receipt}: it is {receipt.status} and {taken.count()} times in a transcript"
    if not is_delivered:
        return
    event = taken.get()
    started = Event.objects.filter(
        stream_id=receipt.recipient_id, subject=receipt.id, type="agent_follow_up_started"
    )
    if event.stream_id != receipt.recipient_id or not started.filter(seq__lt=event.seq).exists():
        yield f"{receipt}: it was taken in before it was started, or by somebody else"
    if receipt.turn is None or receipt.turn.incorporated_at is None:
        yield f"{receipt}: it is delivered by a turn that took nothing in"


def _answer(receipt: Receipt) -> Iterator[str]:
    """An answer counts once its asker has taken it in, and once only (SPEC §7.1)."""
    got = [step for step in _told(receipt, receipt.recipient_id, "recipient") if step[4]]
    times = Counter(step[4] for step in got if step[0] == step[1])["received"]
    is_received = receipt.reply_status == Receipt.ReplyStatus.RECEIVED
    if times != int(is_received):
        yield f"{receipt}: its answer was received {times} times, it says {receipt.reply_status}"
    if receipt.reply is not None and receipt.reply.status != Receipt.Status.DELIVERED:
        yield f"{receipt}: its answer counts and is {receipt.reply.status}"


def _order() -> Iterator[str]:
    """Taken in by place in the queue; no place is given twice."""
    for task in Task.objects.all():
        taken = Event.objects.filter(stream_id=task.stream, type="user_message").order_by("seq")
        places = [event.payload["sequence"] for event in taken]
        if places != sorted(set(places)):
            yield f"{task} has taken in the places {places}"
        newest = task.inbox.order_by("-sequence").values_list("sequence", flat=True).first()
        if (newest or 0) > task.last_sequence:
            yield f"{task} has given the place {newest} and says {task.last_sequence}"


def _turns() -> Iterator[str]:
    for task in Task.objects.all():
        turns = list(Turn.objects.filter(task=task).order_by("number"))
        if [turn.number for turn in turns] != list(range(1, task.last_turn + 1)):
            yield f"{task} has the turns {[turn.number for turn in turns]}"
        running = [turn for turn in turns if turn.status == Turn.Status.RUNNING]
        may_run = {Task.Status.RUNNING}
        if task.requested_action == STOP:
            may_run.add(Task.Status.INTERRUPTED)  # asked to stop, and has not ended yet
        is_right = task.status in may_run if running else task.status != Task.Status.RUNNING
        if not is_right:
            yield f"{task} is {task.status} and has {len(running)} running turns"
        events = Event.objects.filter(stream_id=task.stream)
        for turn in turns:
            begun = events.filter(type="turn_started", subject=turn.id).count()
            ended = events.filter(type="turn_ended", subject=turn.id).count()
            if (begun, ended) != (1, int(turn not in running)):
                yield f"{turn} is {turn.status}: told {begun} times to start, {ended} to end"
    held = Receipt.objects.filter(status=Receipt.Status.STARTED)
    for receipt in held.exclude(turn__status=Turn.Status.RUNNING):
        yield f"{receipt} is started, and its turn is over"


def _conversations() -> Iterator[str]:
    """Of the usable conversations of a bot in a team one is the current one (SPEC §3.4)."""
    usable = Task.objects.usable().filter(kind=Task.Kind.BOT_CONVERSATION, team__isnull=False)
    current = Counter(usable.values_list("bot", "team").filter(is_current=True))
    for pair in set(usable.values_list("bot", "team")):
        if current[pair] != 1:
            yield f"bot {pair[0]} has {current[pair]} current conversations"


def _outbox() -> Iterator[str]:
    """Only what runs or is tried again holds lanes."""
    holders = (OutboxEntry.State.RUNNING, OutboxEntry.State.RETRY)
    held = OutboxLane.objects.exclude(entry__status__in=holders)
    yield from (f"{lane} is held by work that is at rest" for lane in held)
    for entry in OutboxEntry.objects.filter(status__in=holders):
        if entry.held.count() != len(entry.lanes):
            yield f"{entry} is {entry.status} and holds {entry.held.count()} lanes"


def _count(receipt: Receipt, stream: UUID, event_type: str) -> int:
    rows = Event.objects.filter(stream_id=stream, subject=receipt.id, type=event_type)
    return rows.count()
