"""Releasing and discarding: an operator's deliberate steps for what is held (SPEC §5.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from django.db.models import QuerySet

from messaging import remedies, wakes
from messaging.models import Receipt
from teams.permissions import May, Principal, require
from timeline.clock import Clock
from timeline.refusals import Refusal
from timeline.transactions import action


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of many messages: the row as it is afterwards, or why not."""

    receipt_id: UUID
    receipt: Receipt | None = None
    refusal: Refusal | None = None


class _Rehearsed(Exception):
    """What would have happened, while the transaction in which it happened is rolled back."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


@action
def release(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Queue a quarantined message again after its team stands: at the tail, next attempt, audited.

    Raises Forbidden, InvalidTransition, ReceiptClosed, StillQuarantined naming what still fails.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh = remedies.locked(receipt)
    now = clock.now()
    remedies.release(fresh, by=by, note=note, now=now)
    wakes.enqueue_what_waits(fresh.recipient, now=now)
    return fresh


@action
def let_go(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Let a message that the loop guard has held wake its recipient (SPEC §7.6); audited.

    Raises Forbidden, InvalidTransition.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh = remedies.locked(receipt)
    now = clock.now()
    remedies.let_go(fresh, by=by, note=note, now=now)
    wakes.enqueue_what_waits(fresh.recipient, now=now)
    return fresh


@action
def discard(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Close a failed or quarantined message for good; its text is kept.

    Raises Forbidden, InvalidTransition, ReceiptClosed.
    """
    require(by, May.HANDLE_RECEIPTS)
    fresh = remedies.locked(receipt)
    remedies.discard(fresh, by=by, note=note, now=clock.now())
    return fresh


def bulk(
    chosen: QuerySet[Receipt],
    *,
    remedy: str,
    by: Principal,
    note: str,
    is_dry_run: bool,
    clock: Clock,
) -> list[Outcome]:
    """Take one remedy for many messages: one transaction per recipient, in the old order, each
    step audited (SPEC §5.2).

    A dry run does the same and takes it back: its outcomes are those that would be. What one
    message or one recipient is refused leaves the others alone. Raises Forbidden.
    """
    require(by, May.HANDLE_RECEIPTS)
    places = chosen.order_by("recipient_id", "sequence").values_list("recipient_id", "pk")
    outcomes: list[Outcome] = []
    for recipient_id, group in groupby(list(places), key=itemgetter(0)):
        ids = [receipt_id for _recipient_id, receipt_id in group]
        try:
            outcomes += _for_one_recipient(
                recipient_id,
                ids,
                remedy=remedy,
                by=by,
                note=note,
                is_dry_run=is_dry_run,
                clock=clock,
            )
        except _Rehearsed as rehearsed:
            outcomes += rehearsed.outcomes
        except Refusal as refusal:  # the database was busy; the recipients before it are done
            outcomes += [Outcome(receipt_id, refusal=refusal) for receipt_id in ids]
    return outcomes


@action
def _for_one_recipient(
    recipient_id: UUID,
    ids: Sequence[UUID],
    *,
    remedy: str,
    by: Principal,
    note: str,
    is_dry_run: bool,
    clock: Clock,
) -> list[Outcome]:
    rows = Receipt.objects.filter(pk__in=ids).defer("body__text")
    found = remedies.locked_together(recipient_id, rows)
    now = clock.now()
    outcomes: list[Outcome] = []
    for receipt in found:
        try:
            remedies.REMEDIES[remedy](receipt, by=by, note=note, now=now)
        except Refusal as refusal:
            outcomes.append(Outcome(receipt.id, refusal=refusal))
        else:
            outcomes.append(Outcome(receipt.id, receipt=receipt))
    if found:
        wakes.enqueue_what_waits(found[0].recipient, now=now)
    if is_dry_run:
        raise _Rehearsed(outcomes)
    return outcomes
