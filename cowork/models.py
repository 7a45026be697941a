"""The work between tasks: tasks, their turns, the outbox, and the credentials of those who call."""

from collections.abc import Mapping
from typing import ClassVar, Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from rest_framework_api_key.models import AbstractAPIKey

from teams.models import Bot, Person, RuntimeProfile, Team, Workspace
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
        Status.COMPLETED: frozenset(
            {Status.RUNNING, Status.PAUSED, Status.INTERRUPTED, Status.FAILED}
        ),
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


class Turn(Stateful):
    """One run of a task's agent between two boundaries (SPEC §1)."""

    class Status(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        ABORTED = "aborted"
        ERROR = "error"
        LOST = "lost"

    class Cause(models.TextChoices):
        """Why it runs; where several things start it, the first of these (SPEC §6.1)."""

        FOLLOW_UP = "follow_up"
        SCHEDULE = "schedule"
        MESSAGE = "message"
        RUNTIME = "runtime"

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]] = {
        Status.RUNNING: frozenset({Status.DONE, Status.ABORTED, Status.ERROR, Status.LOST}),
        Status.DONE: frozenset(),
        Status.ABORTED: frozenset(),
        Status.ERROR: frozenset(),
        Status.LOST: frozenset(),
    }

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="turns", db_index=False)
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.RUNNING)
    # Shown to its claimer only; a report with another one is refused (SPEC §6.6).
    fence = models.PositiveBigIntegerField()
    # Whose turn it is: `credential:<id>` or `runtime:<profile id>`. Rotation keeps the identity.
    claimer = models.CharField(max_length=80)
    claim_id = models.CharField(max_length=128, blank=True)
    cause_kind = models.CharField(max_length=10, choices=Cause.choices)
    cause_id = models.CharField(max_length=64, blank=True)
    chain = models.UUIDField()
    hop = models.PositiveIntegerField()
    runtime_mode = models.CharField(max_length=20, choices=RuntimeMode.choices)
    interaction_mode = models.CharField(max_length=10, choices=InteractionMode.choices)

    lease = models.DurationField()
    lease_expires_at = models.DateTimeField()
    started_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    incorporated_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # The last text that its agent said as its own answer: what an automatic reply quotes.
    final_text = models.ForeignKey(
        "timeline.Body", on_delete=models.PROTECT, null=True, related_name="+"
    )
    has_limit = models.BooleanField(default=False)
    # Its runtime has stopped it; what it says of its end afterwards is taken as said.
    was_stopped = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            # Two callers may claim one task at once; the database lets one of them open the turn.
            models.UniqueConstraint(
                fields=["task"], condition=Q(status="running"), name="cowork_turn_one_running"
            ),
            models.UniqueConstraint(fields=["task", "number"], name="cowork_turn_number"),
            models.UniqueConstraint(
                fields=["task", "claimer", "claim_id"],
                condition=~Q(claim_id=""),
                name="cowork_turn_claim_id",
            ),
            models.CheckConstraint(
                condition=Q(status="running") ^ Q(ended_at__isnull=False),
                name="cowork_turn_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["running", "done", "aborted", "error", "lost"]),
                name="cowork_turn_status",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["chain"], name="cowork_turn_chain"),
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status="running"),
                name="cowork_turn_leases",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.id}"


