"""Timeline rows and states of delivery as pure functions of events."""

import pytest

from tests.facts import Story, agent, receipt_id
from timeline import projection


def test_one_row_per_receipt_filled_with_what_is_known():
    story = Story()
    story.send(1, "forge", "please look")
    story.move(1, "queued", "started", reply="pending")
    story.move(1, "started", "delivered", reply="pending")

    [row] = projection.rows(story.events)

    told = row.as_json()
    assert told["title"] == "Messaged Forge"
    assert told["preview"] == "please look"
    assert (told["delivery_status"], told["label"]) == ("delivered", "Delivered")
    assert told["open"] == "task-forge"
    assert told["error"] is None
    assert told["at"] == story.events[-1]["created_at"]


def test_a_received_message_keeps_the_place_of_its_admission():
    story = Story()
    story.admit(1, sender=agent("atlas"))
    story.admit(2)
    story.take_in(2, "overtook")
    story.take_in(1, "hello", sender=agent("atlas"))

    rows = projection.rows(story.events)

    assert [row.message_id for row in rows] == ["m-1", "m-2"]
    assert [row.preview for row in rows] == ["hello", "overtook"]


def test_why_it_failed_stands_in_the_row_until_it_is_delivered():
    story = Story()
    story.send(1, "forge", "x")
    story.move(1, "queued", "failed", code="RUNTIME_ERROR")
    [row] = projection.rows(story.events)
    assert row.error == {"code": "RUNTIME_ERROR", "reason": None}

    story.move(1, "failed", "queued", attempt=2)
    story.move(1, "queued", "delivered", attempt=2)

    [row] = projection.rows(story.events)
    assert row.error is None


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("WITHDRAWN", "Withdrawn"),
        ("DISCARDED", "Discarded"),
        ("RECIPIENT_ENDED", "Recipient ended"),
        ("RUNTIME_ERROR", "Failed"),
    ],
)
def test_a_closed_message_says_why(code, label):
    story = Story()
    story.send(1, "forge", "x")
    story.move(1, "queued", "failed", code=code)

    delivery = projection.deliveries(story.events)[receipt_id(1)]

    assert delivery.label == label
    assert delivery.needs_a_person is (label == "Failed")


def test_a_new_attempt_begins_with_new_times():
    story = Story()
    story.send(1, "forge", "x")
    story.move(1, "queued", "started")
    story.move(1, "started", "queued", attempt=2)

    delivery = projection.deliveries(story.events)[receipt_id(1)]

    assert [label for label, _ in delivery.steps] == ["Accepted", "Queued"]
    assert delivery.attempt == 2


def test_an_answer_changes_no_step():
    story = Story()
    story.send(1, "forge", "x")
    story.move(1, "queued", "delivered", reply="pending")
    before = projection.deliveries(story.events)[receipt_id(1)].at

    story.move(1, "delivered", "delivered", reply="received", replied_by="m-7")

    delivery = projection.deliveries(story.events)[receipt_id(1)]
    assert delivery.at == before
    assert delivery.replied_at is not None
    assert not delivery.is_awaited
