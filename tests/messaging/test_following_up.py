"""Following up: a person's or a service's input (SPEC §6.1, §6.10)."""

import pytest

from cowork import editing
from cowork.models import OutboxEntry
from cowork.tasks import TaskEnded
from messaging import boundary, finishing, repeats
from messaging.boundary import QueueFull
from messaging.following_up import ExpectedTurnPassed
from messaging.models import Receipt
from messaging.repeats import MessageIdConflict
from messaging.sending import MessageRequired, MessageTooLarge
from tests.build import events, fresh
from timeline.refusals import Forbidden, InvalidRequest


def test_a_persons_input_is_no_handoff(build, cook, otto):
    """CW-68"""
    receipt = build.follow_up(cook, otto).receipt

    assert (receipt.source, receipt.sender_person_id) == ("person", otto.id)
    assert (receipt.is_handoff, receipt.reply_status, receipt.sender_task_id) == (False, None, None)
    assert (receipt.hop, receipt.cause_kind, receipt.cause_id) == (0, "person", str(otto.id))
    assert [event.type for event in events(cook)][1:] == [
        "agent_follow_up_scheduled",
        "message_status",
    ]


def test_a_services_input_has_its_label(build, cook, ops):
    receipt = build.follow_up(cook, ops).receipt

    assert (receipt.source, receipt.sender_label) == ("service", "ops")


@pytest.mark.parametrize("kind", ["bot", "viewer"])
def test_others_follow_up_nothing(build, cook, kind):
    caller = build.key_of(cook) if kind == "bot" else build.a_person(role="viewer")

    with pytest.raises(Forbidden):
        build.follow_up(cook, caller)


# Which status lets what start a turn (SPEC §6.1)


def in_status(build, task, status):
    if status == "running":
        build.a_turn(task)
    elif status == "archived":
        editing.edit(task, archived=True, by=build.founder, clock=build.clock)
    elif status != "idle":
        finishing.complete(task, outcome=status, summary="", by=build.founder, clock=build.clock)
    return fresh(task)


@pytest.mark.parametrize("kind", ["conversation", "root"])
@pytest.mark.parametrize(
    ("status", "mode", "outcome"),
    [
        ("idle", "follow_up", "starts"),
        ("idle", "message", "waits"),
        ("running", "follow_up", "after the turn"),
        ("running", "message", "after the turn"),
        ("completed", "follow_up", "starts"),
        ("completed", "message", "waits"),
        ("failed", "follow_up", "starts"),
        ("failed", "message", "refused"),
        ("archived", "follow_up", "refused"),
        ("archived", "message", "refused"),
    ],
)
def test_what_an_input_does_by_the_status_of_its_task(
    build, cook, otto, kind, status, mode, outcome
):
    bot = cook.bot
    task = in_status(build, cook if kind == "conversation" else build.a_root(bot=bot), status)

    if outcome == "refused":
        with pytest.raises(TaskEnded):
            build.follow_up(task, otto, delivery_mode=mode)
        assert not Receipt.objects.exists()
        return
    receipt = build.follow_up(task, otto, delivery_mode=mode).receipt
    if outcome == "after the turn":
        assert not boundary.may_start(fresh(task), now=build.clock.now())
        assert build.end(task.turns.get()) is True

    assert receipt.wakes is (outcome != "waits")
    claimed = build.claim(fresh(task))
    assert (claimed is not None) is (outcome != "waits")


@pytest.mark.parametrize("status", ["idle", "completed"])
def test_an_agents_message_starts_an_idle_and_a_completed_conversation(build, pilot, cook, status):
    """CW-54"""
    in_status(build, cook, status)
    build.send(pilot, cook)

    assert build.claim(cook) is not None


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_input_that_waits_does_not_start_a_task_that_is_over(build, cook, otto, status):
    """Queued during its last turn; a conversation that is completed is started by it."""
    turn = build.a_turn(cook)
    build.tell(cook, otto)
    finishing.complete(cook, outcome=status, summary="", by=build.key_of(cook), clock=build.clock)
    assert fresh(turn).status == "done"

    assert (build.claim(cook) is not None) is (status == "completed")


def test_a_follow_up_takes_along_what_waited_in_a_task_that_had_failed(build, cook, otto):
    build.a_turn(cook)
    build.tell(cook, otto, "first")
    finishing.complete(cook, outcome="failed", summary="", by=build.key_of(cook), clock=build.clock)

    build.follow_up(cook, otto, "second")

    assert [row.body.text for row in build.claimed(cook).inputs] == ["first", "second"]


def test_a_failed_conversation_that_is_followed_up_is_the_current_one_again(build, cook, otto):
    in_status(build, cook, "failed")
    assert not fresh(cook).is_current

    build.follow_up(cook, otto)
    build.claimed(fresh(cook))

    assert fresh(cook).is_current


