"""What every test may ask for, and which folder's tests need more than the checkout."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from timeline import commits
from timeline.clock import ManualClock

TESTS = Path(__file__).parent
# `services`: real threads, killed processes, running servers. `browser`: Chromium.
MARKED_FOLDERS = {
    "races": pytest.mark.services,
    "crashes": pytest.mark.services,
    "live": pytest.mark.services,
    "browser": pytest.mark.browser,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = MARKED_FOLDERS.get(item.path.relative_to(TESTS).parts[0])
        if mark is not None:
            item.add_marker(mark)


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The test database can't be dropped while somebody is connected to it."""
    yield
    commits.stop()
    from timeline import desk  # its module asks for the settings

    desk.clear()
