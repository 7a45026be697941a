"""What people and agents live through, told through the API and the drain."""

import pytest

from cowork.models import OutboxEntry
from messaging.models import Receipt
from tests.paths.conftest import Story
from tests.provisioned import problem


def test_a_person_asks_an_agent_that_asks_a_teammate(story: Story) -> None:
    """The path of one message, from a follow-up to the received reply."""
    pilot, cook = story["pilot"], story["cook"]
    asked = story.otto.post(f"tasks/{pilot.task_id}/follow_ups", message="How is dinner?")
    assert asked.status_code == 202
    turn = pilot.claim()
    assert turn["cause"]["kind"] == "follow_up"
    pilot.incorporate(turn)
    handoff = pilot.send("cook", "How is dinner?")
    pilot.end(turn, text="I have asked cook.")
    task = story.otto.get(f"tasks/{pilot.task_id}").json()
    assert (task["status"], task["blocked_on"]["text"]) == ("idle", "Waiting on Cook")

    turn = cook.claim()
    assert turn["cause"]["hop"] == 1
    cook.incorporate(turn)
    reply = cook.send("pilot", "Ready at eight.")
    cook.end(turn, text="Answered.")
    assert story.receipt(handoff)["reply_status"] == "pending"
    assert pilot.take_in(text="Dinner is at eight.") == ["Ready at eight."]

    told = story.receipt(handoff)
    assert (told["reply_status"], told["reply_message_id"]) == (
        "received",
        reply.json()["message_id"],
    )
    assert told["cause"]["chain"] == turn["cause"]["chain"]
    assert story.otto.get(f"tasks/{pilot.task_id}").json()["blocked_on"] is None
    assert story.transcript("pilot") == [
        ("user_message", "How is dinner?"),
        ("assistant_message", "I have asked cook."),
        ("user_message", "Ready at eight."),
        ("assistant_message", "Dinner is at eight."),
    ]
    assert story.transcript("cook") == [
        ("user_message", "How is dinner?"),
        ("assistant_message", "Answered."),
    ]
    story.work()
    assert not OutboxEntry.objects.exists()


def test_a_script_answers_in_the_drain(story: Story) -> None:
    handoff = story["pilot"].send("parrot", "hello")

    story.work()

    assert story.receipt(handoff)["delivery_status"] == "delivered"
    assert story["pilot"].take_in() == ["heard: hello"]
    assert story.receipt(handoff)["reply_status"] == "received"
    assert Receipt.objects.filter(is_automatic=True).count() == 0


def test_a_turn_of_words_alone_is_quoted_to_whoever_asked(story: Story) -> None:
    handoff = story["pilot"].send("mule", "whatever")
    story.work()

    [reply] = Receipt.objects.filter(is_automatic=True)
    assert reply.in_reply_to_id == Receipt.objects.get(pk=handoff.json()["receipt_id"]).id
    assert story["pilot"].take_in()[0].startswith("BLOCKED:")


def test_a_message_that_fails_four_times_is_retried_by_a_person(story: Story) -> None:
    """C015: the worker tries at its times, the receipt says why, one click sends it again."""
    sent = story["pilot"].send("mule", "stubborn work")
    story.work()
    for attempt, seconds in enumerate((1, 5, 30), start=2):
        assert story.receipt(sent)["attempt"] == attempt
        story.passes(seconds - 0.001)
        assert story.receipt(sent)["attempt"] == attempt
        story.passes(0.001)

    failed = story.receipt(sent)
    assert (failed["delivery_status"], failed["failure_code"]) == ("failed", "RUNTIME_ERROR")
    assert failed["failed_at"]
    assert [row["to"] for row in failed["transitions"]].count("started") == 4
    assert failed["reply_status"] == "pending"

    retried = story.otto.post(f"receipts/{sent.json()['receipt_id']}/retry", note="once more")
    assert retried.status_code == 200
    story.work()

    done = story.receipt(sent)
    assert (done["delivery_status"], done["attempt"]) == ("delivered", 5)
    assert story.transcript("mule") == [
        ("user_message", "stubborn work"),
        ("assistant_message", "at last"),
    ]
    assert story["pilot"].take_in() == ["at last"]
    assert story.receipt(sent)["reply_status"] == "received"


