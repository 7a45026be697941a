"""Turns: the runs of a task's agent, and what they have reported (SPEC §6.3, §6.8)."""

from collections.abc import Mapping
from typing import ClassVar

from django.db import models
from django.db.models import Q

from cowork.models.tasks import InteractionMode, RuntimeMode, Task
from timeline.ids import new_id
from timeline.transitions import Stateful


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