# Ids and expectations (SPEC §6.10)


def test_a_repeat_is_a_duplicate_and_other_content_a_conflict(build, cook, otto):
    """CW-113"""
    first = build.follow_up(cook, otto, "please", message_id="f-1")
    again = build.follow_up(cook, otto, " please ", message_id="f-1")

    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert again.receipt.id == first.receipt.id
    with pytest.raises(MessageIdConflict):
        build.follow_up(cook, otto, "something else", message_id="f-1")


def test_the_namespace_is_caller_task_and_mode(build, cook, pilot, otto, ops):
    mia = build.a_person("mia", role="manager")
    sent = [
        build.follow_up(cook, otto, message_id="f-1"),
        build.follow_up(cook, mia, message_id="f-1"),
        build.follow_up(cook, ops, message_id="f-1"),
        build.follow_up(pilot, otto, message_id="f-1"),
        build.tell(cook, otto, "please", message_id="f-1"),
        build.send(pilot, cook, "please", message_id="f-1"),
    ]

    assert not any(row.is_duplicate for row in sent)


def test_an_expected_turn_that_has_passed_leaves_the_id_free(build, cook, otto):
    """CW-113"""
    build.a_turn(cook)

    with pytest.raises(ExpectedTurnPassed) as refused:
        build.follow_up(cook, otto, message_id="f-1", expected_turn=0)

    assert refused.value.extra == {"newest": 1, "expected": 0}
    assert not Receipt.objects.exists()
    assert not build.follow_up(cook, otto, message_id="f-1", expected_turn=1).is_duplicate


def test_a_repeat_is_answered_before_the_expected_turn_is_looked_at(build, cook, otto):
    build.follow_up(cook, otto, message_id="f-1", expected_turn=0)
    build.take_in(cook)

    assert build.follow_up(cook, otto, message_id="f-1", expected_turn=0).is_duplicate


def test_a_failed_follow_up_is_repeated_even_when_its_task_has_failed(build, cook, otto):
    receipt = build.a_receipt("failed", sender=otto, recipient=cook, message_id="f-1")
    in_status(build, cook, "failed")

    sent = build.follow_up(cook, otto, "hello", message_id="f-1")

    assert (sent.is_duplicate, fresh(receipt).attempt) == (False, 2)
    assert build.claim(fresh(cook)) is not None


@pytest.mark.parametrize(
    ("text", "more", "refusal"),
    [
        (" \n", {}, MessageRequired),
        ("x" * 65_537, {}, MessageTooLarge),
        ("x", {"message_id": "cowork:auto:1"}, InvalidRequest),
    ],
)
def test_an_unfit_input_is_refused(build, cook, otto, text, more, refusal):
    with pytest.raises(refusal):
        build.follow_up(cook, otto, text, **more)
    assert not Receipt.objects.exists()


def test_a_person_finds_room_in_a_full_queue_and_a_service_does_not(
    build, settings, cook, otto, ops
):
    settings.COWORK_QUEUE_MAX = 0

    assert build.follow_up(cook, otto).ahead == 0
    with pytest.raises(QueueFull):
        build.follow_up(cook, ops)


def test_a_follow_up_lets_what_came_back_be_taken_at_once(build, pilot, cook, otto):
    build.send(pilot, cook, "first")
    build.fail_before(cook)
    assert build.claim(cook) is None

    build.follow_up(cook, otto, "second")

    assert [row.body.text for row in build.claimed(cook).inputs] == ["first", "second"]


def test_a_follow_up_that_comes_during_a_turn_that_fails_starts_the_next_at_once(
    build, pilot, cook, otto
):
    build.send(pilot, cook, "first")
    turn = build.claimed(cook).turn
    build.follow_up(cook, otto, "second")

    assert build.end(turn, "error") is True
    assert [row.body.text for row in build.claimed(cook).inputs] == ["first", "second"]


def test_the_promise_is_stored_with_the_input(build, cook, otto):
    build.follow_up(cook, otto)

    assert OutboxEntry.objects.filter(target=cook.id, kind="wake-task").count() == 1


def test_a_message_that_starts_nothing_promises_nothing(build, cook, otto):
    build.tell(cook, otto)

    assert not OutboxEntry.objects.exists()


def test_the_same_id_twice_at_once_is_one_input(build, cook, otto, monkeypatch):
    """The second looks before the first is stored, and meets the constraint."""
    first = build.follow_up(cook, otto, message_id="f-1")
    looks = []
    find = repeats.find

    def blind_once(key):
        looks.append(key)
        return None if len(looks) == 1 else find(key)

    monkeypatch.setattr(repeats, "find", blind_once)
    again = build.follow_up(cook, otto, message_id="f-1")

    assert (again.is_duplicate, again.receipt.id) == (True, first.receipt.id)
    assert len(looks) == 2
