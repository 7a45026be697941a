"""Waiting for a commit: of this process, of another one, and after the word of it was lost."""

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection

from tests.timeline.streams import write
from timeline import commits

CHECKOUT = Path(__file__).resolve().parents[2]
WRITER = """
import sys, uuid, django
django.setup()
from tests.timeline.streams import write
for line in sys.stdin:
    write(uuid.UUID(sys.argv[1]), line.strip())
    print("written", flush=True)
"""


@pytest.fixture
def other_process(stream):
    """Another process that writes to the stream when it is asked to."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{database['NAME']}"
    else:
        host = f"{quote(database['HOST'])}:{database['PORT'] or 5432}"
        who = f"{quote(database['USER'])}:{quote(database['PASSWORD'])}"
        url = f"postgres://{who}@{host}/{database['NAME']}"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(stream)],
        cwd=CHECKOUT,
        env={**os.environ, "COWORK_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        there, back = process.stdin, process.stdout

        def write_there() -> None:
            there.write("from elsewhere\n")
            there.flush()
            assert back.readline() == "written\n"

        write_there()  # it has started
        yield write_there
        there.close()


@pytest.fixture
def quiet():
    """Wait until what was committed before the test has been heard."""
    while commits.wait(0.6):
        pass


def test_a_commit_of_this_process_wakes_at_once(stream, quiet):
    def write_soon() -> None:
        write(stream, "news")
        connection.close()

    threading.Timer(0.01, write_soon).start()

    assert commits.wait(10)


def test_a_commit_before_the_call_is_not_missed(stream, quiet):
    write(stream, "news")

    assert commits.wait(0)


def test_it_is_quiet_while_nobody_commits(stream, quiet):
    assert not commits.wait(0.6)


def test_reading_is_no_commit(stream, quiet):
    connection.cursor().execute("SELECT count(*) FROM timeline_event")

    assert not commits.wait(0.6)


def test_a_commit_that_nobody_told_of_is_found(stream, quiet):
    silent = connection.copy()
    with silent.cursor() as cursor:
        cursor.execute("UPDATE timeline_stream SET last_seq = last_seq + 1")
    silent.close()

    assert commits.wait(5)


@pytest.mark.services
def test_a_commit_of_another_process_wakes(other_process, quiet):
    other_process()

    assert commits.wait(5)


@pytest.mark.services
def test_a_commit_is_heard_although_its_word_was_lost(other_process, quiet, monkeypatch):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:  # whoever listens is cut off, and hears of it later
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE query LIKE '%pg_current_snapshot()%' AND pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )
            assert cursor.fetchone() != (0,)
    else:
        monkeypatch.setattr("timeline.file_watch._Writes._is_ours", lambda *_: False)

    other_process()

    assert commits.wait(5)


@pytest.mark.services
def test_a_process_that_was_forked_has_a_watch_of_its_own(other_process, quiet):
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()

    def listen() -> None:
        connection.close()
        while commits.wait(0.6):
            pass
        theirs.send("listening")
        theirs.send(commits.wait(10))

    connection.close()
    child = fork.Process(target=listen)
    child.start()
    assert ours.recv() == "listening"
    other_process()

    assert ours.recv() is True
    assert commits.wait(5)
    child.join(10)


@pytest.mark.services
@pytest.mark.asyncio
async def test_an_event_of_another_process_reaches_a_socket(other_process, stream, connect):
    async with connect(f"/ws/tasks/{stream}/?after=1") as client:
        assert await client.frame() == {"type": "ready", "after": 1}
        other_process()
        assert await client.events(1) == [2]


def test_without_inotify_it_polls(stream, monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite's file is polled")
    commits.stop()
    monkeypatch.setattr("timeline.file_watch._Writes.__enter__", lambda writes: writes)
    while commits.wait(0.6):
        pass
    try:
        monkeypatch.setattr(commits, "tell", lambda: None)
        write(stream, "news")
        assert commits.wait(5)
    finally:
        commits.stop()
