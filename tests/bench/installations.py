"""Both sides as servers: the product by `up`, the references by the same daphne."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import processes
from tests.bench.processes import ROOT

REFERENCES = "tests.bench.references"


class Place:
    """A folder and the environment of what runs over it; on SQLite, or on a given database."""

    def __init__(self, folder: Path, *, settings: str, database_url: str = "") -> None:
        self.folder = folder
        self.port = processes.free_port()
        own = {name: value for name, value in os.environ.items() if not name.startswith("COWORK_")}
        self.environment = {
            **own,
            "DJANGO_SETTINGS_MODULE": settings,
            "COWORK_DATA_DIR": str(folder),
            "PYTHONUNBUFFERED": "1",
            **({"COWORK_DATABASE_URL": database_url} if database_url else {}),
        }

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def sqlite(self) -> Path:
        return self.folder / "cowork.sqlite3"

    def run(self, *command: str) -> str:
        """Run Python to its end; what it printed."""
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout


@contextlib.contextmanager
def place(settings: str, database_url: str = "") -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="cowork-bench-"))
    try:
        yield Place(folder, settings=settings, database_url=database_url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# The product


def ours(database_url: str = "") -> contextlib.AbstractContextManager[Place]:
    """A place for the product."""
    return place("cowork.settings", database_url)


@contextlib.contextmanager
def up(where: Place, *options: str) -> Iterator[int]:
    """`up` over a place; the id of its first process."""
    command = ("manage.py", "up", "--port", str(where.port), *options)
    with processes.running(*command, environment=where.environment, log=where.log) as process:
        if "worker" not in options:
            ready = f"http://127.0.0.1:{where.port}/healthz"
            processes.until(lambda: _is_there(process, ready, where), processes.READY, "the server")
        yield process.pid


def provision(where: Place, plan: Mapping[str, Any]) -> Any:
    """Make a workspace; what was made."""
    file = where.folder / "plan.json"
    file.write_text(json.dumps({"workspaces": [plan]}))
    told = where.run("manage.py", "provision", str(file), "--json")
    return json.loads(told)["workspaces"][plan["slug"]]


def lab(senders: int, recipients: int, *, rules: Sequence[Any] | None = None) -> dict[str, Any]:
    """A plan: bots `s0`… send to bots `r0`…, which are scripts if there are rules."""
    sending = [f"s{number}" for number in range(senders)]
    taking = [f"r{number}" for number in range(recipients)]
    runtime = "external" if rules is None else "bench"
    scripts = [] if rules is None else [{"name": "bench", "kind": "script", "rules": rules}]
    bots = [(handle, "external") for handle in sending] + [(name, runtime) for name in taking]
    return {
        "slug": "bench",
        "name": "Bench",
        "runtimes": scripts,
        "bots": [{"handle": h, "display_name": h.upper(), "runtime": r} for h, r in bots],
        "teams": [{"name": "Core", "lead": "s0", "members": [handle for handle, _ in bots]}],
        "conversations": [{"bot": h, "title": h, "team": "Core"} for h, _ in bots],
        "credentials": [
            *[{"label": f"{h}-key", "kind": "bot", "bot": h} for h in sending],
            {"label": "ops", "kind": "service"},
        ],
    }


# The references


def reference(database_url: str = "") -> contextlib.AbstractContextManager[Place]:
    """A place for the references."""
    return place(f"{REFERENCES}.settings", database_url)


@contextlib.contextmanager
def daphne(where: Place) -> Iterator[int]:
    """The reference views and sockets on the server that the product uses."""
    where.run("-m", "django", "migrate", "--run-syncdb", "-v0")
    command = ("-m", "daphne", "-v0", "-p", str(where.port), f"{REFERENCES}.asgi:application")
    with processes.running(*command, environment=where.environment, log=where.log) as process:
        processes.until(lambda: _listens(process, where), processes.READY, "daphne")
        yield process.pid


@contextlib.contextmanager
def qcluster(where: Place, *, tuned: bool) -> Iterator[int]:
    environment = {**where.environment, "BENCH_Q": "tuned" if tuned else ""}
    command = ("-m", "django", "qcluster")
    with processes.running(*command, environment=environment, log=where.log) as process:
        yield process.pid


def _is_there(process: "subprocess.Popen[bytes]", url: str, where: Place) -> bool:
    if process.poll() is not None:
        raise RuntimeError(where.log.read_text())
    return processes.answers(url)


def _listens(process: "subprocess.Popen[bytes]", where: Place) -> bool:
    if process.poll() is not None:
        raise RuntimeError(where.log.read_text())
    return processes.listens(where.port)
