"""Unparking: what a person does about an entry that was given up (SPEC §8.3)."""

from datetime import datetime
from uuid import UUID

from cowork import outbox
from cowork.models import OutboxEntry
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import NotFound
from timeline.transactions import action
from timeline.transitions import invalid, transition


@action
def retry(entry_id: UUID, *, by: Principal, clock: Clock) -> OutboxEntry:
    """Let an entry that was given up run again, now. Raises InvalidTransition for others."""
    entry = _entry(entry_id, by=by)
    now = clock.now()
    if entry.status not in outbox.GIVEN_UP:
        raise invalid(entry, entry.status)
    transition(
        entry,
        OutboxEntry.State.DUE,
        attempts=0,
        crashes=0,
        not_before=now,
        updated_at=now,
    )
    outbox.hint()
    _record("outbox.retry", entry, by=by, now=now)
    return entry


@action
def discard(entry_id: UUID, *, by: Principal, clock: Clock) -> OutboxEntry:
    """Delete an entry that was given up. Raises InvalidTransition for others."""
    entry = _entry(entry_id, by=by)
    if not outbox.discard(entry):
        raise invalid(entry, entry.status)
    _record("outbox.discard", entry, by=by, now=clock.now())
    return entry


def _entry(entry_id: UUID, *, by: Principal) -> OutboxEntry:
    require(by, May.HANDLE_OUTBOX)
    rows = OutboxEntry.objects.select_for_update().filter(workspace_id=by.workspace_id)
    entry = rows.filter(pk=entry_id).first()
    if entry is None:
        raise NotFound
    return entry


def _record(name: str, entry: OutboxEntry, *, by: Principal, now: datetime) -> None:
    audit.record(
        name,
        workspace_id=entry.workspace_id,
        actor=by.actor,
        target_kind="outbox_entry",
        target_id=entry.id,
        now=now,
        kind=entry.kind,
        outbox_target=str(entry.target),
    )
