"""`up --demo`: a person writes, bots hand work to each other, and the smoke finds it so."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from messaging.management import demo_team
from tests.live.installation import ROOT, Installation, a_database, until

Maker = Callable[..., Installation]
Facts = dict[str, Any]
HANDLES = {bot.handle for bot in demo_team.BOTS}
# The promise to people, measured while other tests use the machine as well.
ANSWER_WITHIN = 2.0


@dataclass
class Demo:
    """A running demo and a service that works for people."""

    server: Installation

    @property
    def described(self) -> Facts:
        found: Facts = json.loads((self.server.folder / "control-plane-local.json").read_text())
        return found

    def call(self, method: str, path: str, **more: Any) -> Facts:
        described = self.described
        answer = httpx.request(
            method,
            f"{described['url']}/api/v1/{path}",
            headers={"Authorization": f"Bearer {described['token']}"},
            trust_env=False,
            timeout=20,
            **more,
        )
        assert answer.is_success, answer.text
        found: Facts = answer.json()
        return found

    def tasks(self) -> dict[str, Facts]:
        """The conversation of each bot."""
        rows = self.call("GET", "tasks", params={"limit": 200})["results"]
        assert len(rows) == len(HANDLES)
        return {row["bot"]: row for row in rows}

    def follow_up(self, bot: str, text: str) -> Callable[..., list[Facts]]:
        """Write to a bot; answers with what asks for its events of a type since then."""
        task = self.tasks()[bot]
        self.call("POST", f"tasks/{task['id']}/follow_ups", json={"message": text})

        def since(*types: str) -> list[Facts]:
            query = {"after": task["last_seq"], "limit": 200}
            rows = self.call("GET", f"tasks/{task['id']}/events", params=query)["results"]
            return [row["payload"] for row in rows if row["type"] in types]

        return since

    def handoffs(self, bot: str) -> list[Facts]:
        query = {"sender": self.tasks()[bot]["id"], "limit": 200}
        rows = self.call("GET", "receipts", params=query)["results"]
        return [row for row in rows if row["handoff"]]

    def is_at_rest(self) -> bool:
        receipts = self.call("GET", "receipts", params={"limit": 200})["results"]
        return all(row["delivery_status"] == "delivered" for row in receipts) and all(
            task["status"] != "running" for task in self.tasks().values()
        )

    def smoke(self, sender: str, recipient: str, *more: str) -> tuple[int, str]:
        ids = {handle: task["id"] for handle, task in self.tasks().items()}
        words = ["--sender-task", ids[sender], "--recipient-task", ids[recipient], *more]
        done = manage(self.server, "smoke_bots", *words)
        return done.returncode, done.stdout


def manage(server: Installation, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """One running demo for the tests of this file."""
    with a_database() as settings:
        server = Installation(**settings)
        try:
            server.start("--demo")
            yield Demo(server)
        finally:
            server.close()


@pytest.mark.parametrize("bot", sorted(HANDLES))
def test_whatever_a_person_writes_is_answered_and_handed_on(demo: Demo, bot: str) -> None:
    before = {row["id"] for row in demo.handoffs(bot)}

    since = demo.follow_up(bot, "?\nCan you look into $1 and \\1, (please)")
    took = until(lambda: since("assistant_message"), what="the answer")

    assert took < ANSWER_WITHIN
    until(lambda: {row["id"] for row in demo.handoffs(bot)} - before, what="the handoff")
    until(
        lambda: all(row["reply_status"] == "received" for row in demo.handoffs(bot)),
        what="the replies",
    )
    assert all(row["delivery_status"] == "delivered" for row in demo.handoffs(bot))
    # What the teammate answered is told, and all bots come to rest.
    until(lambda: any("answers:" in said["text"] for said in since("assistant_message")))
    until(demo.is_at_rest, what="the rest")


def test_a_long_text_is_handed_on_too(demo: Demo) -> None:
    before = len(demo.handoffs("quill"))

    since = demo.follow_up("quill", "ü" * 32_768)

    until(lambda: since("agent_message"), what="the handoff")
    assert len(demo.handoffs("quill")) == before + 1
    until(demo.is_at_rest, what="the rest")


def test_a_failure_is_shown_and_retried(demo: Demo) -> None:
    since = demo.follow_up("sextant", "Please show me a FAILURE.")
    until(lambda: since("agent_message"), what="the handoff")
    [sent] = since("agent_message")

    def receipt() -> Facts:
        return demo.call("GET", f"receipts/{sent['receipt_id']}")

    until(lambda: receipt()["attempt"] > 1, what="the second attempt")
    until(lambda: receipt()["delivery_status"] == "delivered", what="the delivery")
    until(lambda: receipt()["reply_status"] == "received", what="the reply")

    assert receipt()["attempt"] == 3
    steps = [(row["from"], row["to"], row["attempt"]) for row in receipt()["transitions"]]
    assert steps == [
        (None, "queued", 1),
        ("queued", "started", 1),
        ("started", "queued", 2),
        ("queued", "started", 2),
        ("started", "queued", 3),
        ("queued", "started", 3),
        ("started", "delivered", 3),
    ]


def test_a_persons_own_message_fails_at_once(demo: Demo) -> None:
    task = demo.tasks()["tally"]

    demo.follow_up("tally", "fail this message")

    def mine() -> Facts:
        rows = demo.call("GET", "receipts", params={"recipient": task["id"]})["results"]
        found: Facts = next(row for row in rows if row["source"] == "service")
        return found

    until(lambda: mine()["delivery_status"] == "failed", what="the failure")
    assert mine()["failure_code"] == "RUNTIME_ERROR"
    assert mine()["closed_at"] is None


@pytest.mark.parametrize(("sender", "recipient"), [("meridian", "quill"), ("quill", "anvil")])
def test_the_smoke_passes_between_demo_bots(demo: Demo, sender: str, recipient: str) -> None:
    status, said = demo.smoke(sender, recipient, "--poll-ms", "200", "--timeout-ms", "30000")

    assert status == 0, said
    assert said.splitlines()[-1] == "passed: protocol proven; rendering not checked"
    assert demo.described["token"] not in said


def test_a_second_demo_changes_nothing(demo: Demo) -> None:
    before = [demo.tasks(), demo.call("GET", "bots")["results"], demo.call("GET", "teams")]

    done = manage(demo.server, "demo")

    assert done.returncode == 0, done.stderr
    assert "is there" in done.stdout
    after = [demo.tasks(), demo.call("GET", "bots")["results"], demo.call("GET", "teams")]
    assert after == before


def test_the_last_line_is_the_address_and_the_link_stands_before(demo: Demo) -> None:
    lines = demo.server.log.read_text().splitlines()

    place = next(number for number, line in enumerate(lines) if line.startswith("CoWork is at"))
    assert lines[place] == f"CoWork is at http://127.0.0.1:{demo.server.port}"
    assert any("/sign-in/link/" in line for line in lines[:place])
    assert any(line.startswith("Made the demo team") for line in lines[:place])


def test_the_demo_outlives_a_restart_and_the_smoke_needs_a_worker(installation: Maker) -> None:
    server = installation()
    server.start("--demo")
    demo = Demo(server)
    tasks = demo.tasks()
    server.stop()
    assert descriptorless(server)

    server.launch("--demo", "--role", "web")
    until(lambda: not descriptorless(server), what="the descriptor")
    until(answers(demo), what="the web server")
    assert demo.tasks() == tasks

    began = time.monotonic()
    status, said = demo.smoke("meridian", "quill", "--timeout-ms", "1500", "--poll-ms", "100")

    assert status == 2, said
    assert time.monotonic() - began > 1.5
    assert "queued" in said
    assert "Does a worker run" in said


def test_a_descriptor_of_a_dead_server_is_none(installation: Maker) -> None:
    server = installation()
    server.start("--demo")
    tasks = Demo(server).tasks()
    assert server.process is not None
    server.process.kill()
    server.process.wait(10)
    assert not descriptorless(server)

    ids = [tasks[handle]["id"] for handle in ("quill", "tally")]
    done = manage(server, "smoke_bots", "--sender-task", ids[0], "--recipient-task", ids[1])

    assert done.returncode == 2
    assert "No server runs over" in done.stdout


def descriptorless(server: Installation) -> bool:
    return not (server.folder / "control-plane-local.json").exists()


def answers(demo: Demo) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            return httpx.get(f"{demo.described['url']}/healthz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    return ask
