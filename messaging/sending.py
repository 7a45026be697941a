"""Sending: an agent's message is accepted durably, or refused with a reason (SPEC §4).

Next on the path of a message: `teams/authority.py`.
"""

import functools
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction

from cowork import conversations, locks
from cowork.models import Task
from cowork.tasks import TaskEnded, TaskNotFound
from cowork.turns import running_turn
from messaging import authority, boundary, loops, receipts, repeats, replies, wakes
from messaging.models import Receipt
from messaging.repeats import Sent
from teams.authority import BotMembershipRevoked, find_teammate, may_exchange, require_team
from teams.models import Bot, Team
from teams.permissions import May, Principal, require
from timeline import bodies, crash, log
from timeline.clock import Clock
from timeline.event_types import Error
from timeline.ids import new_id
from timeline.refusals import DatabaseBusy, Forbidden, InvalidRequest, Refusal
from timeline.transactions import action

logger = logging.getLogger(__name__)

SERVER_PREFIX = "cowork:"
LOOKS = 5


class MessageRequired(Refusal):
    """The message is empty. Say something."""

    code = "MESSAGE_REQUIRED"
    status = 400


class MessageTooLarge(Refusal):
    """The message has {size} bytes and may have {limit} (UTF-8). Send it in parts."""

    code = "MESSAGE_TOO_LARGE"
    status = 413
    shown = ("limit", "size")


class DeliveryFailed(Refusal):
    """The message was not accepted: the database failed. The same id is safe to send again."""

    code = "BOT_MESSAGE_DELIVERY_FAILED"
    status = 503
    retry_after = 2


class _Moved(Exception):
    """The bot's conversation was replaced, or the same id accepted for another one of its
    conversations, before the locks were there. Nothing was written."""

    def __init__(self, bot_id: UUID | None) -> None:
        super().__init__()
        self.bot_id = bot_id


@dataclass(frozen=True, slots=True)
class Draft:
    """A send as it was asked for: to a task or to a bot by its name."""

    text: str
    task_id: UUID | None
    bot: str | None
    message_id: str | None
    in_reply_to: str | None
    reply_timeout: timedelta | None


def send_agent_message(
    *,
    sender: Task,
    by: Principal,
    message: str,
    clock: Clock,
    task_id: UUID | None = None,
    bot: str | None = None,
    message_id: str = "",
    in_reply_to: str | None = None,
    reply_timeout_seconds: int | None = None,
) -> Sent:
    """Queue a message of an agent for a teammate's conversation; durable when this returns.

    Repeating an id with the same text answers as SPEC §4.5 says. Raises MessageTooLarge,
    TaskIdRequired, Forbidden, MessageIdConflict, TaskNotFound, TaskEnded, BotNotFound,
    BotMembershipRevoked, BotTeamUnavailable, MessageRequired, InReplyToInvalid, QueueFull and
    what a repeat can meet (messaging/repeats.py).
    """
    timeout = timedelta(seconds=reply_timeout_seconds) if reply_timeout_seconds else None
    draft = Draft(message.strip(), task_id, bot, message_id or None, in_reply_to, timeout)
    _check_fields(draft)
    try:
        return _admit_with_patience(sender, draft, by=by, clock=clock)
    except DatabaseError as error:
        try:
            _tell_failure(sender, by=by, clock=clock)
        except (DatabaseError, DatabaseBusy):
            logger.warning("a failed send could not be told at its sender", exc_info=True)
        raise DeliveryFailed from error


def _admit_with_patience(sender: Task, draft: Draft, *, by: Principal, clock: Clock) -> Sent:
    """Admit it; again from the start when what was found moved before it was locked."""
    for look in range(1, LOOKS + 1):
        try:
            return _admit(sender, draft, by=by, clock=clock)
        except _Moved as moved:
            # By its id: a display name may name one bot of the team, and two of the workspace.
            draft = replace(draft, bot=str(moved.bot_id))
        except IntegrityError:
            if look == LOOKS:
                raise
    raise DatabaseBusy


@action
def _tell_failure(sender: Task, *, by: Principal, clock: Clock) -> None:
    """A send that the database did not take leaves a line at its sender, and no receipt."""
    now = clock.now()
    text = bodies.keep(DeliveryFailed().detail, workspace_id=sender.workspace_id, now=now)
    told = Error(code=DeliveryFailed.code)
    log.append(sender.stream, told, actor=by.actor, now=now, text=text)


def _check_fields(draft: Draft) -> None:
    check_message(draft.text, draft.message_id)
    if draft.task_id is None and not draft.bot:
        raise authority.TaskIdRequired(reason="Name the recipient: task_id or bot.")


