"""Handoffs and replies: what answers what, when an answer counts, who owes one (SPEC §7)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from cowork import conversations, turns
from cowork.models import Task, Turn
from messaging import authority, loops, receipts
from messaging.models import Receipt
from timeline.bodies import keep
from timeline.log import Actor
from timeline.refusals import Refusal
from timeline.single import one_or_none
from timeline.transactions import require_transaction

AUTOMATIC_PREFIX = "cowork:auto:"


class InReplyToInvalid(Refusal):
    """{named} is no message to you from that conversation that you have taken in. Leave
    in_reply_to out, or name the message_id of one that was delivered to you."""

    code = "IN_REPLY_TO_INVALID"
    status = 409


@dataclass(frozen=True, slots=True)
class Correlation:
    """What a message is: a reply to a handoff, a closing message, or a handoff of its own."""

    in_reply_to: Receipt | None = None
    is_closing: bool = False
    # It names a handoff that is answered already: an ordinary message (SPEC §7.1).
    is_second: bool = False

    @property
    def is_handoff(self) -> bool:
        return (self.in_reply_to is None or self.is_second) and not self.is_closing


def correlate(sender: Task, recipient: Task, in_reply_to: str | None) -> Correlation:
    """What a message from one conversation to another answers (SPEC §7.2).

    Named: a delivered handoff from the recipient, or a reply of its (then the message is closing).
    Not named: the newest delivered handoff from that conversation that has no reply of the sender
    yet, since the last human message to it. Raises InReplyToInvalid.
    """
    inbound = Receipt.objects.filter(sender_task=recipient, recipient=sender)
    if in_reply_to is not None:
        return _named(inbound.filter(message_id=in_reply_to), in_reply_to)
    open_ones = _unanswered(inbound).filter(sequence__gt=sender.human_sequence)
    return Correlation(in_reply_to=open_ones.order_by("-sequence").first())


def _named(rows: QuerySet[Receipt], in_reply_to: str) -> Correlation:
    found = rows.filter(status=Receipt.Status.DELIVERED).order_by("-sequence").first()
    if found is None:
        raise InReplyToInvalid(named=in_reply_to)
    if not found.is_handoff:
        return Correlation(in_reply_to=found, is_closing=True)
    is_open = _unanswered(Receipt.objects.filter(pk=found.pk)).exists()
    return Correlation(in_reply_to=found, is_second=not is_open)


def _unanswered(rows: QuerySet[Receipt]) -> QuerySet[Receipt]:
    """Delivered handoffs that wait and have no reply that is delivered or on its way."""
    alive = (Receipt.Status.QUEUED, Receipt.Status.STARTED, Receipt.Status.DELIVERED)
    answers = Receipt.objects.filter(
        in_reply_to=OuterRef("pk"), sender_task=OuterRef("recipient"), status__in=alive
    )
    waiting = rows.filter(status=Receipt.Status.DELIVERED, is_handoff=True)
    return waiting.exclude(reply_status=Receipt.ReplyStatus.RECEIVED).filter(~Exists(answers))


def receive(reply: Receipt, *, actor: Actor, now: datetime) -> None:
    """The requester has taken a reply in: the handoff is received, once (SPEC §7.1).

    Only where the reply's sender is the handoff's recipient, and the conversation that asked is
    the one that has taken it in.
    """
    handoff = reply.in_reply_to
    if handoff is None or reply.is_closing or not handoff.is_handoff:
        return
    is_from_the_asked = handoff.recipient_id == reply.sender_task_id
    is_to_the_asker = handoff.sender_task_id == reply.recipient_id
    rows = receipts.in_full(Receipt.objects.filter(pk=handoff.pk, reply__isnull=True))
    open_handoff = one_or_none(rows)
    if open_handoff is not None and is_from_the_asked and is_to_the_asker:
        receipts.link_reply(open_handoff, reply, actor=actor, now=now)


def waits_for(task: Task) -> QuerySet[Receipt]:
    """The pending handoffs of the task's current human turn, oldest first (SPEC §7.4)."""
    rows = _pending(sender_task=task, sender_turn__gte=task.human_turn)
    return rows.order_by("accepted_at", "id")


def _pending(**whose: Any) -> QuerySet[Receipt]:
    """Handoffs that may still be answered."""
    return Receipt.objects.filter(
        reply_status=Receipt.ReplyStatus.PENDING, closed_at__isnull=True, **whose
    )


def owed(task: Task) -> QuerySet[Receipt]:
    """The delivered handoffs to a task that it has sent no answer to, oldest first."""
    return _owed(Receipt.objects.filter(recipient=task)).order_by("sequence")


