"""Servers of their own, on the database that the tests run on."""

from collections.abc import Callable, Iterator

import pytest

from tests.live.installation import Installation, a_database


@pytest.fixture
def database_settings() -> Iterator[dict[str, str]]:
    """An empty database beside the one of the tests, or SQLite in the data folder."""
    with a_database() as settings:
        yield settings


@pytest.fixture
def installation(database_settings: dict[str, str]) -> Iterator[Callable[..., Installation]]:
    """Makes servers; they are gone after the test."""
    made: list[Installation] = []

    def make(**settings: str) -> Installation:
        made.append(Installation(**database_settings, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()
