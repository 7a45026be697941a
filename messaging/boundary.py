"""The boundary: what starts a turn, what it takes, and what becomes of it (SPEC §6.1-§6.5).

`due_at` is the one test. Sweep, end of turn and every claim ask it, and nothing else decides.
Next on the path of a message: `messaging/reporting.py`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from cowork import conversations, turns
from cowork.models import Task, Turn
from messaging import authority, deadlines, loops, receipts, replies, screen
from messaging.models import Receipt
from teams.permissions import Principal
from timeline.event_types import TurnLimit
from timeline.log import SYSTEM, Actor
from timeline.refusals import InvalidRequest, Refusal
from timeline.transactions import require_transaction

BATCH_INPUTS, BATCH_BYTES = 20, 128 * 1024
ENDS_IN_A_ROW = 4
LIMIT_INTERVALS = tuple(timedelta(seconds=seconds) for seconds in (1, 5, 15, 60, 300))

# The statuses in which queued input that wakes starts a turn (SPEC §6.1).
_WAKING = {
    Task.Kind.BOT_CONVERSATION: frozenset({Task.Status.IDLE, Task.Status.COMPLETED}),
    Task.Kind.ROOT: frozenset({Task.Status.IDLE}),
}
# Those in which only a follow-up does; it lifts a stop.
_FOLLOWED = frozenset({Task.Status.FAILED, Task.Status.INTERRUPTED})


class QueueFull(Refusal):
    """{limit} messages wait for this recipient already. Send again when some have been taken."""

    code = "QUEUE_FULL"
    status = 429
    shown = ("limit",)
    retry_after = 5


def due_at(task: Task, *, now: datetime) -> datetime | None:
    """When the task may start a turn: now or earlier, later, or never (None).

    A task starts a turn exactly when its status allows it and it has a queued receipt that wakes,
    or a schedule is due (SPEC §6.2). The head of the queue may have to wait for its next attempt;
    younger ones wait behind it. After a usage limit all wait for its reset, but for a follow-up.
    """
    if task.is_archived or task.has_turn or task.status == Task.Status.PAUSED:
        return None
    resumes_at = task.resumes_at if task.status in _WAKING[Task.Kind(task.kind)] else None
    if not has_wakers(task):
        return resumes_at
    head = _queue(task).values_list("due_at", flat=True).first()
    if head is None or resumes_at is None:
        return head or resumes_at
    return min(head, resumes_at) if _follow_ups(task).exists() else resumes_at


def may_start(task: Task, *, now: datetime) -> bool:
    """Whether a turn may start now."""
    found = due_at(task, now=now)
    return found is not None and found <= now


def has_wakers(task: Task) -> bool:
    """Whether something queued starts a turn of this task once none runs."""
    wakers = _queue(task).filter(wakes=True)
    is_done_root = task.kind == Task.Kind.ROOT and task.status == Task.Status.COMPLETED
    if task.status in _FOLLOWED or is_done_root:
        wakers = wakers.filter(delivery_mode=Receipt.Mode.FOLLOW_UP)
    return wakers.exists()


def _queue(task: Task) -> QuerySet[Receipt]:
    return Receipt.objects.queued().filter(recipient=task).order_by("sequence")


def _follow_ups(task: Task) -> QuerySet[Receipt]:
    return _queue(task).filter(delivery_mode=Receipt.Mode.FOLLOW_UP)


def claimable_tasks(principal: Principal, *, now: datetime) -> list[UUID]:
    """The tasks of an agent that have a turn to claim now."""
    has_cause = Q(inbox__status=Receipt.Status.QUEUED) | Q(resumes_at__lte=now)
    own = authority.own_tasks(principal).filter(has_cause, archived_at__isnull=True)
    return [task.id for task in own.distinct() if may_start(task, now=now)]


def choose(task: Task) -> list[Receipt]:
    """What the next turn takes (SPEC §6.3): all up to the first waiting follow-up; without one,
    the first message, or a batch where the task takes batches. In order, always."""
    rows = list(receipts.in_full(_queue(task))[: BATCH_INPUTS if task.batch_inputs else 1])
    follow_up = _follow_ups(task).first()
    if follow_up is not None:
        return list(receipts.in_full(_queue(task)).filter(sequence__lte=follow_up.sequence))
    taken: list[Receipt] = []
    size = 0
    for receipt in rows:
        size += receipt.body.byte_count
        if taken and size > BATCH_BYTES:
            break
        taken.append(receipt)
    return taken


def admit(task: Task, *, now: datetime) -> list[Receipt]:
    """Walk the queue: quarantine what may not be delivered any more, return what may.

    Authority is asked under the team's lock, so a revocation is either seen here or comes after
    the turn has started (SPEC §2.4).
    """
    require_transaction()
    while chosen := choose(task):
        held = [receipt for receipt in chosen if _is_held(receipt, now=now)]
        if not held:
            return chosen
    return []


def _is_held(receipt: Receipt, *, now: datetime) -> bool:
    code, reason = receipts.AUTHORIZATION_REVOKED, authority.why_not(receipt)
    if reason is None:
        code, reason = receipts.MESSAGE_UNSAFE, screen.why_unsafe(receipt)
    if reason is None:
        return False
    hold(receipt, code=code, reason=reason, actor=SYSTEM, now=now)
    return True


def hold(receipt: Receipt, *, code: str, reason: str, actor: Actor, now: datetime) -> None:
    """Quarantine a message; its sender waits some time for a repair."""
    receipts.quarantine(receipt, code=code, reason=reason, actor=actor, now=now)
    deadlines.after_failure(receipt, now=now)


def ripe(inputs: list[Receipt], *, now: datetime) -> list[Receipt]:
    """The inputs, unless the first waits for its next attempt: younger ones wait behind it."""
    return inputs if inputs and inputs[0].due_at <= now else []


def open_turn(
    task: Task,
    inputs: Sequence[Receipt],
    *,
    by: Principal,
    claim_id: str,
    lease: timedelta | None,
    now: datetime,
) -> Turn:
    """Open the turn that takes these inputs; they are started with it."""
    is_scheduled = task.resumes_at is not None and task.resumes_at <= now
    cause = loops.cause_of(task, inputs, is_scheduled=is_scheduled)
    turn = turns.open_turn(
        task,
        cause=cause,
        claimer=by.claimer,
        claim_id=claim_id,
        lease=lease,
        receipt_ids=[receipt.id for receipt in inputs],
        actor=by.actor,
        now=now,
    )
    for receipt in inputs:
        receipts.start(receipt, turn=turn, actor=by.actor, now=now)
    deadlines.begin(inputs, now=now)
    return turn


def incorporate(
    turn: Turn, task: Task, *, through: UUID | None, actor: Actor, now: datetime
) -> None:
    """The runtime holds the inputs, all or those up to one: each is delivered, in order, and the
    handoff that it answers is received (SPEC §6.4, §7.1).

    Raises InvalidRequest when `through` is none of this turn's inputs.
    """
    require_transaction()
    inputs = held_by(turn)
    if through is not None:
        inputs = inputs[: _place_of(through, turn, inputs) + 1]
    for receipt in inputs:
        if receipt.status != Receipt.Status.STARTED:
            continue
        receipts.deliver(receipt, actor=actor, now=now)
        if receipt.source == Receipt.Source.AGENT:
            replies.receive(receipt, actor=actor, now=now)
        else:
            _note_human(task, turn, receipt)
    if turn.incorporated_at is None:
        turns.set_fields(turn, incorporated_at=now)


def held_by(turn: Turn) -> list[Receipt]:
    """The inputs of a turn, in order."""
    return list(receipts.in_full(Receipt.objects.filter(turn=turn)).order_by("sequence"))


def delivered_in(turn: Turn) -> list[Receipt]:
    """What a turn has taken in, in order."""
    return [row for row in held_by(turn) if row.status == Receipt.Status.DELIVERED]


def _place_of(receipt_id: UUID, turn: Turn, inputs: Sequence[Receipt]) -> int:
    for place, receipt in enumerate(inputs):
        if receipt.id == receipt_id:
            return place
    raise InvalidRequest(reason=f"through: {receipt_id} is no input of turn {turn.number}.")


def _note_human(task: Task, turn: Turn, receipt: Receipt) -> None:
    task.human_turn, task.human_sequence = turn.number, receipt.sequence
    Task.objects.filter(pk=task.pk).update(human_turn=turn.number, human_sequence=receipt.sequence)


def give_back_unread(
    turn: Turn, *, is_lost: bool, limit: TurnLimit | None, reason: str, now: datetime
) -> list[Receipt]:
    """What the ended turn had not taken in goes back to its place, or fails (SPEC §6.5)."""
    unread = [row for row in held_by(turn) if row.status == Receipt.Status.STARTED]
    for receipt in unread:
        _judge_unread(receipt, is_lost=is_lost, limit=limit, reason=reason, now=now)
    return unread


def _judge_unread(
    receipt: Receipt, *, is_lost: bool, limit: TurnLimit | None, reason: str, now: datetime
) -> None:
    why_not = authority.why_not(receipt)
    if why_not is not None:
        # What goes back is asked about again (SPEC §2.4): nobody may claim it to find out.
        code = receipts.AUTHORIZATION_REVOKED
        hold(receipt, code=code, reason=why_not, actor=SYSTEM, now=now)
        return
    is_human = receipt.source != Receipt.Source.AGENT
    if is_human and not is_lost:
        # A person's input is not retried by itself: it fails at once, visibly.
        code = receipts.RUNTIME_LIMIT if limit else receipts.RUNTIME_ERROR
        receipts.fail(receipt, code=code, reason=reason, actor=SYSTEM, now=now)
        return
    deadlines.clear(receipt)
    if limit is not None:
        # Unavailable is not failed: it costs no attempt (SPEC §6.5).
        looks = min(receipt.limit_count, len(LIMIT_INTERVALS) - 1)
        due = max(limit.resets_at or now, now + LIMIT_INTERVALS[looks])
        counts = {"limit_count": receipt.limit_count + 1}
        receipts.give_back(receipt, due_at=due, counts=counts, now=now)
        return
    ends, losses = receipt.end_count + 1, receipt.loss_count + int(is_lost)
    if ends >= ENDS_IN_A_ROW:
        code = receipts.POISON_MESSAGE if losses == ends else receipts.RUNTIME_ERROR
        receipts.fail(receipt, code=code, reason=reason, actor=SYSTEM, now=now)
        deadlines.after_failure(receipt, now=now)
        return
    delays = settings.COWORK_RETRY_DELAYS
    delay = delays[min(ends, len(delays)) - 1]
    counts = {"end_count": ends, "loss_count": losses, "attempt": receipt.attempt + 1}
    receipts.give_back(receipt, due_at=now + delay, counts=counts, now=now)


def wake_the_rest(task: Task, *, now: datetime) -> None:
    """At the end of a turn what is still queued starts the next one, except closing messages
    and what the loop guard holds (SPEC §6.2); a follow-up that came meanwhile does at once,
    whatever came back before it."""
    require_transaction()
    rest = Receipt.objects.queued().filter(recipient=task, wakes=False)
    rest.filter(is_closing=False, is_held=False).update(wakes=True)
    if _follow_ups(task).filter(was_shown=False).exists():
        receipts.make_due(task, now=now)


def takes(receipt: Receipt, recipient: Task) -> bool:
    """Whether a recipient takes a message that was accepted earlier, by its status (SPEC §6.1)."""
    is_follow_up = receipt.delivery_mode == Receipt.Mode.FOLLOW_UP
    return conversations.is_usable(recipient) or (is_follow_up and not recipient.is_archived)


def room_in(recipient: Task) -> int:
    """How many wait for a recipient that has room for one more. Raises QueueFull."""
    waiting = queue_length(recipient)
    if waiting >= settings.COWORK_QUEUE_MAX:
        raise QueueFull(limit=settings.COWORK_QUEUE_MAX)
    return waiting


def queue_length(task: Task) -> int:
    """How many receipts are queued for a task."""
    return Receipt.objects.queued().filter(recipient=task).count()


def ahead_of(receipt: Receipt) -> int:
    """How many queued receipts of the recipient have a lower place."""
    rows = Receipt.objects.queued().filter(recipient_id=receipt.recipient_id)
    return rows.filter(sequence__lt=receipt.sequence).count()
