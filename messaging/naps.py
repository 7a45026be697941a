"""Naps: whether the server was asleep, and nobody could report or answer meanwhile (SPEC §6.8)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Min

from cowork.models import Slot, Turn

TICK = "tick"


def longest() -> timedelta:
    """How long the server may be silent without having slept."""
    running = Turn.objects.filter(status=Turn.Status.RUNNING)
    shortest = running.aggregate(shortest=Min("lease"))["shortest"] or settings.COWORK_TURN_LEASE
    return max(shortest / 2, 2 * settings.COWORK_SWEEP)


def has_ended(*, watched_since: datetime, now: datetime) -> bool:
    """Whether the server has slept since something is watched, and no tick has noted it yet."""
    last = Slot.objects.filter(name=TICK).values_list("beat_at", flat=True).first()
    return last is not None and now - max(last, watched_since) > longest()
