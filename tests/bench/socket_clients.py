"""Many WebSockets in one thread that only note when they heard what."""

import asyncio
import base64
import os
import re
import time
from collections import Counter
from collections.abc import Callable

Key = str


class Ears:
    """What a number of sockets have heard: by key, how many, and when the last one did."""

    def __init__(self, pattern: bytes) -> None:
        self._pattern = re.compile(pattern)
        self.counts: Counter[Key] = Counter()
        self.last_at: dict[Key, float] = {}

    def hear(self, text: bytes) -> None:
        found = self._pattern.search(text)
        if found is not None:
            key = found.group(1).decode()
            self.counts[key] += 1
            self.last_at[key] = time.time()


class Client(asyncio.Protocol):
    """One socket, read only; `say` sends a short text."""

    def __init__(self, request: bytes, ears: Ears, ready: Callable[[], None]) -> None:
        self._request, self._ears, self._ready = request, ears, ready
        self._data = b""
        self._is_open = False
        self._transport: asyncio.Transport | None = None
        self.refused = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_open:
            head, end, rest = self._data.partition(b"\r\n\r\n")
            if not end:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.refused = head.decode()
            self._is_open, self._data = True, rest
            self._ready()
        while (frame := self._frame()) is not None:
            self._ears.hear(frame)

    def _frame(self) -> bytes | None:
        """The next whole frame; a server's are not masked."""
        data = self._data
        if len(data) < 2:
            return None
        length, at = data[1] & 0x7F, 2
        if length == 126:
            length, at = int.from_bytes(data[2:4]), 4
        elif length == 127:
            length, at = int.from_bytes(data[2:10]), 10
        if len(data) < at + length:
            return None
        self._data = data[at + length :]
        return data[at : at + length]

    def say(self, text: str) -> None:
        assert self._transport is not None
        # A client's frames are masked; a mask of zeros is one.
        self._transport.write(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode())

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def connect(
    port: int, path: str, count: int, ears: Ears, headers: dict[str, str] | None = None
) -> list[Client]:
    """Open sockets, fifty at a time."""
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    for start in range(0, count, 50):
        opened = []
        for _number in range(start, min(start + 50, count)):
            is_open = asyncio.Event()
            _, client = await loop.create_connection(
                lambda is_open=is_open: Client(  # type: ignore[misc]
                    _request(path, headers or {}), ears, is_open.set
                ),
                "127.0.0.1",
                port,
            )
            clients.append(client)
            opened.append(is_open.wait())
        await asyncio.wait_for(asyncio.gather(*opened), 30)
    if refused := [client.refused for client in clients if client.refused]:
        raise RuntimeError(refused[0])
    return clients


def _request(path: str, headers: dict[str, str]) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
