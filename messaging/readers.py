"""What agents that wait for input have to know: where a task's stream is, and what comes due."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import DateTimeField, OuterRef, QuerySet, Subquery

from cowork.models import Task
from messaging import authority, boundary
from messaging.models import Receipt
from teams.permissions import Principal
from timeline import log

MARGIN = 0.005  # seconds after a due time, so that a look never comes just before it


@dataclass(frozen=True, slots=True)
class Stands:
    """The newest number of a task's stream, and whether and when a claim may be answered."""

    seq: int
    is_worth_a_claim: bool
    due_in: float | None  # in how many seconds it may be, if not now


@dataclass(frozen=True, slots=True)
class Waiting:
    """The tasks with input to claim, each with its newest turn; and when there may be more."""

    turns: dict[UUID, int]
    due_in: float | None


def stands(task_id: UUID, *, now: datetime) -> Stands:
    """Where a task stands. A claim is worth it when there is input, or it would be refused."""
    # The stream first: what comes in between the two looks is news once more.
    seq = log.last_seq(task_id)
    task = Task.objects.filter(pk=task_id).first()
    if task is None or task.is_archived or task.has_turn:
        return Stands(seq=seq, is_worth_a_claim=True, due_in=None)
    due_at = boundary.due_at(task, now=now)
    due_in = (due_at - now).total_seconds() if due_at is not None else None
    if due_in is None or due_in <= 0:
        return Stands(seq=seq, is_worth_a_claim=due_in is not None, due_in=None)
    return Stands(seq=seq, is_worth_a_claim=False, due_in=due_in + MARGIN)


def waiting_for(agent: Principal, *, now: datetime) -> Waiting:
    """The tasks of an agent that have input to claim."""
    claimable = boundary.claimable_tasks(agent, now=now)
    turns = Task.objects.filter(pk__in=claimable).values_list("pk", "last_turn")
    return Waiting(turns=dict(turns), due_in=_due_in(authority.own_tasks(agent), now=now))


def own_of(agent: Principal, tasks: Iterable[UUID]) -> set[UUID]:
    """Which of these tasks the agent acts for."""
    return set(authority.own_tasks(agent).filter(pk__in=tasks).values_list("pk", flat=True))


def _due_in(tasks: "QuerySet[Task]", *, now: datetime) -> float | None:
    """In how many seconds something of the tasks comes due that is not due yet."""
    queued = Receipt.objects.queued().filter(recipient=OuterRef("pk"), due_at__gt=now)
    first = queued.order_by("due_at").values("due_at")[:1]
    rows = tasks.values_list("resumes_at", Subquery(first, output_field=DateTimeField()))
    ahead = [(at - now).total_seconds() for row in rows for at in row if at and at > now]
    return min(ahead) + MARGIN if ahead else None
