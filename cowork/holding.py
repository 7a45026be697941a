"""Holding a slot: something that one process at a time does."""

from datetime import timedelta

from cowork import slots
from timeline.clock import Clock
from timeline.transactions import action


@action
def hold(name: str, *, owner: str, lease: timedelta, clock: Clock) -> bool:
    """Take a slot that is free, or keep one's own; False when somebody else has it."""
    return slots.take(name, owner=owner, lease=lease, now=clock.now())


@action
def offer(name: str, *, owner: str, clock: Clock) -> None:
    """Let the next one have the slot, at once."""
    slots.offer(name, owner=owner, now=clock.now())
