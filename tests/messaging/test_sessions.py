"""Work sessions: a runtime's context store stays in its workspace (SPEC §3.7)."""

import pytest

from cowork import reopening
from cowork.models import WorkSession
from messaging import output
from teams.models import RuntimeProfile
from tests.build import Build, events, fresh
from tests.provisioned import problem
from timeline.models import Body


@pytest.fixture
def accept(build):
    """A turn of a task, whose runtime has taken it in the session of this name."""

    def accepted(task, ref=None, **more):
        event = {"type": "accepted", **more}
        if ref is not None:
            event["session_ref"] = ref
        return build.report(build.claimed(fresh(task), start=True).turn, event)

    return accepted


@pytest.fixture
def elsewhere(clock):
    """Another workspace."""
    return Build(clock, slug="other").workspace


def astray(session, elsewhere):
    """No action moves a session across an edge: this is what a repair by hand may have left."""
    WorkSession.objects.filter(pk=session.pk).update(workspace=elsewhere)


def recoveries(task):
    return events(task, "workspace_boundary_recovery")


def test_a_runtime_names_the_session_that_it_runs_in(build, clock, accept, cook):
    assert output.task(cook)["session"] is None

    accept(cook, "store-1")

    session = WorkSession.objects.get()
    assert (session.ref, session.workspace_id, session.runtime_id, session.created_at) == (
        "store-1",
        cook.workspace_id,
        cook.runtime_id,
        clock.now(),
    )
    assert fresh(cook).session == session
    assert output.task(fresh(cook))["session"] == str(session.id)
    assert recoveries(cook) == []


def test_the_same_name_is_the_same_session_and_another_one_moves_the_binding(build, accept, cook):
    build.end(accept(cook, "one"))
    first = fresh(cook).session
    build.end(accept(cook, "one"))
    assert fresh(cook).session == first
    build.end(accept(cook, "two"))
    assert fresh(cook).session.ref == "two"
    build.end(accept(cook))

    assert fresh(cook).session.ref == "two"
    assert WorkSession.objects.count() == 2
    assert recoveries(cook) == []


def test_a_name_belongs_to_its_profile(build, accept, pilot, cook):
    build.a_runtime("scripted")
    RuntimeProfile.objects.filter(name="scripted").update(kind="external")
    twin = build.a_conversation(build.a_bot("twin", runtime="scripted"))

    for task in (pilot, cook, twin):
        accept(task, "store-1")

    assert fresh(pilot).session == fresh(cook).session != fresh(twin).session


def test_a_session_of_another_workspace_is_replaced_when_it_is_named(
    build, clock, accept, elsewhere, pilot, cook
):
    """CW-78"""
    build.end(accept(pilot, "store-1"))
    old = WorkSession.objects.get()
    astray(old, elsewhere)

    accept(cook, "store-1")

    new = fresh(cook).session
    assert new != old
    assert (new.workspace_id, new.ref, new.detached_at) == (cook.workspace_id, "store-1", None)
    assert (fresh(old).workspace_id, fresh(old).detached_at) == (elsewhere.id, clock.now())
    [told] = recoveries(cook)
    assert told.payload == {
        "old_session": str(old.id),
        "new_session": str(new.id),
        "code": "WORKSPACE_CONFLICT",
    }
    assert (told.actor_kind, told.body) == ("system", None)


def test_no_turn_begins_in_a_session_of_another_workspace(build, accept, elsewhere, cook):
    """CW-78"""
    build.end(accept(cook, "store-1"))
    old = fresh(cook).session
    astray(old, elsewhere)
    bodies = Body.objects.count()

    turn = build.claimed(fresh(cook), start=True).turn

    new = fresh(cook).session
    assert (new.workspace_id, new.ref) == (cook.workspace_id, "store-1")
    assert fresh(old).detached_at is not None
    [told] = recoveries(cook)
    assert told.payload["new_session"] == str(new.id)
    assert told.seq < events(cook, "turn_started")[-1].seq
    assert Body.objects.count() == bodies
    build.report(turn, {"type": "accepted", "session_ref": "store-1"})
    assert fresh(cook).session == new
    assert len(recoveries(cook)) == 1


def test_a_claim_without_a_turn_recovers_nothing(build, accept, elsewhere, cook):
    build.end(accept(cook, "store-1"))
    astray(fresh(cook).session, elsewhere)

    assert build.claim(fresh(cook)) is None

    assert recoveries(cook) == []


def test_all_that_were_bound_to_it_end_up_in_one_fresh_session(
    build, accept, elsewhere, pilot, cook
):
    for task in (pilot, cook):
        build.end(accept(task, "store-1"))
    old = fresh(cook).session
    astray(old, elsewhere)

    for task in (pilot, cook):
        build.claimed(fresh(task), start=True)

    assert fresh(pilot).session == fresh(cook).session != old
    assert WorkSession.objects.count() == 2
    assert len(recoveries(pilot)) == len(recoveries(cook)) == 1


def test_the_repeat_of_a_report_binds_nothing_anew(build, accept, cook):
    turn = accept(cook, "one", event_id="e-1")
    build.report(turn, {"type": "accepted", "session_ref": "two", "event_id": "e-1"})

    assert fresh(cook).session.ref == "one"


def test_a_reopened_conversation_starts_without_a_session(build, clock, accept, cook):
    build.end(accept(cook, "one"))

    made = reopening.reopen(fresh(cook), by=build.founder, clock=clock)

    assert fresh(made).session is None


@pytest.mark.parametrize("ref", ["", "x" * 201, 7, ["store"], "a\0b"])
def test_an_unfit_name_is_refused(lab, ref):
    task = lab.task("forge")
    turn = lab.agent("forge").post(f"tasks/{task.id}/turns", start=True).json()

    answer = lab.agent("forge").post(
        f"turns/{turn['id']}/events",
        fence=turn["fence"],
        events=[{"type": "accepted", "event_id": "e", "session_ref": ref}],
    )

    assert problem(answer) == (400, "INVALID_REQUEST")
    assert not WorkSession.objects.exists()


def test_the_wire_shows_the_session(lab):
    task, forge = lab.task("forge"), lab.agent("forge")
    turn = forge.post(f"tasks/{task.id}/turns", start=True).json()
    events = [{"type": "accepted", "event_id": "e", "session_ref": "store-1"}]

    answer = forge.post(f"turns/{turn['id']}/events", fence=turn["fence"], events=events)

    assert answer.status_code == 200
    shown = forge.get(f"tasks/{task.id}").json()
    assert shown["session"] == str(WorkSession.objects.get().id)
