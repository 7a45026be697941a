"""A workspace's streams without the tasks they tell of, and sockets to watch them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator

from tests.timeline.streams import open_stream
from timeline import access
from timeline.access import Seen
from timeline.ids import new_id
from timeline.routing import nowhere, websocket_urlpatterns


@pytest.fixture
def workspace_id() -> UUID:
    return new_id()


@pytest.fixture
def stream(transactional_db: None, workspace_id: UUID) -> UUID:
    return open_stream(workspace_id)


class Door:
    """A port that lets in whoever the test says."""

    def __init__(self, workspace_id: UUID) -> None:
        self.known: object | None = "olga"
        self.seen: Seen = "yes"
        self._workspace_id = workspace_id

    def who(self, scope: access.Scope) -> object | None:
        return self.known

    def may_see_stream(self, visitor: object, stream: UUID) -> Seen:
        return self.seen

    def may_see_workspace(self, visitor: object, slug: str) -> Seen:
        return self.seen

    def workspace_id(self, slug: str) -> UUID:
        return self._workspace_id


@pytest.fixture
def door(workspace_id: UUID, monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door(workspace_id)
    monkeypatch.setattr(access, "_filled", [door])
    return door


class Client:
    """A client whose frames are read in the test's own time."""

    def __init__(self, wire: WebsocketCommunicator) -> None:
        self.wire = wire

    async def frame(self, seconds: float = 10) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.wire.receive_from(seconds))
        return found

    async def events(self, count: int) -> list[int]:
        """The numbers of the next events."""
        frames = [await self.frame() for _ in range(count)]
        assert {frame["type"] for frame in frames} == {"event"}
        return [frame["event"]["seq"] for frame in frames]

    async def closed_with(self, seconds: float = 10) -> int:
        closed = await self.wire.receive_output(seconds)
        assert closed["type"] == "websocket.close", closed
        return int(closed["code"])


@pytest.fixture
def connect(door: Door) -> Callable[..., Any]:
    sockets = URLRouter([*websocket_urlpatterns, *nowhere])

    @asynccontextmanager
    async def connect(path: str) -> AsyncIterator[Client]:
        wire = WebsocketCommunicator(sockets, path)
        is_connected, _ = await wire.connect(timeout=10)
        assert is_connected
        try:
            yield Client(wire)
        finally:
            await wire.disconnect(timeout=10)

    return connect
