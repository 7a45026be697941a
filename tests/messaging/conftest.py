"""Tests of what tasks say to each other.

Pilot leads team Core, cook and scout are in it; each has a conversation. Otto is an operator.
"""

import pytest

from cowork.models import Task
from teams.models import Bot, Person, Team
from teams.permissions import Principal
from tests.build import Build
from tests.provisioned import lab, other_lab
from timeline.clock import DatabaseClock, ManualClock

__all__ = ["lab", "other_lab"]


@pytest.fixture
def build(clock: ManualClock, db: None) -> Build:
    """The builders, in the time of the manual clock."""
    return Build(clock)


@pytest.fixture
def pilot_bot(build: Build) -> Bot:
    return build.a_bot("pilot")


@pytest.fixture
def cook_bot(build: Build) -> Bot:
    return build.a_bot("cook")


@pytest.fixture
def scout_bot(build: Build) -> Bot:
    return build.a_bot("scout")


@pytest.fixture
def team(build: Build, pilot_bot: Bot, cook_bot: Bot, scout_bot: Bot) -> Team:
    return build.a_team(pilot_bot, cook_bot, scout_bot)


@pytest.fixture
def pilot(build: Build, pilot_bot: Bot, team: Team) -> Task:
    return build.a_conversation(pilot_bot)


@pytest.fixture
def cook(build: Build, cook_bot: Bot, team: Team) -> Task:
    return build.a_conversation(cook_bot)


@pytest.fixture
def scout(build: Build, scout_bot: Bot, team: Team) -> Task:
    return build.a_conversation(scout_bot)


@pytest.fixture
def otto(build: Build) -> Person:
    return build.a_person("otto")


@pytest.fixture
def ops(build: Build) -> Principal:
    return build.a_service("ops")


@pytest.fixture
def in_time(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Entry points live in the time of the manual clock too."""
    monkeypatch.setattr(DatabaseClock, "now", lambda _self: clock.now())
