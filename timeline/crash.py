"""Death on request, for tests of recovery (docs/wire.md, COWORK_CRASH_AT)."""

import os
import signal
from pathlib import Path

from django.conf import settings

POINTS = frozenset(
    {
        "after_accept",
        "after_claim",
        "before_incorporate_commit",
        "after_incorporate_commit",
        "after_handler",
    }
)


def marker(point: str) -> Path:
    """The file that remembers that a process has died at the point."""
    return Path(settings.COWORK_DATA_DIR) / f"crashed-{point}"


def at(point: str) -> None:
    """End this process with SIGKILL if it is asked to die here and nobody has yet."""
    if settings.COWORK_CRASH_AT != point:
        return
    try:
        marker(point).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
