"""The outbox over HTTP, and the addresses that operators watch."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from cowork import checks, credentials, draining, holding
from cowork.models import Credential, OutboxEntry
from teams import people, workspaces
from teams.models import Workspace
from tests.cowork.kind_of_work import Work
from timeline.clock import ManualClock, system_clock
from timeline.models import AuditEntry
from timeline.transactions import action


@pytest.fixture
def lab(work: Work) -> Workspace:
    @action
    def make() -> Workspace:
        return workspaces.make(slug="lab", name="Lab", now=work.clock.now())

    return make()


@pytest.fixture
def signed_in(lab: Workspace, clock: ManualClock) -> Any:
    """A browser of a person with a role."""

    def sign_in(role: str) -> Client:
        @action
        def make() -> Any:
            user = people.make_user(role, password_hash=None, now=clock.now())
            people.make(lab, user, role=role, now=clock.now())
            return user

        client = Client()
        client.force_login(make())
        return client

    return sign_in


@pytest.fixture
def parked(work: Work, lab: Workspace, clock: ManualClock, target: UUID, settings: Any) -> Any:
    settings.COWORK_RETRY_DELAYS = []

    def fails(_entry: OutboxEntry) -> None:
        raise RuntimeError("a fault")

    work.outside = fails
    entry = work.owe("hello", target=target, workspace_id=lab.id)
    draining.drain(owner="test:1", clock=clock)
    work.outside = lambda _entry: None
    return entry


def test_operators_see_what_is_owed(parked: OutboxEntry, signed_in: Any) -> None:
    operator = signed_in("operator")

    everything = operator.get("/api/v1/outbox").json()["results"]
    by_state = operator.get("/api/v1/outbox?state=parked").json()["results"]
    none = operator.get("/api/v1/outbox?state=due").json()["results"]

    assert everything == by_state
    assert none == []
    [row] = everything
    assert row["id"] == str(parked.id)
    assert row["target"] == str(parked.target)
    assert row["lanes"] == [str(parked.target)]
    assert (row["state"], row["attempts"], row["crashes"]) == ("parked", 1, 0)
    assert row["last_error"] == "RuntimeError: a fault"
    assert operator.get("/api/v1/outbox?state=lost").status_code == 400
    assert operator.get("/api/v1/outbox?target=x").status_code == 400
    assert operator.get(f"/api/v1/outbox?target={parked.target}").json()["results"] == everything


def test_viewers_do_not(parked: OutboxEntry, signed_in: Any) -> None:
    viewer = signed_in("viewer")

    assert viewer.get("/api/v1/outbox").status_code == 403
    assert viewer.post(f"/api/v1/outbox/{parked.id}/retry").status_code == 403


def test_a_retry_runs_it_again(
    parked: OutboxEntry, signed_in: Any, clock: ManualClock, work: Work
) -> None:
    operator = signed_in("operator")

    done = operator.post(f"/api/v1/outbox/{parked.id}/retry")
    again = operator.post(f"/api/v1/outbox/{parked.id}/retry")

    assert (done.status_code, done.json()["state"], done.json()["attempts"]) == (200, "due", 0)
    assert (again.status_code, again.json()["code"]) == (409, "INVALID_TRANSITION")
    assert again.json()["status"] == "due"
    clock.move_to(system_clock.now() + timedelta(seconds=1))
    assert draining.drain(owner="test:1", clock=clock) == 1
    assert AuditEntry.objects.filter(action="outbox.retry", target_id=str(parked.id)).count() == 1


def test_a_discard_deletes_it(parked: OutboxEntry, signed_in: Any) -> None:
    operator = signed_in("operator")

    assert operator.post(f"/api/v1/outbox/{parked.id}/discard").status_code == 200
    assert operator.post(f"/api/v1/outbox/{parked.id}/discard").status_code == 404
    assert not OutboxEntry.objects.exists()
    assert AuditEntry.objects.filter(action="outbox.discard").count() == 1


def test_what_is_not_given_up_is_not_discarded(
    work: Work, lab: Workspace, signed_in: Any, target: UUID
) -> None:
    entry = work.owe(target=target, workspace_id=lab.id)
    operator = signed_in("operator")

    assert operator.post(f"/api/v1/outbox/{entry.id}/discard").status_code == 409
    assert OutboxEntry.objects.filter(pk=entry.pk).exists()


def test_another_workspaces_entries_are_not_there(
    work: Work, signed_in: Any, target: UUID, lab: Workspace
) -> None:
    entry = work.owe(target=target)
    operator = signed_in("operator")

    assert operator.get("/api/v1/outbox").json()["results"] == []
    assert operator.post(f"/api/v1/outbox/{entry.id}/retry").status_code == 404


def test_it_is_ready_once_a_worker_beats(work: Work, client: Client) -> None:
    before = client.get("/readyz")
    holding.hold("drain:test:0", owner="test", lease=timedelta(seconds=30), clock=system_clock)
    after = client.get("/readyz")

    assert client.get("/healthz").status_code == 200
    assert (before.status_code, after.status_code) == (503, 200)
    assert before.json()["checks"]["worker"] != "ok"
    assert set(after.json()["checks"]) == {
        "database",
        "broker",
        "worker",
        "outbox",
        "channel_layer",
    }


def test_details_are_for_this_machine_and_for_services(
    lab: Workspace, client: Client, clock: ManualClock
) -> None:
    @action
    def make() -> str:
        return credentials.make(
            workspace=lab, kind=Credential.Kind.SERVICE, label="watch", now=clock.now()
        )[1]

    far = {"REMOTE_ADDR": "203.0.113.7"}
    secret = make()

    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", **far).status_code == 403  # type: ignore[arg-type]
    assert "checks" not in client.get("/readyz", **far).json()  # type: ignore[arg-type]
    assert client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403
    bearer = {"Authorization": f"Bearer {secret}"}
    assert client.get("/metrics", headers=bearer, **far).status_code == 200  # type: ignore[arg-type]
    wrong = {"Authorization": "Bearer abc.def"}
    assert client.get("/metrics", headers=wrong).status_code == 403


def test_metrics_tell_of_the_outbox(parked: OutboxEntry, client: Client) -> None:
    told = client.get("/metrics").content.decode()

    assert 'cowork_outbox_entries{state="parked"} 1.0' in told
    assert 'cowork_outbox_entries{state="due"} 0.0' in told
    assert "cowork_outbox_oldest_due_seconds 0.0" in told


@pytest.mark.parametrize(
    ("retry", "timeout", "life", "found"),
    [
        (90, 60, 20, []),
        (60, 60, 20, ["cowork.E001"]),
        (90, 20, 20, ["cowork.E002"]),
        (20, 20, 20, ["cowork.E001", "cowork.E002"]),
        (90, 40, 20, ["cowork.W001"]),
    ],
)
def test_unsafe_settings_are_found(
    settings: Any, retry: int, timeout: int, life: int, found: list[str]
) -> None:
    settings.COWORK_Q_RETRY = retry
    settings.COWORK_Q_TIMEOUT = timeout
    settings.COWORK_DRAIN_LIFE = timedelta(seconds=life)

    assert [message.id for message in checks.worker_settings()] == found
