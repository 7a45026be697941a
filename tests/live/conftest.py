"""Servers of their own, on the database that the tests run on."""

import os
import uuid
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.live.installation import Installation


@pytest.fixture
def database_settings() -> Iterator[dict[str, str]]:
    """An empty database beside the one of the tests, or SQLite in the data folder."""
    given = os.environ.get("COWORK_DATABASE_URL")
    if not given:
        yield {}
        return
    import psycopg
    from psycopg import sql

    name = sql.Identifier(f"cowork_live_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(given, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        path = f"/{name.as_string(connection).strip(chr(34))}"
        yield {"COWORK_DATABASE_URL": urlunsplit(urlsplit(given)._replace(path=path))}
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


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
