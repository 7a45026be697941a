"""The admin with something of everything in it, and those who look at it."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse

from tests.provisioned import PASSWORD, Lab, a_lab
from timeline.admin import ReadOnly

TEXT = "Please count <b>the crates</b> & the barrels."


def read_only() -> dict[type[Model], ReadOnly]:
    """Our own rows in the admin."""
    registered = admin.site._registry.items()
    return {model: shown for model, shown in registered if isinstance(shown, ReadOnly)}


def staff(name: str, *permissions: str) -> Client:
    """A browser of staff with Django permissions."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return browser_of(user)


def owner() -> Client:
    """A browser of whoever may look at everything."""
    return browser_of(User.objects.create_superuser("owner"))


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def request_of(user: User) -> HttpRequest:
    """A request of a user, to be handed to an admin."""
    request = RequestFactory().get("/admin/")
    request.user = user
    return request


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def detail_of(row: Model) -> str:
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def filters_in(page: str) -> Iterator[str]:
    """The addresses of the filters that a list offers."""
    for found in re.findall(r'href="(\?[^"]+)"', page):
        yield found.replace("&amp;", "&")


def a_handoff(lab: Lab, number: int, *, recipient: str = "forge") -> UUID:
    """atlas sends, the recipient takes it in and answers: receipts, turns, events, wakes."""
    sent = lab.agent("atlas").post(
        "send_agent_message",
        bot=recipient,
        message=TEXT,
        message_id=f"m-{number}",
        sender_task_id=str(lab.task("atlas").id),
    )
    assert sent.status_code == 202, sent.content
    agent = lab.agent(recipient)
    task_id = lab.task(recipient).id
    turn: dict[str, Any] = agent.post(f"tasks/{task_id}/turns", wait_seconds=0).json()
    said = [
        {"event_id": "taken", "type": "incorporated"},
        {"event_id": "said", "type": "assistant_message", "text": "Forty-two.", "own": True},
    ]
    ended = agent.post(f"turns/{turn['id']}/end", fence=turn["fence"], status="done", events=said)
    assert ended.status_code == 200, ended.content
    return UUID(sent.json()["receipt_id"])


def more_of_everything(lab: Lab, number: int) -> None:
    """One more of each row that a handoff does not make."""
    made_of: dict[str, dict[str, Any]] = {
        "bots": {"handle": f"more-{number}", "display_name": f"More {number}"},
        "people": {"username": f"more-{number}", "password": PASSWORD, "role": "viewer"},
        "runtimes": {"name": f"more-{number}", "kind": "script", "rules": []},
        "tasks": {"kind": "bot_conversation", "title": "More", "bot": f"more-{number}"},
        "credentials": {"kind": "bot", "label": f"more-{number}", "bot": f"more-{number}"},
        "teams": {
            "name": f"More {number}",
            "persistent": True,
            "active": True,
            "lead": f"more-{number}",
            "members": [f"more-{number}"],
        },
    }
    for path, body in made_of.items():
        made = lab.manager.post(path, **body)
        assert made.status_code == 201, (path, made.content)
    a_lab(f"more-{number}")
