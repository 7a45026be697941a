"""The roster: one row per bot, with where its conversation stands (SPEC §18, DESIGN §4).

Reads in a constant number of queries, whatever the number of bots, and writes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext_lazy as _

from cowork.models import Task, Turn
from messaging import rendering
from messaging.models import Receipt
from messaging.transcript import label_of, receipt_in
from teams.models import Bot
from timeline import log
from timeline.models import Event


class Readiness(models.TextChoices):
    """Whether a conversation can take a message, and what it is at."""

    READY = "ready", _("Ready for another message")
    WORKING = "working", _("Working on latest message")
    WAITING = "waiting", _("Waiting on a teammate")
    NEEDS_INPUT = "needs_input", _("Needs your input")
    PAUSED = "paused", _("Paused")
    RETRY = "retry", _("Ready to retry")
    UNAVAILABLE = "unavailable", _("Unavailable — reopen to retry")


class Result(models.TextChoices):
    """How the latest run ended, or that it runs."""

    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    STOPPED = "stopped", _("Stopped")
    RUNNING = "running", _("Running")
    NONE = "no run yet", _("No run yet")


_GLYPHS = {
    Readiness.READY: ("ready", ""),
    Readiness.WORKING: ("work", "live"),
    Readiness.WAITING: ("wait", ""),
    Readiness.NEEDS_INPUT: ("you", "you"),
    Readiness.PAUSED: ("pause", ""),
    Readiness.RETRY: ("fail", "you"),
    Readiness.UNAVAILABLE: ("off", "stop"),
}
_NEED_A_PERSON = (Readiness.NEEDS_INPUT, Readiness.RETRY, Readiness.UNAVAILABLE)
_RESULTS = {
    Turn.Status.RUNNING: Result.RUNNING,
    Turn.Status.DONE: Result.COMPLETED,
    Turn.Status.ABORTED: Result.STOPPED,
    Turn.Status.ERROR: Result.FAILED,
    Turn.Status.LOST: Result.FAILED,
}
_BROKEN = (Turn.Status.ERROR, Turn.Status.LOST)


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest message of a conversation, on one line."""

    kind: str  # who wrote it: agent, person, service, or bot for the bot itself
    sender: str
    text: str
    at: datetime

    @property
    def is_by_person(self) -> bool:
        return self.kind == "person"


@dataclass(frozen=True, slots=True)
class Row:
    """A bot and its conversation, ready to show."""

    bot: Bot
    conversation: Task | None
    readiness: Readiness
    result: Result
    result_at: datetime | None
    latest: Latest | None
    queued: int

    @property
    def glyph(self) -> str:
        return _GLYPHS[self.readiness][0]

    @property
    def tone(self) -> str:
        return _GLYPHS[self.readiness][1]

    @property
    def is_unavailable(self) -> bool:
        return self.readiness is Readiness.UNAVAILABLE

    @property
    def needs_you(self) -> bool:
        return self.readiness in _NEED_A_PERSON

    @property
    def is_working(self) -> bool:
        return self.readiness is Readiness.WORKING

    @property
    def active_at(self) -> datetime | None:
        """When something was last said."""
        return self.latest.at if self.latest is not None else None

    def matches(self, words: str) -> bool:
        """Whether a search finds it: by name, handle, description or newest message."""
        said = self.latest.text if self.latest is not None else ""
        looked_at = (self.bot.display_name, self.bot.handle, self.bot.description, said)
        return any(words.casefold() in part.casefold() for part in looked_at)


def rows(bots: QuerySet[Bot]) -> list[Row]:
    """The rows of some bots: the newest message first, then those without one by name."""
    made = _rows(list(bots.annotate(conversation_id=Subquery(_conversations().values("pk")[:1]))))
    named = sorted(made, key=lambda row: (row.bot.display_name.casefold(), row.bot.handle))
    return sorted(named, key=lambda row: -row.active_at.timestamp() if row.active_at else 0.0)


def row_of(bot: Bot) -> Row:
    """The row of one bot."""
    [row] = rows(Bot.objects.filter(pk=bot.pk))
    return row


def row_of_conversation(bot: Bot, task: Task | None) -> Row:
    """The row of a bot with one of its conversations, which need not be the latest."""
    ids = [task.id] if task is not None else []
    return _row(bot, task, _newest_turns(ids), _newest_said(ids), _counts(ids))


def conversation_of(bot: Bot) -> Task | None:
    """The conversation that opening a bot shows: its newest one outside the archive."""
    found = Task.objects.filter(bot=bot, kind=Task.Kind.BOT_CONVERSATION, archived_at__isnull=True)
    return found.order_by("-created_at", "-id").first()


def _conversations() -> QuerySet[Task]:
    found = Task.objects.filter(
        bot=OuterRef("pk"), kind=Task.Kind.BOT_CONVERSATION, archived_at__isnull=True
    )
    return found.order_by("-created_at", "-id")


def _rows(bots: list[Bot]) -> list[Row]:
    ids = [found for bot in bots if (found := _conversation_id(bot)) is not None]
    tasks = {task.id: task for task in Task.objects.filter(pk__in=ids).select_related("team")}
    turns = _newest_turns(ids)
    said = _newest_said(ids)
    counts = _counts(ids)
    return [
        _row(bot, tasks.get(task_id) if task_id else None, turns, said, counts)
        for bot in bots
        for task_id in [_conversation_id(bot)]
    ]


