"""One run of an outbox entry: it is taken, then kept, left waiting, tried again or given up.

Every step is a compare-and-set on the entry's fence, the last statement of its transaction: who
was overtaken commits nothing (SPEC §8.5). Rules only; `cowork/draining.py` opens the transactions.
"""

import copy
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError
from django.db.models import Exists, Min, OuterRef, Q, QuerySet
from pydantic import ValidationError

from cowork import outbox
from cowork.kinds import KINDS, Answer, Done
from cowork.models import OutboxEntry, OutboxLane
from timeline.transactions import require_transaction

logger = logging.getLogger(__name__)

State = OutboxEntry.State
AT_REST = (State.DUE, State.RETRY, State.WAITING)
WINDOW = 16  # how many entries are read with one look
SHORTEST_WAIT = timedelta(milliseconds=100)  # a handler that waits until now must not spin
HISTORY_LENGTH = 50
ERROR_LENGTH = 2000

# Entries that this process has found unreadable: another version may know how to read them.
_unreadable: set[UUID] = set()


class Overtaken(Exception):
    """The entry was removed, or somebody else has taken it over: this run commits nothing."""


class LaneTaken(Exception):
    """Another entry has taken a lane meanwhile: this take commits nothing."""


def takeable(now: datetime) -> Iterator[OutboxEntry]:
    """What may run now: the oldest of each target, all its lanes free; the oldest first.

    A look without a transaction, so that looking in vain holds nobody up.
    """
    passed: set[UUID] = set()
    while found := list(_takeable(now).exclude(target__in=passed)[:WINDOW]):
        for entry in found:
            if entry.target in passed or not _is_readable(entry):
                continue
            passed.add(entry.target)
            if _are_lanes_free(entry):
                yield entry


def take(entry: OutboxEntry, *, owner: str, now: datetime) -> bool:
    """Take an entry, unless somebody else has. Raises LaneTaken."""
    require_transaction()
    has_its_lanes = entry.status in (State.RETRY, State.RUNNING)
    has_crashed = entry.status == State.RUNNING
    changes: dict[str, Any] = {
        "owner": owner,
        "fence": entry.fence + 1,
        "crashes": entry.crashes + int(has_crashed),
        "lease_expires_at": now + settings.COWORK_OUTBOX_LEASE,
        "updated_at": now,
        **_told(entry, "crashed", "its process died or was too slow", now=now, when=has_crashed),
    }
    if not has_crashed:
        # From now on a time means: once more after this run.
        changes |= {"not_before": None, "is_woken": False}
    unchanged = OutboxEntry.objects.filter(pk=entry.pk, status=entry.status, fence=entry.fence)
    if has_crashed:
        unchanged = unchanged.filter(lease_expires_at__lte=now)
    if not unchanged.update(status=State.RUNNING, **changes):
        return False
    if not has_its_lanes:
        lanes = [OutboxLane(lane=UUID(lane), entry=entry) for lane in entry.lanes]
        try:
            OutboxLane.objects.bulk_create(lanes)
        except IntegrityError as error:
            raise LaneTaken from error
    for name, value in {"status": State.RUNNING, **changes}.items():
        setattr(entry, name, value)
    return True


def next_due(*, after: datetime) -> datetime | None:
    """When the next entry becomes due, or the next lease runs out."""
    known = OutboxEntry.objects.filter(kind__in=KINDS).exclude(id__in=_unreadable)
    due = known.filter(status__in=AT_REST, not_before__gt=after).aggregate(at=Min("not_before"))
    lease = known.filter(status=State.RUNNING, lease_expires_at__gt=after)
    moments = (due["at"], lease.aggregate(at=Min("lease_expires_at"))["at"])
    return min((moment for moment in moments if moment is not None), default=None)


def oldest_due(*, now: datetime) -> datetime | None:
    """Since when the entry that could run for longest has been due."""
    could_run = _takeable(now).order_by().filter(status__in=AT_REST)
    oldest: datetime | None = could_run.aggregate(at=Min("not_before"))["at"]
    return oldest


def is_poison(entry: OutboxEntry) -> bool:
    """Whether so many runs in a row died that it is not tried again (SPEC §8.3)."""
    return entry.crashes > len(settings.COWORK_RETRY_DELAYS)


def settle(entry: OutboxEntry, answer: Answer, *, now: datetime) -> None:
    """Complete the run as its handler answered. Raises Overtaken."""
    require_transaction()
    if isinstance(answer, Done):
        # Asked for once more while it ran: then it has a time (cowork/outbox.py).
        if _mine(entry).filter(not_before=None).delete()[0]:
            _release(entry)
            return
        again_at = _locked(entry).not_before or now
        _move(entry, State.DUE, now=now, not_before=again_at, attempts=0, crashes=0, looks=0)
    else:
        stored = _locked(entry)
        if stored.is_woken:
            _move(entry, State.DUE, now=now, not_before=now, crashes=0)
        else:
            until = answer.until and max(answer.until, now + SHORTEST_WAIT)
            moments = [moment for moment in (until, stored.not_before) if moment is not None]
            _move(
                entry,
                State.WAITING,
                now=now,
                not_before=min(moments, default=None),
                looks=entry.looks + 1,
                crashes=0,
            )
    _release(entry)


def give_back(entry: OutboxEntry, *, until: datetime, now: datetime) -> None:
    """End a run that could not be made, through no fault of the handler. Raises Overtaken."""
    require_transaction()
    _move(entry, State.DUE, now=now, not_before=until)
    _release(entry)


