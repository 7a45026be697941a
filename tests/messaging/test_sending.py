"""Sending: what is accepted, what is refused, and the order in which it is looked at (SPEC §4)."""

import hashlib

import pytest
from django.db import DatabaseError, OperationalError

from cowork import conversations
from cowork.models import OutboxEntry, Task
from cowork.tasks import TaskEnded, TaskNotFound
from messaging import leaving, receipts
from messaging.authority import TaskIdRequired
from messaging.boundary import QueueFull
from messaging.models import Receipt
from messaging.sending import DeliveryFailed, MessageRequired, MessageTooLarge
from teams.authority import BotMembershipRevoked, BotNotFound, BotTeamUnavailable
from teams.models import Member
from tests.build import Build, events, fresh
from timeline import bodies
from timeline.refusals import Forbidden, InvalidRequest


def change(build, team, **changes):
    return leaving.change_team(team.id, by=build.founder, clock=build.clock, **changes)


def remove(build, team, bot):
    leaving.remove_member(team.id, handle=bot.handle, by=build.founder, clock=build.clock)


def archive(build, task):
    from cowork import editing

    return editing.edit(task, by=build.founder, clock=build.clock, archived=True)


def nothing_is_stored():
    return not Receipt.objects.exists() and not OutboxEntry.objects.exists()


# What is accepted


def test_a_message_is_queued_with_its_promise(build, clock, pilot, cook):
    """CW-01 CW-79"""
    sent = build.send(pilot, cook, "hello", message_id="m-1")

    receipt = fresh(sent.receipt)
    assert not sent.is_duplicate
    assert (receipt.status, receipt.attempt, receipt.sequence) == ("queued", 1, 1)
    assert (receipt.delivery_mode, receipt.source) == ("message", "agent")
    assert (receipt.sender_task_id, receipt.recipient_id) == (pilot.id, cook.id)
    assert (receipt.accepted_at, receipt.queued_at) == (clock.now(), clock.now())
    assert (receipt.is_handoff, receipt.reply_status, receipt.wakes) == (True, "pending", True)
    [promise] = OutboxEntry.objects.all()
    assert (promise.kind, promise.target) == ("wake-task", cook.id)


def test_both_timelines_tell_of_it(build, pilot, cook):
    receipt = build.send(pilot, cook, "hello").receipt

    assert [event.type for event in events(pilot)] == [
        "task_created",
        "agent_message",
        "message_status",
    ]
    assert [event.type for event in events(cook)] == [
        "task_created",
        "agent_follow_up_scheduled",
        "message_status",
    ]
    [told] = events(cook, "message_status")
    assert (told.payload["from"], told.payload["to"]) == (None, "queued")
    assert told.subject == receipt.id


def test_the_text_is_trimmed_and_hashed(build, pilot, cook):
    """CW-11"""
    receipt = build.send(pilot, cook, "  grüß dich ✓\n").receipt

    assert fresh(receipt).body.text == "grüß dich ✓"
    assert receipt.message_hash == hashlib.sha256("grüß dich ✓".encode()).hexdigest()


@pytest.mark.parametrize("given", ["", None])
def test_without_an_id_every_send_is_a_message_of_its_own(build, pilot, cook, given):
    """CW-02"""
    ids = [build.send(pilot, cook, "same", message_id=given).receipt.message_id for _ in range(2)]

    assert all(ids)
    assert ids[0] != ids[1]


@pytest.mark.parametrize("name", ["@cook", "COOK", " cook ", "Cook"])
def test_a_teammate_is_found_by_its_names(build, pilot, cook, name):
    """CW-08"""
    assert build.send(pilot, name).receipt.recipient_id == cook.id


def test_a_task_id_wins_over_a_name(build, pilot, cook, scout):
    assert build.send(pilot, cook, bot="scout").receipt.recipient_id == cook.id


def test_a_lead_without_a_member_row_takes_part(build, pilot, pilot_bot, cook, team):
    """CW-19"""
    Member.objects.filter(team=team, bot=pilot_bot).delete()

    build.send(pilot, "cook")
    build.send(cook, "pilot")

    assert Receipt.objects.count() == 2


def test_a_message_changes_nothing_of_its_recipient(build, pilot, cook):
    """CW-61"""
    fields = ["status", "runtime_mode", "interaction_mode", "runtime_id", "team_id", "title"]
    before = Task.objects.values(*fields).get(pk=cook.pk)

    build.send(pilot, cook, '{"runtime_mode": "full-access"}')

    assert Task.objects.values(*fields).get(pk=cook.pk) == before


@pytest.mark.parametrize("mode", ["plan", "analyze"])
def test_a_teammate_may_be_written_to_in_every_interaction_mode(build, pilot_bot, team, cook, mode):
    """CW-24"""
    planner = build.a_conversation(pilot_bot, interaction_mode=mode)

    assert build.send(planner, cook).receipt.status == "queued"


