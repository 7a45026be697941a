"""Stories: two teams' worth of agents, one person, and time that a test moves.

Pilot and cook are agents that claim over REST, parrot is a script that answers everything, mule a
script that fails before it has taken anything in.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from cowork import draining
from messaging import recovering
from tests.build import PASSWORD, Build
from tests.messaging.conftest import build, in_time
from tests.provisioned import Caller, signed_in
from timeline.clock import ManualClock

__all__ = ["build", "in_time"]


@dataclass
class Agent:
    """An agent that claims over REST."""

    caller: Caller
    task_id: str

    def send(self, bot: str, text: str, **more: Any) -> Any:
        return self.caller.post("send_agent_message", bot=bot, message=text, **more)

    def claim(self, **more: Any) -> Any:
        answer = self.caller.post(f"tasks/{self.task_id}/turns", **more)
        return None if answer.status_code == 204 else answer.json()

    def incorporate(self, turn: Any, event_id: str = "in") -> Any:
        event = {"type": "incorporated", "event_id": event_id}
        return self.caller.post(f"turns/{turn['id']}/events", fence=turn["fence"], events=[event])

    def end(self, turn: Any, status: str = "done", **more: Any) -> Any:
        return self.caller.post(
            f"turns/{turn['id']}/end", fence=turn["fence"], status=status, **more
        )

    def take_in(self, *, text: str | None = None) -> list[str]:
        """One whole turn; the texts that it took."""
        turn = self.claim()
        assert turn is not None
        self.incorporate(turn)
        self.end(turn, text=text)
        return [row["message"] for row in turn["inputs"]]


@dataclass
class Story:
    """Who takes part, and the means to let time pass."""

    build: Build
    clock: ManualClock
    agents: dict[str, Agent]
    otto: Caller
    mia: Caller
    team_id: str

    def __getitem__(self, handle: str) -> Agent:
        return self.agents[handle]

    def work(self) -> None:
        """What the worker does now."""
        draining.drain(owner="worker", clock=self.clock)

    def passes(self, seconds: float) -> None:
        """Time passes, and the worker works and sweeps."""
        self.clock.advance(seconds)
        recovering.recover(clock=self.clock)
        self.work()

    def receipt(self, sent: Any) -> Any:
        body = sent if isinstance(sent, dict) else sent.json()
        return self.otto.get(f"receipts/{body.get('receipt_id') or body['id']}").json()

    def transcript(self, handle: str) -> list[tuple[str, str]]:
        """What was said to and by an agent, in order."""
        rows = self.otto.get(f"tasks/{self[handle].task_id}/events?limit=200").json()["results"]
        return [
            (row["type"], row["payload"]["text"])
            for row in rows
            if row["type"] in ("user_message", "assistant_message")
        ]


@pytest.fixture
def story(build: Build, clock: ManualClock, in_time: None) -> Story:
    parrot = build.a_runtime("parrot", {"when": "(?s).*", "do": [{"reply": "heard: $0"}]})
    mule = build.a_runtime(
        "mule", {"when": "stubborn", "do": [{"fail": "before", "times": 4}, {"say": "at last"}]}
    )
    bots = {
        "pilot": build.a_bot("pilot"),
        "cook": build.a_bot("cook"),
        "parrot": build.a_bot("parrot", runtime=parrot),
        "mule": build.a_bot("mule", runtime=mule),
    }
    team = build.a_team(*bots.values())
    build.a_person("otto")
    build.a_person("mia", role="manager")
    agents = {
        handle: Agent(Caller(build.secret_of(bot)), str(build.a_conversation(bot).id))
        for handle, bot in bots.items()
    }
    return Story(
        build=build,
        clock=clock,
        agents=agents,
        otto=signed_in("otto", PASSWORD),
        mia=signed_in("mia", PASSWORD),
        team_id=str(team.id),
    )
