"""The transcript as a pure function of events."""

import json
from datetime import UTC

import pytest

from messaging import transcript
from tests.facts import Story, agent, receipt_id


def test_a_message_stands_once_whatever_its_attempts():
    story = Story()
    story.admit(1, sender=agent("atlas"))
    story.move(1, "queued", "started", side="recipient")
    story.move(1, "started", "queued", side="recipient", attempt=2)
    story.take_in(1, "hello", sender=agent("atlas"))

    [item] = transcript.items(story.events, {})

    assert (item.kind, item.text, item.is_admitted) == ("message", "hello", False)
    assert item.delivery is not None
    assert item.delivery.is_delivered


def test_the_order_is_that_of_taking_in_and_what_only_waits_is_last():
    story = Story()
    story.admit(1)
    story.admit(2)
    story.take_in(1, "first")
    story.say("answer")

    items = transcript.items(story.events, {receipt_id(2): "second"})

    assert [item.text for item in items] == ["first", "answer", "second"]
    assert [item.is_admitted for item in items] == [False, False, True]


def test_a_closed_message_stays_where_it_was_admitted():
    story = Story()
    story.admit(1)
    story.move(1, "queued", "failed", side="recipient", code="RECIPIENT_ENDED")
    story.say("later")

    items = transcript.items(story.events, {receipt_id(1): "withdrawn"})

    assert [item.text for item in items] == ["withdrawn", "later"]
    assert items[0].delivery is not None
    assert items[0].delivery.label == "Recipient ended"


def test_tools_notes_and_the_protocol_are_not_in_it():
    story = Story()
    story.begin_turn()
    story.add("tool_activity", label="grep", phase="started")
    story.add("note", level="info", text="thinking", key=None)
    story.add("error", code="RUNTIME_ERROR", text="broken", receipt_id=None)
    story.end_turn()

    assert transcript.items(story.events, {}) == []


def test_a_handoff_is_one_line_with_its_receipt():
    story = Story()
    story.send(3, "forge", "please look")
    story.move(3, "queued", "started", reply="pending")
    story.move(3, "started", "delivered", reply="pending")

    [item] = transcript.items(story.events, {})

    assert item.is_hop
    assert item.recipient is not None
    assert item.recipient["bot"] == "forge"
    assert item.delivery is not None
    assert item.delivery.label == "Delivered"


RECEIPT = {"receipt_id": receipt_id(9), "message_id": "m-123456789", "delivery_status": "queued"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECEIPT),
        json.dumps(RECEIPT, indent=2),
        f"```json\n{json.dumps(RECEIPT)}\n```",
        f"  {json.dumps({**RECEIPT, 'success': True})}\n",
    ],
)
def test_a_receipt_said_is_a_label(text):
    story = Story()
    story.say(text)

    [item] = transcript.items(story.events, {})

    assert item.is_label
    assert item.text == "Receipt m-123456: queued"


@pytest.mark.parametrize(
    "text", ['{"rows": 4}', "plain words", '{"delivery_status": ', "[1, 2]", '"text"', "{" * 5000]
)
def test_other_texts_are_shown_as_they_are(text):
    story = Story()
    story.say(text)

    [item] = transcript.items(story.events, {})

    assert item.is_said
    assert item.text == text


def test_an_erased_text_leaves_its_line():
    story = Story()
    story.say(None)

    [item] = transcript.items(story.events, {})

    assert item.is_said
    assert item.is_erased


def test_each_day_begins_with_one_line():
    story = Story()
    story.say("one")
    story.say("two")

    rows = list(transcript.with_days(transcript.items(story.events, {}), UTC))

    assert [row.kind for row in rows] == ["day", "said", "said"]


def test_the_same_events_give_the_same():
    story = Story()
    story.admit(1)
    story.take_in(1, "hello")
    story.send(2, "forge", "x")

    once = transcript.items(story.events, {})

    assert transcript.items(iter(story.events), {}) == once
