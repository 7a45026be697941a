"""Reopening: a new dormant conversation beside an old one (SPEC §3.6)."""

import pytest

from cowork import conversations, editing, interrupting, reopening
from cowork.models import OutboxEntry, Task, Turn
from cowork.reopening import ConversationUnavailable
from cowork.tasks import TurnRunning
from messaging import finishing, leaving
from messaging.models import Receipt
from teams import authority
from teams.authority import BotMembershipRevoked, BotNotFound
from teams.models import Member
from tests.build import events, fresh
from timeline.models import AuditEntry
from timeline.refusals import Forbidden


def reopen(build, task, by=None, **more):
    return reopening.reopen(fresh(task), by=by or build.founder, clock=build.clock, **more)


def remove(build, team, handle):
    leaving.remove_member(team.id, handle=handle, by=build.founder, clock=build.clock)


def test_it_is_dormant_linked_and_empty(build, clock, pilot, cook, team, otto):
    """CW-103"""
    editing.edit(
        cook, title="Kitchen", interaction_mode="plan", by=build.founder, clock=build.clock
    )
    build.send(pilot, cook)
    build.take_in(fresh(cook), text="done")
    told = [event.id for event in events(cook)]

    made = reopen(build, cook, by=build.principal(otto))

    assert (made.kind, made.status, made.branch_from_id) == ("bot_conversation", "idle", cook.id)
    assert (made.bot_id, made.team_id, made.title) == (cook.bot_id, team.id, "Kitchen")
    assert made.interaction_mode == "plan"
    [created] = events(made)
    assert created.payload["branch_from"] == str(cook.id)
    assert not Turn.objects.filter(task=made).exists()
    assert not OutboxEntry.objects.filter(target=made.id).exists()
    assert [event.id for event in events(cook)] == told
    assert fresh(cook).status == "idle"
    assert build.claim(made) is None


def test_sends_by_handle_go_to_the_new_one(build, pilot, cook, cook_bot, team):
    made = reopen(build, cook)

    assert build.send(pilot, cook_bot).receipt.recipient == made
    assert conversations.current_of(cook_bot, team) == made
    assert not fresh(cook).is_current


def test_what_was_queued_for_the_old_one_is_closed(build, pilot, cook):
    """SPEC §5.5"""
    receipt = build.send(pilot, cook).receipt

    reopen(build, cook)

    closed = fresh(receipt)
    assert (closed.status, closed.failure_code) == ("failed", "RECIPIENT_ENDED")
    assert closed.closed_at is not None
    assert events(pilot, "message_status")[-1].payload["to"] == "failed"
    assert closed.reply_status == "timed_out"


@pytest.mark.parametrize("status", ["archived", "failed", "paused", "interrupted"])
def test_whatever_became_of_the_old_one(build, pilot, cook, cook_bot, team, status):
    told = {"by": build.founder, "clock": build.clock}
    {
        "archived": lambda: editing.edit(cook, archived=True, **told),
        "failed": lambda: finishing.complete(cook, outcome="failed", summary="", **told),
        "paused": lambda: interrupting.pause(cook, **told),
        "interrupted": lambda: interrupting.stop(cook, **told),
    }[status]()
    before = fresh(cook).status

    made = reopen(build, cook)

    assert fresh(cook).status == before
    assert conversations.current_of(cook_bot, team) == made


# Refusals


def nothing_was_made(cook):
    return Task.objects.filter(bot=cook.bot_id).count() == 1


def test_only_conversations_are_reopened(build):
    root = build.a_root()

    with pytest.raises(ConversationUnavailable):
        reopen(build, root)
    assert Task.objects.count() == 1


def test_not_while_a_turn_runs(build, cook):
    build.a_turn(cook)

    with pytest.raises(TurnRunning):
        reopen(build, cook)
    assert nothing_was_made(cook)


def test_not_while_a_stopped_turn_runs_still(build, cook):
    build.a_turn(cook)
    interrupting.stop(cook, by=build.founder, clock=build.clock)

    with pytest.raises(TurnRunning):
        reopen(build, cook)


def test_not_for_a_bot_that_is_gone(build, cook):
    leaving.deactivate_bot("cook", by=build.founder, clock=build.clock)

    with pytest.raises(BotNotFound):
        reopen(build, cook)
    assert nothing_was_made(cook)


def test_agents_services_and_viewers_reopen_nothing(build, cook, ops):
    viewer = build.principal(build.a_person("vera", role="viewer"))

    for caller in (build.key_of(cook), ops, viewer):
        with pytest.raises(Forbidden):
            reopen(build, cook, by=caller)
    assert nothing_was_made(cook)


# A removed membership


def test_a_removed_membership_is_refused(build, cook, team):
    """CW-104"""
    remove(build, team, "cook")

    with pytest.raises(BotMembershipRevoked):
        reopen(build, cook)
    assert nothing_was_made(cook)


def test_a_manager_repairs_it_first(build, pilot, cook, cook_bot, team):
    """CW-104"""
    held = build.a_receipt("quarantined", sender=pilot, recipient=cook)
    remove(build, team, "cook")
    manager = build.principal(build.a_person("mia", role="manager"))

    made = reopen(build, cook, by=manager, repair_membership=True)

    assert authority.is_member(team, cook_bot)
    [told] = events(cook, "membership_repaired")
    assert (told.payload, told.actor_label) == ({"bot": "cook", "team": str(team.id)}, "mia")
    [row] = AuditEntry.objects.filter(action="member.restore")
    assert (row.target_id, row.actor_label, row.detail) == (str(team.id), "mia", {"bot": "cook"})
    assert fresh(held).status == "quarantined"
    assert Receipt.objects.count() == 1
    assert build.send(pilot, cook_bot).receipt.recipient == made


def test_operators_do_not_repair(build, cook, team, otto):
    remove(build, team, "cook")

    with pytest.raises(Forbidden):
        reopen(build, cook, by=build.principal(otto), repair_membership=True)
    assert not Member.objects.filter(bot=cook.bot_id, status="active").exists()


def test_where_nothing_is_to_repair_nothing_is_told(build, cook):
    reopen(build, cook, repair_membership=True)

    assert not events(cook, "membership_repaired")
    assert not AuditEntry.objects.filter(action="member.restore").exists()


def test_a_former_lead_without_a_row_becomes_a_member(build, pilot, pilot_bot, cook, team):
    """The lead counts as a member without one (SPEC §3.2)."""
    Member.objects.filter(team=team, bot=pilot_bot).delete()
    leaving.change_team(team.id, lead="cook", by=build.founder, clock=build.clock)
    with pytest.raises(BotMembershipRevoked):
        reopen(build, pilot)

    reopen(build, pilot, repair_membership=True)

    assert authority.is_member(team, pilot_bot)


def test_a_stale_team_is_never_swapped(build, pilot_bot, cook, cook_bot, team):
    other = build.a_team(pilot_bot, cook_bot, name="Other")
    leaving.change_team(team.id, is_active=False, by=build.founder, clock=build.clock)

    made = reopen(build, cook)

    assert made.team_id == team.id != other.id
    assert not fresh(team).is_active


def test_a_conversation_without_a_team_is_reopened_without_one(build):
    alone = build.a_conversation("hermit")

    assert reopen(build, alone).team_id is None
