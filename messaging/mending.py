"""Mending: timelines are completed from the receipt, and missing wakes are promised (SPEC §5.7).

The receipt is the truth; a timeline that was told less is told the rest.
"""

from collections.abc import Iterable
from uuid import UUID

from cowork import locks
from messaging import boundary, receipts, timelines, wakes
from messaging.invariants import Finding
from messaging.models import Receipt
from timeline.clock import Clock
from timeline.transactions import action


def mend(found: Iterable[Finding], *, clock: Clock) -> list[Finding]:
    """Mend what can be mended; returns those findings. Safe to repeat."""
    mended = []
    for finding in found:
        if finding.receipt_id is not None and complete_views(finding.receipt_id, clock=clock):
            mended.append(finding)
        if finding.task_id is not None and _wake(finding.task_id, clock=clock):
            mended.append(finding)
    return mended


@action
def complete_views(receipt_id: UUID, *, clock: Clock) -> bool:
    """Tell the timelines of one message what they were not told; whether they missed something."""
    found = Receipt.objects.values_list("recipient_id", "sender_task_id").get(pk=receipt_id)
    locks.lock_tasks(*(task_id for task_id in found if task_id is not None))
    receipt: Receipt = receipts.in_full(Receipt.objects.filter(pk=receipt_id)).get()
    return timelines.complete(receipt, now=clock.now())


@action
def _wake(task_id: UUID, *, clock: Clock) -> bool:
    task = locks.lock_task(task_id)
    now = clock.now()
    if boundary.due_at(task, now=now) is None:
        return False
    wakes.enqueue_what_waits(task, now=now)
    return True
