"""A message id that was used before (SPEC §4.4, §4.5)."""

import pytest

from cowork import editing
from cowork.models import OutboxEntry, Turn
from messaging import finishing, leaving, releasing
from messaging.boundary import QueueFull
from messaging.models import Receipt
from messaging.receipts import ReceiptClosed
from messaging.repeats import ConversationUnavailable, MessageIdConflict, MessageQuarantined
from messaging.replies import InReplyToInvalid
from teams import founding
from tests.build import fresh


@pytest.fixture
def again(build, pilot, cook):
    """Send m-1 once more."""

    def send(text="hello", **more):
        return build.send(pilot, cook, text, message_id="m-1", **more)

    return send


@pytest.fixture
def a_receipt(build, pilot, cook):
    """m-1 in a state."""

    def make(status):
        return build.a_receipt(status, sender=pilot, recipient=cook, message_id="m-1")

    return make


def facts(receipt):
    return Receipt.objects.filter(pk=receipt.pk).values().get()


@pytest.mark.parametrize("status", ["queued", "started", "delivered"])
def test_a_repeat_of_what_is_on_its_way_is_a_duplicate(build, clock, again, a_receipt, status):
    """CW-28 CW-30 CW-31"""
    before = facts(a_receipt(status))
    turns = Turn.objects.count()
    clock.advance(60)

    sent = again()

    assert sent.is_duplicate
    assert facts(sent.receipt) == before
    assert Receipt.objects.count() == 1
    assert Turn.objects.count() == turns


def test_a_missing_wake_is_promised_again(again, a_receipt):
    a_receipt("queued")
    OutboxEntry.objects.all().delete()

    again()
    again()

    assert OutboxEntry.objects.filter(kind="wake-task").count() == 1


def test_a_delivered_one_is_not_woken_for(again, a_receipt):
    """CW-31"""
    a_receipt("delivered")
    OutboxEntry.objects.all().delete()

    again()

    assert not OutboxEntry.objects.exists()


def test_a_failed_one_is_sent_again_at_the_tail(build, clock, again, a_receipt, pilot, cook):
    """CW-32"""
    failed = a_receipt("failed")
    build.send(pilot, cook, "another")
    clock.advance(60)

    sent = again()

    receipt = fresh(failed)
    assert (sent.is_duplicate, sent.ahead) == (False, 1)
    assert (receipt.status, receipt.attempt) == ("queued", failed.attempt + 1)
    assert receipt.accepted_at == failed.accepted_at
    assert receipt.queued_at == clock.now()
    assert receipt.sequence > failed.sequence
    assert (receipt.failed_at, receipt.failure_code, receipt.failure_reason) == (None, "", "")
    assert (receipt.end_count, receipt.loss_count) == (0, 0)


def test_a_failed_one_whose_conversation_has_ended_needs_a_new_id(build, again, a_receipt, cook):
    failed = a_receipt("failed")
    finishing.complete(cook, outcome="failed", summary="", by=build.founder, clock=build.clock)

    with pytest.raises(ConversationUnavailable):
        again()

    assert fresh(failed).status == "failed"


def test_a_failed_one_finds_no_room_in_a_full_queue(build, settings, again, a_receipt, pilot, cook):
    failed = a_receipt("failed")
    build.send(pilot, cook, "another")
    settings.COWORK_QUEUE_MAX = 1

    with pytest.raises(QueueFull):
        again()

    assert fresh(failed).status == "failed"


def test_a_quarantined_one_stays_as_it_is(again, a_receipt):
    """CW-33"""
    before = facts(a_receipt("quarantined"))

    with pytest.raises(MessageQuarantined) as refused:
        again()

    assert refused.value.extra["reason"] == "Odd."
    assert facts(Receipt.objects.get()) == before


def test_a_closed_one_stays_closed(build, again, a_receipt, pilot, cook):
    withdrawn = build.send(pilot, cook, message_id="m-2").receipt
    from messaging import withdrawing

    withdrawing.withdraw(withdrawn, by=build.key_of(pilot), clock=build.clock)
    discarded = a_receipt("failed")
    releasing.discard(discarded, by=build.founder, note="", clock=build.clock)

    with pytest.raises(ReceiptClosed):
        again()
    with pytest.raises(ReceiptClosed):
        build.send(pilot, cook, message_id="m-2")


def test_one_whose_recipient_was_archived_is_closed(build, again, a_receipt, cook):
    a_receipt("queued")
    editing.edit(cook, archived=True, by=build.founder, clock=build.clock)

    with pytest.raises(ReceiptClosed):
        again()


