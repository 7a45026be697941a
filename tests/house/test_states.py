"""Tables of transitions are whole, and drawn as they are."""

import pytest

from tests.house import states
from tests.house.source import all_subclasses, import_everything
from timeline.transitions import Stateful

import_everything()
STATEFUL = [row for row in all_subclasses(Stateful) if issubclass(row, Stateful)]


def test_the_drawing_is_current() -> None:
    assert states.PAGE.read_text() == states.drawn(), "draw it again: make states"


@pytest.mark.parametrize("row", STATEFUL, ids=lambda row: row.__name__)
def test_every_status_is_on_its_table(row: type[Stateful]) -> None:
    statuses = {value for value, _label in states.status_field(row).choices}

    assert set(row.TRANSITIONS) == statuses
    assert set().union(*row.TRANSITIONS.values()) <= statuses
