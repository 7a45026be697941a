"""Messages under kill -9: `python -m tests.kill_demo`, or `make kill-demo`.

A server of its own runs in a folder of its own. While 200 messages are sent to it over HTTP, one of
its processes is killed every second: the web server, the supervisor, or any of the worker. Each
message is sent again under its id until the server has answered. When all is at rest, the
timelines tell what became of what was accepted.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from tests.live.installation import ROOT, Installation, until

MESSAGES = 200
SECONDS = 25.0  # over which they are sent
SENDERS = 4
RECIPIENTS = ("amber", "birch", "cedar", "delta")
KILL_EVERY = 1.0
REST_PATIENCE = 180.0
START_PATIENCE = 60.0

PLAN = {
    "workspaces": [
        {
            "slug": "kill",
            "name": "Under kill",
            "runtimes": [
                {
                    "name": "answering",
                    "kind": "script",
                    "rules": [{"when": ".*", "do": [{"reply": "heard $message_id"}]}],
                },
                {"name": "hearing", "kind": "script", "rules": []},
            ],
            "bots": [
                {"handle": "caller", "display_name": "Caller", "runtime": "hearing"},
                *[
                    {"handle": name, "display_name": name.title(), "runtime": "answering"}
                    for name in RECIPIENTS
                ],
            ],
            "teams": [{"name": "Core", "lead": "caller", "members": ["caller", *RECIPIENTS]}],
            "conversations": [
                {"bot": name, "title": "Main", "team": "Core"} for name in ("caller", *RECIPIENTS)
            ],
            "credentials": [
                {"label": "caller-key", "kind": "bot", "bot": "caller"},
                {"label": "ops", "kind": "service"},
            ],
        }
    ]
}


@dataclass
class Count:
    """What became of the messages."""

    accepted: int
    delivered: int
    twice: int
    lost: int
    replied: int
    is_in_order: bool

    @property
    def is_right(self) -> bool:
        return self.twice == self.lost == 0 and self.accepted == MESSAGES and self.is_in_order


class Server:
    """The server under attack; it is started again when the supervisor was the victim."""

    def __init__(self) -> None:
        self.installation = Installation(DJANGO_SETTINGS_MODULE="cowork.settings")
        self.killed: Counter[str] = Counter()
        made = self._provision()
        self.secrets: dict[str, str] = made["credentials"]
        self.tasks = {row["bot"]: row["task_id"] for row in made["conversations"]}

    def _provision(self) -> dict[str, Any]:
        path = self.installation.folder / "plan.json"
        path.write_text(json.dumps(PLAN))
        done = subprocess.run(
            [sys.executable, "manage.py", "provision", str(path), "--json"],
            cwd=ROOT,
            env=self.installation.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        made: dict[str, Any] = json.loads(done.stdout)["workspaces"]["kill"]
        return made

    def client(self, label: str) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.installation.port}/api/v1/",
            headers={"Authorization": f"Bearer {self.secrets[label]}"},
            timeout=10,
            trust_env=False,
        )

    def kill_one(self, chance: random.Random) -> None:
        """Kill one process with SIGKILL: first a kind by chance, then one of that kind."""
        kinds: dict[str, list[int]] = {}
        for pid, command in self.installation.processes().items():
            kinds.setdefault(self._kind(pid, command), []).append(pid)
        if not kinds:
            return
        kind = chance.choice(sorted(kinds))
        with suppress(ProcessLookupError):
            os.kill(chance.choice(sorted(kinds[kind])), signal.SIGKILL)
            self.killed[kind] += 1
        if kind == "supervisor":
            assert self.installation.process is not None
            self.installation.process.wait(10)
            self.installation.launch()
            until(self.installation.is_ready, START_PATIENCE, what="the server")

    def _kind(self, pid: int, command: str) -> str:
        """`supervisor`, `web`, or which part of the cluster the process is, by its title."""
        if pid == self.installation.pid:
            return "supervisor"
        if "qcluster" not in command:
            return "web"
        does = command.rsplit(maxsplit=1)[-1]
        if does == "idle" or does.startswith("cowork."):
            return "worker"
        return does if does in ("monitor", "pusher") else "main or sentinel"


@dataclass
class Sending:
    """Sends the messages, each under its id until the server has answered."""

    server: Server
    accepted: set[str] = field(default_factory=set)
    repeats: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        shares = [range(first, MESSAGES, SENDERS) for first in range(SENDERS)]
        with ThreadPoolExecutor(SENDERS) as pool:
            list(pool.map(self._send_share, shares))

    def _send_share(self, numbers: range) -> None:
        with self.server.client("caller-key") as http:
            began = time.monotonic()
            for place, number in enumerate(numbers):
                wait = began + place * SECONDS / len(numbers) - time.monotonic()
                time.sleep(max(0.0, wait))
                self._send(http, number)

    def _send(self, http: httpx.Client, number: int) -> None:
        body = {
            "sender_task_id": self.server.tasks["caller"],
            "bot": RECIPIENTS[number % len(RECIPIENTS)],
            "message": f"message {number}",
            "message_id": f"m-{number}",
        }
        ends_at = time.monotonic() + START_PATIENCE
        while True:
            with suppress(httpx.TransportError):
                answer = http.post("send_agent_message", json=body)
                if answer.is_success:
                    with self._lock:
                        self.accepted.add(body["message_id"])
                    return
                if answer.status_code not in (429, 502, 503):
                    raise AssertionError(f"{answer.status_code}: {answer.text}")
            if time.monotonic() > ends_at:
                return  # never accepted: the count says so
            with self._lock:
                self.repeats += 1
            time.sleep(0.1)


def listed(http: httpx.Client, path: str, **query: str) -> list[dict[str, Any]]:
    """Every row of a list."""
    rows: list[dict[str, Any]] = []
    asked = {**query, "limit": "200"}
    while True:
        page = http.get(path, params=asked).raise_for_status().json()
        rows += page["results"]
        if page["next"] is None:
            return rows
        asked["cursor"] = page["next"]


def events(http: httpx.Client, task_id: str) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = http.get(f"tasks/{task_id}/events", params={"after": after, "limit": 200})
        rows = page.raise_for_status().json()["results"]
        yield from rows
        if len(rows) < 200:
            return
        after = rows[-1]["seq"]


def is_at_rest(http: httpx.Client, server: Server) -> bool:
    """Whether no message is under way and no turn runs."""
    under_way = [
        row
        for status in ("queued", "started")
        for row in listed(http, "receipts", delivery_status=status)
    ]
    tasks = listed(http, "tasks")
    assert {row["id"] for row in tasks} == set(server.tasks.values())
    return not under_way and all(row["status"] != "running" for row in tasks)


def counted(http: httpx.Client, server: Server, accepted: set[str]) -> Count:
    """What the records say: receipts, and how often the recipients' transcripts have each."""
    caller = server.tasks["caller"]
    sent = listed(http, "receipts", sender=caller)
    answers = listed(http, "receipts", recipient=caller)
    told = {
        bot: [
            event["payload"] for event in events(http, task_id) if event["type"] == "user_message"
        ]
        for bot, task_id in server.tasks.items()
    }
    transcript = Counter(row["receipt_id"] for rows in told.values() for row in rows)
    # Each recipient is written to by one sender, which sends in the order of the numbers.
    orders = [
        [int(row["message_id"].removeprefix("m-")) for row in told[bot]] for bot in RECIPIENTS
    ]
    receipts = Counter(row["message_id"] for row in sent)
    delivered = {
        row["message_id"]
        for row in sent
        if row["delivery_status"] == "delivered" and transcript[row["id"]]
    }
    answered = Counter(row["in_reply_to"] for row in answers)
    twice = [
        *(key for key, count in transcript.items() if count > 1),
        *(key for key, count in receipts.items() if count > 1),
        *(key for key, count in answered.items() if count > 1),
    ]
    return Count(
        accepted=len(accepted),
        delivered=len(delivered),
        twice=len(twice),
        lost=len(accepted - delivered),
        replied=sum(row["reply_status"] == "received" for row in sent),
        is_in_order=all(order == sorted(order) for order in orders),
    )


