"""The limit: `websockets.broadcast()`, one encoded frame for all (`… broadcast PORT`)."""

import asyncio
import sys
import time

from websockets.asyncio.server import ServerConnection, broadcast, serve


async def main(port: int) -> None:
    async def answer(connection: ServerConnection) -> None:
        async for text in connection:
            broadcast(server.connections, f"{text!s} {time.time()!r}")

    async with serve(answer, "127.0.0.1", port, compression=None) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
