"""The admin of the work between tasks: tasks, turns, credentials, what is owed; and of bots."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from rest_framework_api_key.models import APIKey

from cowork.models import Credential, OutboxEntry, Task, Turn
from teams.admin import BotRows, how_many
from teams.models import Bot
from timeline.admin import ReadOnly, Recent, badge, open_in_cowork, shortened

# A key of the library's own lets nobody in here: credentials do, and they are issued by actions.
admin.site.unregister(APIKey)
# A job is a hint, and what is owed stands in the outbox: nothing is to be seen or done there.
for theirs in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(theirs):
        admin.site.unregister(theirs)


def address_of(task: Task) -> str | None:
    """Where a person sees a task; conversations of bots have a page."""
    if task.kind != Task.Kind.BOT_CONVERSATION or task.bot is None:
        return None
    return reverse("conversation", args=[task.bot.handle, task.id])


def name_of(task: Task) -> str:
    """Whose a task is, else what it is about."""
    return f"@{task.bot.handle}" if task.bot is not None else task.title


@admin.register(Task)
class Tasks(ReadOnly):
    list_display = (
        "title",
        "kind",
        "state",
        "handle",
        "team_name",
        "workspace",
        "archived_at",
        "created_at",
        "in_cowork",
    )
    list_filter = (Recent, "status", "kind", "workspace")
    list_select_related = ("bot", "team", "workspace")
    searched_names = ("bot__handle", "title")
    fields = (
        "id",
        "workspace",
        "kind",
        "title",
        "status",
        "bot",
        "team",
        "is_current",
        "branch_from",
        "runtime",
        "runtime_mode",
        "interaction_mode",
        "batch_inputs",
        "last_sequence",
        "last_turn",
        "chain",
        "hop",
        "resumes_at",
        "requested_action",
        "requested_at",
        "requested_reason",
        "requested_by_label",
        "result_outcome",
        "archived_at",
        "created_at",
        "updated_at",
        "in_cowork",
    )

    @badge("status")
    def state(self, task: Task) -> str:
        return task.status

    @admin.display(description="bot")
    def handle(self, task: Task) -> str:
        return f"@{task.bot.handle}" if task.bot is not None else "–"

    @admin.display(description="team")
    def team_name(self, task: Task) -> str:
        return task.team.name if task.team is not None else "–"

    @admin.display(description="page")
    def in_cowork(self, task: Task) -> SafeString | str:
        return open_in_cowork(address_of(task))


@admin.register(Turn)
class Turns(ReadOnly):
    """Without fences and ids of claims: those are shown to the claimer only (SPEC §6.6)."""

    list_display = ("task_name", "number", "state", "cause_kind", "started_at", "ended_at", "hop")
    list_filter = (Recent, "status")
    list_select_related = ("task__bot",)
    searched_ids = ("id", "task", "chain")
    searched_names = ("task__bot__handle",)
    fields = (
        "id",
        "task",
        "number",
        "status",
        "claimer",
        "cause_kind",
        "cause_id",
        "chain",
        "hop",
        "runtime_mode",
        "interaction_mode",
        "lease_expires_at",
        "started_at",
        "accepted_at",
        "incorporated_at",
        "ended_at",
        "has_limit",
        "was_stopped",
    )

    @admin.display(description="task")
    def task_name(self, turn: Turn) -> str:
        return name_of(turn.task)

    @badge("status")
    def state(self, turn: Turn) -> str:
        return turn.status


@admin.register(Credential)
class Credentials(ReadOnly):
    """Whom a credential lets act; its secrets are rows of their own, which no page shows."""

    list_display = (
        "label",
        "kind",
        "acts_as",
        "workspace",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = ("kind", ("revoked_at", admin.EmptyFieldListFilter), "workspace")
    list_select_related = ("bot", "task__bot", "workspace")
    searched_ids = ("id", "bot", "task")
    searched_names = ("label__icontains", "bot__handle")
    fields = (
        "id",
        "workspace",
        "label",
        "kind",
        "bot",
        "task",
        "made_by",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )

    @admin.display(description="bot or task")
    def acts_as(self, credential: Credential) -> str:
        if credential.bot is not None:
            return f"@{credential.bot.handle}"
        return name_of(credential.task) if credential.task is not None else "–"


@admin.register(OutboxEntry)
class OutboxEntries(ReadOnly):
    list_display = (
        "kind",
        "target",
        "state",
        "not_before",
        "attempts",
        "crashes",
        "last_error_begins",
        "created_at",
    )
    list_filter = ("status",)
    searched_ids = ("id", "target", "workspace_id")
    searched_names = ("kind",)
    fields = (
        "id",
        "workspace_id",
        "kind",
        "target",
        "payload",
        "lanes",
        "status",
        "attempts",
        "crashes",
        "looks",
        "not_before",
        "is_woken",
        "owner",
        "lease_expires_at",
        "history",
        "last_error",
        "created_at",
        "updated_at",
    )

    @badge("state")
    def state(self, entry: OutboxEntry) -> str:
        return entry.status

    @admin.display(description="last error")
    def last_error_begins(self, entry: OutboxEntry) -> str:
        return shortened(entry.last_error)


@admin.register(Bot)
class Bots(BotRows):
    list_display = (*BotRows.list_display, "conversation_count", "last_run_at", "workspace")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        conversations = Task.objects.filter(bot=OuterRef("pk"), kind=Task.Kind.BOT_CONVERSATION)
        # Each task tells the number of its newest turn, so no other turn is looked at.
        newest = Turn.objects.filter(task__bot=OuterRef("pk"), number=F("task__last_turn"))
        found: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = found.annotate(
            conversation_count=how_many(conversations, per="bot"),
            last_run_at=Subquery(newest.order_by("-started_at").values("started_at")[:1]),
        )
        return counted

    @admin.display(description="conversations")
    def conversation_count(self, bot: Any) -> int:
        return int(bot.conversation_count)

    @admin.display(description="last run")
    def last_run_at(self, bot: Any) -> Any:
        return bot.last_run_at