def fail(entry: OutboxEntry, error: str, *, now: datetime, tell: bool = True) -> None:
    """Count a failed run: another one later, which keeps the lanes, or none. Raises Overtaken."""
    require_transaction()
    failures = entry.attempts + 1
    delays = settings.COWORK_RETRY_DELAYS
    if failures > len(delays):
        give_up(entry, State.PARKED, error, now=now, tell=tell, attempts=failures, crashes=0)
        return
    _move(
        entry,
        State.RETRY,
        now=now,
        not_before=now + delays[failures - 1],
        attempts=failures,
        crashes=0,
        **_told(entry, "failed", error, now=now),
    )


def give_up(
    entry: OutboxEntry, state: State, error: str, *, now: datetime, tell: bool, **changes: Any
) -> None:
    """Keep the entry as a dead letter and, unless `tell` is false, let its kind know."""
    require_transaction()
    on_parked = KINDS[entry.kind].on_parked
    if tell and on_parked is not None:
        shown = copy.copy(entry)
        for name, value in changes.items():
            setattr(shown, name, value)
        on_parked(shown, error, now)
    asked_again_at = _locked(entry).not_before
    _move(
        entry,
        state,
        now=now,
        not_before=None,
        **changes,
        **_told(entry, str(state), error, now=now),
    )
    _release(entry)
    logger.error("gave up %s", entry, extra={"outbox_kind": entry.kind, "outbox_state": state})
    if asked_again_at is not None:
        # What was asked for while it ran is owed still.
        outbox.enqueue(
            entry.kind,
            target=entry.target,
            workspace_id=entry.workspace_id,
            payload=KINDS[entry.kind].payload.model_validate(entry.payload),
            lanes=[UUID(lane) for lane in entry.lanes],
            not_before=asked_again_at,
            now=now,
        )


def renew(entry: OutboxEntry, *, now: datetime) -> None:
    """Keep the entry for another lease. Raises Overtaken."""
    require_transaction()
    if not _mine(entry).update(lease_expires_at=now + settings.COWORK_OUTBOX_LEASE):
        raise Overtaken


def void(owner_prefix: str, *, now: datetime) -> int:
    """End the leases of owners that are dead; their entries are taken over."""
    require_transaction()
    held = OutboxEntry.objects.filter(status=State.RUNNING, owner__startswith=owner_prefix)
    return held.filter(lease_expires_at__gt=now).update(lease_expires_at=now)


def forget_unreadable() -> None:
    """Look at unreadable entries once more."""
    _unreadable.clear()


def unknown_kinds() -> Mapping[str, int]:
    """How many entries there are of kinds that this version does not know."""
    kinds = OutboxEntry.objects.exclude(kind__in=KINDS).order_by("kind")
    counts: dict[str, int] = {}
    for kind in kinds.values_list("kind", flat=True):
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _takeable(now: datetime) -> QuerySet[OutboxEntry]:
    """What may run now by its time, its target's lane and its kind; the oldest first."""
    held = OutboxLane.objects.filter(lane=OuterRef("target")).exclude(entry_id=OuterRef("pk"))
    return (
        OutboxEntry.objects.filter(
            Q(status__in=AT_REST, not_before__lte=now)
            | Q(status=State.RUNNING, lease_expires_at__lte=now),
            ~Exists(held),
            kind__in=KINDS,
        )
        .exclude(id__in=_unreadable)
        .order_by("sequence")
    )


def _is_readable(entry: OutboxEntry) -> bool:
    try:
        KINDS[entry.kind].payload.model_validate(entry.payload)
    except ValidationError:
        _unreadable.add(entry.id)
        logger.exception("kept %s: its payload is unreadable", entry)
        return False
    return True


def _are_lanes_free(entry: OutboxEntry) -> bool:
    """Whether nothing else runs on them; its target's lane is free already."""
    if len(entry.lanes) == 1:
        return True
    held = OutboxLane.objects.filter(lane__in=entry.lanes)
    return not held.exclude(entry=entry).exists()


def _mine(entry: OutboxEntry) -> QuerySet[OutboxEntry]:
    """The row, while this run is the one that has it."""
    return OutboxEntry.objects.filter(pk=entry.pk, fence=entry.fence, status=State.RUNNING)


def _locked(entry: OutboxEntry) -> OutboxEntry:
    stored = _mine(entry).select_for_update().first()
    if stored is None:
        raise Overtaken
    return stored


def _move(entry: OutboxEntry, to: State, *, now: datetime, **changes: Any) -> None:
    """End the run with a state of the table, by compare-and-set on its fence."""
    if to not in OutboxEntry.TRANSITIONS[State.RUNNING]:
        raise ValueError(f"a run does not end as {to}")
    ended = {"lease_expires_at": None, "owner": "", "is_woken": False, "updated_at": now}
    if not _mine(entry).update(status=to, **(ended | changes)):
        raise Overtaken


def _release(entry: OutboxEntry) -> None:
    OutboxLane.objects.filter(entry_id=entry.pk).delete()


def _told(
    entry: OutboxEntry, what: str, error: str, *, now: datetime, when: bool = True
) -> dict[str, Any]:
    """The entry's history with one line more, as changes to its row."""
    if not when:
        return {}
    line = {"at": now.isoformat(), "what": what, "error": error[:ERROR_LENGTH]}
    return {
        "history": [*entry.history, line][-HISTORY_LENGTH:],
        "last_error": error[:ERROR_LENGTH],
    }
