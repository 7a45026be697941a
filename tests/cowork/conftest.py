"""Kinds of outbox work that are gone after the test."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from cowork import kinds, runs
from tests.cowork.kind_of_work import Work
from tests.messaging.conftest import (
    build,
    cook,
    cook_bot,
    ops,
    otto,
    pilot,
    pilot_bot,
    scout,
    scout_bot,
    team,
)
from tests.provisioned import lab, other_lab
from timeline.clock import ManualClock
from timeline.ids import new_id

__all__ = [
    "build",
    "cook",
    "cook_bot",
    "lab",
    "ops",
    "other_lab",
    "otto",
    "pilot",
    "pilot_bot",
    "scout",
    "scout_bot",
    "target",
    "team",
    "work",
]


@pytest.fixture
def work(clock: ManualClock, transactional_db: None) -> Iterator[Work]:
    """One kind, `test-work`, and the means to register others."""
    before = dict(kinds.KINDS)
    kinds.KINDS.clear()
    made = Work(clock)
    made.register()
    yield made
    kinds.KINDS.clear()
    kinds.KINDS.update(before)
    runs.forget_unreadable()


@pytest.fixture
def target() -> UUID:
    return new_id()
