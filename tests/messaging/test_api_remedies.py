"""What people and services do about a task or a message, over the wire (API.md, Tasks)."""

import pytest

from cowork.models import Task
from tests.build import PASSWORD, events, fresh
from tests.messaging.test_api import calls, scout_key
from tests.provisioned import Caller, problem, signed_in

__all__ = ["calls", "scout_key"]

pytestmark = pytest.mark.usefixtures("in_time")


@pytest.fixture
def vera(build):
    """A viewer."""
    build.a_person("vera", role="viewer")
    return signed_in("vera", PASSWORD)


@pytest.fixture
def mia(build):
    """A manager."""
    build.a_person("mia", role="manager")
    return signed_in("mia", PASSWORD)


def beat(calls, scout_key):
    answer = scout_key.post(f"turns/{calls.turn.id}/heartbeat", fence=calls.turn.fence)
    assert answer.status_code == 200
    told = answer.json()
    return told["stop_requested"], told["pause_requested"], told["reason"]


def test_a_pause_that_is_asked_for_taken_back_and_confirmed(build, calls, scout, scout_key):
    paused = calls.otto.post(f"tasks/{scout.id}/pause", reason="lunch")
    assert paused.status_code == 202
    assert (paused.json()["status"], paused.json()["requested"]["action"]) == ("running", "pause")
    assert beat(calls, scout_key) == (False, True, "lunch")

    resumed = calls.otto.post(f"tasks/{scout.id}/resume")
    assert (resumed.status_code, resumed.json()["requested"]) == (202, None)
    assert beat(calls, scout_key) == (False, False, None)

    calls.ops.post(f"tasks/{scout.id}/pause")
    ended = scout_key.post(f"turns/{calls.turn.id}/end", fence=calls.turn.fence, status="done")
    assert ended.json() == {"next": False}
    shown = calls.ops.get(f"tasks/{scout.id}").json()
    assert (shown["status"], shown["requested"], shown["running_turn"]) == ("paused", None, None)
    assert scout_key.post(f"tasks/{scout.id}/turns").status_code == 204
    assert problem(scout_key.post(f"tasks/{scout.id}/turns", start=True)) == (
        409,
        "INVALID_TRANSITION",
    )


def test_a_stop_that_the_agent_confirms(calls, scout, scout_key):
    """CW-111"""
    stopped = calls.otto.post(f"tasks/{scout.id}/stop", reason="wrong way")
    assert stopped.status_code == 202
    told = stopped.json()
    assert (told["status"], told["requested"]["action"]) == ("interrupted", "stop")
    assert told["running_turn"]["id"] == str(calls.turn.id)
    assert beat(calls, scout_key) == (True, False, "wrong way")
    body = {"fence": calls.turn.fence}

    report = scout_key.post(
        f"turns/{calls.turn.id}/events", **body, events=[{"type": "stopped", "event_id": "s-1"}]
    )

    assert report.status_code == 200
    shown = calls.ops.get(f"tasks/{scout.id}").json()
    assert (shown["status"], shown["requested"], shown["running_turn"]) == (
        "interrupted",
        None,
        None,
    )
    for status in ("aborted", "done"):
        later = scout_key.post(f"turns/{calls.turn.id}/end", **body, status=status)
        assert (later.status_code, later.json()) == (200, {"next": False})
    assert scout_key.post(f"tasks/{scout.id}/turns").status_code == 204
    asked, confirmed = events(scout, "agent_interrupt_requested", "agent_interrupt_confirmed")
    assert asked.payload == confirmed.payload
    again = scout_key.post(
        f"turns/{calls.turn.id}/events", **body, events=[{"type": "stopped", "event_id": "s-1"}]
    )
    assert again.status_code == 200


def test_a_refused_step_names_the_present_status(calls, cook):
    answer = calls.otto.post(f"tasks/{cook.id}/resume")

    assert problem(answer) == (409, "INVALID_TRANSITION")
    assert answer.json()["status"] == "idle"


@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "reopen"])
def test_who_may_not(calls, vera, cook, verb):
    count = len(events(cook))

    for caller in (calls.pilot, calls.cook, vera):
        assert problem(caller.post(f"tasks/{cook.id}/{verb}")) == (403, "FORBIDDEN")
    assert problem(Caller().post(f"tasks/{cook.id}/{verb}")) == (401, "NOT_AUTHENTICATED")
    if verb == "reopen":
        assert problem(calls.ops.post(f"tasks/{cook.id}/{verb}")) == (403, "FORBIDDEN")

    assert (fresh(cook).status, len(events(cook))) == ("idle", count)
    assert Task.objects.filter(bot=cook.bot_id).count() == 1


