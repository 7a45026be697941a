"""The running product dies at each point of COWORK_CRASH_AT and is started again; nothing is lost.

One installation dies at every point once; each test leaves nothing to be read behind.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.installation import ROOT, Installation, a_database, until
from tests.provisioned import plan
from timeline import crash

PATIENCE = 40.0


class Mortal(Installation):
    """A server that dies where it is told to."""

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.made: dict[str, Any] = self._provision()

    def _provision(self) -> dict[str, Any]:
        path = self.folder / "lab.json"
        path.write_text(json.dumps({"workspaces": [plan("lab")]}))
        printed = self._run("manage.py", "provision", str(path), "--json")
        made: dict[str, Any] = json.loads(printed[printed.index("{") :])
        return dict(made["workspaces"]["lab"])

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def dying_at(self, point: str) -> Iterator[None]:
        """A server that dies, as a whole, at a point that somebody reaches; then it is started
        again."""
        usual = self.settings
        self.settings = {**usual, "COWORK_DEBUG": "1", "COWORK_CRASH_AT": point}
        self.start()
        with contextlib.suppress(httpx.TransportError):
            yield
        try:
            until(self.has_ended, PATIENCE, what=f"the death at {point}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-4000:]}") from error
        assert (self.folder / f"crashed-{point}").exists()
        self.settings = usual
        self.start()

    def has_ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def check_records(self) -> None:
        """Stop it, then look at its rows."""
        self.stop()
        self._run("-m", "tests.crashes.look")


class Agent:
    """A bot that calls the server."""

    def __init__(self, server: Mortal, handle: str) -> None:
        made = server.made
        [self.task_id] = [row["task_id"] for row in made["conversations"] if row["bot"] == handle]
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}/api/v1/",
            headers={"Authorization": f"Bearer {made['credentials'][f'{handle}-key']}"},
            timeout=PATIENCE,
            trust_env=False,
        )

    def send(self, bot: str, message_id: str) -> httpx.Response:
        return self._http.post(
            "send_agent_message",
            json={"bot": bot, "message": f"This is {message_id}.", "message_id": message_id},
        )

    def claim(self, claim_id: str = "") -> httpx.Response:
        asked = {"claim_id": claim_id} if claim_id else {}
        return self._http.post(f"tasks/{self.task_id}/turns", json=asked)

    def report(self, turn: dict[str, Any]) -> httpx.Response:
        events = [{"event_id": "e-1", "type": "incorporated"}]
        return self._http.post(
            f"turns/{turn['id']}/events", json={"fence": turn["fence"], "events": events}
        )

    def end(self, turn: dict[str, Any]) -> httpx.Response:
        return self._http.post(
            f"turns/{turn['id']}/end", json={"fence": turn["fence"], "status": "done"}
        )

    def take_all(self) -> list[str]:
        """Whole turns until nothing waits: the ids of what was read."""
        taken = []
        while (claimed := self.claim()).status_code != 204:
            turn = claimed.json()
            assert self.report(turn).status_code == 200
            assert self.end(turn).status_code == 200
            taken += [one["message_id"] for one in turn["inputs"]]
        return taken

    def status_of(self, message_id: str) -> str:
        [row] = self._http.get("receipts", params={"message_id": message_id}).json()["results"]
        return str(row["delivery_status"])

    def transcript(self) -> list[str]:
        """The ids of the messages that stand in its transcript, in order."""
        found = self._http.get(f"tasks/{self.task_id}/events", params={"limit": 200}).json()
        return [
            event["payload"]["message_id"]
            for event in found["results"]
            if event["type"] == "user_message"
        ]


@pytest.fixture(scope="module")
def server() -> Iterator[Mortal]:
    with a_database() as settings:
        # Nobody is human here, and all of it is one chain: no message is to be held for that.
        server = Mortal(**settings, COWORK_MAX_HOPS="1000")
        yield server
        server.close()


@pytest.fixture
def atlas(server: Mortal) -> Agent:
    return Agent(server, "atlas")


@pytest.fixture
def forge(server: Mortal) -> Iterator[Agent]:
    forge = Agent(server, "forge")
    yield forge
    server.check_records()


@pytest.mark.parametrize("point", sorted(crash.POINTS))
def test_every_point_is_met_here(point: str) -> None:
    assert f'"{point}"' in Path(__file__).read_text()


def test_a_message_whose_acceptance_was_never_answered_is_there_once(
    server: Mortal, atlas: Agent, forge: Agent
) -> None:
    with server.dying_at("after_accept"):
        atlas.send("forge", "accepted")

    again = atlas.send("forge", "accepted")

    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert forge.take_all() == ["accepted"]
    assert forge.transcript().count("accepted") == 1
    atlas.take_all()


def test_a_claim_that_was_never_answered_is_found_again(
    server: Mortal, atlas: Agent, forge: Agent
) -> None:
    with server.dying_at("after_claim"):
        atlas.send("forge", "claimed")
        forge.claim("c-1")

    assert atlas.status_of("claimed") == "started"
    claimed = forge.claim("c-1")
    assert (claimed.status_code, claimed.json()["inputs"][0]["attempt"]) == (200, 1)
    assert forge.report(claimed.json()).status_code == 200
    assert forge.end(claimed.json()).status_code == 200
    assert forge.take_all() == []
    atlas.take_all()


@pytest.mark.parametrize(
    ("point", "status"),
    [("before_incorporate_commit", "started"), ("after_incorporate_commit", "delivered")],
)
def test_what_was_taken_in_is_delivered_once_it_is_stored(
    server: Mortal, atlas: Agent, forge: Agent, point: str, status: str
) -> None:
    turn: dict[str, Any] = {}
    with server.dying_at(point):
        atlas.send("forge", point)
        turn = forge.claim().json()
        forge.report(turn)

    assert atlas.status_of(point) == status
    assert forge.transcript().count(point) == int(status == "delivered")
    assert forge.report(turn).status_code == 200
    assert forge.end(turn).status_code == 200
    assert atlas.status_of(point) == "delivered"
    assert forge.transcript().count(point) == 1
    assert forge.take_all() == []
    atlas.take_all()


def test_a_wake_whose_worker_died_is_kept(server: Mortal, atlas: Agent, forge: Agent) -> None:
    with server.dying_at("after_handler"):
        atlas.send("forge", "woken")

    until(lambda: atlas.send("forge", "woken").status_code == 200)

    assert forge.take_all() == ["woken"]
    assert forge.transcript().count("woken") == 1
    atlas.take_all()
