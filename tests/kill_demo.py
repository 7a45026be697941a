"""Send messages while the processes of the server are killed: `python -m tests.kill_demo`.

Starts an installation of its own. Every second one of its processes, chosen by chance, is killed
with SIGKILL; a server that was killed as a whole is started again. Then it counts.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

import httpx

from tests.live.installation import ROOT, Installation

PATIENCE = 120.0
WANTED = {
    "workspaces": [
        {
            "slug": "lab",
            "name": "Lab",
            "runtimes": [{"name": "listening", "kind": "script", "rules": []}],
            "bots": [
                {"handle": "atlas", "display_name": "Atlas", "runtime": "external"},
                {"handle": "echo", "display_name": "Echo", "runtime": "listening"},
            ],
            "teams": [{"name": "Core", "lead": "atlas", "members": ["atlas", "echo"]}],
            "conversations": [
                {"bot": "atlas", "title": "Main", "team": "Core"},
                {"bot": "echo", "title": "Main", "team": "Core"},
            ],
            "credentials": [
                {"label": "atlas-key", "kind": "bot", "bot": "atlas"},
                {"label": "ops", "kind": "service"},
            ],
        }
    ]
}


class Killer(threading.Thread):
    """Kills by chance, once in a while, and starts the server again when all of it is gone."""

    def __init__(self, server: Installation, *, every: float, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._every = every
        self._chance = chance
        self._is_over = threading.Event()
        self.killed: Counter[str] = Counter()

    def run(self) -> None:
        while not self._is_over.wait(self._every):
            processes = self._server.processes()
            victim = self._chance.choice(sorted(processes))
            self.killed["the supervisor" if victim == self._server.pid else "others"] += 1
            os.kill(victim, signal.SIGKILL)
            if victim == self._server.pid:
                assert self._server.process is not None
                self._server.process.wait()
                self._server.start()

    def stop(self) -> None:
        self._is_over.set()
        self.join()


class Caller:
    """An API client that repeats what got no answer: the same id is safe to repeat."""

    def __init__(self, server: Installation, secret: str) -> None:
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}/api/v1",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=10,
            trust_env=False,
        )

    def call(self, method: str, path: str, **options: Any) -> Any:
        ends_at = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._client.request(method, path, **options)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                answer.raise_for_status()
                return answer.json()
            if time.monotonic() > ends_at:
                raise TimeoutError(f"{method} {path}")
            time.sleep(0.05)

    def listed(self, path: str, **query: Any) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            asked = {**query, "limit": 200, **({"cursor": cursor} if cursor else {})}
            page = self.call("GET", path, params=asked)
            found += page["results"]
            cursor = page["next"]
            if cursor is None:
                return found


def provision(server: Installation) -> Any:
    """Make the bots; what was made."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=server.folder) as file:
        json.dump(WANTED, file)
        file.flush()
        done = subprocess.run(
            [sys.executable, "manage.py", "provision", file.name, "--json"],
            cwd=ROOT,
            env=server.environment,
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)["workspaces"]["lab"]


def transcript(ops: Caller, task_id: str) -> Counter[str]:
    """How often each message stands in the transcript."""
    counts: Counter[str] = Counter()
    after = 0
    while True:
        page = ops.call("GET", f"/tasks/{task_id}/events", params={"after": after, "limit": 200})
        for event in page["results"]:
            after = event["seq"]
            if event["type"] == "user_message":
                counts[event["payload"]["message_id"]] += 1
        if not page["results"]:
            return counts


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=200)
    options.add_argument("--every", type=float, default=1.0, help="seconds from kill to kill")
    options.add_argument("--seed", type=int, default=None)
    asked = options.parse_args()
    server = Installation(DJANGO_SETTINGS_MODULE="cowork.settings", COWORK_SWEEP_SECONDS="2")
    try:
        return run(server, asked)
    finally:
        server.close()


def run(server: Installation, asked: argparse.Namespace) -> int:
    server.start()
    made = provision(server)
    tasks = {row["bot"]: row["task_id"] for row in made["conversations"]}
    atlas = Caller(server, made["credentials"]["atlas-key"])
    ops = Caller(server, made["credentials"]["ops"])
    killer = Killer(server, every=asked.every, chance=random.Random(asked.seed))
    killer.start()
    accepted = []
    for number in range(asked.messages):
        message_id = f"kill-{number}"
        body = {"bot": "echo", "message": f"number {number}", "message_id": message_id}
        atlas.call("POST", "/send_agent_message", json=body)
        accepted.append(message_id)
    killer.stop()

    delivered: set[str] = set()
    ends_at = time.monotonic() + PATIENCE
    while not delivered.issuperset(accepted) and time.monotonic() < ends_at:
        rows = ops.listed("/receipts", recipient=tasks["echo"])
        delivered = {row["message_id"] for row in rows if row["delivery_status"] == "delivered"}
        time.sleep(0.2)
    rows = ops.listed("/receipts", recipient=tasks["echo"])
    told = transcript(ops, tasks["echo"])
    receipts = Counter(row["message_id"] for row in rows)
    twice = [name for name in accepted if told[name] > 1 or receipts[name] > 1]
    lost = [name for name in accepted if told[name] < 1 or name not in delivered]
    order = [name for name in told if name in accepted]
    print(f"killed     {sum(killer.killed.values())} ({dict(killer.killed)})")
    print(f"accepted   {len(accepted)}")
    print(f"delivered  {len(delivered)}")
    print(f"twice      {len(twice)}")
    print(f"lost       {len(lost)}")
    print(f"in order   {'yes' if order == accepted else 'no'}")
    return 0 if not twice and not lost and order == accepted else 1


if __name__ == "__main__":
    sys.exit(main())
