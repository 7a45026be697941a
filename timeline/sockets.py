"""What every WebSocket has: it is accepted, says who may stay, beats, and is closed with a code.

Plain ASGI: frames go out in the order of one coroutine, and nothing outlives the connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import parse_qs
from uuid import UUID

from django.urls import URLPattern, re_path

from timeline import desk
from timeline.access import Seen, port
from timeline.news import frame

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

NOT_AUTHENTICATED = 4401
FORBIDDEN = 4403
UNKNOWN = 4404
BROKEN = 1011


class Closed(Exception):
    """The server closes the socket with a code (docs/wire.md, WebSocket)."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(str(code))


class Socket:
    """One connection. Subclasses say who may see what it tells, and tell it."""

    BEAT_SECONDS: ClassVar[float] = 15
    BEATS_TO_A_CHECK: ClassVar[int] = 2  # access is asked again every 30 s (SPEC §14.4)

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._is_accepted = False
        self._is_let_in = False

    @classmethod
    async def serve(cls, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """The ASGI application."""
        await cls(scope, receive, send)._serve()

    @property
    def named(self) -> Mapping[str, str]:
        """What the address names."""
        names: Mapping[str, str] = self.scope["url_route"]["kwargs"]
        return names

    @property
    def query(self) -> Mapping[str, list[str]]:
        text = self.scope.get("query_string", b"").decode("latin-1")
        return parse_qs(text, keep_blank_values=True)

    def may_stay(self) -> Seen:
        """Ask whether whoever opened it may see what it tells. Raises Closed for nobody."""
        raise NotImplementedError

    async def tell(self) -> None:
        """Accept it once nothing can be missed, and tell for as long as it lasts."""
        raise NotImplementedError

    def visitor(self) -> object:
        """Who opened it. Raises Closed for nobody that is known, or is not known any more."""
        # A secret in an address would end up in logs, so it is never taken.
        found = None if "token" in self.query else port().who(self.scope)
        if found is None:
            raise Closed(FORBIDDEN if self._is_let_in else NOT_AUTHENTICATED)
        return found

    def check(self) -> None:
        """Raise Closed unless it may stay. Runs at a desk."""
        seen = self.may_stay()
        if seen != "yes":
            raise Closed(FORBIDDEN if seen == "forbidden" or self._is_let_in else UNKNOWN)

    async def accept(self) -> None:
        """Open it for the client, once."""
        if not self._is_accepted:
            self._is_accepted = True
            await self._send({"type": "websocket.accept"})

    async def send(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def _serve(self) -> None:
        await self._receive()  # websocket.connect
        parts = {
            asyncio.create_task(part) for part in (self._live(), self._beat(), self._until_gone())
        }
        try:
            ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
        await self._close(ended)

    async def _close(self, ended: "set[asyncio.Task[None]]") -> None:
        for error in filter(None, (part.exception() for part in ended)):
            if not isinstance(error, Closed):
                logger.error("a socket broke down", exc_info=error)
            # A refused handshake has no code that a client can read, an accepted one has.
            await self.accept()
            code = error.code if isinstance(error, Closed) else BROKEN
            await self._send({"type": "websocket.close", "code": code})
            return

    async def _live(self) -> None:
        await desk.SOCKETS.look(self.check)
        self._is_let_in = True
        await self.tell()

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(self.BEAT_SECONDS)
            beats += 1
            if beats % self.BEATS_TO_A_CHECK == 0:
                await desk.SOCKETS.look(self.check)
            if self._is_accepted:
                await self.send(frame(type="ping"))

    async def _until_gone(self) -> None:
        # What else a client sends is not read: everything is done over the API.
        while True:
            if (await self._receive())["type"] == "websocket.disconnect":
                return


class NowhereSocket(Socket):
    """The answer to an address that there is not."""

    def may_stay(self) -> Seen:
        return "unknown"


def address(pattern: str, socket: type[Socket]) -> URLPattern:
    """Where a kind of socket is opened."""
    application: Any = socket.serve  # an ASGI application, as Channels has it at an address
    made: URLPattern = re_path(pattern, application)
    return made


def uuid_of(text: str) -> UUID:
    """The id in an address. Raises Closed when it is none."""
    try:
        return UUID(text)
    except ValueError:
        raise Closed(UNKNOWN) from None
