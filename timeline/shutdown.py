"""Whether this server is shutting down: new work is refused then (SPEC §16.1)."""

import signal
from types import FrameType

from timeline.refusals import ShuttingDown

_is_stopping = False


def refuse_when_stopping() -> None:
    """Raise ShuttingDown once the server has been told to stop."""
    if _is_stopping:
        raise ShuttingDown


def begin() -> None:
    """Refuse from now on."""
    global _is_stopping
    _is_stopping = True


def listen(number: signal.Signals) -> None:
    """Begin when the supervisor sends this signal."""
    signal.signal(number, _begin)


def _begin(_signal: int, _frame: FrameType | None) -> None:
    begin()
