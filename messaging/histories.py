"""The past of a bot: all its conversations with how much was said in them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from cowork.models import Task
from teams.models import Bot
from timeline.models import Event, Stream

_SAID = ("user_message", "assistant_message")


@dataclass(frozen=True, slots=True)
class Past:
    """One conversation of a bot."""

    task_id: UUID
    title: str
    is_archived: bool
    count: int
    at: datetime


def history_of(bot: Bot) -> list[Past]:
    """A bot's conversations, the newest first."""
    tasks = list(
        Task.objects.filter(bot=bot, kind=Task.Kind.BOT_CONVERSATION).order_by("-created_at", "-id")
    )
    keys = [task.stream for task in tasks]
    said = Event.objects.filter(stream__in=keys, type__in=_SAID).values_list("stream")
    counts = dict(said.annotate(Count("pk")))
    last = dict(Stream.objects.filter(key__in=keys).values_list("key", "last_at"))
    return [
        Past(
            task.id,
            task.title,
            task.is_archived,
            counts.get(task.stream, 0),
            last.get(task.stream) or task.created_at,
        )
        for task in tasks
    ]
