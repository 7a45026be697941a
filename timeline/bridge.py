"""Between the server and the threads in which views run: small things that both leave open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST = 4 * 2**20  # bytes of a body without a length; views take no larger one
PATIENCE = 4.0  # seconds that a running request gets when the server stops (SPEC §16.1)


class Bridge:
    """Passes requests on to an application that works in threads.

    A request that runs when the server stops is finished: its thread would otherwise wait for ever
    for somebody who takes its answer. One whose body comes in pieces without a length gets one,
    as views read no body without it.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            try:
                body, is_whole = await read(receive, LARGEST)
            except ClientGone:
                return
            scope = with_length(scope, len(body)) if is_whole else scope
            receive = replay(body, receive, is_whole=is_whole)
        work = asyncio.ensure_future(self._application(scope, receive, send))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait({work}, timeout=PATIENCE)
            raise


class ClientGone(Exception):
    """The client left before its request was whole."""


async def read(receive: Receive, at_most: int) -> tuple[bytes, bool]:
    """The body, and whether it is whole: of one that is longer its beginning is read.

    Raises ClientGone.
    """
    pieces = bytearray()
    while len(pieces) <= at_most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(pieces), True
    return bytes(pieces), False


def replay(body: bytes, receive: Receive, *, is_whole: bool) -> Receive:
    """Receive again what was read, then what comes after it."""
    read_already: list[Message] = [
        {"type": "http.request", "body": body, "more_body": not is_whole}
    ]

    async def receive_again() -> Message:
        return read_already.pop() if read_already else await receive()

    return receive_again


def with_length(scope: Scope, length: int) -> Scope:
    """The scope of the same request with a body of another length."""
    stale = (b"content-length", b"transfer-encoding")
    kept = [header for header in scope["headers"] if header[0] not in stale]
    return {**scope, "headers": [*kept, (b"content-length", str(length).encode())]}
