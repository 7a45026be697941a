"""Who may open which socket, and what agents hear of their input."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client as Browser

from cowork import credentials, issuing
from cowork.blueprint import Blueprint
from cowork.models import Credential, Task
from cowork.provisioning import provision
from messaging import sending, taking
from messaging.models import Receipt
from messaging.routing import websocket_urlpatterns as sockets_of_agents
from tests.sockets import connector
from tests.timeline.streams import in_thread
from timeline.clock import system_clock
from timeline.routing import nowhere, websocket_urlpatterns

pytestmark = pytest.mark.asyncio

connect = connector([*websocket_urlpatterns, *sockets_of_agents, *nowhere])


def plan(slug, *people):
    return {
        "slug": slug,
        "name": slug.title(),
        "people": list(people),
        "bots": [
            {"handle": handle, "display_name": handle.title()}
            for handle in ("atlas", "forge", "loner")
        ],
        "teams": [
            {
                "name": "Core",
                "persistent": True,
                "active": True,
                "lead": "atlas",
                "members": ["atlas", "forge"],
            }
        ],
        "conversations": [
            {"bot": "atlas", "title": "Main", "team": "Core"},
            {"bot": "forge", "title": "Main", "team": "Core"},
            {"bot": "loner", "title": "Main"},
        ],
        "credentials": [
            *({"label": bot, "kind": "bot", "bot": bot} for bot in ("atlas", "forge", "loner")),
            {"label": "ops", "kind": "service"},
        ],
    }


class Lab:
    def __init__(self, made):
        self.keys = made["credentials"]
        self.tasks = {row["bot"]: row["task_id"] for row in made["conversations"]}

    def bearer(self, label):
        return {"Authorization": f"Bearer {self.keys[label]}"}


@pytest.fixture
def labs(transactional_db):
    vera = {"username": "vera", "role": "viewer", "password": "vera-watches-all"}
    olga = {"username": "olga", "role": "manager", "password": "olga-manages-all"}
    both = Blueprint.model_validate({"workspaces": [plan("lab", vera, olga), plan("other")]})
    made = provision(both, environment={}, clock=system_clock)["workspaces"]
    return Lab(made["lab"]), Lab(made["other"])


@pytest.fixture
def lab(labs):
    return labs[0]


def agent(lab, bot):
    found = credentials.authenticate_bearer(lab.keys[bot])
    assert found is not None
    return found


def send(lab, text="hello"):
    sender = Task.objects.get(pk=lab.tasks["atlas"])
    sending.send_agent_message(
        sender=sender, by=agent(lab, "atlas"), message=text, bot="forge", clock=system_clock
    )


def take(lab):
    task = Task.objects.get(pk=lab.tasks["forge"])
    return taking.claim(task=task, by=agent(lab, "forge"), clock=system_clock)


def sign_in():
    """The key of a new session of vera's."""
    browser = Browser()
    browser.force_login(get_user_model().objects.get(username="vera"))
    return browser.cookies["sessionid"].value


async def code_of(path, headers=None):
    """The code with which a socket is closed; None when it opens."""
    async with connect(path, headers) as client:
        first = await client.wire.receive_output(10)
        return first["code"] if first["type"] == "websocket.close" else None


@pytest.mark.parametrize(
    ("who", "whose", "code"),
    [
        ("forge", "forge", None),
        ("atlas", "forge", None),
        ("ops", "forge", None),
        ("loner", "forge", 4403),
    ],
)
async def test_who_may_watch_a_task(lab, who, whose, code):
    assert await code_of(f"/ws/tasks/{lab.tasks[whose]}/", lab.bearer(who)) == code


async def test_a_foreign_task_and_workspace_are_unknown(labs):
    lab, other = labs

    for label in ("ops", "forge"):
        headers = other.bearer(label)
        assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", headers) == 4404
        assert await code_of("/ws/workspaces/lab/", headers) == 4404


