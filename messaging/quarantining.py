"""Quarantining: what may not be delivered is held for a person (SPEC §2.4, §5.3)."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from cowork import locks
from cowork.kinds import DONE, Answer, Kind
from cowork.models import OutboxEntry
from messaging import authority, boundary, receipts, remedies
from messaging.models import Receipt
from teams.permissions import May, Principal, require
from timeline.clock import Clock
from timeline.log import SYSTEM
from timeline.transactions import action

RECHECK_TEAM = "recheck-team"


class RecheckTeam(BaseModel):
    """The team whose members or state have changed."""

    model_config = ConfigDict(extra="forbid")

    team_id: UUID


@action
def quarantine(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Set a queued message aside because a person doubts it.

    Raises Forbidden, InvalidTransition.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh = remedies.locked(receipt)
    remedies.quarantine(fresh, by=by, note=note, now=clock.now())
    return fresh


def recheck_team(entry: OutboxEntry, _nothing: object, now: datetime) -> Answer:
    """Quarantine what is queued between parties that may not exchange it any more."""
    team_id = RecheckTeam(**entry.payload).team_id
    locks.lock_team(team_id)
    queued = Receipt.objects.queued().filter(team_id=team_id)
    locks.lock_tasks(*queued.values_list("recipient_id", flat=True).distinct())
    for receipt in receipts.in_full(queued).in_order():
        reason = authority.why_not(receipt)
        if reason is not None:
            boundary.hold(
                receipt,
                code=receipts.AUTHORIZATION_REVOKED,
                reason=reason,
                actor=SYSTEM,
                now=now,
            )
    return DONE


KIND = Kind(name=RECHECK_TEAM, payload=RecheckTeam, inside=recheck_team, outlives=True)