@pytest.mark.parametrize("status", Receipt.Status.values)
def test_other_content_under_a_used_id_writes_nothing(again, a_receipt, status):
    """CW-34"""
    before = facts(a_receipt(status))

    for text in ("Hello", "hel lo", "hello!"):
        with pytest.raises(MessageIdConflict) as refused:
            again(text)
        assert "hello" not in refused.value.detail

    assert facts(Receipt.objects.get()) == before


def test_outer_blanks_are_no_difference(again, a_receipt):
    """CW-41"""
    a_receipt("queued")

    assert again("  hello\n").is_duplicate


def test_one_id_to_two_recipients_is_two_messages(build, pilot, cook, scout):
    """CW-36"""
    first = build.send(pilot, cook, message_id="m-1")
    second = build.send(pilot, scout, message_id="m-1")

    assert (first.is_duplicate, second.is_duplicate) == (False, False)


def test_two_senders_have_ids_of_their_own(build, pilot, scout, cook):
    build.send(pilot, cook, message_id="m-1")

    assert not build.send(scout, cook, message_id="m-1").is_duplicate


def test_by_name_by_id_and_by_task_are_one_key(build, pilot, cook, cook_bot):
    first = build.send(pilot, "@cook", message_id="m-1").receipt

    for to in (cook, "Cook", "cook", str(cook_bot.id)):
        sent = build.send(pilot, to, message_id="m-1")
        assert (sent.is_duplicate, sent.receipt.id) == (True, first.id)


def test_the_key_holds_over_all_conversations_of_a_bot(build, clock, pilot, cook, cook_bot):
    first = build.send(pilot, cook, message_id="m-1").receipt
    clock.advance(1)
    newer = build.a_conversation(cook_bot)

    for to in ("cook", newer):
        sent = build.send(pilot, to, message_id="m-1")
        assert (sent.is_duplicate, sent.receipt.id) == (True, first.id)


def test_a_repeat_is_answered_although_everything_has_gone(build, again, a_receipt, cook, team):
    delivered = a_receipt("delivered")
    build.end(delivered.turn)
    editing.edit(cook, archived=True, by=build.founder, clock=build.clock)
    leaving.remove_member(team.id, handle="cook", by=build.founder, clock=build.clock)
    leaving.change_team(team.id, is_active=False, by=build.founder, clock=build.clock)

    assert again().is_duplicate
    assert build.send(fresh(delivered).sender_task, "cook", "hello", message_id="m-1").is_duplicate


def test_a_display_name_that_names_two_bots_is_no_key(build, pilot, cook, team):
    founding.edit_bot("cook", display_name="Chef", by=build.founder, clock=build.clock)
    build.send(pilot, "Chef", message_id="m-1")
    build.a_bot("stranger", display_name="chef")

    assert build.send(pilot, "cook", message_id="m-1").is_duplicate
    build.clock.advance(1)
    build.a_conversation(cook.bot)
    # Within the team it names one bot, whose newer conversation is found first.
    assert build.send(pilot, "Chef", message_id="m-1").is_duplicate


def test_a_repeat_may_omit_what_it_answers_but_not_change_it(build, pilot, cook):
    asked = build.send(pilot, cook, message_id="q-1").receipt
    other = build.send(pilot, cook, message_id="q-2").receipt
    for _ in (asked, other):
        build.incorporate(turn := build.claimed(cook).turn)
        build.end(turn)
    first = build.send(cook, pilot, "yes", message_id="r-1", in_reply_to="q-1")

    omitted = build.send(cook, pilot, "yes", message_id="r-1")
    same = build.send(cook, pilot, "yes", message_id="r-1", in_reply_to="q-1")

    assert (omitted.is_duplicate, same.is_duplicate) == (True, True)
    with pytest.raises(MessageIdConflict):
        build.send(cook, pilot, "yes", message_id="r-1", in_reply_to="q-2")
    with pytest.raises(MessageIdConflict):
        build.send(cook, pilot, "yes", message_id="r-1", in_reply_to="q-9")
    with pytest.raises(InReplyToInvalid):
        build.send(cook, pilot, "yes", message_id="r-2", in_reply_to="q-9")
    assert first.receipt.in_reply_to == asked


@pytest.mark.parametrize("is_received", [False, True])
def test_a_second_answer_to_one_handoff_can_be_repeated_word_for_word(
    build, pilot, cook, is_received
):
    build.send(pilot, cook, message_id="q-1")
    build.incorporate(build.claimed(cook).turn)
    build.send(cook, pilot, "yes", in_reply_to="q-1")
    if is_received:
        build.take_in(pilot)

    for is_duplicate in (False, True):
        sent = build.send(cook, pilot, "or no", message_id="r-2", in_reply_to="q-1")
        assert sent.is_duplicate is is_duplicate
