"""People, teams, members and the audit over the API."""

import pytest

from teams.models import Member, Person
from tests.provisioned import Caller, problem, signed_in


def test_a_manager_invites_a_person_who_can_sign_in(lab):
    answer = lab.manager.post(
        "people", username="nina", password="a-long-enough-pass", role="operator"
    )

    assert answer.status_code == 201
    assert "password" not in answer.content.decode()
    assert signed_in("nina", "a-long-enough-pass").get("me").json()["role"] == "operator"
    names = [row["username"] for row in lab.manager.get("people").json()["results"]]
    assert names == ["mia-lab", "omar-lab", "vera-lab", "nina"]


@pytest.mark.parametrize("password", ["short", "password", "12345678901", "nina-the-great"])
def test_a_weak_password_is_refused_with_the_reason(lab, password):
    answer = lab.manager.post("people", username="nina-the-great", password=password, role="viewer")

    assert problem(answer) == (400, "INVALID_REQUEST")
    assert answer.json()["errors"][0]["field"] == "password"
    assert not Person.objects.filter(user__username="nina-the-great").exists()


@pytest.mark.parametrize("username", ["mia-other", "MIA-lab", "a b", ""])
def test_a_name_in_use_or_no_name_is_refused_and_nobodys_password_changes(lab, other_lab, username):
    answer = lab.manager.post(
        "people", username=username, password="a-long-enough-pass", role="manager"
    )

    assert problem(answer) == (400, "INVALID_REQUEST")
    assert other_lab.manager.get("me").json()["role"] == "manager"


def test_a_manager_makes_a_team(lab):
    made = lab.manager.post("teams", name="Night", lead="dora", members=["forge"])

    assert made.status_code == 201
    row = lab.viewer.get(f"teams/{made.json()['id']}").json()
    assert (row["name"], row["lead"], row["persistent"], row["active"]) == (
        "Night",
        "dora",
        True,
        True,
    )
    assert [member["bot"] for member in row["members"]] == ["forge"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "Core", "lead": "dora"}, 400),
        ({"name": " ", "lead": "dora"}, 400),
        ({"name": "New", "lead": "nobody"}, 404),
        ({"name": "New", "lead": "dora", "members": ["nobody"]}, 404),
        ({"name": "New", "lead": "dora", "members": ["forge", "forge"]}, 409),
        ({"name": "New"}, 400),
        ({"name": "New", "lead": "dora", "colour": "red"}, 400),
    ],
)
def test_an_unfit_team_is_refused_whole(lab, body, status):
    answer = lab.manager.post("teams", **body)

    assert answer.status_code == status
    assert lab.workspace.teams.count() == 1


def test_members_come_go_and_come_back(lab):
    path = f"teams/{lab.team_id}/members"

    joined = lab.manager.post(path, bot="dora", guidance="Ask before you act.")
    twice = lab.manager.post(path, bot="dora")
    gone = lab.manager.delete(f"{path}/dora")
    gone_twice = lab.manager.delete(f"{path}/dora")
    again = lab.manager.post(path, bot="dora")
    restored = lab.manager.post(f"{path}/dora/restore")
    restored_twice = lab.manager.post(f"{path}/dora/restore")

    assert (joined.status_code, joined.json()["guidance"]) == (201, "Ask before you act.")
    assert problem(twice) == (409, "INVALID_TRANSITION")
    assert gone.status_code == 204
    assert problem(gone_twice) == (409, "INVALID_TRANSITION")
    assert problem(again) == (409, "INVALID_TRANSITION")
    assert (restored.status_code, restored.json()["status"]) == (200, "active")
    assert problem(restored_twice) == (409, "INVALID_TRANSITION")
    told = [row["action"] for row in lab.manager.get("audit").json()["results"]]
    assert told[:3] == ["member.restore", "member.remove", "member.join"]


@pytest.mark.parametrize("listed", [True, False])
def test_the_lead_stays_until_another_is_named(lab, listed):
    if not listed:
        Member.objects.filter(team=lab.team, bot=lab.bot("atlas")).delete()
    path = f"teams/{lab.team_id}"

    assert problem(lab.manager.delete(f"{path}/members/atlas")) == (409, "INVALID_TRANSITION")
    assert lab.manager.patch(path, lead="forge").json()["lead"] == "forge"
    assert lab.manager.delete(f"{path}/members/atlas").status_code == (204 if listed else 404)


def test_a_former_member_is_restored_before_it_leads(lab):
    lab.manager.delete(f"teams/{lab.team_id}/members/forge")

    assert lab.manager.patch(f"teams/{lab.team_id}", lead="forge").status_code == 409
    assert lab.team.lead == lab.bot("atlas")


def test_nothing_of_another_workspace_is_seen_or_changed(lab, other_lab):
    path = f"teams/{lab.team_id}"
    absent = "teams/0197a6a0-0000-7000-8000-000000000000"

    for stranger in (other_lab.manager, other_lab.ops, other_lab.agent("forge")):
        assert problem(stranger.get(path)) == (404, "NOT_FOUND")
        assert stranger.get(path).content == stranger.get(absent).content
    for answer in (
        other_lab.manager.patch(path, active=False),
        other_lab.manager.post(f"{path}/members", bot="dora"),
        other_lab.manager.post(f"{path}/members/forge/restore"),
        other_lab.manager.delete(f"{path}/members/forge"),
    ):
        assert problem(answer) == (404, "NOT_FOUND")
    assert lab.team.is_active
    for path in ("bots", "teams", "people", "audit", "credentials"):
        assert str(lab.id) not in other_lab.manager.get(path).content.decode()
        assert "mia-lab" not in other_lab.manager.get(path).content.decode()


@pytest.mark.parametrize("path", ["me", "bots", "teams", "people", "credentials", "audit"])
def test_nobody_is_let_in_without_a_credential(lab, path):
    assert problem(Caller().get(path)) == (401, "NOT_AUTHENTICATED")


def test_a_list_is_read_page_by_page(lab):
    for number in range(5):
        lab.manager.post("teams", name=f"Team {number}", lead="dora")

    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = lab.viewer.get(f"teams?limit=2&cursor={cursor}").json()
        names += [row["name"] for row in answer["results"]]
        cursor = answer["next"]

    assert names == ["Core", *[f"Team {number}" for number in range(5)]]
