"""Bots, their conversations, and changes of teams over the API."""

import pytest

from cowork.models import OutboxEntry, Task
from messaging.models import Receipt
from tests.provisioned import problem


def rechecks(lab) -> int:
    return OutboxEntry.objects.filter(kind="recheck-team", target=lab.team.id).count()


def test_a_manager_makes_a_bot(lab):
    made = lab.manager.post(
        "bots", handle="nova", display_name=" Nova ", instructions="One.\r\nTwo.", colour="moss"
    )

    assert made.status_code == 201
    row = lab.viewer.get("bots/nova").json()
    assert (row["display_name"], row["instructions"], row["colour"], row["runtime"]) == (
        "Nova",
        "One.\nTwo.",
        "moss",
        "external",
    )
    assert (row["active"], row["system"], row["conversation"]) == (True, False, None)


@pytest.mark.parametrize(
    "body",
    [
        {"handle": "forge"},
        {"handle": "f0rge"},
        {"handle": "admin"},
        {"handle": "Nova"},
        {"handle": "nova", "display_name": ""},
        {"handle": "nova", "display_name": "x" * 81},
        {"handle": "nova", "display_name": "two\nlines"},
        {"handle": "nova", "instructions": "x" * 12_001},
        {"handle": "nova", "runtime": "nothing"},
        {"handle": "nova", "colour": "red"},
        {"handle": "nova", "is_system": True},
        {"handle": "nova", "display_name": "N\0"},
        {},
    ],
)
def test_an_unfit_bot_is_refused(lab, body):
    answer = lab.manager.post("bots", **{"display_name": "Nova", **body})

    assert problem(answer) == (400, "INVALID_REQUEST")
    assert lab.workspace.bots.count() == 4


def test_texts_are_measured_once_their_line_ends_are_folded(lab):
    text = "\r\n" * 12_000

    assert lab.manager.patch("bots/forge", description=text).status_code == 200
    assert lab.bot("forge").description == "\n" * 12_000


def test_a_bot_is_edited_and_keeps_its_handle(lab):
    changed = lab.manager.patch("bots/forge", display_name="Smithy", description="Makes things")

    assert changed.json()["display_name"] == "Smithy"
    assert problem(lab.manager.patch("bots/forge", handle="smithy")) == (400, "INVALID_REQUEST")
    [told] = [
        row for row in lab.manager.get("audit").json()["results"] if row["action"] == "bot.edit"
    ]
    assert told["detail"] == {"fields": ["description", "display_name"]}


def test_an_edit_that_changes_nothing_leaves_no_trace(lab):
    before = lab.bot("forge").updated_at

    lab.manager.patch("bots/forge", display_name="Forge")

    assert lab.bot("forge").updated_at == before
    assert "bot.edit" not in lab.manager.get("audit").content.decode()


def test_a_deactivated_bot_stays_listed_and_can_be_brought_back(lab):
    gone = lab.manager.delete("bots/forge")
    twice = lab.manager.delete("bots/forge")

    assert (gone.status_code, twice.status_code) == (204, 204)
    rows = {row["handle"]: row["active"] for row in lab.viewer.get("bots").json()["results"]}
    assert rows == {"atlas": True, "dora": True, "echo": True, "forge": False}
    assert rechecks(lab) == 1
    assert problem(lab.manager.post("bots", handle="forge", display_name="New")) == (
        400,
        "INVALID_REQUEST",
    )
    assert lab.manager.patch("bots/forge", active=True).json()["active"] is True
    assert problem(lab.manager.patch("bots/forge", active=False)) == (400, "INVALID_REQUEST")


def test_a_deactivation_closes_what_is_queued_for_the_bot(lab):
    sent = lab.agent("atlas").post("send_agent_message", bot="forge", message="hello")
    assert sent.status_code == 202

    lab.manager.delete("bots/forge")

    receipt = Receipt.objects.get(pk=sent.json()["receipt_id"])
    assert (receipt.status, receipt.failure_code) == ("failed", "RECIPIENT_ENDED")
    assert receipt.closed_at is not None
    assert lab.agent("atlas").get(f"receipts/{receipt.id}").json()["message"] == "hello"


def test_a_system_bot_can_not_be_deleted(lab):
    lab.workspace.bots.filter(handle="forge").update(is_system=True)

    assert problem(lab.manager.delete("bots/forge")) == (403, "FORBIDDEN")
    assert lab.bot("forge").is_active


@pytest.mark.parametrize("change", [{"active": False}, {"persistent": False}, {"lead": "echo"}])
def test_a_change_of_authority_promises_a_new_look(lab, change):
    answer = lab.manager.patch(f"teams/{lab.team_id}", **change)

    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in change} == change
    assert rechecks(lab) == 1


