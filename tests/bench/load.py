"""A light HTTP client: many kept connections in one thread, as the server is what is measured."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Body = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Caller:
    """One connection: where it posts, with which headers, and what its nth request says."""

    port: int
    path: str
    headers: Mapping[str, str]
    body: Body


class UnexpectedAnswer(RuntimeError):
    """The server did not answer what a benchmark counts on."""


async def _call(caller: Caller, numbers: Sequence[int], status: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.port)
    lines = [f"POST {caller.path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    head = "\r\n".join(lines + [f"{name}: {value}" for name, value in caller.headers.items()])
    taken = []
    try:
        for number in numbers:
            body = caller.body(number)
            began = time.perf_counter()
            writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            got = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.partition(b":")[2])
                for line in got.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            )
            answer = await reader.readexactly(length)
            taken.append(time.perf_counter() - began)
            if int(got.split(b" ", 2)[1]) != status:
                raise UnexpectedAnswer(answer.decode())
    finally:
        writer.close()
    return taken


def call(callers: Sequence[Caller], numbers: Sequence[int], *, status: int) -> list[float]:
    """Let each connection make these requests, one after the other; how long each took."""

    async def all_of_them() -> list[float]:
        calls = [_call(caller, numbers, status) for caller in callers]
        return [value for values in await asyncio.gather(*calls) for value in values]

    return asyncio.run(all_of_them())
