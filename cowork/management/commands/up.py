"""`up`: everything that makes a running server, in one command (SPEC §16.1)."""

import errno
import os
import socket
import time
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection, connections

from cowork import announcing, jobs
from cowork.worker import files
from cowork.worker.children import Cluster, Web
from cowork.worker.supervisor import Supervisor
from teams import installing, sign_in_links
from timeline import commits
from timeline.clock import system_clock

PORTS_TRIED = 50
RECOVERY_PATIENCE = 20.0
MIGRATION_LOCK = 0x636F776F726B  # "cowork"


class Command(BaseCommand):
    help = "Migrate, recover, and run the web server and the worker until told to stop."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--workers", type=int, default=2, help="drains side by side")
        parser.add_argument("--role", choices=["all", "web", "worker"], default="all")
        parser.add_argument("--demo", action="store_true", help="with bots that talk to each other")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        role, folder = options["role"], Path(settings.COWORK_DATA_DIR)
        if options["workers"] < 1:
            raise CommandError("--workers has to be at least 1.")
        files.make_private(folder)
        with ExitStack() as stack:
            stack.enter_context(self._lock(folder, role))
            listener = None
            if role != "worker":
                listener = stack.enter_context(listen(options["host"], options["port"]))
            self._prepare(files.instance(folder), demo=options["demo"])
            status = self._run(folder, listener, options)
        raise SystemExit(status)

    def _lock(self, folder: Path, role: str) -> Any:
        """One server over a folder; on a server database one of each role."""
        name = "up.lock" if connection.vendor == "sqlite" else f"up-{role}.lock"
        try:
            return files.lock(folder / name)
        except files.AlreadyRunning as running:
            raise CommandError(
                f"A server runs over {folder} already: process {running.pid}. Stop it first."
            ) from None

    def _prepare(self, instance: str, *, demo: bool) -> None:
        self._say(f"Bringing the database up to date ({connection.vendor}) ...")
        migrate()
        settings.STATIC_ROOT.mkdir(exist_ok=True)
        if installing.install(clock=system_clock):
            self._say(f"Made workspace {installing.MAIN} and person {installing.OWNER}.")
        ends_at = time.monotonic() + RECOVERY_PATIENCE
        while not jobs.recover(owner=f"{instance}.recovery", clock=system_clock):
            if time.monotonic() > ends_at:
                self._say("Another server recovers for long; the sweeps do the rest.")
                break
            time.sleep(0.2)
        if demo:
            call_command("demo", stdout=self.stdout)
        files.make_private(Path(settings.COWORK_DATA_DIR))

    def _run(self, folder: Path, listener: socket.socket | None, options: dict[str, Any]) -> int:
        instance = files.instance(folder)
        label = f"control-plane-local {instance}"
        web = cluster = None
        if listener is not None:
            url = address(options["host"], listener.getsockname()[1])
            if "COWORK_PUBLIC_URL" not in os.environ:
                settings.COWORK_PUBLIC_URL = url
                settings.CSRF_TRUSTED_ORIGINS = [url]
            web = Web(listener.fileno())
            token = announcing.issue(workspace=installing.MAIN, label=label, clock=system_clock)
            files.describe(folder, url=url, token=token)
            self._greet(url, options["port"])
        if options["role"] != "web":
            cluster = Cluster(instance, drains=options["workers"])
        commits.stop()  # a process with one thread is forked safely
        connections.close_all()
        try:
            status = Supervisor(web=web, cluster=cluster, say=self._say).run()
        finally:
            if listener is not None:
                files.forget(folder)
        if listener is not None:
            announcing.revoke(label=label, clock=system_clock)
        return status

    def _greet(self, url: str, port: int) -> None:
        owner = get_user_model().objects.filter(username=installing.OWNER).first()
        if owner is not None and not owner.has_usable_password():
            token = sign_in_links.make(owner, now=system_clock.now())
            link = settings.COWORK_PUBLIC_URL + sign_in_links.PATH.format(token=token)
            self._say(f"Sign in as {installing.OWNER}, once and within the hour: {link}")
        self._say("next: connect an agent; docs/quick-start.md tells how")
        taken = "" if url.endswith(f":{port}") else f"Port {port} is taken. "
        self._say(f"{taken}CoWork is at {url}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def migrate() -> None:
    """Bring the database up to date; of several servers that start, one after the other."""
    if connection.vendor != "postgresql":
        call_command("migrate", interactive=False, verbosity=0)
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            call_command("migrate", interactive=False, verbosity=0)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def listen(host: str, port: int) -> socket.socket:
    """Listen on the port, or on the next one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in range(port, port + PORTS_TRIED) if port else [0]:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, tried))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise CommandError(f"{host}:{tried}: {error.strerror}") from error
            continue
        return listener
    raise CommandError(f"No port from {port} to {port + PORTS_TRIED - 1} is free on {host}.")


def address(host: str, port: int) -> str:
    """Where a program on this machine finds it."""
    near = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{near}:{port}"
