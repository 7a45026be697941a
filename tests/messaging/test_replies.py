"""Handoffs and replies: what answers what, when it counts, who owes one (SPEC §7)."""

import pytest

from cowork import editing
from cowork.models import OutboxEntry
from messaging import (
    authority,
    finishing,
    leaving,
    output,
    quarantining,
    recovering,
    replies,
    withdrawing,
)
from messaging.models import Receipt
from messaging.replies import InReplyToInvalid
from teams import repairing
from tests.build import events, fresh
from timeline.models import Event


def asked(build, sender, recipient, **more):
    """A handoff that its recipient has taken in; its turn runs."""
    return build.a_receipt("delivered", sender=sender, recipient=recipient, **more)


def automatic():
    return Receipt.objects.filter(is_automatic=True)


def end(build, task, status="done", **more):
    return build.end(task.turns.get(status="running"), status, **more)


# What a message is (SPEC §7.1, §7.2)


def test_a_message_expects_an_answer_unless_it_is_one(build, pilot, cook):
    """CW-79 CW-80"""
    question = asked(build, pilot, cook)

    answer = build.send(cook, pilot, "yes").receipt

    assert (question.is_handoff, question.reply_status) == (True, "pending")
    assert answer.in_reply_to == question
    assert (answer.is_handoff, answer.reply_status, answer.wakes) == (False, None, True)


@pytest.mark.parametrize("status", ["queued", "started", "failed", "quarantined"])
def test_what_was_not_taken_in_is_not_answered(build, pilot, cook, status):
    """CW-81"""
    build.a_receipt(status, sender=pilot, recipient=cook, message_id="q-1")

    with pytest.raises(InReplyToInvalid):
        build.send(cook, pilot, "yes", in_reply_to="q-1")
    message = build.send(cook, pilot, "by the way").receipt

    assert (message.in_reply_to, message.is_handoff) == (None, True)


def test_the_newest_open_handoff_of_that_conversation_is_answered(build, pilot, scout, cook):
    editing.edit(cook, batch_inputs=True, by=build.founder, clock=build.clock)
    older, newer = (build.send(pilot, cook).receipt for _ in range(2))
    build.send(scout, cook)
    build.incorporate(build.claimed(fresh(cook)).turn)

    answers = [build.send(cook, pilot, f"answer {number}").receipt for number in range(3)]

    assert [row.in_reply_to for row in answers] == [newer, older, None]
    assert [row.is_handoff for row in answers] == [False, False, True]


def test_after_a_person_spoke_a_message_is_a_new_handoff(build, pilot, cook, otto):
    """CW-89"""
    asked(build, pilot, cook)
    build.send(cook, pilot, "yes")
    end(build, cook)
    build.follow_up(cook, otto)
    build.incorporate(build.claimed(cook).turn)

    message = build.send(cook, pilot, "and you?").receipt

    assert (message.in_reply_to, message.reply_status) == (None, "pending")


def test_a_handoff_from_before_a_persons_word_is_answered_by_name_only(
    build, clock, pilot, cook, scout, otto
):
    question = build.send(pilot, cook, message_id="q-1").receipt
    build.incorporate(build.claimed(cook).turn)
    build.send(cook, scout, "can you help?")  # it waits itself, so nothing is sent for it
    end(build, cook)
    build.follow_up(cook, otto)
    build.incorporate(build.claimed(cook).turn)

    unnamed = build.send(cook, pilot, "hello").receipt
    named = build.send(cook, pilot, "yes", in_reply_to="q-1").receipt

    assert (unnamed.in_reply_to, named.in_reply_to) == (None, question)


def test_a_message_that_answers_an_answer_closes(build, pilot, cook):
    """CW-87"""
    asked(build, pilot, cook)
    build.send(cook, pilot, "yes", message_id="r-1")
    end(build, cook)
    build.incorporate(build.claimed(pilot).turn)

    thanks = build.send(pilot, cook, "thank you", in_reply_to="r-1").receipt

    assert (thanks.is_closing, thanks.is_handoff, thanks.reply_status, thanks.wakes) == (
        True,
        False,
        None,
        False,
    )
    assert build.claim(cook) is None


def test_thanks_that_come_during_a_turn_start_none_after_it(build, pilot, cook):
    asked(build, pilot, cook)
    build.send(cook, pilot, "yes", message_id="r-1")
    build.incorporate(build.claimed(pilot).turn)
    thanks = build.send(pilot, cook, "thank you", in_reply_to="r-1").receipt

    assert end(build, cook) is False
    assert (fresh(thanks).wakes, fresh(thanks).status) == (False, "queued")


def test_only_messages_of_that_conversation_are_answered(build, pilot, scout, cook):
    asked(build, pilot, cook, message_id="q-1")

    with pytest.raises(InReplyToInvalid):
        build.send(cook, scout, "yes", in_reply_to="q-1")