@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "reopen", "complete"])
def test_a_foreign_task_is_not_there(calls, other_lab, verb):
    foreign = other_lab.task("forge")

    assert problem(calls.otto.post(f"tasks/{foreign.id}/{verb}")) == (404, "TASK_NOT_FOUND")
    assert fresh(foreign).status == "idle"


def test_a_conversation_is_reopened(calls, mia, cook, team):
    made = calls.otto.post(f"tasks/{cook.id}/reopen")

    assert made.status_code == 201
    told = made.json()
    assert (told["branch_from"], told["status"], told["last_seq"]) == (str(cook.id), "idle", 1)
    mia.delete(f"teams/{team.id}/members/cook")
    path = f"tasks/{told['id']}/reopen"
    assert problem(calls.otto.post(path)) == (403, "BOT_MEMBERSHIP_REVOKED")
    assert problem(calls.otto.post(path, repair_membership=True)) == (403, "FORBIDDEN")
    assert mia.post(path, repair_membership=True).status_code == 201


def test_a_held_message_is_explained_shown_and_let_go(build, calls, vera, pilot, cook, settings):
    settings.COWORK_MAX_HOPS = 0
    calls.otto.post(f"receipts/{calls.receipt.id}/quarantine")
    calls.otto.post(f"receipts/{calls.receipt.id}/discard")
    held = build.send(pilot, cook).receipt

    told = calls.otto.get(f"receipts/{held.id}/explain").json()
    [item] = calls.otto.get("attention").json()["results"]

    assert (told["blocker"], [row["action"] for row in told["remedies"]]) == (
        "loop_guard",
        ["let_go"],
    )
    assert (item["code"], item["receipt_id"], item["remedies"]) == (
        "LOOP_GUARD",
        str(held.id),
        told["remedies"],
    )
    assert calls.otto.get(f"receipts/{held.id}").json()["wakes"] is False
    for caller in (calls.pilot, calls.ops, vera):
        assert problem(caller.post(f"receipts/{held.id}/let_go")) == (403, "FORBIDDEN")
    url = told["remedies"][0]["url"].removeprefix("/api/v1/")
    freed = calls.otto.post(url, note="All right.")
    assert (freed.status_code, freed.json()["wakes"]) == (200, True)
    assert problem(calls.otto.post(url)) == (409, "INVALID_TRANSITION")
    assert calls.otto.get("attention").json()["results"] == []


def test_attention_is_for_those_who_read_the_workspace(build, calls, vera, cook, scout, pilot):
    calls.otto.post(f"receipts/{calls.receipt.id}/quarantine", note="odd")
    build.a_receipt("quarantined", sender=pilot, recipient=cook)

    assert problem(calls.pilot.get("attention")) == (403, "FORBIDDEN")
    [newer] = vera.get("attention?limit=1").json()["results"]
    first = vera.get("attention?limit=1").json()
    [older] = vera.get(f"attention?limit=1&cursor={first['next']}").json()["results"]
    assert {newer["receipt_id"], older["receipt_id"]} >= {str(calls.receipt.id)}
    assert newer["id"] != older["id"]


def test_explain_of_what_is_not_yours_or_not_here(calls, other_lab, scout_key):
    assert problem(scout_key.get(f"receipts/{calls.receipt.id}/explain")) == (403, "FORBIDDEN")
    outside = other_lab.operator.get(f"receipts/{calls.receipt.id}/explain")
    assert problem(outside) == (404, "NOT_FOUND")


def test_the_sender_is_told_how_to_take_it_back(calls):
    told = calls.pilot.get(f"receipts/{calls.receipt.id}/explain").json()

    assert told["blocker"] == "no_runtime"
    [remedy] = told["remedies"]
    taken_back = calls.pilot.post(remedy["url"].removeprefix("/api/v1/"))
    assert taken_back.json()["failure_code"] == "WITHDRAWN"


def test_teammates_and_tools_for_a_teammate(calls, pilot, cook):
    """An agent may look at its teammates' conversations too."""
    for task in (pilot, cook):
        rows = calls.pilot.get(f"tasks/{task.id}/teammates").json()["results"]
        assert [row["bot"] for row in rows if row["self"]] == [task.bot.handle]
        tools = calls.pilot.get(f"tasks/{task.id}/tools").json()["results"]
        assert {row["name"]: row["allowed"] for row in tools}["send_agent_message"] is True


def test_an_agent_in_plan_mode_does_not_complete(calls, cook):
    calls.otto.patch(f"tasks/{cook.id}", interaction_mode="plan")

    answer = calls.cook.post(f"tasks/{cook.id}/complete", outcome="completed", summary="done")

    assert problem(answer) == (403, "MODE_FORBIDS_TOOL")
    assert fresh(cook).status == "idle"
