"""The outbox: promises, the lanes they hold, and what one process at a time does (SPEC §8)."""

from collections.abc import Mapping
from typing import ClassVar

from django.db import models
from django.db.models import Q

from timeline.ids import new_id
from timeline.transitions import Stateful


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