def test_an_agent_that_dies_holds_nobody_up_for_ever(story: Story) -> None:
    """CW-66 CW-77: once before it has read, once after."""
    pilot, cook = story["pilot"], story["cook"]
    first = pilot.send("cook", "first")
    lost = cook.claim()
    for _ in range(5):
        story.passes(15)
    assert story.receipt(first)["delivery_status"] == "queued"
    stale = cook.incorporate(lost)
    assert problem(stale) == (409, "STALE_TURN")
    assert stale.json()["requeued"] == [first.json()["receipt_id"]]

    story.passes(1)
    again = cook.claim()
    assert again["fence"] > lost["fence"]
    assert [(row["attempt"], row["shown_before"]) for row in again["inputs"]] == [(2, True)]
    cook.incorporate(again)
    for _ in range(5):
        story.passes(15)

    assert story.receipt(first)["delivery_status"] == "delivered"
    assert cook.claim() is None
    [text] = pilot.take_in()
    assert text.startswith("BLOCKED: its turn was lost")
    assert story.receipt(first)["reply_status"] == "received"
    assert story.transcript("cook") == [("user_message", "first")]


def test_a_revocation_and_its_repair(story: Story) -> None:
    """CW-69 CW-72 C018 C019"""
    pilot, cook = story["pilot"], story["cook"]
    sent = pilot.send("cook", "the secret plan", message_id="m-1")
    assert story.mia.delete(f"teams/{story.team_id}/members/cook").status_code == 204
    story.work()
    held = story.receipt(sent)
    assert (held["delivery_status"], held["failure_code"]) == (
        "quarantined",
        "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED",
    )
    assert cook.claim() is None
    assert problem(pilot.send("cook", "the secret plan", message_id="m-1")) == (
        409,
        "BOT_MESSAGE_QUARANTINED",
    )
    story.passes(9 * 86_400)
    release = f"receipts/{sent.json()['receipt_id']}/release"
    assert problem(story.otto.post(release)) == (409, "BOT_MESSAGE_QUARANTINED")

    story.mia.post(f"teams/{story.team_id}/members/cook/restore")
    story.passes(60)
    assert story.receipt(sent)["delivery_status"] == "quarantined"
    assert story.otto.post(release, note="back again").status_code == 200

    assert cook.take_in() == ["the secret plan"]
    assert story.receipt(sent)["attempt"] == 2


def test_two_scripts_that_answer_everything_come_to_rest(story: Story) -> None:
    other = story.build.a_runtime("echo", {"when": "(?s).*", "do": [{"reply": "and: $0"}]})
    story.build.a_bot("echo", runtime=other)
    story.mia.post(f"teams/{story.team_id}/members", bot="echo")
    echo = story.build.a_conversation(story.build.workspace.bots.get(handle="echo"))
    story.build.send(echo, "parrot", "hello")

    for _ in range(10):
        story.passes(1)

    assert not OutboxEntry.objects.exists()
    assert Receipt.objects.count() <= 4


@pytest.mark.parametrize("order", ["the claim first", "the withdrawal first"])
def test_of_a_claim_and_a_withdrawal_one_wins(story: Story, order: str) -> None:
    """SPEC §5.4"""
    pilot, cook = story["pilot"], story["cook"]
    sent = pilot.send("cook", "never mind")
    withdraw = f"receipts/{sent.json()['receipt_id']}/withdraw"

    if order == "the claim first":
        assert cook.claim() is not None
        answer = pilot.caller.post(withdraw)
        assert problem(answer) == (409, "INVALID_TRANSITION")
        assert answer.json()["delivery_status"] == "started"
    else:
        assert pilot.caller.post(withdraw).json()["failure_code"] == "WITHDRAWN"
        assert cook.claim() is None