def check_message(text: str, message_id: str | None) -> None:
    """What can be said of a message without a look at the rows.

    Raises MessageTooLarge, InvalidRequest for an id of the server's own.
    """
    size = len(text.encode())
    if size > settings.COWORK_MESSAGE_MAX_BYTES:
        raise MessageTooLarge(size=size, limit=settings.COWORK_MESSAGE_MAX_BYTES)
    if message_id and message_id.startswith(SERVER_PREFIX):
        raise InvalidRequest(reason=f"message_id: {SERVER_PREFIX} is the server's own.")


@action
def _admit(sender: Task, draft: Draft, *, by: Principal, clock: Clock) -> Sent:
    require(by, May.ACT_AS_AGENT)
    authority.require_cover(by, sender)
    earlier = repeats.find(repeats.agent_key(sender, draft.task_id, draft.bot, draft.message_id))
    if earlier is not None:
        return repeats.answer(
            earlier, text=draft.text, in_reply_to=draft.in_reply_to, by=by, clock=clock
        )
    bot, team = _require_sender(sender)
    target = _recipient_of(sender, bot, team, draft, by=by, clock=clock)
    locked = locks.lock_tasks(sender.id, target.id)
    sender, recipient = locked[sender.id], locked[target.id]
    now = clock.now()
    key = repeats.Key(f"task:{sender.id}", f"bot:{recipient.bot_id}", "message", draft.message_id)
    earlier = repeats.find(key)  # two equal sends that came at once: the locks order them
    if earlier is not None:
        if earlier.recipient_id != recipient.id:
            raise _Moved(recipient.bot_id)
        return repeats.answer_locked(
            earlier, text=draft.text, in_reply_to=draft.in_reply_to, by=by, now=now
        )
    if draft.task_id is None and not recipient.is_current:
        raise _Moved(recipient.bot_id)
    if not conversations.is_usable(recipient):
        raise TaskEnded
    if not draft.text:
        raise MessageRequired
    correlation = replies.correlate(sender, recipient, draft.in_reply_to)
    waiting = boundary.room_in(recipient)
    running = running_turn(sender)
    origin = loops.origin_of(sender, running)
    is_held = loops.holds(origin)
    receipt = receipts.queue(
        recipient=recipient,
        text=bodies.keep(draft.text, workspace_id=sender.workspace_id, now=now),
        actor=by.actor,
        now=now,
        sender_key=key.sender,
        recipient_key=key.recipient,
        delivery_mode=Receipt.Mode.MESSAGE,
        message_id=draft.message_id or str(new_id()),
        source=Receipt.Source.AGENT,
        sender_task=sender,
        sender_bot=bot,
        sender_label=bot.display_name,
        sender_turn=sender.last_turn,
        team=team,
        # A teammate's message wakes; one that only closes an exchange does not (SPEC §6.2, §7.6).
        wakes=not (correlation.is_closing or is_held),
        is_held=is_held,
        in_reply_to=correlation.in_reply_to,
        is_handoff=correlation.is_handoff,
        is_closing=correlation.is_closing,
        reply_status=Receipt.ReplyStatus.PENDING if correlation.is_handoff else None,
        reply_timeout=draft.reply_timeout if correlation.is_handoff else None,
        cause_kind=origin.cause_kind,
        cause_id=origin.cause_id,
        chain=origin.chain,
        hop=origin.hop,
    )
    wakes.enqueue_what_waits(recipient, now=now)
    transaction.on_commit(functools.partial(crash.at, "after_accept"))
    return Sent(receipt, is_duplicate=False, ahead=waiting)


def _require_sender(sender: Task) -> tuple[Bot, Team]:
    """The sender is a bot conversation with a verified team (SPEC §4.2). The team is locked."""
    if sender.kind != Task.Kind.BOT_CONVERSATION or sender.bot is None:
        raise Forbidden
    if sender.team_id is not None:
        locks.lock_team(sender.team_id)
    return sender.bot, require_team(sender.bot, sender.team)


def _recipient_of(
    sender: Task, bot: Bot, team: Team, draft: Draft, *, by: Principal, clock: Clock
) -> Task:
    """The task that a send goes to; a task id wins over a name."""
    if draft.task_id is None:
        teammate = find_teammate(bot, team, draft.bot or "")
        return conversations.current_of(teammate, team) or conversations.conversation_of(
            teammate, team, actor=by.actor, now=clock.now()
        )
    rows = Task.objects.select_related("bot")
    target = rows.filter(pk=draft.task_id, workspace_id=sender.workspace_id).first()
    if target is None:
        raise TaskNotFound
    is_teammates = target.kind == Task.Kind.BOT_CONVERSATION and target.team_id == team.id
    if target.id == sender.id or not is_teammates or target.bot is None:
        raise Forbidden
    if target.bot_id == bot.id:
        raise Forbidden
    if may_exchange(team, bot, target.bot) is not None:
        raise BotMembershipRevoked(bot=target.bot.display_name)
    return target
