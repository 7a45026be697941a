"""Runtime profiles: what a script may say."""

import pytest

from teams import profiles
from timeline.refusals import InvalidRequest

GOOD = [
    [],
    [{"when": ".*", "do": []}],
    [{"when": r"ACK: (\S+)", "do": [{"reply": "$1"}, {"say": "$1"}]}],
    [{"when": "x", "do": [{"send": {"bot": "$1", "message": "hi"}}, {"sleep_ms": 5}]}],
    [{"when": "x", "do": [{"fail": "before", "times": 2}, {"fail": "after"}, {"exit": 1}]}],
]
BAD = [
    [{"when": "(", "do": []}],
    [{"when": ".*"}],
    [{"do": []}],
    [{"when": ".*", "do": [{"shout": "hi"}]}],
    [{"when": ".*", "do": [{"say": "hi", "reply": "hi"}]}],
    [{"when": ".*", "do": [{}]}],
    [{"when": ".*", "do": ["say"]}],
    [{"when": ".*", "do": [{"say": 7}]}],
    [{"when": ".*", "do": [{"say": "\0"}]}],
    [{"when": ".*", "do": [{"send": {"bot": "forge"}}]}],
    [{"when": ".*", "do": [{"sleep_ms": -1}]}],
    [{"when": ".*", "do": [{"fail": "sometimes"}]}],
    [{"when": ".*", "do": [{"say": "hi", "times": 2}]}],
    [{"when": ".*", "do": [], "else": []}],
    "text",
    None,
]


@pytest.mark.parametrize("rules", GOOD)
def test_a_proper_script_is_taken(rules):
    stored = profiles.checked("script", {"rules": rules})

    assert profiles.ScriptConfig.model_validate(stored).model_dump(mode="json") == stored
    assert len(stored["rules"]) == len(rules)


@pytest.mark.parametrize("rules", BAD)
def test_a_script_that_nobody_can_run_is_refused(rules):
    with pytest.raises(InvalidRequest) as refused:
        profiles.checked("script", {"rules": rules})

    assert refused.value.extra["errors"]


@pytest.mark.parametrize("step", [{"spawn": {}}, {"done": "x"}, {"notice": {}}])
def test_steps_that_are_not_there_yet_are_refused(step):
    with pytest.raises(InvalidRequest, match="no such step"):
        profiles.checked("script", {"rules": [{"when": ".*", "do": [step]}]})


@pytest.mark.parametrize(
    ("kind", "config"),
    [("command", {"argv": ["sh"]}), ("external", {"rules": []}), ("script", {}), ("", {})],
)
def test_kinds_and_options_that_are_not_there_are_refused(kind, config):
    with pytest.raises(InvalidRequest):
        profiles.checked(kind, config)


def test_every_workspace_has_an_external_profile(lab):
    rows = lab.viewer.get("runtimes").json()["results"]

    assert [(row["name"], row["kind"]) for row in rows] == [("external", "external")]


def test_a_manager_makes_a_profile_whose_inside_is_not_shown(lab):
    rules = [{"when": ".*", "do": [{"say": "a quiet word"}]}]

    made = lab.manager.post("runtimes", name="echo-script", kind="script", rules=rules)

    assert made.status_code == 201
    assert "a quiet word" not in lab.manager.get("runtimes").content.decode()
    profile = lab.workspace.runtimes.get(name="echo-script")
    assert profiles.rules_of(profile)[0].do == [profiles.Say(say="a quiet word")]


@pytest.mark.parametrize("name", ["external", "Upper", "", "-x", "x" * 64])
def test_a_profile_has_a_proper_name_of_its_own(lab, name):
    answer = lab.manager.post("runtimes", name=name, kind="external")

    assert answer.status_code == 400
    assert lab.workspace.runtimes.count() == 1
