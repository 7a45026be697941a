"""`doctor`: each kind of damage is found, what can be mended is, and a second look is quiet
(SPEC §5.7, §16.6). The damage is done behind the rules' back."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from cowork import interrupting, outbox
from cowork.models import OutboxEntry, Task, Turn
from messaging import invariants, mending, wakes
from messaging.management.commands import doctor
from messaging.models import Receipt
from tests.build import events, fresh
from timeline.ids import new_id
from timeline.models import Event, Stream
from timeline.transactions import action

pytestmark = pytest.mark.usefixtures("in_time")


@pytest.fixture
def in_time(clock, monkeypatch):
    """The command asks the manual clock."""
    monkeypatch.setattr(doctor, "system_clock", clock)


def found(build):
    return [row.rule for row in invariants.findings(now=build.clock.now())]


def mend(build):
    rows = list(invariants.findings(now=build.clock.now()))
    return [row.rule for row in mending.mend(rows, clock=build.clock)]


def destroy(rows):
    """Delete events as no rule would."""
    Event.objects.filter(pk__in=[event.pk for event in rows]).delete()


def renumber(task):
    """Close the gap that a deletion has left, as damage that nobody notices by its numbers."""
    rows = events(task)
    for seq, event in enumerate(rows, start=1):
        Event.objects.filter(pk=event.pk).update(seq=seq)
    Stream.objects.filter(key=task.stream).update(last_seq=len(rows))


@pytest.fixture
def history(build, pilot, cook, scout, otto):
    """Messages in every state, an answer and its handoff among them."""
    handoff = build.a_receipt("delivered", sender=pilot, recipient=cook)
    build.send(cook, pilot, "yes")
    build.end(handoff.turn)
    build.take_in(pilot)
    build.a_receipt("failed", sender=pilot, recipient=scout)
    build.a_receipt("quarantined", sender=cook, recipient=scout)
    build.send(cook, scout)
    build.follow_up(pilot, otto)
    return handoff


def test_all_is_well(build, history):
    assert found(build) == []
    assert mend(build) == []


# The transcript


def test_a_delivery_without_its_transcript(build, cook, history):
    destroy(events(cook, "user_message"))
    renumber(cook)

    assert found(build) == ["delivered_once"]
    assert mend(build) == ["delivered_once"]

    [told] = events(cook, "user_message")
    assert (told.payload["receipt_id"], told.body_id) == (str(history.id), history.body_id)
    assert told.actor_kind == "system"
    assert found(build) == mend(build) == []


def test_a_transcript_twice_is_found_and_left(build, cook, history):
    [told] = events(cook, "user_message")
    told.pk, told.seq = new_id(), len(events(cook)) + 1
    told.save(force_insert=True)
    Stream.objects.filter(key=cook.stream).update(last_seq=told.seq)

    assert found(build) == ["delivered_once"]
    assert mend(build) == []


# The two views


@pytest.mark.parametrize("side", ["sender", "recipient"])
def test_a_side_that_was_not_told_the_end(build, pilot, cook, history, side):
    """CW-118"""
    task = pilot if side == "sender" else cook
    mine = [event for event in events(task, "message_status") if event.subject == history.id]
    destroy(mine[-1:])
    renumber(task)

    assert found(build) == ["views_agree"]
    assert mend(build) == ["views_agree"]

    told = events(task, "message_status")[-1].payload
    assert (told["receipt_id"], told["side"]) == (str(history.id), side)
    assert (told["to"], told["reply_status"]) == ("delivered", "received")
    assert found(build) == mend(build) == []


def test_a_side_that_was_told_nothing(build, pilot, cook, history):
    told = Event.objects.filter(subject=history.id, stream_id=pilot.stream)
    destroy(told)
    renumber(pilot)

    assert found(build) == ["told_acceptance", "views_agree"]
    mend(build)

    lines = [event.type for event in events(pilot) if event.subject == history.id]
    assert lines == ["agent_message", "message_status"]
    assert found(build) == []


@pytest.mark.parametrize("kind", ["agent_message", "agent_follow_up_scheduled"])
def test_an_acceptance_that_was_not_told(build, pilot, cook, history, kind):
    task = pilot if kind == "agent_message" else cook
    destroy([event for event in events(task, kind) if event.subject == history.id])
    renumber(task)

    assert found(build) == ["told_acceptance"]
    assert mend(build) == ["told_acceptance"]

    [told] = [event for event in events(task, kind) if event.subject == history.id]
    assert told.payload["message_id"] == history.message_id
    assert found(build) == mend(build) == []


def test_a_persons_input_stays_one(build, pilot, otto):
    """SPEC §6.10: completing a timeline makes no handoff of it."""
    asked = build.follow_up(pilot, otto).receipt
    build.take_in(pilot)
    destroy(events(pilot, "user_message"))
    renumber(pilot)

    mend(build)

    told = events(pilot, "user_message")[-1].payload
    assert (told["source"], told["sender"]["kind"]) == ("person", "person")
    row = fresh(asked)
    assert (row.source, row.is_handoff, row.reply_status) == ("person", False, None)


# Numbers


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_gap_in_the_numbers(build, cook, history, place):
    lines = [event for event in events(cook) if event.type == "task_status"]
    chosen = {"first": events(cook)[0], "middle": lines[0], "last": events(cook)[-1]}[place]
    destroy([chosen])

    assert "gapless_seq" in found(build)
    assert "gapless_seq" not in mend(build)


# Wakes


def test_a_wake_that_was_lost(build, scout, history):
    OutboxEntry.objects.filter(target=scout.id).delete()

    assert found(build) == ["missing_wake"]
    assert mend(build) == ["missing_wake"]

    assert OutboxEntry.objects.filter(target=scout.id, kind="wake-task").count() == 1
    assert found(build) == mend(build) == []


def test_a_wake_that_was_given_up_waits_for_a_person(build, scout, history):
    OutboxEntry.objects.filter(target=scout.id).update(status="parked")

    assert found(build) == []


def test_a_paused_queue_needs_no_wake(build, pilot, scout, history):
    interrupting.pause(fresh(scout), by=build.founder, clock=build.clock)
    OutboxEntry.objects.filter(target=scout.id).delete()

    assert found(build) == []


def test_a_wake_of_nothing(build, cook, history):
    gone = new_id()
    action(outbox.enqueue)(
        wakes.WAKE_TASK,
        target=gone,
        workspace_id=cook.workspace_id,
        payload=wakes.WakeTask(task_id=gone),
        now=build.clock.now(),
    )

    [row] = invariants.findings(now=build.clock.now())

    assert (row.rule, row.ids) == ("orphan_wake", [str(gone)])


# Turns


def test_a_task_that_runs_without_a_turn(build, cook, history):
    Task.objects.filter(pk=cook.pk).update(status="running")

    assert found(build) == ["turn_runs"]


def test_a_turn_that_runs_in_an_idle_task(build, scout, history):
    build.a_turn(scout)
    Task.objects.filter(pk=scout.pk).update(status="idle")

    assert "turn_runs" in found(build)


def test_a_message_in_a_turn_that_has_ended(build, clock, pilot, cook):
    receipt = build.a_receipt("started", sender=pilot, recipient=cook)
    Turn.objects.filter(pk=receipt.turn_id).update(status="done", ended_at=clock.now())
    Task.objects.filter(pk=cook.pk).update(status="idle")

    assert found(build) == ["started_in_a_turn"]


def test_a_stopping_turn_is_no_finding(build, cook):
    build.a_turn(cook)
    interrupting.stop(cook, by=build.founder, clock=build.clock)

    assert found(build) == []


# Replies


def test_an_answer_from_somebody_else(build, scout, history):
    answer = fresh(history).reply
    Receipt.objects.filter(pk=answer.pk).update(sender_task=scout)

    assert "received_by_reply" in found(build)


def test_an_answer_that_was_not_taken_in(build, history):
    answer = fresh(history).reply
    Receipt.objects.filter(pk=answer.pk).update(status="queued", delivered_at=None)

    assert "received_by_reply" in found(build)


def test_an_answer_that_was_taken_in_and_not_noted(build, history):
    Receipt.objects.filter(pk=history.pk).update(reply_status="pending", reply=None)

    assert "received_by_reply" in found(build)


# The command


class Told:
    """What the command prints, and how it ends."""

    def __init__(self, *options):
        self.out = StringIO()
        self.code = 0
        try:
            call_command("doctor", *options, stdout=self.out)
        except SystemExit as end:
            self.code = int(end.code or 0)

    @property
    def text(self):
        return self.out.getvalue()


def test_the_command_is_content(history):
    told = Told()

    assert (told.code, told.text) == (0, "All is well.\n")
    assert json.loads(Told("--json").text) == {"ok": True, "findings": []}


def test_the_command_tells_what_is_wrong(scout, history):
    OutboxEntry.objects.filter(target=scout.id).delete()

    told, as_json = Told(), Told("--json")

    assert (told.code, as_json.code) == (1, 1)
    assert "missing_wake" in told.text
    assert str(scout.id) in told.text
    assert json.loads(as_json.text) == {
        "ok": False,
        "findings": [
            {
                "rule": "missing_wake",
                "ids": [str(scout.id)],
                "text": "something waits and no wake is promised",
            }
        ],
    }
    assert not OutboxEntry.objects.filter(target=scout.id).exists()  # it only looks


def test_the_command_mends_and_a_second_time_finds_nothing(cook, scout, history):
    OutboxEntry.objects.filter(target=scout.id).delete()
    destroy(events(cook, "user_message"))
    renumber(cook)

    first = Told("--repair", "--json")
    count = Event.objects.count()
    second = Told("--repair", "--json")

    assert (first.code, second.code) == (0, 0)
    assert json.loads(second.text) == {"ok": True, "findings": []}
    assert Event.objects.count() == count


def test_the_command_tells_what_it_could_not_mend(cook, scout, history):
    OutboxEntry.objects.filter(target=scout.id).delete()
    Task.objects.filter(pk=cook.pk).update(status="running")

    told = Told("--repair", "--json")

    assert told.code == 1
    assert [row["rule"] for row in json.loads(told.text)["findings"]] == ["turn_runs"]
