"""Processes of a benchmark: started, weighed with all their children, ended by their ids."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
READY = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def until(question: Callable[[], object], seconds: float, what: str, every: float = 0.005) -> float:
    """Ask until the answer is true; how long that took. Raises TimeoutError."""
    began = time.monotonic()
    while not question():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what} did not come within {seconds:g} s")
        time.sleep(every)
    return time.monotonic() - began


def answers(url: str) -> bool:
    with (
        contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
        urllib.request.urlopen(url, timeout=5) as got,
    ):
        return bool(got.status == 200)
    return False


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@contextlib.contextmanager
def running(
    *command: str, environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a Python module or file in a session of its own; all of it is gone afterwards."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and all that it has started."""
    for one in tree(process.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGKILL)
    process.wait(10)


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(pid: int) -> float:
    """The processor time of a tree, what its ended children took included."""
    total = 0.0
    for one in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def memory(pid: int) -> float:
    """The megabytes of a tree; what several share counts once (PSS)."""
    total = 0
    for one in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += one.memory_full_info().pss
    return total / 2**20


def load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())
