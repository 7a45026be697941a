"""The database server of a run, and empty databases in it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.bench import processes


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a PostgreSQL: the given one, or one of its own in a temporary folder."""
    given = os.environ.get("COWORK_DATABASE_URL")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="cowork-bench-pg-"))
    try:
        yield from _private(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _private(folder: Path) -> Iterator[str]:
    """Make, start, stop. PostgreSQL refuses root, so root lends it a user."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")
    data, port = folder / "data", processes.free_port()
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=200"

    def tool(name: str, *arguments: str) -> None:
        command = [*as_user, _where(name), "-D", str(data), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    tool("initdb", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
    tool("pg_ctl", "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"
    finally:
        tool("pg_ctl", "-m", "immediate", "-w", "stop")


def _where(name: str) -> str:
    """Debian keeps the tools of each version in a folder of its own."""
    found = shutil.which(name) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None
    )
    if found is None:
        raise FileNotFoundError(f"{name}: install PostgreSQL, or give COWORK_DATABASE_URL")
    return found


@contextlib.contextmanager
def database(server_url: str) -> Iterator[str]:
    """The address of an empty database, which is dropped afterwards."""
    name = f"cowork_bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)
