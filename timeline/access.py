"""Who may see a stream: a port that an upper floor fills (ARCHITECTURE, ports).

The log knows no tasks and no people, so it asks. Entry points of this floor call the port.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol
from uuid import UUID

Seen = Literal["yes", "forbidden", "unknown"]
Scope = Mapping[str, Any]  # of ASGI


class Port(Protocol):
    """The rules of whoever knows tasks and people. They are asked again and again."""

    def who(self, scope: Scope) -> object | None:
        """Who opens a socket, by its headers; None for nobody that is known."""

    def may_see_stream(self, visitor: object, stream: UUID) -> Seen: ...

    def may_see_workspace(self, visitor: object, slug: str) -> Seen: ...

    def workspace_id(self, slug: str) -> UUID:
        """The id of a workspace that a visitor may see."""


_filled: list[Port] = []


def fill(port: Port) -> None:
    """Called once, by the `apps.py` of the floor that knows."""
    _filled[:] = [port]


def port() -> Port:
    """The port. Nobody is let in while it is not filled."""
    if not _filled:
        raise RuntimeError("nobody has said who may see a stream")
    return _filled[0]
