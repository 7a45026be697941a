"""The supervisor's children: the web server and the cluster."""

import os
import time
import uuid
from collections.abc import Sequence
from multiprocessing.process import BaseProcess

from cowork import boot
from cowork.worker import cluster, process, web
from cowork.worker.pulse import GOODBYE

BOOT_PATIENCE = 30.0  # from the start of a cluster to the first beat of its last drain
BEAT_PATIENCE = 2.0
BACK_OFF = (0.0, 0.2, 1.0, 2.0, 5.0, 10.0)


class Child:
    """A process that is started again whenever it is gone, later each time it does not get far."""

    def __init__(self) -> None:
        self._failures = 0
        self._may_start_at = 0.0
        self.process: BaseProcess | None = None

    def _note_end(self, *, got_far: bool) -> None:
        self._failures = 0 if got_far else self._failures + 1
        delay = BACK_OFF[min(self._failures, len(BACK_OFF) - 1)]
        self._may_start_at = time.monotonic() + delay

    @property
    def may_start(self) -> bool:
        return self.process is None and time.monotonic() >= self._may_start_at


class Web(Child):
    """The web server, over a socket that the supervisor keeps: while it restarts, callers wait."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._began = 0.0

    def start(self) -> None:
        self._began = time.monotonic()
        self.process = process.fork(web.run, self._fd)

    def has_ended(self) -> bool:
        """Whether it is gone; then it is started again in time."""
        if self.process is None or self.process.is_alive():
            return False
        self.process = None
        self._note_end(got_far=time.monotonic() - self._began > BACK_OFF[-1])
        return True

    def refuse_sends(self) -> None:
        """Let it refuse new work."""
        if self.process is not None and self.process.is_alive():
            os.kill(self.process.pid or 0, web.NO_MORE_SENDS)

    def end(self, *, patience: float) -> None:
        """Let it answer what it has begun, for so long."""
        if self.process is None:
            return
        self.process.terminate()
        self.process.join(patience)
        self.process.kill()
        self.process.join()
        self.process = None


class Cluster(Child):
    """A django-q2 cluster in a session of its own, which lives and dies as a whole."""

    def __init__(self, instance: str, *, drains: int) -> None:
        super().__init__()
        self._instance = instance
        self._drains = drains
        self._beats_fd = -1
        self._beats: dict[int, float] = {}
        self._said_goodbye: set[int] = set()
        self._handles: dict[int, int] = {}
        self._began = 0.0

    def start(self) -> None:
        self._beats_fd, beat_fd = os.pipe()
        os.set_blocking(self._beats_fd, False)
        os.set_blocking(beat_fd, False)
        self._beats, self._said_goodbye = {}, set()
        self._began = time.monotonic()
        started = boot.Boot(f"{self._instance}.{uuid.uuid4().hex[:12]}", self._drains, beat_fd)
        self.process = process.fork(cluster.run, started)
        os.close(beat_fd)

    @property
    def _leader(self) -> int:
        """The number of its session; none has -1."""
        return -1 if self.process is None or self.process.pid is None else self.process.pid

    @property
    def watched(self) -> list[int]:
        """What becomes readable when something is to be looked at: beats, and deaths."""
        beats = [self._beats_fd] if self._beats_fd >= 0 else []
        return [*beats, *self._handles.values()]

    def hear(self, readable: Sequence[int]) -> str:
        """Take in beats; says what is wrong, if anything is."""
        if self.process is None:
            return ""
        self._take_beats()
        if not self.process.is_alive():
            return f"it ended with {self.process.exitcode}"
        for pid, handle in self._handles.items():
            if handle in readable:
                return f"its process {pid} is gone"
        now = time.monotonic()
        if len(self._beats) < self._drains:
            return "it did not begin to drain" if now - self._began > BOOT_PATIENCE else ""
        if not self._handles:
            # From here on each of them is needed, and none is ever replaced.
            self._handles = process.handles(process.of_session(self._leader))
        late = [number for number, at in self._beats.items() if now - at > BEAT_PATIENCE]
        return f"its drains {late} do not beat" if late else ""

    @property
    def is_drained(self) -> bool:
        """Whether all its drains have ended, as they were asked to."""
        self._take_beats()
        return self.process is None or self._said_goodbye >= set(range(self._drains))

    def ask_to_stop(self, signal_number: int) -> None:
        """Let its drains finish what they run and take nothing more."""
        for pid in process.of_session(self._leader):
            os.kill(pid, signal_number)

    def end(self) -> None:
        """Kill all of it, and be ready for the next."""
        if self.process is None:
            return
        process.kill_session(self._leader)
        self.process.kill()  # if it has no session yet
        self.process.join()
        self.process = None
        for handle in (self._beats_fd, *self._handles.values()):
            os.close(handle)
        self._beats_fd = -1
        self._note_end(got_far=bool(self._handles))
        self._handles = {}

    def _take_beats(self) -> None:
        if self._beats_fd < 0:
            return
        try:
            words = os.read(self._beats_fd, 65_536)
        except BlockingIOError:
            return
        now = time.monotonic()
        for word in words:
            if word & GOODBYE:
                self._said_goodbye.add(word & ~GOODBYE)
            else:
                self._beats[word] = now
