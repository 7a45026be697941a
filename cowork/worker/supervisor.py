"""The supervisor: starts the processes, and starts them again as a whole when one is gone.

It touches no database, so whatever is wrong there, it stays.
"""

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType

from django.conf import settings

from cowork.worker import stop
from cowork.worker.children import Cluster, Web
from timeline import crash

logger = logging.getLogger(__name__)

TICK = 0.25
STOP_PATIENCE = 6.5  # of the ten seconds that a stop may take
WEB_PATIENCE = 1.0


class Supervisor:
    """Looks after the web server and the cluster until it is told to stop."""

    def __init__(
        self, *, web: Web | None, cluster: Cluster | None, say: Callable[[str], None]
    ) -> None:
        self._web = web
        self._cluster = cluster
        self._say = say
        self._asked = 0
        self._dies_at: str = settings.COWORK_CRASH_AT
        self._has_died_before = bool(self._dies_at) and crash.marker(self._dies_at).exists()

    def run(self) -> int:
        """Run until a signal comes; the exit status. Leaves no process behind."""
        try:
            return self._run()
        finally:
            self.kill()

    def _run(self) -> int:
        heard, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(heard, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)
        while not self._asked:
            if self._cluster is not None and self._cluster.may_start:
                self._cluster.start()
            if self._web is not None and self._web.may_start:
                self._web.start()
            watched = [heard, *(self._cluster.watched if self._cluster is not None else [])]
            readable, _, _ = select.select(watched, [], [], TICK)
            with contextlib.suppress(BlockingIOError):
                os.read(heard, 64)
            if self._look(readable):
                return os.EX_SOFTWARE
        self._stop()
        return os.EX_OK

    def kill(self) -> None:
        """End everything at once."""
        if self._cluster is not None:
            self._cluster.end()
        if self._web is not None:
            self._web.end(patience=0)

    def _look(self, readable: list[int]) -> bool:
        """See what has ended; whether all has to, as a test wanted a process to die."""
        ended = self._web is not None and self._web.has_ended()
        if ended:
            self._say("The web server ended; starting it again.")
        wrong = self._cluster.hear(readable) if self._cluster is not None else ""
        if not ended and not wrong:
            return False
        if self._dies_at and not self._has_died_before and crash.marker(self._dies_at).exists():
            self._say(f"A process died at {self._dies_at}, as COWORK_CRASH_AT asks.")
            return True
        if wrong and self._cluster is not None:
            self._say(f"The worker is started again: {wrong}.")
            self._cluster.end()
        return False

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked += 1

    def _stop(self) -> None:
        """Refuse new sends, let handlers finish, end everything; a second signal is impatient."""
        self._say("Stopping.")
        ends_at = time.monotonic() + STOP_PATIENCE
        if self._web is not None:
            self._web.refuse_sends()
        if self._cluster is not None:
            self._cluster.ask_to_stop(stop.SIGNAL)
            while not self._cluster.is_drained and self._asked < 2:
                if time.monotonic() > ends_at:
                    logger.warning("some handlers did not finish in time; they run again later")
                    break
                select.select(self._cluster.watched, [], [], TICK)
                # A dead process is readable for good: do not spin on it.
                time.sleep(0.02)
            self._cluster.end()
        if self._web is not None:
            self._web.end(patience=WEB_PATIENCE)