class TurnReport(models.Model):
    """A report that a turn has made, so that a repeat of it changes nothing (SPEC §6.8)."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="reports")
    event_id = models.CharField(max_length=128)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["turn", "event_id"], name="cowork_turn_report_once"),
        ]

    def __str__(self) -> str:
        return f"report {self.event_id}"


class OutboxEntry(Stateful):
    """A promise: work that must happen although the process may die (SPEC §8)."""

    class State(models.TextChoices):
        DUE = "due"
        RUNNING = "running"
        WAITING = "waiting"
        RETRY = "retry"
        PARKED = "parked"
        POISON = "poison"

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]] = {
        State.DUE: frozenset({State.RUNNING}),
        State.RUNNING: frozenset(
            # To itself: a dead worker's entry is taken over.
            {
                State.DUE,
                State.RUNNING,
                State.WAITING,
                State.RETRY,
                State.PARKED,
                State.POISON,
            }
        ),
        State.WAITING: frozenset({State.DUE, State.RUNNING}),
        State.RETRY: frozenset({State.RUNNING}),
        State.PARKED: frozenset({State.DUE}),
        State.POISON: frozenset({State.DUE}),
    }

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace_id = models.UUIDField()
    kind = models.CharField(max_length=40)
    payload = models.JSONField(default=dict)
    # What it concerns, mostly a task's id. Entries of one target run oldest first.
    target = models.UUIDField()
    lanes = models.JSONField(default=list)
    sequence = models.BigIntegerField(unique=True)
    status = models.CharField(
        "state", max_length=10, choices=State.choices, default=State.DUE, db_column="state"
    )
    attempts = models.PositiveSmallIntegerField(default=0)  # runs that failed
    crashes = models.PositiveSmallIntegerField(default=0)  # in a row
    # Waits: how often it looked in vain, so that the next look comes later.
    looks = models.PositiveIntegerField(default=0)
    # When it may run; null while it waits for a wake alone.
    not_before = models.DateTimeField(null=True)
    # A wake came while it ran: it runs once more.
    is_woken = models.BooleanField(default=False)
    owner = models.CharField(max_length=100, blank=True)
    fence = models.PositiveBigIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    history = models.JSONField(default=list)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "outbox entries"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=["due", "running", "waiting", "retry", "parked", "poison"]),
                name="cowork_outbox_state",
            ),
            models.CheckConstraint(
                condition=Q(status="running") ^ Q(lease_expires_at__isnull=True),
                name="cowork_outbox_running_has_a_lease",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["status", "not_before", "sequence"], name="cowork_outbox_due"),
            models.Index(fields=["target", "kind"], name="cowork_outbox_target"),
        ]

    def __str__(self) -> str:
        return f"outbox entry {self.id} ({self.kind})"


class OutboxLane(models.Model):
    """A lane that an entry holds while it runs or waits for its retry: one entry per lane."""

    lane = models.UUIDField(primary_key=True)
    # Who deletes an entry deletes its lanes after it: the constraint is looked at with the commit.
    entry = models.ForeignKey(OutboxEntry, on_delete=models.DO_NOTHING, related_name="held")

    def __str__(self) -> str:
        return f"lane {self.lane}"


class Slot(models.Model):
    """Something that one process at a time does, by a lease: a drain, the sweep, the recovery."""

    name = models.CharField(max_length=40, primary_key=True)
    owner = models.CharField(max_length=100, blank=True)
    until = models.DateTimeField()
    beat_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"slot {self.name}"


class Credential(models.Model):
    """The identity of somebody who calls without a session (SPEC §2.1).

    Its secrets are rows of their own, so that rotation keeps the identity.
    """

    class Kind(models.TextChoices):
        BOT = "bot"
        TASK = "task"
        SERVICE = "service"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="credentials")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    label = models.CharField(max_length=80)
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, null=True, related_name="credentials")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, null=True, related_name="credentials")
    made_by = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "label"],
                condition=Q(revoked_at__isnull=True),
                name="cowork_credential_label",
            ),
            models.CheckConstraint(
                condition=Q(kind="bot", bot__isnull=False, task__isnull=True)
                | Q(kind="task", bot__isnull=True, task__isnull=False)
                | Q(kind="service", bot__isnull=True, task__isnull=True),
                name="cowork_credential_names_whom_it_acts_as",
            ),
        ]

    def __str__(self) -> str:
        return f"credential {self.label}"


class Secret(AbstractAPIKey):
    """One secret of a credential: its prefix, its hash, and until when it is taken."""

    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, related_name="secrets")

    class Meta(AbstractAPIKey.Meta):
        constraints: ClassVar = []