def run(seed: int) -> int:
    chance = random.Random(seed)
    server = Server()
    try:
        server.installation.start()
        print(f"{MESSAGES} messages in about {SECONDS:.0f} s, a kill -9 every second (seed {seed})")
        sending = Sending(server)
        sender = threading.Thread(target=sending.run, daemon=True)
        sender.start()
        while sender.is_alive():
            sender.join(KILL_EVERY)
            if sender.is_alive():
                server.kill_one(chance)
        print("killed: " + ", ".join(f"{n} {kind}" for kind, n in sorted(server.killed.items())))
        print(f"sent again because no answer came: {sending.repeats} times")
        with server.client("ops") as http:
            await_rest(http, server)
            count = counted(http, server, sending.accepted)
    finally:
        server.installation.close()
    for name, value in asdict(count).items():
        print(f"{name.replace('_', ' '):<12} {value}")
    return 0 if count.is_right else 1


def await_rest(http: httpx.Client, server: Server) -> None:
    ends_at = time.monotonic() + REST_PATIENCE
    while time.monotonic() < ends_at:
        with suppress(httpx.TransportError, httpx.HTTPStatusError):
            if is_at_rest(http, server):
                return
        time.sleep(0.5)
    print(f"not at rest after {REST_PATIENCE:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    sys.exit(run(parser.parse_args().seed))
