"""Purging: texts are forgotten, by a manager one at a time or by their age (SPEC §5.6, §16.5).

A text stands in one row. Forgetting it empties that row; every event, receipt, hash and audit line
stays as it is, so a repeat of the message is still known by its id and its hash. What is not done
with is never forgotten.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from cowork import locks
from cowork.models import Turn
from messaging import receipts
from messaging.models import Receipt
from teams.permissions import May, Principal, require
from timeline import audit, bodies
from timeline.clock import Clock
from timeline.log import SYSTEM
from timeline.models import Body, Event
from timeline.refusals import Refusal
from timeline.transactions import action

BATCH = 1000
LONGEST = timedelta(seconds=10)  # of one look for what is old; the next goes on

_WAITS = Q(status__in=[Receipt.Status.QUEUED, Receipt.Status.STARTED])
_MAY_RETURN = Q(
    status__in=[Receipt.Status.FAILED, Receipt.Status.QUARANTINED], closed_at__isnull=True
)


class StillOpen(Refusal):
    """This message is {present} and may still be read. Withdraw or discard it first; then its text
    can be erased."""

    code = "INVALID_TRANSITION"
    status = 409
    shown = ("delivery_status",)


@action
def erase(receipt: Receipt, *, by: Principal, note: str, clock: Clock) -> Receipt:
    """Forget the text of a message that is delivered or closed; audited, by a manager.

    Erasing it again changes nothing. Raises Forbidden, StillOpen.
    """
    require(by, May.MANAGE)
    locks.lock_task(receipt.recipient_id)
    rows = Receipt.objects.filter(pk=receipt.pk)
    fresh: Receipt = receipts.in_full(rows).get()
    if rows.filter(_WAITS | _MAY_RETURN).exists():
        raise StillOpen(present=fresh.status, delivery_status=fresh.status)
    now = clock.now()
    if bodies.erase([fresh.body_id], now=now):
        audit.record(
            "erase",
            workspace_id=fresh.workspace_id,
            actor=by.actor,
            target_kind="receipt",
            target_id=fresh.id,
            note=note,
            now=now,
        )
        fresh.body.refresh_from_db()
    return fresh


def purge(*, keep: timedelta, clock: Clock) -> int:
    """Forget every text that is older than `keep` and done with; how many."""
    cutoff = clock.now() - keep
    count = 0
    while erased := _erase_some(cutoff, clock=clock):
        count += erased
    return count


def retain(*, clock: Clock) -> bool:
    """The same by the setting, for some seconds at most; whether all is done."""
    if not settings.COWORK_RETENTION:
        return True
    began = clock.now()
    while clock.now() < began + LONGEST:
        if not _erase_some(began - settings.COWORK_RETENTION, clock=clock):
            return True
    return False


def count_purgeable(*, keep: timedelta, clock: Clock) -> int:
    """How many texts `purge` would forget now."""
    return _done_before(clock.now() - keep).count()


@action
def _erase_some(cutoff: datetime, *, clock: Clock) -> int:
    """Forget some of what is old. What is done with stays so: no lock is needed."""
    first = _done_before(cutoff).values_list("workspace_id", flat=True).first()
    if first is None:
        return 0
    now = clock.now()
    ids = _done_before(cutoff).filter(workspace_id=first).values_list("pk", flat=True)[:BATCH]
    count = bodies.erase(list(ids), now=now)
    audit.record(
        "purge",
        workspace_id=first,
        actor=SYSTEM,
        target_kind="workspace",
        target_id=first,
        now=now,
        texts=count,
    )
    return count


def _done_before(cutoff: datetime) -> QuerySet[Body]:
    """The texts of before a time that nothing needs any more.

    A message counts from when it came to rest. Needed are: what may still be read, what somebody
    waits for an answer to, all that belongs to a turn that runs, and the last words of a turn
    that still owes an answer, as that may quote them.
    """
    is_young = Q(delivered_at__gte=cutoff) | Q(closed_at__gte=cutoff)
    is_awaited = Q(reply_status=Receipt.ReplyStatus.PENDING)
    is_in_hand = Q(turn__status=Turn.Status.RUNNING)
    messages = Receipt.objects.filter(
        _WAITS | _MAY_RETURN | is_young | is_awaited | is_in_hand, body=OuterRef("pk")
    )
    owed = Receipt.objects.filter(
        recipient=OuterRef("task"), status=Receipt.Status.DELIVERED, reply_status="pending"
    )
    last_words = Turn.objects.filter(
        Q(status=Turn.Status.RUNNING) | Exists(owed), final_text=OuterRef("pk")
    )
    running = Turn.objects.filter(status=Turn.Status.RUNNING).values("pk")
    said = Event.objects.filter(body=OuterRef("pk"), subject__in=running)
    old = Body.objects.filter(erased_at__isnull=True, created_at__lt=cutoff)
    return old.filter(~Exists(messages), ~Exists(last_words), ~Exists(said)).order_by("pk")
