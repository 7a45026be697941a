"""A harbour of nine bots, and a server over it: what the browser tests and the screenshots need."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

CHECKOUT = Path(__file__).resolve().parents[2]
PASSWORD = "correct-horse-battery-staple"
BOTS = {
    "meridian": ("Meridian", "Coordination and delegation", "compass", "iris"),
    "warden": ("Warden", "Security review", "shield", "rose"),
    "anvil": ("Anvil", "Implementation and tests", "hammer", "rust"),
    "quill": ("Quill", "Documentation and release notes", "feather", "ochre"),
    "sextant": ("Sextant", "Research and estimates", "telescope", "lake"),
    "ferry": ("Ferry", "Release engineering", "ship", "slate"),
    "tally": ("Tally", "Decisions and risks", "scale", "plum"),
    "beacon": ("Beacon", "Community and support", "megaphone", "moss"),
    "loom": ("Loom", "Data pipelines", "workflow", "lake"),
}
LOUNGERS = ("loom",)  # bots without a conversation
ECHO = {  # a bot that runs by itself: it answers people, and hands work to a teammate
    "name": "echo-script",
    "kind": "script",
    "rules": [
        {"when": "^ask (\\w+)", "do": [{"send": {"bot": "$1", "message": "Please look at it."}}]},
        {"when": "^heard", "do": [{"say": "Noted."}]},  # an answer is not answered
        {"when": ".*", "do": [{"reply": "heard: $0"}]},
    ],
}


def plan() -> dict[str, Any]:
    """The workspace as `provision` takes it."""
    bots = [
        {
            "handle": handle,
            "display_name": name,
            "description": description,
            "icon": icon,
            "colour": colour,
            "runtime": "external",
        }
        for handle, (name, description, icon, colour) in BOTS.items()
    ]
    bots.append({"handle": "echo", "display_name": "Echo", "runtime": "echo-script"})
    bots.append({"handle": "parrot", "display_name": "Parrot", "runtime": "echo-script"})
    return {
        "workspaces": [
            {
                "slug": "harbour",
                "name": "Harbour",
                "runtimes": [ECHO],
                "people": [
                    {"username": "operator", "password": PASSWORD, "role": "manager"},
                    {"username": "guest", "password": PASSWORD, "role": "viewer"},
                ],
                "bots": bots,
                "teams": [
                    {
                        "name": "Harbour bot team",
                        "persistent": True,
                        "active": True,
                        "lead": "meridian",
                        "members": [bot["handle"] for bot in bots],
                    }
                ],
                "conversations": [
                    {"bot": handle, "title": f"{name}’s desk", "team": "Harbour bot team"}
                    for handle, (name, *_) in BOTS.items()
                    if handle not in LOUNGERS
                ]
                + [
                    {"bot": handle, "title": "Main", "team": "Harbour bot team"}
                    for handle in ("echo", "parrot")
                ],
                "credentials": [
                    {"label": f"{handle}-key", "kind": "bot", "bot": handle} for handle in BOTS
                ],
            }
        ]
    }


class Agent:
    """An external agent: it claims, takes in, says and ends over the API."""

    def __init__(self, base: str, task_id: str, secret: str) -> None:
        self.task_id = task_id
        self._http = httpx.Client(
            base_url=f"{base}/api/v1/",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=20,
        )
        self._turn: dict[str, Any] = {}
        self._number = 0

    def send(self, bot: str, message: str, **more: Any) -> dict[str, Any]:
        asked = {"bot": bot, "message": message, "sender_task_id": self.task_id, **more}
        return self._post("send_agent_message", asked)

    def begin(self, *, start: bool = False) -> dict[str, Any]:
        """Claim the next turn."""
        found = self._post(f"tasks/{self.task_id}/turns", {"wait_seconds": 0, "start": start})
        assert found, "nothing starts a turn"
        self._turn = found
        return found

    def take_in(self) -> None:
        self._report({"type": "incorporated"})

    def say(self, text: str) -> None:
        self._report({"type": "assistant_message", "text": text, "own": True})

    def act(self, label: str) -> None:
        self._report({"type": "tool_activity", "label": label, "phase": "started"})

    def note(self, text: str) -> None:
        self._report({"type": "note", "level": "info", "text": text})

    def end(self, status: str = "done", **more: Any) -> None:
        asked = {"fence": self._turn["fence"], "status": status, **more}
        self._post(f"turns/{self._turn['id']}/end", asked)

    def answer(self, text: str) -> None:
        """A whole turn: claim, take in, say, end."""
        self.begin()
        self.take_in()
        self.say(text)
        self.end()

    def _report(self, event: dict[str, Any]) -> None:
        self._number += 1
        named = {"event_id": f"{self._turn['id']}-{self._number}", **event}
        asked = {"fence": self._turn["fence"], "events": [named]}
        self._post(f"turns/{self._turn['id']}/events", asked)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._http.post(path, json=body)
        assert answer.status_code < 300, f"{path}: {answer.status_code} {answer.text}"
        return dict(answer.json()) if answer.content else {}


class Harbour:
    """A running server with the workspace `harbour`."""

    def __init__(self, base: str, folder: Path, made: dict[str, Any]) -> None:
        self.base, self.folder = base, folder
        tasks = {row["bot"]: row["task_id"] for row in made["conversations"]}
        self._tasks = tasks
        self.agents = {
            handle: Agent(base, tasks.get(handle, ""), made["credentials"][f"{handle}-key"])
            for handle in BOTS
        }

    def __getattr__(self, handle: str) -> Agent:
        return self.agents[handle]

    def address(self, handle: str) -> str:
        """Where a bot's conversation is."""
        return f"{self.base}/bots/{handle}/c/{self._tasks[handle]}/"


@contextmanager
def running(folder: Path) -> Iterator[Harbour]:
    """Provision the harbour in a folder and serve it on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "COWORK_DATABASE_URL"},
        "DJANGO_SETTINGS_MODULE": "cowork.settings",
        "COWORK_DATA_DIR": str(folder),
        "COWORK_PUBLIC_URL": base,
        "PYTHONWARNINGS": "ignore",
    }
    path = folder / "harbour.json"
    path.write_text(json.dumps(plan()))
    made = subprocess.run(
        [sys.executable, "manage.py", "provision", str(path), "--json"],
        cwd=CHECKOUT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert made.returncode == 0, made.stderr
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(port), "--workers", "1"],
            cwd=CHECKOUT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_it_answers(base, server)
            yield Harbour(base, folder, json.loads(made.stdout)["workspaces"]["harbour"])
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(12)
            server.kill()


def _wait_until_it_answers(base: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        assert server.poll() is None, "the server left"
        with suppress(httpx.HTTPError):
            httpx.get(f"{base}/sign-in/", timeout=5)
            return
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")
