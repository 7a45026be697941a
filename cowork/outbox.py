"""The outbox, seen by those who owe: promises are enqueued, woken and removed (SPEC §8).

A promise is a row written in the transaction of what caused it. How a row is run is told in
`cowork/runs.py`. Next on the path of a message: `cowork/draining.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.db.models import (
    BooleanField,
    Case,
    DateTimeField,
    F,
    Max,
    PositiveIntegerField,
    Q,
    QuerySet,
    Value,
    When,
)
from pydantic import BaseModel, ValidationError

from cowork.kinds import KINDS
from cowork.models import OutboxEntry, OutboxLane
from timeline import commits
from timeline.transactions import require_transaction

State = OutboxEntry.State
# Those that will run, or run. The others wait for a person.
LIVE = (State.DUE, State.RETRY, State.WAITING, State.RUNNING)
GIVEN_UP = (State.PARKED, State.POISON)
YES = Value(value=True, output_field=BooleanField())


class UnfitPayload(ValueError):
    """Work of a kind that nobody knows, or with a payload that does not fit its kind."""


def enqueue(
    kind: str,
    *,
    target: UUID,
    workspace_id: UUID,
    payload: BaseModel,
    now: datetime,
    not_before: datetime | None = None,
    lanes: Sequence[UUID] | None = None,
    unique: bool = False,
) -> OutboxEntry:
    """Promise work on a target; it is durable with the commit. Raises UnfitPayload.

    `unique`: a promise of that kind to that target that still stands is brought forward instead of
    a second one being made. A retry keeps its time; one that runs is run once more afterwards.
    """
    require_transaction()
    fit = _fit(kind, payload)
    hint()
    run_at = not_before if not_before is not None and not_before > now else now
    if unique:
        standing = OutboxEntry.objects.filter(target=target, kind=kind, status__in=LIVE)
        if _bring_forward(standing, run_at=run_at, now=now):
            found = standing.order_by("sequence").first()
            if found is not None:
                return found
    return OutboxEntry.objects.create(
        workspace_id=workspace_id,
        kind=kind,
        payload=fit,
        target=target,
        lanes=[str(lane) for lane in sorted({target, *(lanes or ())})],
        sequence=_next_sequence(),
        not_before=run_at,
        created_at=now,
        updated_at=now,
    )


def wake(target: UUID, *, now: datetime) -> None:
    """Let the entries of a target that wait run again, and those that run and will wait.

    A retry keeps its time, and work that is not yet due too.
    """
    require_transaction()
    hint()
    # One statement over every state an entry can pass through while this waits for its row: a
    # drain that decides to wait just now is seen, or sees this.
    OutboxEntry.objects.filter(target=target, status__in=LIVE).update(
        status=Case(When(status=State.WAITING, then=Value(State.DUE)), default=F("status")),
        not_before=Case(
            When(status=State.WAITING, then=Value(now, DateTimeField())),
            default=F("not_before"),
        ),
        looks=Case(
            When(status=State.WAITING, then=Value(0)),
            default=F("looks"),
            output_field=PositiveIntegerField(),
        ),
        is_woken=Case(
            When(status=State.RUNNING, then=YES),
            default=F("is_woken"),
        ),
    )


def remove(target: UUID, kind: str) -> int:
    """Take back what is promised to a target; a handler that runs keeps nothing of what it does."""
    require_transaction()
    return _delete(OutboxEntry.objects.filter(target=target, kind=kind, status__in=LIVE))


def remove_at_rest(target: UUID, kind: str) -> int:
    """Take back what is promised to a target, but for an entry that a handler runs right now."""
    require_transaction()
    at_rest = [state for state in LIVE if state != State.RUNNING]
    return _delete(OutboxEntry.objects.filter(target=target, kind=kind, status__in=at_rest))


def remove_reviving(target: UUID) -> int:
    """Take back all work that would start a task again."""
    require_transaction()
    reviving = [kind.name for kind in KINDS.values() if kind.revives]
    return _delete(OutboxEntry.objects.filter(target=target, kind__in=reviving, status__in=LIVE))


def remove_with_target(target: UUID) -> int:
    """Take back what is promised to a target that is gone, except what outlives it."""
    require_transaction()
    outliving = [kind.name for kind in KINDS.values() if kind.outlives]
    return _delete(OutboxEntry.objects.filter(target=target).exclude(kind__in=outliving))


def discard(entry: OutboxEntry) -> bool:
    """Delete an entry that was given up; False when it is not given up (any more)."""
    require_transaction()
    return bool(_delete(OutboxEntry.objects.filter(pk=entry.pk, status__in=GIVEN_UP)))


def look_again(*, now: datetime) -> int:
    """After a restart: every entry that waits runs once (SPEC §8.4)."""
    require_transaction()
    return OutboxEntry.objects.filter(status=State.WAITING).update(
        status=State.DUE, not_before=now, updated_at=now
    )


def hint() -> None:
    """Let the drains look after the commit; they look at times without it too."""
    transaction.on_commit(commits.tell, robust=True)


def _fit(kind: str, payload: BaseModel) -> dict[str, object]:
    """The payload as it is stored, if the schema of its kind takes it."""
    if kind not in KINDS:
        raise UnfitPayload(f"no kind of work is called {kind}")
    try:
        fit = KINDS[kind].payload.model_validate(payload.model_dump(mode="json"))
    except ValidationError as error:
        raise UnfitPayload(f"the payload does not fit {kind}: {error}") from error
    return fit.model_dump(mode="json")


def _bring_forward(standing: QuerySet[OutboxEntry], *, run_at: datetime, now: datetime) -> int:
    """Let entries run at a time unless they run earlier; how many there are.

    The time of a running entry says when it runs once more.
    """
    is_now = Q(Value(run_at <= now, BooleanField()))
    keeps_its_time = Q(status=State.RETRY) | Q(not_before__lte=run_at)
    return standing.update(
        status=Case(
            When(Q(status=State.WAITING) & is_now, then=Value(State.DUE)),
            default=F("status"),
        ),
        not_before=Case(
            When(keeps_its_time, then=F("not_before")),
            default=Value(run_at, DateTimeField()),
        ),
        is_woken=Case(
            When(Q(status=State.RUNNING) & is_now, then=YES),
            default=F("is_woken"),
        ),
        updated_at=now,
    )


def _next_sequence() -> int:
    """The next number of the whole database. One writer at a time makes it on SQLite."""
    if connection.vendor == "sqlite":
        newest: int = OutboxEntry.objects.aggregate(newest=Max("sequence"))["newest"] or 0
        return newest + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('cowork_outbox_sequence')")
        [number] = cursor.fetchone()
    return int(number)


def _delete(entries: QuerySet[OutboxEntry]) -> int:
    """Delete entries, then the lanes that they hold: a drain may have taken one just now."""
    ids = list(entries.order_by("sequence").values_list("id", flat=True))
    if not ids:
        return 0
    deleted, _ = entries.filter(id__in=ids).delete()
    # One that began to run after it was found at rest is still there, and on its lanes.
    kept = OutboxEntry.objects.filter(id__in=ids).values_list("id", flat=True)
    OutboxLane.objects.filter(entry_id__in=set(ids).difference(kept)).delete()
    return deleted
