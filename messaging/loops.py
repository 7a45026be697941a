"""Causes, chains and hops: how far a message is from the person who began (SPEC §6.1, §7.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from cowork.models import Task, Turn
from messaging.models import Receipt
from timeline.event_types import TurnCause
from timeline.ids import new_id


@dataclass(frozen=True, slots=True)
class Origin:
    """What a message comes from: the cause, the chain and the hop stored with it."""

    cause_kind: str
    cause_id: str
    chain: UUID
    hop: int


def origin_of(sender: Task, running: Turn | None) -> Origin:
    """The origin of a message that a task sends, in a turn or outside one.

    Its hop is one more than its sender's turn; a sender that never ran a turn begins a chain at 1.
    """
    if running is not None:
        return Origin("turn", str(running.id), running.chain, running.hop + 1)
    if sender.chain is not None:
        return Origin("task", str(sender.id), sender.chain, sender.hop + 1)
    return Origin("task", str(sender.id), new_id(), 1)


def origin_of_person(kind: str, caller_id: object) -> Origin:
    """A person's or a service's input begins a chain at hop 0."""
    return Origin(kind, str(caller_id), new_id(), 0)


def holds(origin: Origin) -> bool:
    """Whether an agent's message of this origin is stored without waking anybody (SPEC §7.6).

    Beyond 8 hops, or 32 turns that messages have started in its chain. Nothing is dropped; a
    person may let it go.
    """
    if origin.hop > settings.COWORK_MAX_HOPS:
        return True
    started = Turn.objects.filter(chain=origin.chain, cause_kind=Turn.Cause.MESSAGE)
    return started.count() >= settings.COWORK_MAX_CHAIN_TURNS


def cause_of(task: Task, inputs: Sequence[Receipt], *, is_scheduled: bool) -> TurnCause:
    """Why a turn starts: the first of follow_up, schedule, message, runtime (SPEC §6.1).

    Its chain and hop are those of the input with the smallest hop; without input it goes on with
    the task's own chain.
    """
    follow_ups = [row for row in inputs if row.delivery_mode == Receipt.Mode.FOLLOW_UP]
    messages = [row for row in inputs if row.delivery_mode == Receipt.Mode.MESSAGE]
    nearest = min(inputs, key=lambda row: row.hop, default=None)
    chain, hop = (nearest.chain, nearest.hop) if nearest else (task.chain or new_id(), task.hop)
    if follow_ups:
        return TurnCause(kind="follow_up", id=str(follow_ups[0].id), chain=chain, hop=hop)
    if is_scheduled:
        return TurnCause(kind="schedule", id=None, chain=chain, hop=hop)
    if messages:
        return TurnCause(kind="message", id=str(messages[0].id), chain=chain, hop=hop)
    return TurnCause(kind="runtime", id=None, chain=chain, hop=hop)
