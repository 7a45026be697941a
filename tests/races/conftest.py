"""Races: everything is committed for real, by threads with connections of their own."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.cowork.kind_of_work import Work, a_kind_of_work
from tests.trio import Trio
from timeline.clock import ManualClock
from timeline.ids import new_id


@pytest.fixture
def work(clock: ManualClock, transactional_db: None) -> Iterator[Work]:
    """A kind of outbox work whose handler the test tells what to do."""
    yield from a_kind_of_work(clock)


@pytest.fixture
def target() -> UUID:
    return new_id()


@pytest.fixture
def trio(clock: ManualClock, transactional_db: None) -> Iterator[Trio]:
    """The teammates; at the end what is owed is done, and the records have to agree."""
    trio = Trio(clock)
    yield trio
    trio.drain()
    trio.check()
