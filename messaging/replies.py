"""Handoffs and replies: what answers what, when an answer counts, who owes one (SPEC §7)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from cowork import conversations
from cowork.models import Task, Turn
from messaging import authority, loops, receipts
from messaging.models import Receipt
from timeline.bodies import keep
from timeline.log import Actor
from timeline.refusals import Refusal
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

    @property
    def is_handoff(self) -> bool:
        return self.in_reply_to is None and not self.is_closing


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
    if found.reply_status == Receipt.ReplyStatus.RECEIVED:
        return Correlation()  # one reply answers one handoff; a second is an ordinary message
    return Correlation(in_reply_to=found)


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
    open_handoff = rows.first()
    if open_handoff is not None and is_from_the_asked and is_to_the_asker:
        receipts.link_reply(open_handoff, reply, actor=actor, now=now)


def waits_for(task: Task) -> QuerySet[Receipt]:
    """The pending handoffs of the task's current human turn, oldest first (SPEC §7.4)."""
    rows = Receipt.objects.filter(
        sender_task=task,
        reply_status=Receipt.ReplyStatus.PENDING,
        sender_turn__gte=task.human_turn,
    )
    at_rest = (Receipt.Status.FAILED, Receipt.Status.QUARANTINED)
    return rows.exclude(status__in=at_rest, closed_at__isnull=False).order_by("accepted_at", "id")


def owed(task: Task) -> QuerySet[Receipt]:
    """The delivered handoffs to a task that it has sent no answer to, oldest first."""
    rows = _unanswered(Receipt.objects.filter(recipient=task))
    rows = rows.filter(reply_status=Receipt.ReplyStatus.PENDING)
    # One automatic reply answers a handoff, whatever becomes of it.
    return rows.exclude(answers__is_automatic=True).order_by("sequence")


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
    inputs = list(turn.inputs.values_list("pk", flat=True)[:2])
    final = turn.final_text.text if turn.final_text else None
    if turn.status == Turn.Status.DONE and inputs == [handoff.pk] and final:
        return final
    endings = {
        Turn.Status.DONE: "its turn ended without an answer to this message",
        Turn.Status.ABORTED: "its turn was stopped before it answered",
        Turn.Status.ERROR: "its turn ended with an error before it answered",
        Turn.Status.LOST: "its turn was lost after it took the message in; it is not run again",
    }
    return f"BLOCKED: {endings[Turn.Status(turn.status)]}."


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
