"""Slots: what one process at a time does, by a lease (SPEC §8.8)."""

from datetime import datetime, timedelta

from django.db.models import Q

from cowork.models import Slot
from timeline.transactions import require_transaction


def take(name: str, *, owner: str, lease: timedelta, now: datetime) -> bool:
    """Take a slot that is free, or keep one's own; False when somebody else has it."""
    require_transaction()
    Slot.objects.bulk_create(
        [Slot(name=name, owner="", until=now, beat_at=now)], ignore_conflicts=True
    )
    free_or_mine = Slot.objects.filter(Q(until__lte=now) | Q(owner=owner), name=name)
    return bool(free_or_mine.update(owner=owner, until=now + lease, beat_at=now))


def offer(name: str, *, owner: str, now: datetime) -> None:
    """Let the next one have the slot; until it comes, it stays with its owner."""
    require_transaction()
    Slot.objects.filter(name=name, owner=owner).update(until=now, beat_at=now)


def is_held(name: str, *, owner: str) -> bool:
    """Whether nobody else has taken the slot meanwhile."""
    return Slot.objects.filter(name=name, owner=owner).exists()


def forget(owner_prefix: str) -> None:
    """Delete the slots of owners that are dead."""
    require_transaction()
    Slot.objects.filter(owner__startswith=owner_prefix).delete()
