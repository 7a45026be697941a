"""Processes: they die with their parent, and a whole session ends at once (Linux)."""

import contextlib
import ctypes
import multiprocessing
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def fork(target: Callable[..., None], *arguments: object) -> BaseProcess:
    """Run a function in a child that has everything loaded already.

    The caller has one thread and no connection to a database. Its files stay open in the child:
    they belong to objects there, and a number closed behind their backs would be given out anew.
    """
    child = multiprocessing.get_context("fork").Process(
        target=_begin, args=(os.getpid(), target, arguments)
    )
    child.start()
    return child


def _begin(parent: int, target: Callable[..., None], arguments: Iterable[object]) -> None:
    die_with_parent()
    if os.getppid() != parent:  # it died meanwhile
        os._exit(os.EX_UNAVAILABLE)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    target(*arguments)


def die_with_parent() -> None:
    """Have this process killed when its parent dies, however that happens."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children_die_too() -> None:
    """The same for every process that this one forks, and that those fork."""
    os.register_at_fork(after_in_child=die_with_parent)


def of_session(leader: int) -> set[int]:
    """The living processes of a session, by number."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in ("Z", "X"):
                found.add(int(path.parent.name))
    return found


def handles(pids: Iterable[int]) -> dict[int, int]:
    """A handle for each process, readable once it is dead; none for one that is dead already."""
    opened: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            opened[pid] = os.pidfd_open(pid)
    return opened


def kill_session(leader: int, *, patience: float = 2.0) -> None:
    """Kill every process of a session and wait until they are gone."""
    opened = handles(of_session(leader))
    for pid in opened:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + patience
    for handle in opened.values():
        select.select([handle], [], [], max(0.0, ends - time.monotonic()))
        os.close(handle)
