"""Kinds of outbox work that are gone after the test."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.cowork.kind_of_work import Work, a_kind_of_work
from tests.provisioned import lab, other_lab
from timeline.clock import ManualClock
from timeline.ids import new_id

__all__ = ["lab", "other_lab", "target", "work"]


@pytest.fixture
def work(clock: ManualClock, transactional_db: None) -> Iterator[Work]:
    """One kind, `test-work`, and the means to register others."""
    yield from a_kind_of_work(clock)


@pytest.fixture
def target() -> UUID:
    return new_id()