def test_a_change_of_the_name_promises_nothing(lab):
    assert lab.manager.patch(f"teams/{lab.team_id}", name="Kernel").json()["name"] == "Kernel"
    assert rechecks(lab) == 0


def test_a_removal_promises_a_new_look_once(lab):
    for handle in ("forge", "echo"):
        assert lab.manager.delete(f"teams/{lab.team_id}/members/{handle}").status_code == 204

    assert rechecks(lab) == 1


def test_a_conversation_is_opened_in_the_only_team_and_runs_nothing(lab):
    made = lab.operator.post("bots/forge/conversations", title="Second")

    assert made.status_code == 201
    assert (made.json()["team"], made.json()["status"]) == (lab.team_id, "idle")
    assert Task.objects.get(bot=lab.bot("forge"), is_current=True).title == "Second"
    rows = lab.viewer.get("bots/forge/conversations").json()["results"]
    assert [row["title"] for row in rows] == ["Second", "Forge main"]
    outside = lab.operator.post("bots/dora/conversations").json()
    assert (outside["team"], outside["title"]) == (None, "Dora")


def test_bots_of_another_workspace_are_not_found(lab, other_lab):
    other_lab.manager.post("bots", handle="nova", display_name="Nova")

    for answer in (
        lab.viewer.get("bots/nova"),
        lab.manager.patch("bots/nova", display_name="Mine"),
        lab.manager.delete("bots/nova"),
        lab.operator.post("bots/nova/conversations"),
        lab.operator.post("bots/forge/conversations", team=other_lab.team_id),
    ):
        assert problem(answer) == (404, "NOT_FOUND")


# The table of permissions, whole: who calls, and whether the call is let through.

AGENTS, SERVICE = ("bot",), ("service",)
READERS = ("service", "viewer", "operator", "manager")
OPENERS = ("service", "operator", "manager")
MANAGER = ("manager",)
EVERYBODY = (*AGENTS, *READERS)
CALLS = {
    "GET me": (EVERYBODY, {}),
    "GET limits": (EVERYBODY, {}),
    "GET workspaces": (EVERYBODY, {}),
    "GET bots": (READERS, {}),
    "GET bots/forge": (READERS, {}),
    "GET bots/forge/conversations": (READERS, {}),
    "GET teams": (READERS, {}),
    "GET teams/TEAM": (READERS, {}),
    "GET runtimes": (READERS, {}),
    "GET people": (MANAGER, {}),
    "GET credentials": (MANAGER, {}),
    "GET audit": (MANAGER, {}),
    "POST bots": (MANAGER, {"handle": "nova", "display_name": "Nova"}),
    "PATCH bots/forge": (MANAGER, {"display_name": "Smithy"}),
    "DELETE bots/echo": (MANAGER, None),
    "POST bots/forge/conversations": (OPENERS, {"title": "New"}),
    "POST teams": (MANAGER, {"name": "New", "lead": "dora"}),
    "PATCH teams/TEAM": (MANAGER, {"name": "Kernel"}),
    "POST teams/TEAM/members": (MANAGER, {"bot": "dora"}),
    "DELETE teams/TEAM/members/forge": (MANAGER, None),
    "POST teams/TEAM/members/echo/restore": (MANAGER, {}),
    "POST people": (
        MANAGER,
        {"username": "nina", "password": "a-long-enough-pass", "role": "viewer"},
    ),
    "POST runtimes": (MANAGER, {"name": "second", "kind": "external"}),
    "POST credentials": (MANAGER, {"kind": "service", "label": "spare"}),
    "POST credentials/OPS/revoke": (MANAGER, {}),
    "POST credentials/OPS/rotate": (MANAGER, {"grace_seconds": 60}),
}


@pytest.mark.parametrize("kind", EVERYBODY)
@pytest.mark.parametrize("call", CALLS)
def test_the_table_of_permissions(lab, call, kind):
    allowed, body = CALLS[call]
    ops = lab.workspace.credentials.get(label="ops").id
    method, path = call.replace("TEAM", lab.team_id).replace("OPS", str(ops)).split(" ")
    if path.endswith("restore"):
        lab.team.members.filter(bot__handle="echo").update(
            status="removed", left_at=lab.team.created_at
        )

    answer = lab.called(kind).call(method, path, None if method == "GET" else body)

    if kind in allowed:
        assert answer.status_code < 300, answer.content
    else:
        assert problem(answer) == (403, "FORBIDDEN")
        assert answer.json()["detail"] == "This is not yours to do."
