"""Races: everything is committed for real, by threads with connections of their own."""

from collections.abc import Iterator

import pytest

from tests.cowork.conftest import target, work
from tests.trio import Trio
from timeline.clock import ManualClock

__all__ = ["target", "trio", "work"]


@pytest.fixture
def trio(clock: ManualClock, transactional_db: None) -> Iterator[Trio]:
    """The teammates; at the end what is owed is done, and the records have to agree."""
    trio = Trio(clock)
    yield trio
    trio.drain()
    trio.check()
