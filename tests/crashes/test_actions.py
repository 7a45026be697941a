"""Every action of messaging and cowork is killed right before its commit and right after it.

Before it, nothing at all is stored. After it, recovery and the caller's repeat lead to the same end
as if nobody had died: nothing lost, nothing twice, nothing delivered too early, order kept.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.crashes import cases_of_cowork, cases_of_messaging  # noqa: F401 - they register
from tests.crashes.mortal import Moment, die
from tests.crashes.scene import CASES, Registered, Scene, a_scene, everything
from tests.house.source import ROOT, Module
from timeline.clock import ManualClock

APPS = ("messaging", "cowork")
FIRST = [case for case in CASES if case.commit == 1]
LATER = [case for case in CASES if case.commit > 1]


@pytest.fixture
def scene(clock: ManualClock, transactional_db: None) -> Iterator[Scene]:
    with a_scene(clock) as scene:
        yield scene


def name_of(case: Registered) -> str:
    return f"{case.action}-{case.make.__name__}"


@pytest.mark.parametrize("registered", FIRST, ids=name_of)
def test_what_dies_at_its_commit_is_stored_whole_or_not_at_all(
    scene: Scene, registered: Registered
) -> None:
    case = registered.make(scene)
    before = everything()

    assert die(case.act, moment="before") == registered.action
    assert everything() == before
    assert die(case.act, moment="after") == registered.action

    assert everything() != before
    scene.settle()
    case.repeat()
    scene.settle()
    assert case.holds()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("registered", LATER, ids=name_of)
def test_what_dies_half_way_is_brought_to_its_end(
    scene: Scene, registered: Registered, moment: Moment
) -> None:
    case = registered.make(scene)

    assert die(case.act, moment=moment, commit=registered.commit) == registered.action

    scene.settle()
    case.repeat()
    scene.settle()
    assert case.holds()


def test_every_action_is_killed() -> None:
    paths = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    found = {name for path in paths for name in actions_of(Module(path))}

    assert found == {case.action for case in CASES}


def actions_of(module: Module) -> Iterator[str]:
    """The full names of the functions that open a transaction."""
    dotted = module.name.removesuffix(".py").replace("/", ".")
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            names = {ast.unparse(decorator) for decorator in node.decorator_list}
            if names & {"action", "transactions.action"}:
                yield f"{dotted}.{node.name}"