async def test_agents_do_not_watch_the_workspace_and_people_have_no_input(lab):
    assert await code_of("/ws/workspaces/lab/", lab.bearer("atlas")) == 4403
    assert await code_of("/ws/agent/", lab.bearer("ops")) == 4403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer made.up"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic eDp5"},
        {"Cookie": "sessionid=madeup"},
    ],
)
async def test_nobody_is_let_in_without_a_credential(lab, headers):
    assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", headers) == 4401


async def test_a_secret_in_the_address_is_not_taken(lab):
    path = f"/ws/tasks/{lab.tasks['forge']}/?token={lab.keys['ops']}"

    assert await code_of(path) == 4401
    assert await code_of(path, lab.bearer("ops")) == 4401


async def test_a_revoked_credential_is_not_let_in(lab):
    def revoke():
        credential = Credential.objects.get(label="forge", workspace__slug="lab")
        olga = credentials.principal_of_user(get_user_model().objects.get(username="olga"), "lab")
        issuing.revoke(credential.pk, by=olga, clock=system_clock)

    await in_thread(revoke)

    assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", lab.bearer("forge")) == 4401


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://127.0.0.1:8000", None),
        ("http://localhost:1234", None),
        ("http://evil.example", 4401),
        ("http://localhost:9999", 4401),
        ("null", 4401),
        (None, 4401),
    ],
)
async def test_a_session_is_taken_from_our_own_pages_only(lab, origin, code):
    headers = {"Cookie": f"sessionid={await in_thread(sign_in)}", "Host": "localhost:1234"}
    if origin is not None:
        headers["Origin"] = origin

    assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", headers) == code


async def test_a_host_that_is_not_ours_is_no_page_of_ours(lab):
    headers = {
        "Cookie": f"sessionid={await in_thread(sign_in)}",
        "Host": "rebound.example",
        "Origin": "http://rebound.example",
    }

    assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", headers) == 4401


async def test_a_session_that_is_over_is_nobodys(lab):
    def sign_in_and_out():
        key = sign_in()
        SessionStore(key).delete()
        return key

    headers = {
        "Cookie": f"sessionid={await in_thread(sign_in_and_out)}",
        "Origin": "http://127.0.0.1:8000",
    }

    assert await code_of(f"/ws/tasks/{lab.tasks['forge']}/", headers) == 4401


async def test_an_agent_hears_of_input_that_waits_and_of_input_that_comes(lab):
    waiting = {"type": "input_waiting", "task_id": lab.tasks["forge"]}

    async with connect("/ws/agent/", lab.bearer("forge")) as client:
        await in_thread(send, lab)
        assert await client.frame() == waiting
    async with connect("/ws/agent/", lab.bearer("forge")) as client:
        assert await client.frame() == waiting


async def test_an_agent_does_not_hear_of_others_input(lab):
    async with connect("/ws/agent/", lab.bearer("loner")) as client:
        await in_thread(send, lab)
        async with connect("/ws/agent/", lab.bearer("forge")) as other:
            await other.frame()
        assert await client.wire.receive_nothing(0.1)


async def test_an_agent_hears_once_of_what_has_not_been_taken(lab):
    async with connect("/ws/agent/", lab.bearer("forge")) as client:
        await in_thread(send, lab, "one")
        await client.frame()
        await in_thread(send, lab, "two")
        await in_thread(take, lab)
        assert await client.wire.receive_nothing(0.3)


async def test_an_agent_hears_of_what_comes_due(lab):
    def postpone():
        send(lab)
        due_at = system_clock.now() + timedelta(seconds=0.7)
        Receipt.objects.update(due_at=due_at)
        return due_at

    due_at = await in_thread(postpone)

    async with connect("/ws/agent/", lab.bearer("forge")) as client:
        assert await client.frame() == {"type": "input_waiting", "task_id": lab.tasks["forge"]}
    assert await in_thread(system_clock.now) >= due_at
