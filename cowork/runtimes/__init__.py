"""What runs turns: one port per kind of runtime profile (SPEC §13)."""

from typing import Protocol

from cowork.models import OutboxEntry, Task
from teams.models import RuntimeProfile


class Runtime(Protocol):
    """The port of a kind of runtime."""

    def wake(self, task: Task, entry: OutboxEntry) -> None:
        """Tell the runtime that a task may start a turn. It runs at least once per entry."""


_PORTS: dict[str, Runtime] = {}


def register(kind: str, runtime: Runtime) -> None:
    """Fill the port of a kind; called by the `apps.py` of the app that owns it."""
    _PORTS[kind] = runtime


def port_of(profile: RuntimeProfile) -> Runtime:
    """The port that runs the tasks of a profile."""
    return _PORTS[profile.kind]
