"""Attempts to sign in: those that fail again and again have to wait (docs/wire.md).

Counted in the cache by name and address together, so nobody locks somebody else out, and by
address alone, far more generously, against those that try many names.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from django.core.cache import cache

from timeline.refusals import Refusal

FREE_BY_NAME: Final = 5
FREE_BY_ADDRESS: Final = 100
LONGEST: Final = timedelta(minutes=5)
MEMORY: Final = timedelta(minutes=30)


class TooManyAttempts(Refusal):
    """Too many attempts to sign in have failed. Try again in {seconds} s."""

    code = "RATE_LIMITED"
    status = 429

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.retry_after = seconds  # type: ignore[misc]  # differs from case to case


def refuse_if_too_many(username: str, address: str, *, now: datetime) -> None:
    """Raise TooManyAttempts while this name or this address has to wait."""
    found = cache.get_many([_until(key) for key in _keys(username, address)])
    seconds = max((until - now.timestamp() for until in found.values()), default=0)
    if seconds > 0:
        raise TooManyAttempts(int(seconds) + 1)


def note_failure(username: str, address: str, *, now: datetime) -> None:
    """Count a failure; beyond the free ones each doubles the time to wait, to five minutes."""
    for key, free in _keys(username, address).items():
        cache.add(_count(key), 0, MEMORY.total_seconds())
        extra = cache.incr(_count(key)) - free
        if extra > 0:
            seconds = min(2 ** min(extra, 20), LONGEST.total_seconds())
            cache.set(_until(key), now.timestamp() + seconds, MEMORY.total_seconds())


def note_success(username: str, address: str) -> None:
    """Forget the failures of a name at an address."""
    by_name = next(iter(_keys(username, address)))
    cache.delete_many([_count(by_name), _until(by_name)])


def _keys(username: str, address: str) -> dict[str, int]:
    both = f"{username.casefold()}\n{address}"
    return {_digest(both): FREE_BY_NAME, _digest(address): FREE_BY_ADDRESS}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _count(key: str) -> str:
    return f"sign-in:{key}:count"


def _until(key: str) -> str:
    return f"sign-in:{key}:until"
