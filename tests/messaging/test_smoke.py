"""The live check proves what it says, and each of its four proofs by itself (SPEC §17)."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from cowork.models import Turn
from messaging.management import control_plane, smoke
from messaging.management.control_plane import Access, ControlPlane, NoServer, Refused
from messaging.management.smoke import Check, Unfit
from messaging.models import Receipt
from tests.provisioned import Lab
from timeline.models import Event

NONE = dict.fromkeys(smoke.PROOFS, False)


@dataclass
class Stage:
    """atlas and forge, played by the test, while the check looks on."""

    lab: Lab
    plane: ControlPlane
    turns: dict[str, dict[str, Any]] = field(default_factory=dict)

    def id(self, bot: str) -> str:
        return str(self.lab.task(bot).id)

    def check(self) -> Check:
        pair = smoke.find_pair(self.plane, self.id("atlas"), self.id("forge"), may_be_others=False)
        return Check(self.plane, pair, marker="mark-1", ack="ack-1")

    def take(self, bot: str) -> None:
        """The bot begins a turn."""
        claimed = self.lab.agent(bot).post(f"tasks/{self.id(bot)}/turns", wait_seconds=0)
        assert claimed.status_code == 201, claimed.content
        self.turns[bot] = claimed.json()

    def report(self, bot: str, **event: Any) -> None:
        turn = self.turns[bot]
        number = Event.objects.count()
        body = {"fence": turn["fence"], "events": [{"event_id": f"event-{number}", **event}]}
        answer = self.lab.agent(bot).post(f"turns/{turn['id']}/events", **body)
        assert answer.status_code == 200, answer.content

    def take_in(self, bot: str) -> None:
        self.take(bot)
        self.report(bot, type="incorporated")

    def send(self, bot: str, to: str, message: str) -> None:
        answer = self.lab.agent(bot).post("send_agent_message", bot=to, message=message)
        assert answer.status_code == 202, answer.content

    def end(self, bot: str, status: str = "done") -> None:
        turn = self.turns.pop(bot)
        body = {"fence": turn["fence"], "status": status}
        assert self.lab.agent(bot).post(f"turns/{turn['id']}/end", **body).status_code == 200


def plane_of(secret: str) -> ControlPlane:
    """The product's own API, without a network between."""
    client = Client()

    def answer(request: httpx.Request) -> httpx.Response:
        given = client.generic(
            request.method,
            request.url.raw_path.decode(),
            data=request.content,
            content_type="application/json",
            headers={"Authorization": request.headers["Authorization"]},
        )
        return httpx.Response(given.status_code, content=given.content)

    access = Access("http://127.0.0.1:8000", secret)
    return ControlPlane(access, transport=httpx.MockTransport(answer))


@pytest.fixture
def stage(lab: Lab) -> Stage:
    return Stage(lab, plane_of(lab.secrets["ops"]))


def proven(check: Check) -> set[str]:
    check.look()
    return {proof for proof, is_there in check.proofs.items() if is_there}


def test_each_proof_comes_by_itself(stage: Stage) -> None:
    check = stage.check()
    check.begin()
    assert proven(check) == set()

    stage.take_in("atlas")
    stage.send("atlas", "forge", "MARKER: mark-1 ACK: ack-1")
    stage.end("atlas")
    assert proven(check) == set()
    assert "still queued" in check.hint

    stage.take("forge")
    assert proven(check) == set()
    stage.report("forge", type="incorporated")
    assert proven(check) == {"sender_delivered", "recipient_delivered"}

    stage.report("forge", type="assistant_message", text="It is ack-1.")
    assert proven(check) == {"sender_delivered", "recipient_delivered", "acknowledged"}

    stage.send("forge", "atlas", "ack-1")
    stage.end("forge")
    stage.take("atlas")
    assert "reply_received" not in proven(check)
    stage.report("atlas", type="incorporated")

    assert proven(check) == set(smoke.PROOFS)
    assert check.is_over
    assert check.hint == smoke.PASSED


def test_only_the_recipients_own_words_acknowledge(stage: Stage) -> None:
    check = stage.check()
    check.begin()
    stage.take_in("atlas")
    stage.report("atlas", type="assistant_message", text="ack-1")
    stage.send("atlas", "forge", "MARKER: mark-1 ACK: ack-1")
    stage.take_in("forge")

    stage.report("forge", type="tool_activity", label="echo ack-1", phase="finished")
    stage.report("forge", type="note", level="info", text="ack-1")
    stage.report("forge", type="assistant_message", text="ack-1", own=False)
    stage.report("forge", type="assistant_message", text="ack-12 and an ack-1-2")

    assert proven(check) == {"sender_delivered", "recipient_delivered"}


def test_what_was_there_before_proves_nothing(stage: Stage) -> None:
    stage.send("atlas", "forge", "MARKER: mark-1 ACK: ack-1")
    stage.take_in("forge")
    stage.report("forge", type="assistant_message", text="ack-1")
    check = stage.check()

    check.begin()

    assert proven(check) == set()


