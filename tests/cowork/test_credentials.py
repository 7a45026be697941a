"""Credentials: who is let in, for how long, and as whom."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.core.cache import cache
from rest_framework_api_key.models import APIKey

from cowork import credentials, issuing
from cowork.models import Credential, Secret
from teams.models import Bot, Person
from tests.provisioned import Caller, a_lab, problem
from timeline.transactions import one_transaction


@pytest.fixture
def spare(lab):
    """A second credential of forge."""
    return lab.manager.post("credentials", kind="bot", bot="forge", label="spare").json()


def test_a_secret_is_shown_once_and_kept_as_a_hash(lab, spare):
    listed = lab.manager.get("credentials").content.decode()

    assert spare["secret"] not in listed
    kept = Secret.objects.get(credential=spare["id"])
    assert spare["secret"] not in (kept.id, kept.hashed_key, kept.name)
    assert {row["label"] for row in lab.manager.get("credentials").json()["results"]} >= {
        "forge-key",
        "spare",
    }


def test_a_second_credential_leaves_the_first_alive(lab, spare):
    for caller in (lab.agent("forge"), Caller(spare["secret"])):
        assert caller.get("me").json()["bot"] == "forge"


def test_a_revoked_credential_is_of_no_use_and_stays_on_the_list(lab, spare):
    first = lab.manager.post(f"credentials/{spare['id']}/revoke")
    again = lab.manager.post(f"credentials/{spare['id']}/revoke")

    assert problem(Caller(spare["secret"]).get("me")) == (401, "NOT_AUTHENTICATED")
    assert first.json()["revoked_at"] == again.json()["revoked_at"] is not None
    assert lab.agent("forge").get("me").status_code == 200
    assert problem(lab.manager.post(f"credentials/{spare['id']}/rotate")) == (
        409,
        "INVALID_TRANSITION",
    )


def test_rotation_without_grace_ends_the_old_secret_and_keeps_the_identity(lab, spare):
    rotated = lab.manager.post(f"credentials/{spare['id']}/rotate", grace_seconds=0).json()

    assert rotated["id"] == spare["id"]
    assert Caller(rotated["secret"]).get("me").status_code == 200
    assert problem(Caller(spare["secret"]).get("me")) == (401, "NOT_AUTHENTICATED")


def test_within_the_grace_both_secrets_are_taken(lab, spare):
    rotated = lab.manager.post(f"credentials/{spare['id']}/rotate", grace_seconds=600).json()

    for secret in (rotated["secret"], spare["secret"]):
        assert Caller(secret).get("me").json()["principal"]["id"] == spare["id"]


def test_an_expired_credential_is_of_no_use(lab, spare):
    Credential.objects.filter(pk=spare["id"]).update(
        expires_at=Credential.objects.get(pk=spare["id"]).created_at
    )

    assert problem(Caller(spare["secret"]).get("me")) == (401, "NOT_AUTHENTICATED")


def test_an_expiry_is_told(lab):
    made = lab.manager.post("credentials", kind="service", label="short", expires_in_days=1)

    row = Credential.objects.get(pk=made.json()["id"])
    assert row.expires_at == row.created_at + timedelta(days=1)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer made-up", "Bearer made.up", "Basic dTpw", "Bearer \x01.x"],
)
def test_what_is_no_live_secret_looks_like_every_other(lab, header):
    answer = Caller(headers={"Authorization": header}).get("me")

    assert problem(answer) == (401, "NOT_AUTHENTICATED")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.content == Caller("x.y").get("me").content


def test_the_right_prefix_with_a_wrong_secret_is_refused(lab):
    prefix = lab.secrets["ops"].partition(".")[0]

    assert credentials.authenticate_bearer(f"{prefix}.{'x' * 32}") is None
    assert credentials.authenticate_bearer(lab.secrets["ops"]) is not None


def test_a_secret_in_an_address_is_refused(lab):
    assert problem(lab.ops.get(f"me?token={lab.secrets['ops']}")) == (400, "INVALID_REQUEST")
    assert Caller().get(f"me?token={lab.secrets['ops']}").status_code in (400, 401)


def test_a_bearer_never_opens_a_session(lab):
    signed_in = lab.manager
    signed_in.headers["Authorization"] = "Bearer made.up"

    assert problem(signed_in.get("me")) == (401, "NOT_AUTHENTICATED")


def test_a_credential_of_a_deactivated_bot_is_revoked(lab):
    assert lab.manager.delete("bots/forge").status_code == 204

    assert problem(lab.agent("forge").get("me")) == (401, "NOT_AUTHENTICATED")
    assert Credential.objects.get(label="forge-key").revoked_at is not None
    assert lab.manager.patch("bots/forge", active=True).json()["active"]
    assert problem(lab.agent("forge").get("me")) == (401, "NOT_AUTHENTICATED")


def test_an_inactive_bot_calls_nothing_even_with_a_live_credential(lab):
    forge = lab.bot("forge")
    Bot.objects.filter(pk=forge.pk).update(is_active=False, deactivated_at=forge.created_at)

    assert problem(lab.agent("forge").get("me")) == (401, "NOT_AUTHENTICATED")


def test_a_credential_of_a_task_dies_with_its_task(lab, clock):
    task = lab.task("forge")
    made = lab.manager.post("credentials", kind="task", task=str(task.id), label="one task").json()
    mine = Caller(made["secret"])
    assert mine.get("me").json()["task"] == str(task.id)

    with one_transaction():
        credentials.revoke_of_task(task, now=clock.now())

    assert problem(mine.get("me")) == (401, "NOT_AUTHENTICATED")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "bot"},
        {"kind": "task"},
        {"kind": "service", "bot": "forge"},
        {"kind": "person"},
        {"kind": "bot", "bot": "forge", "secret": "mine"},
        {"kind": "service", "expires_in_days": 0},
    ],
)
def test_a_credential_names_whom_it_acts_as_and_nobody_besides(lab, body):
    answer = lab.manager.post("credentials", **{"label": "spare", **body})

    assert problem(answer) == (400, "INVALID_REQUEST")


def test_a_label_names_one_live_credential(lab, spare):
    taken = lab.manager.post("credentials", kind="service", label="spare")
    assert problem(taken) == (400, "INVALID_REQUEST")
    lab.manager.post(f"credentials/{spare['id']}/revoke")

    free = lab.manager.post("credentials", kind="service", label="spare")

    assert free.status_code == 201


def test_nothing_of_another_workspace_gets_a_credential_or_loses_one(lab, other_lab, spare):
    stranger = other_lab.manager
    task = str(lab.task("forge").id)

    for answer in (
        stranger.post("credentials", kind="task", task=task, label="x"),
        stranger.post(f"credentials/{spare['id']}/revoke"),
        stranger.post(f"credentials/{spare['id']}/rotate"),
    ):
        assert problem(answer) == (404, "NOT_FOUND")
    assert Caller(spare["secret"]).get("me").status_code == 200


def test_the_use_of_a_credential_is_noted_once_a_minute(lab, spare):
    row = Credential.objects.get(pk=spare["id"])
    assert row.last_used_at is None

    Caller(spare["secret"]).get("me")
    row = Credential.objects.get(pk=spare["id"])
    first = row.last_used_at
    Caller(spare["secret"]).get("me")

    assert first is not None
    assert Credential.objects.get(pk=spare["id"]).last_used_at == first
    assert credentials.use_is_stale(row, first + timedelta(seconds=60))
    assert not credentials.use_is_stale(row, first + timedelta(seconds=59))


def test_what_was_done_with_credentials_is_in_the_audit(lab, spare):
    lab.manager.post(f"credentials/{spare['id']}/rotate")
    lab.manager.post(f"credentials/{spare['id']}/revoke")

    told = [row["action"] for row in lab.manager.get("audit").json()["results"]]

    assert told[:3] == ["credential.revoke", "credential.rotate", "credential.issue"]
    assert spare["secret"] not in lab.manager.get("audit").content.decode()


def test_the_librarys_own_keys_are_not_in_the_admin():
    assert not admin.site.is_registered(APIKey)


# People


@pytest.fixture(autouse=True)
def _no_failures_yet():
    cache.clear()


def test_everybody_sees_who_they_are(lab):
    task = str(lab.task("forge").id)
    of_task = lab.manager.post("credentials", kind="task", task=task, label="t").json()
    seen = {
        "bot": lab.agent("forge"),
        "task": Caller(of_task["secret"]),
        "service": lab.ops,
        "person": lab.viewer,
    }

    rows = {kind: caller.get("me").json() for kind, caller in seen.items()}

    assert {kind: row["principal"]["kind"] for kind, row in rows.items()} == {
        kind: kind for kind in seen
    }
    assert {row["workspace"] for row in rows.values()} == {"lab"}
    assert rows["bot"]["bot"] == rows["task"]["bot"] == "forge"
    assert rows["task"]["task"] == task
    assert rows["person"]["role"] == "viewer"


def test_a_wrong_name_and_a_wrong_password_are_answered_alike(lab):
    wrong = [
        Caller().post("session", username="mia-lab", password="no"),
        Caller().post("session", username="nobody", password="no"),
    ]

    assert [problem(answer) for answer in wrong] == [(401, "NOT_AUTHENTICATED")] * 2
    assert wrong[0].content == wrong[1].content
    assert "sessionid" not in wrong[0].cookies


def test_repeated_failures_are_slowed_for_known_and_unknown_names_alike(lab, clock, monkeypatch):
    monkeypatch.setattr("cowork.api.system_clock", clock)  # a slow machine ends no wait
    for name in ("mia-lab", "nobody"):
        tries = [Caller().post("session", username=name, password="no") for _ in range(7)]

        assert [answer.status_code for answer in tries] == [401] * 6 + [429]
        assert problem(tries[-1]) == (429, "RATE_LIMITED")
        assert int(tries[-1]["Retry-After"]) > 0
    right = Caller().post("session", username="mia-lab", password="correct-horse-battery-staple")
    assert right.status_code == 429
    assert lab.operator.get("me").status_code == 200


def test_an_unsafe_call_of_a_session_needs_the_token_of_its_page(lab):
    person = lab.manager
    del person.headers["X-CSRFToken"]

    assert problem(person.post("credentials", kind="service", label="x")) == (403, "FORBIDDEN")
    assert person.get("me").status_code == 200
    assert not Credential.objects.filter(label="x").exists()


def test_signing_out_ends_the_session(lab):
    person = lab.manager

    assert person.delete("session").status_code == 204
    assert problem(person.get("me")) == (401, "NOT_AUTHENTICATED")
    assert problem(lab.ops.delete("session")) == (403, "FORBIDDEN")
    assert problem(Caller().delete("session")) == (401, "NOT_AUTHENTICATED")


def test_a_person_without_an_active_role_is_not_let_in(lab):
    vera = lab.viewer
    Person.objects.filter(user__username="vera-lab").update(is_active=False)

    assert problem(vera.get("me")) == (403, "FORBIDDEN")
    answer = Caller().post("session", username="vera-lab", password="correct-horse-battery-staple")
    assert problem(answer) == (401, "NOT_AUTHENTICATED")


def test_who_belongs_to_several_workspaces_names_one(lab):
    mia = {"username": "mia-lab", "role": "viewer"}
    a_lab("second", people=[mia], credentials=[], conversations=[], teams=[], bots=[])
    person = lab.manager

    assert problem(person.get("me")) == (400, "INVALID_REQUEST")
    assert "X-Workspace" in person.get("me").json()["detail"]
    seen = [person.get("me", **{"X-Workspace": slug}).json() for slug in ("lab", "second")]
    assert [row["role"] for row in seen] == ["manager", "viewer"]
    assert problem(person.get("me", **{"X-Workspace": "other"})) == (404, "NOT_FOUND")
    rows = person.get("workspaces").json()["results"]
    assert [(row["slug"], row["role"]) for row in rows] == [
        ("lab", "manager"),
        ("second", "viewer"),
    ]
    assert person.delete("session").status_code == 204


def test_a_credential_has_one_workspace(lab, other_lab):
    assert lab.ops.get("me", **{"X-Workspace": "lab"}).status_code == 200
    for slug in ("other", "nowhere"):
        assert problem(lab.ops.get("me", **{"X-Workspace": slug})) == (404, "NOT_FOUND")
    assert [row["slug"] for row in lab.ops.get("workspaces").json()["results"]] == ["lab"]


def test_an_unknown_path_needs_a_credential_and_then_is_not_found(lab):
    for path in ("nothing", "nothing/at/all", ""):
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            assert problem(Caller().call(method, path)) == (401, "NOT_AUTHENTICATED")
            assert problem(lab.ops.call(method, path)) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["me", "limits", "workspaces", "bots"])
def test_a_slash_at_the_end_is_no_matter(lab, path):
    plain, with_slash = lab.ops.get(path), lab.ops.get(f"{path}/")

    assert (plain.status_code, plain.content) == (with_slash.status_code, with_slash.content)
    assert plain.status_code == 200


def test_the_limits_are_published(lab):
    rows = lab.agent("forge").get("limits").json()

    assert rows["message_bytes"] == 65_536
    assert all(isinstance(value, int | float) for value in rows.values())


def test_the_secret_is_in_no_repr(lab, spare):
    issued = issuing.Issued(Credential.objects.get(pk=spare["id"]), spare["secret"])

    assert spare["secret"] not in repr(issued)