def _conversation_id(bot: Bot) -> UUID | None:
    found: UUID | None = getattr(bot, "conversation_id", None)
    return found


def _row(
    bot: Bot,
    task: Task | None,
    turns: Mapping[UUID, Turn],
    said: Mapping[UUID, Latest],
    counts: Mapping[UUID, Mapping[str, int]],
) -> Row:
    if task is None:
        return Row(bot, None, Readiness.READY, Result.NONE, None, None, 0)
    turn = turns.get(task.id)
    count = counts.get(task.id, {})
    return Row(
        bot,
        task,
        _readiness(task, turn, count),
        _RESULTS[Turn.Status(turn.status)] if turn else Result.NONE,
        (turn.ended_at or turn.started_at) if turn else None,
        said.get(task.id),
        count.get("queued", 0),
    )


# What a person has done to it says more than what came of its latest run.
_STANDING = {
    Task.Status.FAILED: Readiness.UNAVAILABLE,
    Task.Status.PAUSED: Readiness.PAUSED,
    Task.Status.INTERRUPTED: Readiness.NEEDS_INPUT,  # a follow-up lifts a stop
}


def _readiness(task: Task, turn: Turn | None, count: Mapping[str, int]) -> Readiness:
    if task.has_turn:
        return Readiness.WORKING
    standing = _STANDING.get(Task.Status(task.status))
    if standing is not None:
        return standing
    if count.get("failed"):
        return Readiness.RETRY
    if count.get("awaited"):
        return Readiness.WAITING
    if turn is not None and turn.status in _BROKEN:
        return Readiness.RETRY
    return Readiness.READY


def _newest_turns(ids: Iterable[UUID]) -> dict[UUID, Turn]:
    found = Turn.objects.filter(task__in=ids, number=F("task__last_turn"))
    return {turn.task_id: turn for turn in found}


def _newest_said(ids: list[UUID]) -> dict[UUID, Latest]:
    """The newest line of each transcript, or the newest message that waits to be taken in."""
    lines = Event.objects.filter(
        stream=OuterRef("pk"), type__in=("user_message", "assistant_message")
    ).order_by("-seq")
    waiting = Receipt.objects.filter(
        recipient=OuterRef("pk"), status__in=(Receipt.Status.QUEUED, Receipt.Status.STARTED)
    ).order_by("-sequence")
    newest = Task.objects.filter(pk__in=ids).values_list(
        "pk",
        "bot__display_name",
        Subquery(lines.values("pk")[:1]),
        Subquery(waiting.values("pk")[:1]),
    )
    chosen = list(newest)
    events = Event.objects.select_related("body").in_bulk([line for *_, line, _ in chosen if line])
    receipts = Receipt.objects.select_related("body").in_bulk(
        [receipt for *_, receipt in chosen if receipt]
    )
    found: dict[UUID, Latest] = {}
    for task_id, name, line, receipt in chosen:
        both = [
            _of_event(log.as_json(events[line]), name, events[line].created_at) if line else None,
            _of_receipt(receipts[receipt]) if receipt else None,
        ]
        known = [one for one in both if one is not None]
        if known:
            found[task_id] = max(known, key=lambda one: one.at)
    return found


def _of_event(event: Mapping[str, Any], name: str, at: datetime) -> Latest:
    told = event["payload"]
    text = told["text"] or ""
    if event["type"] == "user_message":
        return Latest(told["source"], told["sender"]["label"], rendering.preview(text), at)
    receipt = receipt_in(text)
    shown = label_of(receipt) if receipt is not None else rendering.preview(text)
    return Latest("bot", name, shown, at)


def _of_receipt(receipt: Receipt) -> Latest:
    text = rendering.preview(receipt.body.text or "")
    return Latest(receipt.source, receipt.sender_label, text, receipt.accepted_at)


def _counts(ids: list[UUID]) -> dict[UUID, Mapping[str, int]]:
    """Per conversation: how much is queued, what failed of people's, how many replies it awaits."""
    failed = Q(status="failed", closed_at__isnull=True) & ~Q(source=Receipt.Source.AGENT)
    inbox = (
        Receipt.objects.filter(recipient__in=ids)
        .filter(Q(status="queued") | failed)
        .values("recipient")
        .annotate(queued=Count("pk", filter=Q(status="queued")), failed=Count("pk", filter=failed))
    )
    found: dict[UUID, dict[str, int]] = {
        row["recipient"]: {"queued": row["queued"], "failed": row["failed"]} for row in inbox
    }
    awaited = (
        Receipt.objects.filter(
            sender_task__in=ids,
            reply_status=Receipt.ReplyStatus.PENDING,
            sender_turn__gte=F("sender_task__human_turn"),
        )
        .exclude(status__in=("failed", "quarantined"), closed_at__isnull=False)
        .values("sender_task")
        .annotate(awaited=Count("pk"))
    )
    for row in awaited:
        found.setdefault(row["sender_task"], {})["awaited"] = row["awaited"]
    return {task_id: dict(count) for task_id, count in found.items()}
