"""Who may write to whom."""

from typing import Any

import pytest

from messaging import leaving
from teams import authority
from teams.models import Bot, Member, Team
from teams.permissions import Principal
from tests.provisioned import a_lab
from timeline.clock import system_clock
from timeline.ids import new_id


@pytest.fixture
def boss(lab):
    return Principal("system", new_id(), "CoWork", lab.id, lab.slug)


@pytest.fixture
def remove(lab, boss):
    return lambda handle: leaving.remove_member(
        lab.team.id, handle=handle, by=boss, clock=system_clock
    )


def test_a_member_and_the_lead_may_use_their_team(lab):
    for handle in ("atlas", "forge"):
        assert authority.require_team(lab.bot(handle), lab.team) == lab.team


def test_no_team_is_unavailable(lab):
    with pytest.raises(authority.BotTeamUnavailable):
        authority.require_team(lab.bot("forge"), None)


@pytest.mark.parametrize("flag", ["is_active", "is_persistent"])
def test_a_team_that_is_off_is_unavailable_although_the_caller_holds_an_older_row(lab, boss, flag):
    older = lab.team
    off: dict[str, Any] = {flag: False}
    leaving.change_team(older.id, by=boss, clock=system_clock, **off)

    with pytest.raises(authority.BotTeamUnavailable):
        authority.require_team(lab.bot("forge"), older)
    assert authority.may_exchange(older, lab.bot("forge"), lab.bot("echo")) is not None


def test_a_team_of_another_workspace_is_unavailable(lab, other_lab):
    with pytest.raises(authority.BotTeamUnavailable):
        authority.require_team(lab.bot("forge"), other_lab.team)
    assert authority.may_exchange(lab.team, lab.bot("forge"), other_lab.bot("forge")) is not None


def test_who_was_removed_or_never_was_there_has_no_membership(lab, remove):
    remove("forge")

    for handle in ("forge", "dora"):
        with pytest.raises(authority.BotMembershipRevoked):
            authority.require_team(lab.bot(handle), lab.team)


@pytest.mark.parametrize("name", ["forge", "@FORGE", "Forge"])
def test_a_teammate_is_found_by_its_names(lab, name):
    assert authority.find_teammate(lab.bot("atlas"), lab.team, name) == lab.bot("forge")


def test_a_teammate_is_found_by_its_id(lab):
    forge = lab.bot("forge")

    assert authority.find_teammate(lab.bot("atlas"), lab.team, str(forge.id)) == forge


def test_the_lead_counts_as_a_member_without_a_row(db):
    lab = a_lab(teams=[{"name": "Core", "lead": "atlas", "members": ["forge"]}])

    assert authority.find_teammate(lab.bot("forge"), lab.team, "atlas") == lab.bot("atlas")
    assert authority.may_exchange(lab.team, lab.bot("atlas"), lab.bot("forge")) is None


@pytest.mark.parametrize("name", ["atlas", "dora", "nobody", "", "@"])
def test_nobody_is_found_who_is_no_other_active_member(lab, name):
    with pytest.raises(authority.BotNotFound) as refused:
        authority.find_teammate(lab.bot("atlas"), lab.team, name)

    assert set(refused.value.extra["nearest"]) == {"forge", "echo"}


def test_a_former_member_is_told_apart(lab, remove):
    remove("forge")

    for name in ("forge", "Forge", str(lab.bot("forge").id)):
        with pytest.raises(authority.BotMembershipRevoked):
            authority.find_teammate(lab.bot("atlas"), lab.team, name)


def test_a_deactivated_bot_counts_as_not_there(lab, boss):
    leaving.deactivate_bot("forge", by=boss, clock=system_clock)

    with pytest.raises(authority.BotNotFound):
        authority.find_teammate(lab.bot("atlas"), lab.team, "forge")
    assert authority.may_exchange(lab.team, lab.bot("atlas"), lab.bot("forge")) is not None


def test_an_ambiguous_name_tells_the_candidates(db):
    bots = [
        {"handle": handle, "display_name": name}
        for handle, name in {"atlas": "Atlas", "twin-a": "Twin", "twin-b": "Twin"}.items()
    ]
    team = {"name": "Core", "lead": "atlas", "members": ["twin-a", "twin-b"]}
    lab = a_lab(bots=bots, teams=[team], conversations=[], credentials=[])

    with pytest.raises(authority.BotNotFound) as refused:
        authority.find_teammate(lab.bot("atlas"), lab.team, "twin")

    assert refused.value.extra["candidates"] == ["twin-a", "twin-b"]
    assert authority.find_in_workspace(lab.id, "Twin") is None


def test_in_a_workspace_everybody_is_found_whatever_became_of_them(lab, other_lab, boss, remove):
    remove("echo")
    leaving.deactivate_bot("forge", by=boss, clock=system_clock)

    for handle in ("forge", "echo", "dora"):
        bot = lab.bot(handle)
        for name in (handle, f"@{handle}", str(bot.id), bot.display_name.upper()):
            assert authority.find_in_workspace(lab.id, name) == bot
    assert authority.find_in_workspace(lab.id, str(other_lab.bot("forge").id)) is None
    assert authority.find_in_workspace(lab.id, "nobody") is None


def test_two_members_may_exchange_messages(lab):
    assert authority.may_exchange(lab.team, lab.bot("forge"), lab.bot("echo")) is None
    assert authority.may_exchange(None, lab.bot("forge")) is not None
    assert "Dora" in (authority.may_exchange(lab.team, lab.bot("forge"), lab.bot("dora")) or "")


def test_nothing_is_repaired_by_itself(lab):
    Team.objects.filter(pk=lab.team_id).update(is_active=False)

    with pytest.raises(authority.BotTeamUnavailable):
        authority.require_team(lab.bot("forge"), lab.team)

    assert not lab.team.is_active
    assert Member.objects.filter(team=lab.team).count() == 3
    assert Bot.objects.filter(workspace_id=lab.id).count() == 4