def _owed(rows: QuerySet[Receipt]) -> QuerySet[Receipt]:
    """What was sent counts, whatever became of it, but for an answer that was taken back; one
    automatic reply is all that a handoff gets."""
    waiting = rows.filter(
        status=Receipt.Status.DELIVERED,
        is_handoff=True,
        reply_status=Receipt.ReplyStatus.PENDING,
    )
    answers = Receipt.objects.filter(
        in_reply_to=OuterRef("pk"), sender_task=OuterRef("recipient")
    ).exclude(failure_code=receipts.WITHDRAWN, is_automatic=False)
    return waiting.filter(~Exists(answers))


def tasks_that_owe() -> list[UUID]:
    """The tasks that run no turn and have an automatic reply to send now. Those that wait for
    somebody and those whose requester is out of reach are not among them."""
    waits = _pending(
        sender_task=OuterRef("recipient"), sender_turn__gte=OuterRef("recipient__human_turn")
    )
    rows = authority.deliverable(_owed(Receipt.objects.all())).filter(
        ~Exists(waits), sender_task__archived_at__isnull=True
    )
    rows = rows.exclude(sender_task__status=Task.Status.FAILED)
    rows = rows.exclude(recipient__in=Task.objects.with_turn())
    return list(rows.order_by("recipient_id").values_list("recipient_id", flat=True).distinct())


def askers_of(task: Task) -> set[UUID]:
    """The tasks to which an automatic reply of this task may go; they are locked with it."""
    found = owed(task).values_list("sender_task_id", flat=True)
    return {task_id for task_id in found if task_id is not None}


def answer_what_is_owed(
    task: Task, turn: Turn | None, *, tasks: dict[UUID, Task], actor: Actor, now: datetime
) -> list[Receipt]:
    """The automatic replies of a task that runs no turn (SPEC §7.5).

    One for each delivered handoff that it owes an answer to and has sent none, unless it waits
    for somebody itself. `turn` is the newest turn, `tasks` are the locked ones. A requester out of
    reach gets none.
    """
    require_transaction()
    debts = list(receipts.in_full(owed(task)))
    if not debts or waits_for(task).exists():
        return []
    sent = []
    for handoff in debts:
        asker = tasks.get(handoff.sender_task_id) if handoff.sender_task_id else None
        if asker is None or not _is_in_reach(handoff, asker):
            continue
        text = _automatic_text(handoff, turn)
        sent.append(_reply(handoff, task, asker, text=text, actor=actor, now=now))
    return sent


def _is_in_reach(handoff: Receipt, asker: Task) -> bool:
    return conversations.is_usable(asker) and authority.why_not(handoff) is None


def _automatic_text(handoff: Receipt, turn: Turn | None) -> str:
    """The turn's final text where the handoff was its single input; else why there is none."""
    if turn is None:
        return "BLOCKED: the work ended without an answer."
    final = (turn.final_text.text or "").strip() if turn.final_text else ""
    is_single = turns.started_with(turn) == [str(handoff.pk)]
    if turn.status == Turn.Status.DONE and is_single and final:
        return _fitting(final)
    endings = {
        Turn.Status.DONE: "its turn ended without an answer to this message",
        Turn.Status.ABORTED: "its turn was stopped before it answered",
        Turn.Status.ERROR: "its turn ended with an error before it answered",
        Turn.Status.LOST: "its turn was lost after it took the message in; it is not run again",
    }
    return f"BLOCKED: {endings[Turn.Status(turn.status)]}."


def _fitting(text: str) -> str:
    """The text, or as much of it as a message holds, at the edge of a character."""
    limit, size = settings.COWORK_MESSAGE_MAX_BYTES, len(text.encode())
    if size <= limit:
        return text
    note = f"\n[cut: the whole text has {size} bytes]"
    return text.encode()[: limit - len(note)].decode(errors="ignore") + note


def _reply(
    handoff: Receipt, task: Task, asker: Task, *, text: str, actor: Actor, now: datetime
) -> Receipt:
    origin = loops.origin_of(task, None)
    is_held = loops.holds(origin)
    return receipts.queue(
        recipient=asker,
        text=keep(text, workspace_id=task.workspace_id, now=now),
        actor=actor,
        now=now,
        sender_key=f"task:{task.id}",
        recipient_key=f"bot:{asker.bot_id}",
        delivery_mode=Receipt.Mode.MESSAGE,
        message_id=f"{AUTOMATIC_PREFIX}{handoff.id}:{handoff.attempt}",
        source=Receipt.Source.AGENT,
        sender_task=task,
        sender_bot=task.bot,
        sender_label=task.bot.display_name if task.bot else task.title,
        sender_turn=task.last_turn,
        team=handoff.team,
        wakes=not is_held,
        is_held=is_held,
        in_reply_to=handoff,
        is_automatic=True,
        cause_kind=origin.cause_kind,
        cause_id=origin.cause_id,
        chain=origin.chain,
        hop=origin.hop,
    )
