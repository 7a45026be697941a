"""A provisioned workspace and those who call it: what tests of the API start from."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from django.http import HttpResponse
from django.test import Client

from cowork import blueprint, provisioning
from cowork.models import Task
from teams.models import Bot, Team, Workspace
from timeline.clock import Clock, system_clock

PASSWORD = "correct-horse-battery-staple"
PEOPLE = {"mia": "manager", "omar": "operator", "vera": "viewer"}
BOTS = {"atlas": "Atlas", "forge": "Forge", "echo": "Echo", "dora": "Dora"}


@dataclass
class Caller:
    """Somebody who calls the API."""

    secret: str | None = None
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """What the API answers; Django's test client adds `.json()` to it."""
        given = {**self.headers, **headers}
        if self.secret is not None:
            given["Authorization"] = f"Bearer {self.secret}"
        return self.client.generic(
            method,
            f"/api/v1/{path}",
            data="" if body is None else json.dumps(body),
            content_type="application/json",
            headers=given,
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, **body: Any) -> Any:
        return self.call("POST", path, body)

    def patch(self, path: str, **body: Any) -> Any:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)


def signed_in(username: str, password: str = PASSWORD) -> Caller:
    """A person with a session and the token of its page."""
    caller = Caller()
    answer = caller.post("session", username=username, password=password)
    assert answer.status_code == 200, answer.content
    caller.headers["X-CSRFToken"] = caller.client.cookies["csrftoken"].value
    return caller


@dataclass
class Lab:
    """atlas leads team Core with forge and echo; dora stands outside."""

    slug: str
    made: dict[str, Any]
    secrets: dict[str, str]
    _people: dict[str, Caller] = field(default_factory=dict)

    @property
    def id(self) -> UUID:
        return UUID(self.made["id"])

    @property
    def workspace(self) -> Workspace:
        return Workspace.objects.get(pk=self.id)

    @property
    def team_id(self) -> str:
        return str(self.made["teams"]["Core"])

    @property
    def team(self) -> Team:
        return Team.objects.get(pk=self.team_id)

    def bot(self, handle: str) -> Bot:
        return Bot.objects.get(workspace_id=self.id, handle=handle)

    def task(self, handle: str) -> Task:
        [found] = [row["task_id"] for row in self.made["conversations"] if row["bot"] == handle]
        return Task.objects.get(pk=found)

    def agent(self, handle: str) -> Caller:
        return Caller(self.secrets[f"{handle}-key"])

    @property
    def ops(self) -> Caller:
        return Caller(self.secrets["ops"])

    def person(self, name: str) -> Caller:
        if name not in self._people:
            self._people[name] = signed_in(f"{name}-{self.slug}")
        return self._people[name]

    @property
    def manager(self) -> Caller:
        return self.person("mia")

    @property
    def operator(self) -> Caller:
        return self.person("omar")

    @property
    def viewer(self) -> Caller:
        return self.person("vera")

    def called(self, kind: str) -> Caller:
        """One of each row of the table of permissions."""
        if kind == "bot":
            return self.agent("forge")
        if kind == "service":
            return self.ops
        return self.person({role: name for name, role in PEOPLE.items()}[kind])


def plan(slug: str, **changes: Any) -> dict[str, Any]:
    """What `provision` is told for a lab."""
    return {
        "slug": slug,
        "name": slug.title(),
        "people": [
            {"username": f"{name}-{slug}", "password": PASSWORD, "role": role}
            for name, role in PEOPLE.items()
        ],
        "bots": [{"handle": handle, "display_name": name} for handle, name in BOTS.items()],
        "teams": [{"name": "Core", "lead": "atlas", "members": ["atlas", "forge", "echo"]}],
        "conversations": [{"bot": bot, "title": f"{name} main"} for bot, name in BOTS.items()],
        "credentials": [
            *[{"label": f"{bot}-key", "kind": "bot", "bot": bot} for bot in BOTS],
            {"label": "ops", "kind": "service"},
        ],
        **changes,
    }


def a_lab(slug: str = "lab", *, clock: Clock = system_clock, **changes: Any) -> Lab:
    """Provision a workspace."""
    written = blueprint.read({"workspaces": [plan(slug, **changes)]})
    made = provisioning.provision(written, environment={}, clock=clock)["workspaces"][slug]
    return Lab(slug, made, made["credentials"])


@pytest.fixture
def lab(db: None) -> Lab:
    return a_lab("lab")


@pytest.fixture
def other_lab(db: None) -> Lab:
    """A second workspace with bots of the same names."""
    return a_lab("other")


def problem(answer: HttpResponse) -> tuple[int, str]:
    """Status and code of a refusal."""
    assert answer["Content-Type"] == "application/problem+json", answer.content
    return answer.status_code, json.loads(answer.content)["code"]
