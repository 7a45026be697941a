"""What is looked at again and again, and at every start: a port that the apps fill.

A function registered here takes the clock, opens its own transactions, has no cap that hides old
work, and may be run twice and side by side (SPEC §16.4).
"""

from typing import Protocol

from timeline.clock import Clock


class Sweep(Protocol):
    """One look for what was left undone."""

    def __call__(self, *, clock: Clock) -> object: ...


class DailyLook(Protocol):
    """One look for what has become old; False when it has to go on at the next sweep."""

    def __call__(self, *, clock: Clock) -> bool: ...


SWEEPS: list[Sweep] = []
AT_START: list[Sweep] = []
DAILY: list[DailyLook] = []


def register(sweep: Sweep, *, at_start: bool = False) -> None:
    """Have the function called at every sweep or, with `at_start`, before a worker drains.

    What is to happen at both is registered twice.
    """
    known = AT_START if at_start else SWEEPS
    if sweep not in known:
        known.append(sweep)


def register_daily(look: DailyLook) -> None:
    """Have the function called once a day, in pieces of a few seconds each."""
    if look not in DAILY:
        DAILY.append(look)
