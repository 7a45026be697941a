"""Streams and what is written to them, by real transactions."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connections

from timeline import log
from timeline.clock import system_clock
from timeline.event_types import Note
from timeline.ids import new_id
from timeline.transactions import action


@action
def open_stream(workspace_id: UUID) -> UUID:
    key = new_id()
    log.open_stream(key, workspace_id=workspace_id)
    return key


@action
def write(stream: UUID, *texts: str) -> None:
    """Append notes to a stream in one transaction."""
    for text in texts:
        told = Note(level="info", key=text)
        log.append(stream, told, actor=log.SYSTEM, now=system_clock.now())


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run it as a request would run: in another thread, with a connection of its own."""
    return await asyncio.to_thread(_and_leave, function, *args)


def _and_leave(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    finally:
        connections.close_all()