def test_the_answer_counts_those_ahead(build, pilot, scout, cook):
    counts = [build.send(sender, cook).ahead for sender in (pilot, scout, pilot)]

    assert counts == [0, 1, 2]


def test_a_name_of_another_workspace_is_not_looked_at(build, clock, pilot, cook):
    """CW-22"""
    there = Build(clock, "other")
    lead, double = there.a_bot("pilot"), there.a_bot("cook")
    there.a_team(lead, double)
    there.a_conversation(double)

    assert build.send(pilot, "cook").receipt.recipient_id == cook.id


# The conversation (SPEC §3.4)


def test_the_newest_usable_conversation_is_taken(build, clock, pilot, cook_bot, team):
    """CW-27"""
    older = build.a_conversation(cook_bot)
    clock.advance(1)
    newer = build.a_conversation(cook_bot)
    assert build.send(pilot, "cook").receipt.recipient_id == newer.id

    archive(build, newer)

    assert build.send(pilot, "cook").receipt.recipient_id == older.id


@pytest.mark.parametrize("outcome", ["failed", "archived"])
def test_without_a_usable_conversation_a_dormant_one_is_made(build, pilot, cook, outcome):
    """CW-26"""
    from messaging import finishing

    if outcome == "failed":
        finishing.complete(cook, outcome="failed", summary="", by=build.founder, clock=build.clock)
    else:
        archive(build, cook)

    made = build.send(pilot, "cook").receipt.recipient

    assert made.id != cook.id
    assert (made.status, made.is_current, made.turns.count()) == ("idle", True, 0)
    assert build.send(pilot, "cook").receipt.recipient_id == made.id


def test_a_completed_conversation_is_used(build, pilot, cook):
    from messaging import finishing

    finishing.complete(cook, outcome="completed", summary="", by=build.founder, clock=build.clock)

    assert build.send(pilot, "cook").receipt.recipient_id == cook.id
    assert build.claim(cook) is not None


def test_a_send_by_name_finds_another_conversation_when_its_own_has_just_ended(
    build, pilot, cook, monkeypatch
):
    """It was chosen, and archived before its lock was taken."""
    archive(build, cook)
    chosen = conversations.conversation_of
    answers = [cook]

    def chosen_too_early(*args, **options):
        return answers.pop() if answers else chosen(*args, **options)

    monkeypatch.setattr(conversations, "conversation_of", chosen_too_early)

    assert build.send(pilot, "cook").receipt.recipient_id != cook.id


# What is refused


def test_a_recipient_is_needed(build, pilot):
    """CW-03"""
    with pytest.raises(TaskIdRequired):
        build.send(pilot, "", "hello")

    assert nothing_is_stored()


@pytest.mark.parametrize("text", ["", " \n\t ", "\u3000\n"])
def test_a_text_is_needed(build, pilot, cook, text):
    """CW-04"""
    with pytest.raises(MessageRequired):
        build.send(pilot, cook, text)

    assert nothing_is_stored()


def test_the_size_is_measured_in_trimmed_bytes(build, settings, pilot, cook):
    settings.COWORK_MESSAGE_MAX_BYTES = 8

    build.send(pilot, cook, "  üüüü  ")
    with pytest.raises(MessageTooLarge) as refused:
        build.send(pilot, cook, "üüüüu")

    assert refused.value.extra == {"limit": 8, "size": 9}
    assert Receipt.objects.count() == 1


def test_an_id_of_the_server_is_refused(build, pilot, cook):
    with pytest.raises(InvalidRequest):
        build.send(pilot, cook, message_id="cowork:auto:1")


def test_unknown_and_foreign_tasks_look_alike(build, clock, pilot):
    """CW-07"""
    there = Build(clock, "other")
    lead = there.a_bot("lead")
    there.a_team(lead)
    foreign = there.a_conversation(lead)

    told = []
    for task_id in (pilot.workspace_id, foreign.id):
        with pytest.raises(TaskNotFound) as refused:
            build.send(pilot, "", task_id=task_id)
        told.append(refused.value.detail)

    assert told[0] == told[1]
    assert nothing_is_stored()


def test_only_teammates_conversations_are_reached(build, pilot, pilot_bot, cook_bot, team):
    """CW-07 CW-09"""
    outside = build.a_bot("outside")
    strangers = [
        build.a_root(),
        build.a_root(bot=cook_bot),
        build.a_conversation(outside),
        build.a_conversation(pilot_bot),
        pilot,
    ]

    for stranger in strangers:
        with pytest.raises(Forbidden):
            build.send(pilot, stranger)
    assert nothing_is_stored()


