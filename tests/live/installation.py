"""A server of its own in a folder of its own, started by `up`, for tests that kill."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0


def until(question: Callable[[], object], seconds: float = PATIENCE, what: str = "it") -> float:
    """Ask until the answer is true; how long that took."""
    began = time.monotonic()
    while not question():
        assert time.monotonic() - began < seconds, f"{what} did not come within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - began


@contextlib.contextmanager
def a_database() -> Iterator[dict[str, str]]:
    """The settings of an empty database beside the one of the tests; none mean SQLite."""
    given = os.environ.get("COWORK_DATABASE_URL")
    if not given:
        yield {}
        return
    import psycopg
    from psycopg import sql

    name = f"cowork_live_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(given, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            parts = urlsplit(given)
            yield {"COWORK_DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}"))}
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))


class Installation:
    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cowork-live-"))
        self.settings = settings
        self.log = self.folder / "log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("COWORK_")}
        return {
            **own,
            "DJANGO_SETTINGS_MODULE": "tests.live.settings",
            "COWORK_DATA_DIR": str(self.folder),
            "PYTHONUNBUFFERED": "1",
            **self.settings,
        }

    def start(self, *options: str) -> float:
        """Start it; how long that took until it was ready."""
        began = time.monotonic()
        self.launch(*options)
        until(self.is_ready, what="/readyz")
        return time.monotonic() - began

    def launch(self, *options: str) -> None:
        """Start it, without waiting for anything."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(self.port), *options],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as got,
        ):
            return bool(got.status == 200)
        return False

    def stop(self) -> float:
        """Ask it to stop; how long that took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(15)
        return time.monotonic() - began

    def processes(self) -> dict[int, str]:
        """The processes of it, with their names."""
        children: dict[int, list[int]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent = path.read_text().rpartition(")")[2].split()[:2]
                if state not in ("Z", "X"):
                    children.setdefault(int(parent), []).append(int(path.parent.name))
        found: dict[int, str] = {}
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                found[pid] = (
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                )
                waiting += children.get(pid, [])
        return found

    def workers(self) -> list[int]:
        """The cluster's processes: its main one, the sentinel, and all that this has."""
        return [pid for pid, name in self.processes().items() if "qcluster" in name]

    def promise(
        self,
        word: str,
        *,
        count: int = 1,
        targets: int = 1,
        gap: float = 0,
        sleep: float = 0,
    ) -> list[str]:
        """Promise marks from a process of its own; their words."""
        numbers = [str(number) for number in (count, targets, gap, sleep)]
        subprocess.run(
            [sys.executable, "-m", "tests.live.promise", word, *numbers],
            cwd=ROOT,
            env=self.environment,
            check=True,
            timeout=120,
        )
        return [f"{word}-{number}" for number in range(count)]

    def words(self) -> list[str]:
        return [mark[0] for mark in self.marks()]

    def marks(self) -> list[list[str]]:
        """What ran: word, seconds from promise to handler, process, sequence."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split() for line in (self.folder / "marks").read_text().splitlines()]
        return []

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait(10)
        subprocess.run(["rm", "-rf", str(self.folder)], check=True)
