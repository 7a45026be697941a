"""Being asked to stop: a flag in every process of the cluster, set by a signal."""

import signal
from types import FrameType

SIGNAL = signal.SIGUSR2

_is_asked = False


def listen() -> None:
    """Take the signal from now on, in this process and in all that it forks."""
    signal.signal(SIGNAL, _ask)


def is_asked() -> bool:
    return _is_asked


def _ask(_signal: int, _frame: FrameType | None) -> None:
    global _is_asked
    _is_asked = True