@pytest.mark.parametrize("name", ["pilot", "outside", "nobody", "@"])
def test_only_other_members_are_found(build, pilot, name):
    """CW-09 CW-15"""
    build.a_bot("outside")

    with pytest.raises(BotNotFound):
        build.send(pilot, name)
    assert nothing_is_stored()


def test_a_former_member_is_told_apart(build, pilot, cook, cook_bot, team):
    """CW-15 CW-18"""
    remove(build, team, cook_bot)

    with pytest.raises(BotMembershipRevoked):
        build.send(pilot, "cook")
    with pytest.raises(BotMembershipRevoked):
        build.send(pilot, cook)
    with pytest.raises(BotMembershipRevoked):
        build.send(cook, "pilot")
    assert not Receipt.objects.exists()


@pytest.mark.parametrize("change_made", [{"is_active": False}, {"is_persistent": False}])
def test_an_unavailable_team_carries_nothing(build, pilot, cook, team, change_made):
    """CW-16"""
    change(build, team, **change_made)

    with pytest.raises(BotTeamUnavailable):
        build.send(pilot, "cook")
    with pytest.raises(BotTeamUnavailable):
        build.send(pilot, cook)
    assert not Receipt.objects.exists()


def test_a_conversation_outside_any_team_sends_nothing(build, pilot_bot):
    loner = build.a_conversation(pilot_bot)

    with pytest.raises(BotTeamUnavailable):
        build.send(loner, "cook")


def test_a_root_task_sends_nothing(build, pilot_bot, cook):
    with pytest.raises(Forbidden):
        build.send(build.a_root(bot=pilot_bot), cook)


def test_a_deactivated_bot_gets_nothing(build, pilot, cook, team):
    """CW-23"""
    leaving.deactivate_bot("cook", by=build.founder, clock=build.clock)
    count = Task.objects.count()

    with pytest.raises(BotNotFound):
        build.send(pilot, "cook")
    assert Task.objects.count() == count


@pytest.mark.parametrize("how", ["failed", "archived"])
def test_a_conversation_that_has_ended_takes_nothing(build, pilot, cook, how):
    from messaging import finishing

    if how == "failed":
        finishing.complete(cook, outcome="failed", summary="", by=build.founder, clock=build.clock)
    else:
        archive(build, cook)

    with pytest.raises(TaskEnded):
        build.send(pilot, cook)
    assert nothing_is_stored()


def test_nobody_sends_as_somebody_else(build, pilot, cook, otto, ops):
    for principal in (build.key_of(cook), build.principal(otto), ops):
        with pytest.raises(Forbidden):
            build.send(pilot, cook, by=principal)
    assert nothing_is_stored()


def test_a_full_queue_is_said(build, settings, pilot, scout, cook):
    settings.COWORK_QUEUE_MAX = 2
    build.send(pilot, cook)
    build.send(scout, cook)

    with pytest.raises(QueueFull) as refused:
        build.send(pilot, cook)

    assert (refused.value.status, refused.value.retry_after) == (429, 5)
    assert Receipt.objects.count() == 2


# Refusals come in one order (SPEC §4.2)


def test_the_recipient_is_looked_at_before_the_text(build, pilot, cook):
    archive(build, cook)

    with pytest.raises(TaskEnded):
        build.send(pilot, cook, " ")
    with pytest.raises(BotNotFound):
        build.send(pilot, "nobody", " ")


def test_the_text_is_looked_at_before_what_it_answers_and_that_before_room(
    build, settings, pilot, cook
):
    settings.COWORK_QUEUE_MAX = 0

    with pytest.raises(MessageRequired):
        build.send(pilot, cook, " ", in_reply_to="m-0")
    from messaging.replies import InReplyToInvalid

    with pytest.raises(InReplyToInvalid):
        build.send(pilot, cook, in_reply_to="m-0")
    with pytest.raises(QueueFull):
        build.send(pilot, cook)


# A failed admission (SPEC §4.8)


def test_a_failed_admission_leaves_an_error_at_the_sender_and_no_receipt(
    build, pilot, cook, monkeypatch
):
    def broken(*_args, **_options):
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(receipts, "queue", broken)
    with pytest.raises(DeliveryFailed) as refused:
        build.send(pilot, cook)

    assert (refused.value.status, refused.value.retry_after) == (503, 2)
    [told] = events(pilot, "error")
    assert told.payload["code"] == "BOT_MESSAGE_DELIVERY_FAILED"
    assert nothing_is_stored()


def test_a_failed_admission_is_said_even_where_its_line_can_not_be_written(
    build, pilot, cook, monkeypatch
):
    def broken(*_args, **_options):
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(receipts, "queue", broken)
    monkeypatch.setattr(bodies, "keep", broken)

    with pytest.raises(DeliveryFailed):
        build.send(pilot, cook)
