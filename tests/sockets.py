"""Sockets without a server: their frames are read in the test's own time."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.urls import URLPattern


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


Connect = Callable[..., AbstractAsyncContextManager[Client]]


def connector(patterns: Sequence[URLPattern]) -> Connect:
    """Opens sockets at these addresses."""
    sockets = URLRouter([*patterns])

    @asynccontextmanager
    async def connect(path: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
        sent = [(name.lower().encode(), text.encode()) for name, text in (headers or {}).items()]
        wire = WebsocketCommunicator(sockets, path, headers=sent)
        is_connected, _ = await wire.connect(timeout=10)
        assert is_connected
        try:
            yield Client(wire)
        finally:
            await wire.disconnect(timeout=10)

    return connect
