"""A message id that was used before: the same message again, or a conflict (SPEC §4.4, §4.5)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cowork import locks
from cowork.models import Task
from messaging import authority, boundary, receipts, wakes
from messaging.models import Receipt
from teams.authority import find_in_workspace
from teams.permissions import Principal
from timeline.bodies import fingerprint
from timeline.clock import Clock
from timeline.refusals import Refusal


class MessageIdConflict(Refusal):
    """Message id {message_id} was already used for another message. Take a new id."""

    code = "MESSAGE_ID_CONFLICT"
    status = 409
    shown = ("message_id",)


class MessageQuarantined(Refusal):
    """This message is quarantined: {reason} A person has to repair the team and release it."""

    code = "BOT_MESSAGE_QUARANTINED"
    status = 409
    shown = ("reason",)


class ConversationUnavailable(Refusal):
    """The conversation that this message was for can't take it any more. Send it with a new id."""

    code = "BOT_CONVERSATION_UNAVAILABLE"
    status = 409


@dataclass(frozen=True, slots=True)
class Key:
    """What makes a message id unique: who sends, to whom, how (SPEC §4.4)."""

    sender: str
    recipient: str
    mode: str
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Sent:
    """The answer to a send: its receipt, whether it was known, how many are ahead of it."""

    receipt: Receipt
    is_duplicate: bool
    ahead: int


def agent_key(sender: Task, task_id: UUID | None, bot: str | None, message_id: str | None) -> Key:
    """The key of a send, found before any look at the recipient's state.

    A bot's conversation has the key of its bot, over all conversations of that bot.
    """
    recipient = f"task:{task_id}"
    if task_id is not None:
        rows = Task.objects.filter(pk=task_id, workspace_id=sender.workspace_id)
        target = rows.filter(kind=Task.Kind.BOT_CONVERSATION).values_list("bot_id", flat=True)
        bot_id = target.first()
        recipient = f"bot:{bot_id}" if bot_id else recipient
    elif message_id is not None:
        found = find_in_workspace(sender.workspace_id, bot or "")
        recipient = f"bot:{found.id}" if found else ""
    return Key(f"task:{sender.id}", recipient, Receipt.Mode.MESSAGE, message_id)


def find(key: Key) -> Receipt | None:
    """The receipt that was accepted under this key."""
    if key.message_id is None or not key.recipient:
        return None
    rows = Receipt.objects.filter(
        sender_key=key.sender,
        recipient_key=key.recipient,
        delivery_mode=key.mode,
        message_id=key.message_id,
    )
    # Most messages are new: all that belongs to a receipt is read only where there is one.
    known = rows.values_list("pk", flat=True).first()
    if known is None:
        return None
    found: Receipt = receipts.in_full(Receipt.objects.filter(pk=known)).get()
    return found


def answer(
    earlier: Receipt, *, text: str, in_reply_to: str | None, by: Principal, clock: Clock
) -> Sent:
    """Answer a repeat by the state of the first; takes the locks that a new attempt needs.

    Raises MessageIdConflict for other content, ReceiptClosed, MessageQuarantined,
    ConversationUnavailable, QueueFull.
    """
    _require_same(earlier, text=text, in_reply_to=in_reply_to)
    if earlier.status in (Receipt.Status.STARTED, Receipt.Status.DELIVERED):
        return Sent(earlier, is_duplicate=True, ahead=0)
    if earlier.team_id is not None:
        locks.lock_team(earlier.team_id)
    involved = {earlier.recipient_id, earlier.sender_task_id or earlier.recipient_id}
    locked = locks.lock_tasks(*involved)
    fresh: Receipt = receipts.in_full(Receipt.objects.filter(pk=earlier.pk)).get()
    fresh.recipient = locked[fresh.recipient_id]
    return answer_locked(fresh, text=text, in_reply_to=in_reply_to, by=by, now=clock.now())


def answer_locked(
    earlier: Receipt, *, text: str, in_reply_to: str | None, by: Principal, now: datetime
) -> Sent:
    """The same, when sender, recipient and team are locked."""
    _require_same(earlier, text=text, in_reply_to=in_reply_to)
    receipts.require_open(earlier)
    if earlier.status == Receipt.Status.QUARANTINED:
        raise MessageQuarantined(reason=earlier.failure_reason)
    if earlier.status == Receipt.Status.FAILED:
        return _again(earlier, by=by, now=now)
    if earlier.status == Receipt.Status.QUEUED:
        wakes.enqueue_what_waits(earlier.recipient, now=now)
        return Sent(earlier, is_duplicate=True, ahead=boundary.ahead_of(earlier))
    return Sent(earlier, is_duplicate=True, ahead=0)


def _again(failed: Receipt, *, by: Principal, now: datetime) -> Sent:
    """A failed message is validated again in its own conversation and queued at the tail."""
    if by.kind != "person":
        boundary.room_in(failed.recipient)
    retry(failed, by=by, now=now)
    return Sent(failed, is_duplicate=False, ahead=boundary.ahead_of(failed))


def retry(failed: Receipt, *, by: Principal, now: datetime) -> None:
    """Queue a failed message again, at the tail, if it may still be delivered; it wakes.

    Raises ConversationUnavailable.
    """
    recipient = failed.recipient
    if not boundary.takes(failed, recipient) or authority.why_not(failed) is not None:
        raise ConversationUnavailable
    receipts.queue_again(failed, actor=by.actor, now=now, wakes=not failed.is_closing)
    if failed.delivery_mode == Receipt.Mode.FOLLOW_UP:
        receipts.make_due(recipient, now=now)
    wakes.enqueue_what_waits(recipient, now=now)


def _require_same(earlier: Receipt, *, text: str, in_reply_to: str | None) -> None:
    named = earlier.in_reply_to.message_id if earlier.in_reply_to else None
    is_same_reference = in_reply_to is None or in_reply_to == named
    if earlier.message_hash != fingerprint(text) or not is_same_reference:
        raise MessageIdConflict(message_id=earlier.message_id)