# When an answer counts (SPEC §7.1)


def test_received_is_written_by_the_incorporation_alone(build, clock, pilot, cook):
    """CW-82"""
    question = asked(build, pilot, cook)
    answer = build.send(cook, pilot, "yes").receipt
    end(build, cook)
    assert fresh(question).reply_status == "pending"
    turn = build.claimed(pilot).turn
    assert fresh(question).reply_status == "pending"
    clock.advance(2)

    build.incorporate(turn)

    received = fresh(question)
    assert (received.reply_status, received.reply, received.replied_at) == (
        "received",
        answer,
        clock.now(),
    )
    for task in (pilot, cook):
        [told] = [
            event
            for event in events(task, "message_status")
            if event.payload["reply_status"] == "received"
        ]
        assert told.payload["reply_message_id"] == answer.message_id
        assert (told.payload["from"], told.payload["to"]) == ("delivered", "delivered")


def test_the_delivery_is_told_before_the_answer(build, pilot, cook):
    asked(build, pilot, cook)
    answer = build.send(cook, pilot, "yes").receipt
    end(build, cook)
    build.incorporate(build.claimed(pilot).turn)

    told = [event for event in events(pilot) if event.type in ("user_message", "message_status")]
    assert [(event.type, event.payload.get("reply_status")) for event in told[-3:]] == [
        ("user_message", None),
        ("message_status", None),
        ("message_status", "received"),
    ]
    assert told[-3].payload["in_reply_to"] == answer.in_reply_to.message_id


def test_a_second_answer_is_an_ordinary_message_and_the_first_link_stays(build, pilot, cook):
    question = asked(build, pilot, cook, message_id="q-1")
    first = build.send(cook, pilot, "yes").receipt
    second = build.send(cook, pilot, "or no", in_reply_to="q-1").receipt
    end(build, cook)
    for _ in range(2):
        build.incorporate(build.claimed(pilot).turn)
        end(build, pilot)

    assert fresh(question).reply == first
    assert (second.is_handoff, second.reply_status) == (True, "pending")


def test_a_failed_answer_answers_nothing_and_a_later_one_does(build, clock, pilot, cook):
    """CW-84"""
    question = asked(build, pilot, cook, message_id="q-1")
    build.send(cook, pilot, "yes")
    end(build, cook)
    for _ in range(4):
        clock.advance(60)
        build.fail_before(pilot)
    assert fresh(question).reply_status == "pending"
    recovering.answer_what_is_owed(clock=clock)
    assert not automatic().exists()

    later = build.send(cook, pilot, "yes, really", in_reply_to="q-1").receipt
    build.take_in(pilot)

    assert fresh(question).reply == later


def test_a_repeated_answer_moves_nothing(build, clock, pilot, cook):
    """CW-85"""
    question = asked(build, pilot, cook)
    build.send(cook, pilot, "yes", message_id="r-1")
    end(build, cook)
    build.take_in(pilot)
    before = fresh(question).replied_at
    clock.advance(60)

    build.send(cook, pilot, "yes", message_id="r-1")

    assert fresh(question).replied_at == before


def test_an_answer_to_another_conversation_of_the_asker_answers_nothing(
    build, clock, pilot, pilot_bot, cook
):
    asked(build, pilot, cook, message_id="q-1")
    clock.advance(1)
    newer = build.a_conversation(pilot_bot)

    with pytest.raises(InReplyToInvalid):
        build.send(cook, newer, "yes", in_reply_to="q-1")
    assert build.send(cook, newer, "yes").receipt.in_reply_to is None


# Who waits (SPEC §7.4)


def waits_on(task):
    told = output.blocked_on(fresh(task))
    return told and told["text"].removeprefix("Waiting on ")


def test_the_asker_waits_for_each_of_those_it_asked(build, pilot, cook, scout):
    """CW-91 CW-92 CW-139"""
    build.send(pilot, cook, "one")
    build.send(pilot, scout, "two")
    assert waits_on(pilot) == "Cook"
    build.take_in(cook, text="done")
    build.take_in(pilot)

    assert waits_on(pilot) == "Scout"
    build.take_in(scout, text="done")
    build.take_in(pilot)
    assert waits_on(pilot) is None


def test_handoffs_of_an_earlier_human_turn_block_nothing(build, pilot, cook, otto):
    build.send(pilot, cook)
    build.follow_up(pilot, otto)
    build.take_in(pilot)

    assert waits_on(pilot) is None


def test_a_start_by_itself_is_not_human(build, pilot, cook):
    build.send(pilot, cook)
    build.a_turn(pilot, "done")

    assert waits_on(pilot) == "Cook"


