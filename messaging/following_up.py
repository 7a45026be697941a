"""Following up: a person's or a service's input to a task (SPEC §6.10)."""

import functools

from django.db import IntegrityError, transaction

from cowork import conversations, locks
from cowork.models import Task
from cowork.tasks import TaskEnded
from messaging import authority, boundary, loops, receipts, repeats, wakes
from messaging.models import Receipt
from messaging.repeats import Sent
from messaging.sending import MessageRequired, check_message
from teams.permissions import May, Principal, require
from timeline import bodies, crash
from timeline.clock import Clock
from timeline.ids import new_id
from timeline.refusals import Refusal
from timeline.transactions import action


class ExpectedTurnPassed(Refusal):
    """The newest turn is {newest}, not {expected}. Look at what has happened, then send again."""

    code = "EXPECTED_TURN_PASSED"
    status = 409
    shown = ("newest", "expected")


def follow_up(
    *,
    recipient: Task,
    by: Principal,
    message: str,
    clock: Clock,
    message_id: str = "",
    delivery_mode: str = Receipt.Mode.FOLLOW_UP,
    expected_turn: int | None = None,
) -> Sent:
    """Queue a person's or a service's input; a follow-up starts a turn, a message waits for one.

    `expected_turn` is the number of the newest turn that the caller knows, 0 for none. A person
    finds room in a full queue. Raises Forbidden, MessageTooLarge, InvalidRequest, TaskEnded,
    MessageRequired, ExpectedTurnPassed, QueueFull and what a repeat can meet
    (messaging/repeats.py).
    """
    text = message.strip()
    check_message(text, message_id)
    asked = functools.partial(
        _admit,
        recipient,
        text=text,
        message_id=message_id or None,
        mode=delivery_mode,
        expected_turn=expected_turn,
        by=by,
        clock=clock,
    )
    try:
        return asked()
    except IntegrityError:
        return asked()  # the same id was accepted meanwhile: look again


@action
def _admit(
    recipient: Task,
    *,
    text: str,
    message_id: str | None,
    mode: str,
    expected_turn: int | None,
    by: Principal,
    clock: Clock,
) -> Sent:
    require(by, May.FOLLOW_UP)
    authority.find_task(by, recipient.id)
    if recipient.bot_id is not None and recipient.team_id is not None:
        locks.lock_team(recipient.team_id)
    recipient = locks.lock_task(recipient.id)
    now = clock.now()
    key = repeats.Key(f"{by.kind}:{by.id}", f"task:{recipient.id}", mode, message_id)
    earlier = repeats.find(key)
    if earlier is not None:
        # An admitted one's repeat is answered before the expected turn is looked at.
        return repeats.answer_locked(earlier, text=text, in_reply_to=None, by=by, now=now)
    is_follow_up = mode == Receipt.Mode.FOLLOW_UP
    if recipient.is_archived or not (is_follow_up or conversations.is_usable(recipient)):
        raise TaskEnded
    if not text:
        raise MessageRequired
    if expected_turn is not None and expected_turn != recipient.last_turn:
        raise ExpectedTurnPassed(newest=recipient.last_turn, expected=expected_turn)
    origin = loops.origin_of_person(by.kind, by.id)
    is_person = by.kind == "person"
    ahead = boundary.queue_length(recipient) if is_person else boundary.room_in(recipient)
    receipt = receipts.queue(
        recipient=recipient,
        text=bodies.keep(text, workspace_id=recipient.workspace_id, now=now),
        actor=by.actor,
        now=now,
        sender_key=key.sender,
        recipient_key=key.recipient,
        delivery_mode=mode,
        message_id=message_id or str(new_id()),
        source=by.kind,
        sender_person_id=by.id if is_person else None,
        sender_label=by.label,
        # Whatever is accepted while a turn runs starts the next one (SPEC §6.2).
        wakes=is_follow_up or recipient.has_turn,
        cause_kind=origin.cause_kind,
        cause_id=origin.cause_id,
        chain=origin.chain,
        hop=origin.hop,
    )
    if is_follow_up:
        receipts.make_due(recipient, now=now)
    wakes.enqueue_what_waits(recipient, now=now)
    transaction.on_commit(functools.partial(crash.at, "after_accept"))
    return Sent(receipt, is_duplicate=False, ahead=ahead)
