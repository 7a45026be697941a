"""The builders reach what they promise."""

import pytest

from cowork.models import Turn
from messaging.models import Receipt


@pytest.mark.parametrize("status", Receipt.Status.values)
def test_a_message_is_built_in_every_state(build, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)

    assert receipt.status == status


@pytest.mark.parametrize("status", Receipt.Status.values)
def test_a_persons_input_is_built_in_every_state(build, cook, otto, status):
    receipt = build.a_receipt(status, sender=otto, recipient=cook)

    assert receipt.status == status


@pytest.mark.parametrize("status", Turn.Status.values)
def test_a_turn_is_built_in_every_state(build, cook, status):
    assert build.a_turn(cook, status).status == status