def test_a_withdrawn_handoff_is_waited_for_no_more(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    withdrawing.withdraw(receipt, by=build.key_of(pilot), clock=clock)

    assert waits_on(pilot) is None


# The automatic reply (SPEC §7.5), in all three places


def test_it_quotes_the_final_text_of_a_turn_with_one_input(build, pilot, cook):
    """CW-98"""
    question = asked(build, pilot, cook)

    end(build, cook, text=" the state is good ")

    [reply] = automatic()
    assert (reply.in_reply_to, reply.body.text) == (question, "the state is good")
    assert reply.message_id == f"cowork:auto:{question.id}:1"
    assert (reply.is_handoff, reply.reply_status, reply.wakes) == (False, None, True)
    assert OutboxEntry.objects.filter(target=pilot.id, kind="wake-task").exists()
    [told] = events(cook, "agent_message")
    assert told.payload["automatic"] is True


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("done", "BLOCKED: its turn ended without an answer"),
        ("error", "BLOCKED: its turn ended with an error"),
        ("aborted", "BLOCKED: its turn was stopped"),
        ("lost", "BLOCKED: its turn was lost"),
    ],
)
def test_without_a_final_text_it_says_why(build, pilot, cook, how, line):
    """CW-77 CW-98"""
    question = asked(build, pilot, cook)
    if how == "lost":
        build.lose(question.turn)
    else:
        end(build, cook, how)

    [reply] = automatic()
    assert reply.body.text.startswith(line)
    build.take_in(pilot)
    assert fresh(question).reply == reply


@pytest.mark.parametrize("how", ["error", "aborted"])
def test_what_a_turn_said_before_it_failed_is_no_answer(build, pilot, cook, how):
    asked(build, pilot, cook)

    end(build, cook, how, text="so far so good")

    assert automatic().get().body.text.startswith("BLOCKED:")


def test_a_final_text_for_several_inputs_is_quoted_to_none(build, pilot, scout, cook):
    editing.edit(cook, batch_inputs=True, by=build.founder, clock=build.clock)
    build.send(pilot, cook)
    build.send(scout, cook)
    build.incorporate(build.claimed(fresh(cook)).turn)

    end(build, cook, text="to both of you")

    assert [row.body.text[:8] for row in automatic()] == ["BLOCKED:"] * 2


def test_an_input_that_was_not_taken_in_was_an_input(build, pilot, cook, otto):
    """The text may be meant for the person, although the person's input has failed."""
    question = build.send(pilot, cook).receipt
    build.follow_up(cook, otto)
    turn = build.claimed(cook).turn
    build.incorporate(turn, through=question)

    build.end(turn, text="for your eyes only")

    assert automatic().get().body.text.startswith("BLOCKED:")


def test_a_text_too_long_for_a_message_is_cut_and_says_so(build, settings, pilot, cook):
    settings.COWORK_MESSAGE_MAX_BYTES = 100
    asked(build, pilot, cook)

    end(build, cook, text="ü" * 200)

    text = automatic().get().body.text
    assert len(text.encode()) <= 100
    assert text.startswith("üüü")
    assert text.endswith("[cut: the whole text has 400 bytes]")


def test_there_is_one_however_often_it_is_judged(build, clock, pilot, cook):
    asked(build, pilot, cook)
    for _ in range(2):
        end_again = cook.turns.get()
        build.end(end_again)
        recovering.recover(clock=clock)

    assert automatic().count() == 1


def test_what_a_death_kept_from_being_sent_recovery_sends(build, clock, pilot, cook, monkeypatch):
    question = asked(build, pilot, cook)
    with monkeypatch.context() as patch:
        # As if the process had died between the end and what follows from it.
        patch.setattr(replies, "answer_what_is_owed", lambda *_a, **_k: [])
        end(build, cook, text="all is well")
    assert not automatic().exists()

    assert recovering.answer_what_is_owed(clock=clock) == 1
    assert recovering.answer_what_is_owed(clock=clock) == 0

    assert automatic().get().body.text == "all is well"
    assert automatic().get().in_reply_to == question


def test_nothing_is_answered_before_it_was_taken_in(build, pilot, cook):
    """CW-99"""
    turn = build.a_turn(cook)
    build.send(pilot, cook)
    build.end(turn, text="busy with something else")
    assert not automatic().exists()

    build.fail_before(cook)
    assert not automatic().exists()


def test_an_answer_that_waits_is_an_answer(build, pilot, cook):
    """CW-137"""
    asked(build, pilot, cook)
    build.send(cook, pilot, "yes")

    end(build, cook, text="I have answered")

    assert not automatic().exists()


def test_an_answer_that_was_taken_back_is_none(build, clock, pilot, cook):
    asked(build, pilot, cook)
    answer = build.send(cook, pilot, "yes").receipt
    withdrawing.withdraw(answer, by=build.key_of(cook), clock=clock)

    end(build, cook, text="well, well")

    assert automatic().get().body.text == "well, well"


