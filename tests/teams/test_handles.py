"""Handles: the rule, look-alikes, and finding a bot by a name."""

import pytest

from teams import handles
from teams.models import Bot
from timeline.refusals import InvalidRequest


@pytest.mark.parametrize("handle", ["a", "0", "atlas", "bot-7", "a-b-c", "x" * 64])
def test_a_proper_handle_is_taken(handle):
    assert handles.checked(handle) == handle


@pytest.mark.parametrize(
    "handle",
    ["", "-a", "a-", "A", "a_b", "a b", "x" * 65, "ätlas", "atlas\n", "аtlas", "@atlas", "a.b"],
)
def test_what_is_no_handle_is_refused(handle):
    with pytest.raises(InvalidRequest):
        handles.checked(handle)


@pytest.mark.parametrize("handle", [*sorted(handles.RESERVED), "adrnin", "hurnan", "h-e-r-e"])
def test_reserved_names_and_what_looks_like_them_are_refused(handle):
    with pytest.raises(InvalidRequest):
        handles.checked(handle)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("atlas", "at1as"),
        ("atlas", "atias"),
        ("echo", "ech0"),
        ("forge-two", "forgetwo"),
        ("modem", "modern"),
        ("wolf", "vvolf"),
    ],
)
def test_look_alikes_have_one_skeleton(one, other):
    assert handles.skeleton(one) == handles.skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("bot-1-11", "bot-11-1"), ("bot-1", "bot-2"), ("atlas", "atlos")]
)
def test_different_names_have_different_skeletons(one, other):
    assert handles.skeleton(one) != handles.skeleton(other)


@pytest.fixture
def crew():
    return [
        Bot(handle="forge", display_name="Forge"),
        Bot(handle="smith", display_name="forge"),
        Bot(handle="zoe", display_name="Zoé"),
        Bot(handle="twin-a", display_name="Twin"),
        Bot(handle="twin-b", display_name="Twin"),
    ]


@pytest.mark.parametrize("name", ["forge", "@forge", " @Forge ", "FORGE"])
def test_a_handle_wins_over_a_display_name(crew, name):
    assert handles.find(name, crew) == [crew[0]]


@pytest.mark.parametrize("name", ["Zoe\u0301", "zoé", "ZOÉ", "zoe"])
def test_names_are_compared_composed_and_without_case(crew, name):
    assert handles.find(name, crew) == [crew[2]]


def test_an_id_wins_over_everything(crew):
    crew[1].display_name = str(crew[2].id)

    assert handles.find(str(crew[2].id).upper(), crew) == [crew[2]]


def test_a_shared_display_name_means_all_who_bear_it(crew):
    assert handles.find("twin", crew) == crew[3:]


def test_the_nearest_handles_come_best_first(crew):
    assert handles.nearest("frge", crew)[0] == "forge"
