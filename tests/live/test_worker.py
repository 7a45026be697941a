"""Processes are killed and servers stopped: nothing is lost, nothing is stored twice."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.live.installation import ROOT, Installation, until

Maker = Callable[..., Installation]
# Until new work is done after a death, without the time that promising it takes (BENCH.md B9).
AGAIN = 2.0


def all_of(server: Installation, words: list[str], seconds: float = 30) -> float:
    return until(lambda: set(words) <= set(server.words()), seconds, what="the work")


def is_gone(pid: int) -> bool:
    try:
        stat_line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat_line.rpartition(")")[2].split()[0] in ("Z", "X")


def test_each_process_of_the_cluster_may_be_killed(installation: Maker) -> None:
    server = installation()
    server.start()
    words = all_words = server.promise("first", count=5)
    all_of(server, words)
    count = len(server.workers())
    assert count >= 7  # main, sentinel, monitor, pusher, two drains and one to spare

    for number in range(count):
        until(lambda: len(server.workers()) == count)
        victim = sorted(server.workers())[number]
        os.kill(victim, signal.SIGKILL)
        until(partial(is_gone, victim))
        words = server.promise(f"after-{number}", count=3)
        took = all_of(server, words)
        assert took < AGAIN, f"{number}: {took}"
        all_words = [*all_words, *words]

    assert Counter(server.words()) == Counter(all_words)


def test_work_in_the_middle_of_a_kill_is_done_and_stored_once(installation: Maker) -> None:
    server = installation()
    server.start()
    words = server.promise("slow", count=6, targets=6, sleep=0.5)
    until(server.words)

    os.kill(sorted(server.workers())[0], signal.SIGKILL)
    all_of(server, words)
    more = server.promise("later")
    all_of(server, more)

    # Handlers that died run again; what they store is stored once, or the row's key would break.
    assert set(server.words()) == {*words, *more}
    assert max(Counter(server.words()).values()) <= 2


def test_no_process_outlives_the_supervisor(installation: Maker) -> None:
    server = installation()
    server.start()
    pids = list(server.processes())
    assert len(pids) >= 9

    os.kill(server.pid, signal.SIGKILL)

    until(lambda: all(is_gone(pid) for pid in pids), 3, what="the end of all")


def test_a_stop_lets_handlers_finish_and_is_in_time(installation: Maker) -> None:
    server = installation()
    server.start()
    words = server.promise("slow", count=2, targets=2, sleep=2)
    until(lambda: set(words) <= set(server.words()))
    pids = list(server.processes())

    took = server.stop()
    assert 0.5 < took < 10
    assert server.process is not None
    assert server.process.returncode == 0
    assert all(is_gone(pid) for pid in pids)
    assert not (server.folder / "control-plane-local.json").exists()

    server.start()
    all_of(server, server.promise("after"))
    assert Counter(server.words()) == Counter([*words, "after-0"])


def test_a_stop_ends_in_time_whatever_handlers_do(installation: Maker) -> None:
    server = installation()
    server.start()
    server.promise("endless", sleep=25)
    until(server.words)

    assert server.stop() < 10


def test_a_handler_over_its_limit_counts_as_failed(installation: Maker) -> None:
    server = installation(COWORK_HANDLER_LIMIT_SECONDS="1", COWORK_RETRY_SECONDS="0.2")
    server.start()
    server.promise("endless", sleep=25)
    all_of(server, server.promise("other"))

    until(lambda: server.words().count("endless-0") == 2, 20, what="the second run")
    time.sleep(2)
    assert server.words().count("endless-0") == 2  # one retry, then parked


def test_a_drain_is_followed_by_the_next(installation: Maker) -> None:
    server = installation(COWORK_DRAIN_LIFE_SECONDS="2")
    server.start()
    pids = set(server.workers())

    words = server.promise("steady", count=100, targets=10, gap=0.1)
    all_of(server, words)

    assert Counter(server.words()) == Counter(words)
    assert set(server.workers()) == pids  # nothing was taken for dead
    assert "started again" not in server.log.read_text()


def test_a_second_server_is_refused_and_the_port_moves_on(installation: Maker) -> None:
    server = installation()
    server.start()
    second = subprocess.run(
        [sys.executable, "manage.py", "up", "--port", str(server.port)],
        cwd=ROOT,
        env=server.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode != 0
    assert str(server.pid) in second.stdout + second.stderr
    assert server.is_ready()


def test_the_descriptor_tells_the_user_only(installation: Maker) -> None:
    server = installation()
    server.start()
    path = server.folder / "control-plane-local.json"

    described = json.loads(path.read_text())

    assert described["url"] == f"http://127.0.0.1:{server.port}"
    assert described["pid"] == server.pid
    assert described["token"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "value"), [("COWORK_Q_RETRY", "60"), ("COWORK_DRAIN_LIFE_SECONDS", "60")]
)
def test_unsafe_settings_refuse_to_start(installation: Maker, name: str, value: str) -> None:
    server = installation(**{name: value})
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--port", str(server.port)],
        cwd=ROOT,
        env=server.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "COWORK_Q_" in done.stderr


def test_the_server_ends_as_a_whole_where_a_process_was_to_die(installation: Maker) -> None:
    server = installation(COWORK_DEBUG="1", COWORK_CRASH_AT="after_handler")
    server.start()
    pids = list(server.processes())
    words = server.promise("dies")

    assert server.process is not None
    assert server.process.wait(10) != 0
    assert all(is_gone(pid) for pid in pids)
    server.start()
    until(lambda: server.words().count(words[0]) == 2, what="the second run")
