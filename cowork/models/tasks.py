"""Tasks: the durable threads of work (SPEC §1, §6.1)."""

from collections.abc import Mapping
from typing import ClassVar, Self
from uuid import UUID

from django.db import models
from django.db.models import Q

from cowork.models.sessions import WorkSession
from teams.models import Bot, RuntimeProfile, Team, Workspace
from timeline.ids import new_id
from timeline.transitions import Stateful


class RuntimeMode(models.TextChoices):
    """How far an agent may act without asking, narrowest first (SPEC §10.1)."""

    SUPERVISED = "supervised"
    AUTO_ACCEPT_EDITS = "auto-accept-edits"
    AUTO = "auto"
    FULL_ACCESS = "full-access"


class InteractionMode(models.TextChoices):
    """What an agent is to do (SPEC §4.7)."""

    EXECUTE = "execute"
    PLAN = "plan"
    ANALYZE = "analyze"


class TaskQuerySet(models.QuerySet["Task"]):
    def with_turn(self) -> Self:
        """Those that run a turn."""
        return self.filter(Q(status=Task.Status.RUNNING) | Q(requested_action="stop"))

    def without_turn(self) -> Self:
        """Those that run none."""
        return self.exclude(status=Task.Status.RUNNING).exclude(requested_action="stop")

    def usable(self) -> Self:
        """Those that a message can be queued for (SPEC §6.1)."""
        return self.filter(archived_at__isnull=True).exclude(status=Task.Status.FAILED)


class Task(Stateful):
    """A durable thread of an agent's work, with a transcript of its own (SPEC §1)."""

    class Kind(models.TextChoices):
        ROOT = "root"
        BOT_CONVERSATION = "bot_conversation"

    class Status(models.TextChoices):
        IDLE = "idle"
        RUNNING = "running"
        PAUSED = "paused"
        INTERRUPTED = "interrupted"  # stopped by a person
        COMPLETED = "completed"
        FAILED = "failed"

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]] = {
        Status.IDLE: frozenset(
            {Status.RUNNING, Status.PAUSED, Status.INTERRUPTED, Status.COMPLETED, Status.FAILED}
        ),
        Status.RUNNING: frozenset(
            {Status.IDLE, Status.PAUSED, Status.INTERRUPTED, Status.COMPLETED, Status.FAILED}
        ),
        # Resume lifts a pause and nothing else; a follow-up lifts a stop (SPEC §6.1).
        Status.PAUSED: frozenset(
            {Status.IDLE, Status.INTERRUPTED, Status.COMPLETED, Status.FAILED}
        ),
        Status.INTERRUPTED: frozenset({Status.RUNNING, Status.COMPLETED, Status.FAILED}),
        # A turn starts a completed or failed task again (SPEC §6.1).
        Status.COMPLETED: frozenset({Status.RUNNING, Status.PAUSED, Status.FAILED}),
        Status.FAILED: frozenset({Status.RUNNING, Status.COMPLETED}),
    }

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="tasks")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.IDLE)
    runtime_mode = models.CharField(
        max_length=20, choices=RuntimeMode.choices, default=RuntimeMode.SUPERVISED
    )
    interaction_mode = models.CharField(
        max_length=10, choices=InteractionMode.choices, default=InteractionMode.EXECUTE
    )
    runtime = models.ForeignKey(RuntimeProfile, on_delete=models.PROTECT, related_name="tasks")
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, null=True, related_name="tasks")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="tasks")
    # The context store that its runtime has named.
    session = models.ForeignKey(
        WorkSession, on_delete=models.PROTECT, null=True, related_name="tasks"
    )
    # The conversation that it was opened anew from (SPEC §3.6).
    branch_from = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="branches"
    )
    # Of the usable conversations of a bot in a team, the newest: the one a send by handle uses.
    is_current = models.BooleanField(default=False)
    batch_inputs = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True)

    # Counters, each changed under this row's lock only.
    last_sequence = models.PositiveBigIntegerField(default=0)  # of its queue (SPEC §5.2)
    last_turn = models.PositiveIntegerField(default=0)  # the newest turn's number
    last_fence = models.PositiveBigIntegerField(default=0)

    # The newest input of a person or a service that was taken in (SPEC §7.2, §7.4).
    human_turn = models.PositiveIntegerField(default=0)
    human_sequence = models.PositiveBigIntegerField(default=0)
    # The chain of causes that the newest turn belongs to (SPEC §7.6).
    chain = models.UUIDField(null=True)
    hop = models.PositiveIntegerField(default=0)
    # When a turn is due that follows one which met a usage limit (SPEC §6.5).
    resumes_at = models.DateTimeField(null=True)

    # What a person has asked for and the runtime has not confirmed yet (SPEC §6.9).
    requested_action = models.CharField(
        max_length=5, choices=[("pause", "pause"), ("stop", "stop")], blank=True
    )
    requested_at = models.DateTimeField(null=True)
    requested_id = models.UUIDField(null=True)
    requested_reason = models.CharField(max_length=1000, blank=True)
    requested_by_id = models.CharField(max_length=64, blank=True)
    requested_by_label = models.CharField(max_length=200, blank=True)

    result_outcome = models.CharField(max_length=10, blank=True)
    result_summary = models.TextField(blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = TaskQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["bot", "team"],
                condition=Q(is_current=True),
                name="cowork_task_one_current_conversation",
            ),
            models.CheckConstraint(
                condition=Q(is_current=False)
                | (
                    Q(kind="bot_conversation", team__isnull=False, archived_at__isnull=True)
                    & ~Q(status="failed")
                ),
                name="cowork_task_current_is_usable",
            ),
            models.CheckConstraint(
                condition=~Q(kind="bot_conversation") | Q(bot__isnull=False),
                name="cowork_task_conversation_has_a_bot",
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=[
                        "idle",
                        "running",
                        "paused",
                        "interrupted",
                        "completed",
                        "failed",
                    ]
                ),
                name="cowork_task_status",
            ),
            models.CheckConstraint(
                condition=Q(requested_action="") ^ Q(requested_at__isnull=False),
                name="cowork_task_request_has_a_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="cowork_task_newest"),
            models.Index(fields=["bot", "team", "-created_at"], name="cowork_task_of_bot"),
        ]

    def __str__(self) -> str:
        return f"task {self.id}"

    @property
    def stream(self) -> UUID:
        """The key of its timeline."""
        return self.id

    @property
    def has_turn(self) -> bool:
        """Whether a turn of it runs; one that was asked to stop runs until it has stopped."""
        return self.status == self.Status.RUNNING or self.requested_action == "stop"

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None
