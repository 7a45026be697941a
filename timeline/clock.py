"""Time as an argument: the clock that actions take (ARCHITECTURE, rule 6)."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

from django.db import connection


class Clock(Protocol):
    """Whoever knows what time it is; an action reads it once, after its locks."""

    def now(self) -> datetime: ...


class DatabaseClock:
    """The database's clock (SPEC §8.9). With SQLite that is this machine's, read more finely."""

    def now(self) -> datetime:
        if connection.vendor == "sqlite":
            return datetime.now(UTC)
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            moment: datetime = cursor.fetchone()[0]
        return moment.astimezone(UTC)


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def move_to(self, moment: datetime) -> None:
        self._now = moment

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


system_clock: Clock = DatabaseClock()


def latest(now: datetime, *earlier: datetime | None) -> datetime:
    """The later of now and the row's previous times, so that no stored time runs backwards."""
    return max([now, *(moment for moment in earlier if moment is not None)])
