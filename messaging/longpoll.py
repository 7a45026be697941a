"""The long poll of a claim: an ASGI wrapper before the threads in which views run.

It asks the ordinary claim view with `wait_seconds` 0; between two answers of 204 it waits until the
task's stream has news, or something that came back is due. While it waits no view runs, and it
holds no thread and no database connection.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from messaging import readers
from timeline import desk, pump
from timeline.bridge import (
    Application,
    ClientGone,
    Message,
    Receive,
    Scope,
    Send,
    read,
    replay,
    with_length,
)
from timeline.clock import system_clock
from timeline.pump import Watch

LONGEST = 30  # seconds; the view refuses more
LARGEST = 64 * 1024  # bytes; a claim is small
NO_INPUT = 204
_CLAIM = re.compile(r"/api/v1/tasks/([0-9a-fA-F-]{36})/turns/?")


class LongPoll:
    """Holds claims that ask to wait back from the application until there may be input."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task_id = _claimed(scope)
        if task_id is None:
            await self._application(scope, receive, send)
            return
        try:
            body, is_whole = await read(receive, LARGEST)
        except ClientGone:
            return
        receive = replay(body, receive, is_whole=is_whole)
        asked = _asked(body) if is_whole and len(body) <= LARGEST else None
        if asked is None:
            await self._application(scope, receive, send)
            return
        await receive()  # the body; what comes after it is the client's going
        seconds = asked["wait_seconds"]
        look = json.dumps({**asked, "wait_seconds": 0}).encode()
        claim = _Claim(self._application, with_length(scope, len(look)), look, receive, send)
        await claim.wait(task_id, seconds)


class _Claim:
    """One claim that waits."""

    def __init__(
        self, application: Application, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        self._application = application
        self._scope = scope
        self._body = body
        self._send = send
        self._gone = asyncio.ensure_future(_until_gone(receive))
        self._held: list[Message] = []  # the last answer that there is nothing

    async def wait(self, task_id: UUID, seconds: float) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        try:
            with pump.here().stream(task_id, events=False) as watch:
                self._gone.add_done_callback(lambda _: watch.wake())
                is_worth_a_look = True
                while is_worth_a_look:
                    is_worth_a_look = await self._look(task_id, watch, deadline)
        except asyncio.CancelledError:  # the server stops
            await self._answer()
            raise
        else:
            if not self._gone.done():
                await self._answer()
        finally:
            self._gone.cancel()

    async def _look(self, task_id: UUID, watch: Watch, deadline: float) -> bool:
        """Ask the view once, and wait for the next reason to; False when it is over."""
        clock = asyncio.get_running_loop().time
        # Where the stream is comes before the look: news from then on are a reason for another.
        stands = await desk.SOCKETS.look(partial(_stands, task_id))
        read_at = clock()
        if self._gone.done():
            return False
        # The first time always: the view knows who may ask. Then only for a reason, as a view
        # costs ten times as much as the look.
        if (stands.is_worth_a_claim or not self._held) and not await self._ask():
            return False
        until = deadline
        if stands.due_in is not None:
            until = min(until, read_at + stands.due_in)
        while watch.newest <= stands.seq and not self._gone.done() and clock() < until:
            await watch.wait(until - clock())
        return not self._gone.done() and (watch.newest > stands.seq or until < deadline)

    async def _ask(self) -> bool:
        """Whether the view had nothing. Any other answer goes to the client as it comes."""
        held: list[Message] = []

        async def send(message: Message) -> None:
            if held or message.get("status") == NO_INPUT:
                held.append(message)
                self._held = held
            else:
                self._held = []
                await self._send(message)

        await self._application(
            dict(self._scope), replay(self._body, self._when_gone, is_whole=True), send
        )
        return bool(held)

    async def _when_gone(self) -> Message:
        await asyncio.shield(self._gone)
        return {"type": "http.disconnect"}

    async def _answer(self) -> None:
        held, self._held = self._held, []
        for message in held:
            await self._send(message)


def _stands(task_id: UUID) -> readers.Stands:
    return readers.stands(task_id, now=system_clock.now())


def _claimed(scope: Mapping[str, Any]) -> UUID | None:
    """The task that a request claims a turn of; None for other requests."""
    found = _CLAIM.fullmatch(scope["path"]) if scope["method"] == "POST" else None
    with suppress(ValueError):
        return UUID(found[1]) if found is not None else None
    return None


def _asked(body: bytes) -> dict[str, Any] | None:
    """The fields of a claim that asks to wait; None for one that does not, or is not well formed.

    The view refuses what is not well formed, so it has to see that as it came.
    """
    try:
        fields = json.loads(body.decode(), object_pairs_hook=_once_each, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    seconds = fields.get("wait_seconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return None
    return fields if 0 < seconds <= LONGEST else None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is given twice")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


async def _until_gone(receive: Receive) -> None:
    while True:
        if (await receive())["type"] == "http.disconnect":
            return