def test_an_answer_that_was_set_aside_is_an_answer(build, clock, pilot, cook):
    asked(build, pilot, cook)
    answer = build.send(cook, pilot, "yes").receipt
    quarantining.quarantine(answer, by=build.founder, note="", clock=clock)

    end(build, cook)
    recovering.recover(clock=clock)

    assert not automatic().exists()


def test_a_reply_is_not_answered(build, pilot, cook):
    asked(build, pilot, cook)
    build.send(cook, pilot, "yes")
    end(build, cook)
    build.take_in(pilot, text="thank you")

    assert not automatic().exists()


def test_who_waits_itself_answers_when_its_wait_is_over(build, clock, pilot, cook, scout):
    """CW-136"""
    asked(build, pilot, cook)
    build.send(cook, scout, "can you help?")
    end(build, cook, text="I asked scout")
    recovering.recover(clock=clock)
    assert not automatic().filter(recipient=pilot).exists()

    build.take_in(scout, text="here it is")
    build.take_in(cook, text="scout says: here it is")

    reply = automatic().get(recipient=pilot)
    assert reply.body.text.startswith("BLOCKED:")  # the turn's input was scout's answer


def test_a_wait_that_was_taken_back_is_over(build, clock, pilot, cook, scout):
    asked(build, pilot, cook)
    waits = build.send(cook, scout, "can you help?").receipt
    end(build, cook, text="I asked scout")
    withdrawing.withdraw(waits, by=build.key_of(cook), clock=clock)

    recovering.recover(clock=clock)

    assert automatic().filter(recipient=pilot).count() == 1


def test_a_persons_input_gets_none(build, cook, otto):
    build.follow_up(cook, otto)
    build.take_in(cook, text="done")

    assert not Receipt.objects.filter(sender_task=cook).exists()


@pytest.mark.parametrize("how", ["archived", "failed", "removed", "inactive", "deactivated"])
def test_a_requester_out_of_reach_gets_none(build, clock, pilot, pilot_bot, cook, team, how):
    """CW-101"""
    leaving.change_team(team.id, lead="cook", by=build.founder, clock=clock)
    from teams import joining

    joining.join(team.id, handle="pilot", guidance="", by=build.founder, clock=clock)
    asked(build, pilot, cook)
    out = {"by": build.founder, "clock": clock}
    if how == "archived":
        editing.edit(pilot, archived=True, **out)
    elif how == "failed":
        finishing.complete(pilot, outcome="failed", summary="", **out)
    elif how == "removed":
        leaving.remove_member(team.id, handle="pilot", **out)
    elif how == "inactive":
        leaving.change_team(team.id, is_active=False, **out)
    else:
        leaving.deactivate_bot("pilot", **out)

    end(build, cook, text="done")

    assert not automatic().exists()
    assert replies.tasks_that_owe() == []
    if how == "removed":
        repairing.restore(team.id, handle="pilot", **out)
        assert recovering.answer_what_is_owed(clock=clock) == 1


def test_what_can_not_be_sent_costs_the_sweep_one_look(
    build, clock, pilot, cook, django_assert_num_queries
):
    asked(build, pilot, cook)
    editing.edit(pilot, archived=True, by=build.founder, clock=clock)
    end(build, cook)

    with django_assert_num_queries(1):
        assert recovering.answer_what_is_owed(clock=clock) == 0


@pytest.mark.parametrize("how", ["fine", "removed", "lead removed", "inactive", "deactivated"])
def test_one_query_and_one_question_agree_on_what_may_be_delivered(
    build, clock, pilot, cook, scout, team, how
):
    receipts = [build.send(pilot, cook).receipt, build.send(cook, scout).receipt]
    out = {"by": build.founder, "clock": clock}
    if how == "removed":
        leaving.remove_member(team.id, handle="cook", **out)
    elif how == "lead removed":
        leaving.change_team(team.id, lead="cook", **out)
    elif how == "inactive":
        leaving.change_team(team.id, is_active=False, **out)
    elif how == "deactivated":
        leaving.deactivate_bot("scout", **out)

    found = set(authority.deliverable(Receipt.objects.all()).values_list("pk", flat=True))

    assert found == {row.pk for row in receipts if authority.why_not(fresh(row)) is None}


def test_a_chain_goes_on_with_an_automatic_reply(build, pilot, cook):
    question = asked(build, pilot, cook)

    end(build, cook)

    reply = automatic().get()
    assert (reply.chain, reply.hop) == (question.chain, question.hop + 1)


def test_events_hold_no_text(build, pilot, cook):
    asked(build, pilot, cook, text="the secret words")
    end(build, cook, text="the secret answer")

    for payload in Event.objects.values_list("payload", flat=True):
        assert "secret" not in str(payload)
