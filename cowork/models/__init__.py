"""The work between tasks: tasks, their turns, the outbox, and the credentials of those who call."""

from cowork.models.credentials import Credential, Secret
from cowork.models.outbox import OutboxEntry, OutboxLane, Slot
from cowork.models.sessions import WorkSession
from cowork.models.tasks import InteractionMode, RuntimeMode, Task, TaskQuerySet
from cowork.models.turns import Turn, TurnReport

__all__ = [
    "Credential",
    "InteractionMode",
    "OutboxEntry",
    "OutboxLane",
    "RuntimeMode",
    "Secret",
    "Slot",
    "Task",
    "TaskQuerySet",
    "Turn",
    "TurnReport",
    "WorkSession",
]
