"""`provision`: what a file describes is made once."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cowork.models import Credential, Task
from teams.models import Bot, Member, Person, Workspace
from tests.provisioned import PASSWORD, Caller, plan, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def provision(tmp_path):
    def run(written, *, name="plan.json"):
        path = tmp_path / name
        path.write_text(written if isinstance(written, str) else json.dumps(written))
        out = StringIO()
        call_command("provision", str(path), "--json", stdout=out)
        return json.loads(out.getvalue())

    return run


def test_what_is_printed_names_everything(provision):
    made = provision({"workspaces": [plan("lab")]})["workspaces"]["lab"]

    assert set(made) == {"id", "bots", "teams", "conversations", "credentials"}
    assert made["id"] == str(Workspace.objects.get(slug="lab").id)
    assert made["bots"]["forge"] == str(Bot.objects.get(handle="forge").id)
    assert [(row["bot"], row["title"]) for row in made["conversations"]][:2] == [
        ("atlas", "Atlas main"),
        ("forge", "Forge main"),
    ]
    assert set(made["conversations"][0]) == {"bot", "title", "task_id"}
    assert Caller(made["credentials"]["forge-key"]).get("me").json()["bot"] == "forge"
    assert signed_in("mia-lab").get("me").json()["role"] == "manager"


def test_a_second_run_changes_nothing_and_shows_no_secret(provision):
    first = provision({"workspaces": [plan("lab")]})["workspaces"]["lab"]
    Bot.objects.filter(handle="forge").update(display_name="Renamed by a person")
    rows: list[Any] = [Bot, Task, Person, Member, Credential]
    before = [list(row.objects.order_by("pk").values()) for row in rows]

    second = provision({"workspaces": [plan("lab")]})["workspaces"]["lab"]

    assert second["credentials"] == dict.fromkeys(first["credentials"])
    assert {**second, "credentials": 0} == {**first, "credentials": 0}
    assert [list(row.objects.order_by("pk").values()) for row in rows] == before


def test_what_is_new_in_the_file_is_added(provision):
    provision({"workspaces": [plan("lab")]})
    more = plan("lab")
    more["bots"].append({"handle": "nova", "display_name": "Nova"})
    more["credentials"].append({"label": "nova-key", "kind": "bot", "bot": "nova"})

    made = provision({"workspaces": [more]})["workspaces"]["lab"]

    assert made["credentials"]["nova-key"] is not None
    assert made["credentials"]["forge-key"] is None


def test_conversations_are_in_the_team_of_their_bot(provision):
    provision({"workspaces": [plan("lab")]})

    teams = dict(Task.objects.values_list("bot__handle", "team__name"))
    assert teams == {"atlas": "Core", "forge": "Core", "echo": "Core", "dora": None}
    assert set(Task.objects.values_list("status", flat=True)) == {"idle"}


def test_yaml_is_read_as_well_and_passwords_come_from_the_environment(provision, monkeypatch):
    monkeypatch.setenv("OLGA_PASSWORD", PASSWORD)

    provision(
        """
        workspaces:
          - slug: lab
            name: Lab
            people: [{username: olga, password_env: OLGA_PASSWORD, role: manager}]
            runtimes:
              - {name: echo-script, kind: script, rules: [{when: ".*", do: [{say: "heard $0"}]}]}
            bots: [{handle: echo, display_name: Echo, runtime: echo-script}]
        """,
        name="plan.yaml",
    )

    assert signed_in("olga").get("bots/echo").json()["runtime"] == "echo-script"


@pytest.mark.parametrize(
    "changes",
    [
        {"bots": [{"handle": "Bad Handle", "display_name": "X"}]},
        {"bots": [{"handle": "x", "display_name": "X", "runtime": "nothing"}]},
        {"teams": [{"name": "Core", "lead": "nobody"}]},
        {"runtimes": [{"name": "shell", "kind": "command"}]},
        {"people": [{"username": "x", "password": "short", "role": "manager"}]},
        {"people": [{"username": "x", "password_env": "NOT_THERE_AT_ALL", "role": "manager"}]},
        {"people": [{"username": "x", "role": "king"}]},
        {"credentials": [{"label": "x", "kind": "bot"}]},
        {"unknown": []},
        {"name": "nul \0"},
    ],
)
def test_a_file_that_is_off_makes_nothing_at_all(provision, changes):
    with pytest.raises(CommandError):
        provision({"workspaces": [plan("first"), plan("second", **changes)]})

    assert not Workspace.objects.exists()
    assert not Person.objects.exists()


@pytest.mark.parametrize("text", ["{", "[]", "", "workspaces: {a: 1"])
def test_what_is_no_plan_is_refused_with_its_reason(provision, text):
    with pytest.raises(CommandError):
        provision(text, name="plan.yaml")
