"""The collaboration header as a pure function of events."""

from messaging import collaboration
from messaging.collaboration import State
from tests.facts import Story, agent


def state_of(story: Story) -> State:
    found = collaboration.header(story.events, own_name="Anvil")
    assert found is not None
    return found.state


def test_a_task_without_teammates_has_no_header():
    story = Story()
    story.admit(1)
    story.begin_turn()
    story.take_in(1, "hello")
    story.say("done")
    story.end_turn()

    assert collaboration.header(story.events, own_name="Anvil") is None


def test_it_works_with_the_team_then_waits_then_is_finished():
    story = Story()
    story.begin_turn()
    story.send(2, "quill", "write the note")
    assert state_of(story) is State.WORKING

    story.end_turn()
    assert state_of(story) is State.WAITING

    story.move(2, "queued", "delivered", reply="pending")
    assert state_of(story) is State.WAITING

    story.move(2, "delivered", "delivered", reply="received", replied_by="m-7")
    assert state_of(story) is State.FINISHED


def test_while_one_of_two_is_answered_it_waits_for_the_other():
    story = Story()
    story.send(1, "quill", "one")
    story.send(2, "tally", "two")
    story.move(2, "delivered", "delivered", reply="received", replied_by="m-7")

    found = collaboration.header(story.events, own_name="Anvil")

    assert found is not None
    assert found.state is State.WAITING
    assert [party["bot"] for party in found.teammates] == ["quill"]


def test_handoffs_of_earlier_human_turns_block_nothing():
    story = Story()
    story.send(1, "quill", "one")
    story.admit(2)
    story.take_in(2, "something else")

    assert state_of(story) is State.FINISHED


def test_failed_handoffs_need_a_person_until_they_are_closed():
    story = Story()
    story.send(1, "quill", "one")
    story.move(1, "queued", "failed", code="RUNTIME_ERROR", reply="pending")
    found = collaboration.header(story.events, own_name="Anvil")
    assert found is not None
    assert [handoff.teammate["bot"] for handoff in found.attention] == ["quill"]

    story.move(1, "failed", "failed", code="DISCARDED", reply="pending")

    found = collaboration.header(story.events, own_name="Anvil")
    assert found is not None
    assert found.attention == []


def test_at_most_five_recent_handoffs_the_newest_first():
    story = Story()
    for number in range(1, 8):
        story.send(number, "quill", f"message {number}")
    story.take_in(9, "an answer", sender=agent("quill"))

    found = collaboration.header(story.events, own_name="Anvil")

    assert found is not None
    assert [handoff.preview for handoff in found.handoffs] == [
        "an answer",
        "message 7",
        "message 6",
        "message 5",
        "message 4",
    ]
