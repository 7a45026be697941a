"""The teammates of a conversation, and its tools (SPEC §3.5, §4.7)."""

import pytest

from cowork import editing, interrupting
from cowork.tasks import ModeForbidsTool
from messaging import finishing, leaving, teammates
from teams.authority import BotMembershipRevoked, BotNotFound, BotTeamUnavailable
from teams.models import Member
from tests.build import fresh


def standing(task):
    """Availability, reason and recovery by handle."""
    return {
        row["bot"]: (row["availability"], row["reason"], row["recovery"])
        for row in teammates.rows(fresh(task))
    }


AVAILABLE = ("available", None, None)


def test_each_teammate_and_oneself_is_listed(build, pilot, cook, scout, team):
    build.a_bot("stranger")

    found = teammates.rows(pilot)

    assert [row["bot"] for row in found] == ["cook", "pilot", "scout"]
    assert [row["self"] for row in found] == [False, True, False]
    assert [row["task_id"] for row in found] == [str(row.id) for row in (cook, pilot, scout)]
    assert found[0]["label"] == "Cook"
    assert standing(pilot) == {
        "cook": AVAILABLE,
        "pilot": ("conversation_unavailable", "self", None),
        "scout": AVAILABLE,
    }


def test_paused_and_stopped_can_be_written_to(build, pilot, cook, scout):
    interrupting.pause(cook, by=build.founder, clock=build.clock)
    interrupting.stop(scout, by=build.founder, clock=build.clock)

    found = standing(pilot)

    assert found["cook"] == ("available", "paused", None)
    assert found["scout"] == ("available", "stopped", "reopen")
    for handle in ("cook", "scout"):
        build.send(pilot, handle)


@pytest.mark.parametrize("how", ["none", "failed", "archived"])
def test_the_next_send_makes_a_new_one(build, pilot, scout_bot, how):
    if how != "none":
        scout = build.a_conversation(scout_bot)
        told = {"by": build.founder, "clock": build.clock}
        if how == "failed":
            finishing.complete(scout, outcome="failed", summary="", **told)
        else:
            editing.edit(scout, archived=True, **told)

    assert standing(pilot)["scout"] == ("available", "new_conversation", "reopen")
    build.send(pilot, "scout")
    assert standing(pilot)["scout"] == AVAILABLE


def test_a_removed_member(build, pilot, cook, team):
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=build.clock)

    assert standing(pilot)["cook"] == ("membership_revoked", "removed", "repair_membership")
    with pytest.raises(BotMembershipRevoked):
        build.send(pilot, "cook")


def test_a_deactivated_member(build, pilot, cook):
    leaving.deactivate_bot("cook", by=build.founder, clock=build.clock)

    assert standing(pilot)["cook"] == ("conversation_unavailable", "deactivated", None)
    with pytest.raises(BotNotFound):
        build.send(pilot, "cook")


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_persistent": False}])
def test_a_team_that_is_unavailable_comes_first(build, pilot, cook, scout, team, change):
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=build.clock)
    leaving.change_team(team.id, by=build.founder, clock=build.clock, **change)

    assert set(standing(pilot).values()) == {("team_unavailable", "team", None)}
    with pytest.raises(BotTeamUnavailable):
        build.send(pilot, "scout")


def test_membership_comes_before_the_conversation(build, pilot, cook, team):
    interrupting.pause(cook, by=build.founder, clock=build.clock)
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=build.clock)

    assert standing(pilot)["cook"][0] == "membership_revoked"


def test_the_lead_is_listed_without_a_row(build, cook, pilot, pilot_bot, team):
    Member.objects.filter(team=team, bot=pilot_bot).delete()

    assert standing(cook)["pilot"] == AVAILABLE


def test_a_task_without_a_team_has_no_teammates(build):
    assert teammates.rows(build.a_root()) == []
    assert teammates.rows(build.a_conversation("hermit")) == []


# Tools


def tools(task):
    return {row["name"]: (row["allowed"], row["reason"]) for row in teammates.tools(fresh(task))}


@pytest.mark.parametrize("mode", ["plan", "analyze"])
def test_outside_execute_only_teammates_are_written_to(build, pilot, cook, mode):
    editing.edit(pilot, interaction_mode=mode, by=build.founder, clock=build.clock)

    assert tools(pilot) == {
        "send_agent_message": (True, None),
        "complete": (False, f"Not in {mode} mode."),
    }
    build.send(fresh(pilot), cook)
    with pytest.raises(ModeForbidsTool):
        finishing.complete(
            pilot, outcome="completed", summary="", by=build.key_of(pilot), clock=build.clock
        )
    assert fresh(pilot).status == "idle"


def test_a_persons_word_is_not_gated_by_a_mode(build, pilot, otto):
    editing.edit(pilot, interaction_mode="plan", by=build.founder, clock=build.clock)

    finishing.complete(
        pilot, outcome="completed", summary="", by=build.principal(otto), clock=build.clock
    )

    assert fresh(pilot).status == "completed"


def test_what_a_turn_needs_is_never_gated(build, pilot, otto):
    editing.edit(pilot, interaction_mode="analyze", by=build.founder, clock=build.clock)
    build.follow_up(pilot, otto)

    turn = build.take_in(fresh(pilot))

    assert (fresh(turn).status, turn.interaction_mode) == ("done", "analyze")


@pytest.mark.parametrize("mode", ["execute", "plan"])
def test_in_execute_all_and_without_a_team_no_send(build, pilot, team, mode):
    editing.edit(pilot, interaction_mode=mode, by=build.founder, clock=build.clock)
    leaving.change_team(team.id, is_active=False, by=build.founder, clock=build.clock)

    found = tools(pilot)

    assert found["send_agent_message"] == (
        False,
        "This task is in no team that carries messages.",
    )
    assert found["complete"][0] is (mode == "execute")