def test_a_message_without_the_exact_marker_is_another_one(stage: Stage) -> None:
    check = stage.check()
    check.begin()
    stage.take_in("atlas")
    stage.send("atlas", "forge", "MARKER: mark-12 ACK: ack-1")
    stage.send("atlas", "echo", "MARKER: mark-1 ACK: ack-1")
    stage.take_in("forge")
    stage.take_in("echo")

    assert proven(check) == set()
    assert "sent @forge no message" in check.hint


def test_a_failed_prompt_ends_it_at_once(stage: Stage) -> None:
    check = stage.check()
    check.begin()
    stage.take("atlas")
    stage.end("atlas", "error")

    check.look()

    assert check.is_over
    assert not check.has_passed
    assert "failed (RUNTIME_ERROR)" in check.hint


def test_a_quarantined_message_ends_it_at_once(stage: Stage) -> None:
    check = stage.check()
    check.begin()
    stage.take_in("atlas")
    stage.send("atlas", "forge", "MARKER: mark-1 ACK: ack-1")
    stage.lab.manager.delete(f"teams/{stage.lab.team_id}/members/forge")
    claimed = stage.lab.agent("forge").post(f"tasks/{stage.id('forge')}/turns", wait_seconds=0)
    assert claimed.status_code == 204

    assert proven(check) == set()
    assert check.is_over
    assert "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED" in check.hint


def test_the_preflight_wants_two_conversations_of_bots_that_it_may_see(
    stage: Stage, other_lab: Lab
) -> None:
    atlas = stage.id("atlas")
    root = stage.lab.operator.post("tasks", kind="root", title="Work").json()["id"]

    with pytest.raises(Unfit, match="same task"):
        smoke.find_pair(stage.plane, atlas, atlas, may_be_others=True)
    with pytest.raises(Unfit, match="TASK_NOT_FOUND"):
        smoke.find_pair(stage.plane, atlas, str(other_lab.task("forge").id), may_be_others=True)
    with pytest.raises(Unfit, match="no conversation of a bot"):
        smoke.find_pair(stage.plane, atlas, root, may_be_others=False)
    assert not smoke.find_pair(stage.plane, atlas, root, may_be_others=True).is_of_bots
    assert (Receipt.objects.count(), Turn.objects.count()) == (0, 0)


def test_an_agents_own_credential_may_not_begin_it(lab: Lab) -> None:
    stage = Stage(lab, plane_of(lab.secrets["atlas-key"]))
    pair = smoke.Pair(*(plane_facts(lab, bot) for bot in ("atlas", "forge")))

    with pytest.raises(Refused, match="FORBIDDEN"):
        Check(stage.plane, pair, marker="mark-1", ack="ack-1").begin()


def plane_facts(lab: Lab, bot: str) -> dict[str, Any]:
    facts: dict[str, Any] = lab.ops.get(f"tasks/{lab.task(bot).id}").json()
    return facts


# -- Where the server is


def described(folder: Any, *, pid: int) -> None:
    told = {"url": "http://127.0.0.1:9", "token": "its-own", "pid": pid}
    (folder / control_plane.DESCRIPTOR).write_text(json.dumps(told))


def dead_pid() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def test_options_come_before_the_environment_and_that_before_the_descriptor(tmp_path: Any) -> None:
    described(tmp_path, pid=os.getpid())
    environment = {control_plane.URL: "http://there", control_plane.TOKEN: "theirs"}

    def found(url: str | None, token: str | None, variables: dict[str, str]) -> tuple[str, str]:
        access = control_plane.access(url=url, token=token, environment=variables, folder=tmp_path)
        return access.url, access.token

    assert found("http://here/", "mine", environment) == ("http://here", "mine")
    assert found(None, None, environment) == ("http://there", "theirs")
    assert found(None, None, {}) == ("http://127.0.0.1:9", "its-own")
    assert found(None, "mine", {}) == ("http://127.0.0.1:9", "mine")


def test_the_descriptors_token_goes_to_its_own_server_only(tmp_path: Any) -> None:
    described(tmp_path, pid=os.getpid())

    with pytest.raises(NoServer, match="no token"):
        control_plane.access(url="http://there", token=None, environment={}, folder=tmp_path)


def test_the_descriptor_of_a_dead_process_is_ignored(tmp_path: Any) -> None:
    described(tmp_path, pid=dead_pid())

    with pytest.raises(NoServer, match="No server runs"):
        control_plane.access(url=None, token=None, environment={}, folder=tmp_path)


def test_a_token_is_never_shown() -> None:
    assert "secret" not in repr(Access("http://here", "secret"))


# -- The command


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--sender-task", "x", "--recipient-task", "y"],
        ["--marker", "two words"],
        ["--poll-ms", "0"],
    ],
)
def test_what_it_needs_is_said(words: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("smoke_bots", *words)


def test_no_server_is_no_success(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(control_plane.URL, raising=False)
    ids = ["--sender-task", stage.id("atlas"), "--recipient-task", stage.id("forge")]
    said = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command(
            "smoke_bots", *ids, "--url", "http://127.0.0.1:9", "--token", "s3cret", "--json",
            stdout=said,
        )  # fmt: skip

    assert ended.value.code == 2
    report = json.loads(said.getvalue())
    assert (report["passed"], report["proofs"], report["snapshot"]) == (False, NONE, {})
    assert "does not answer" in report["hint"]
    assert "s3cret" not in said.getvalue()
