"""Mending: both timelines are compared with the receipts and completed (SPEC §5.7, §16.4)."""

import pytest

from cowork import sweeps
from messaging import invariants, recovering, timelines
from messaging.models import Receipt
from tests.build import events, fresh
from timeline import log
from timeline.models import Event, Stream


@pytest.fixture
def answered(build, pilot, cook):
    """Pilot has asked cook, cook has answered, pilot has read it; and one more waits."""
    build.send(pilot, cook, "the question", message_id="q")
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    build.send(cook, pilot, "the answer", in_reply_to="q", message_id="a")
    build.end(turn)
    build.take_in(pilot)
    build.send(pilot, cook, "one more", message_id="more")
    return Receipt.objects.get(message_id="q")


def forget(task, *rows):
    """The last lines of a timeline are gone, as after a power cut of a disk that lies."""
    first = min(row.seq for row in rows)
    Event.objects.filter(stream_id=task.stream, seq__gte=first).delete()
    Stream.objects.filter(pk=task.stream).update(last_seq=first - 1)


def findings(clock):
    return {(row.rule, tuple(row.ids)) for row in invariants.findings(now=clock.now())}


def projected(*tasks):
    """What readers are told in the end, message by message."""
    found = {}
    for task in tasks:
        for event in events(task):
            facts = log.as_json(event)["payload"]
            if "receipt_id" in facts and event.type != "agent_follow_up_started":
                ignored = ("from", "code", "reason")
                told = {name: facts[name] for name in facts if name not in ignored}
                found[task.id, event.type, facts["receipt_id"]] = told
    return found


def test_there_is_nothing_to_do_after_ordinary_work(build, clock, answered, otto, pilot, cook):
    build.a_receipt("failed", sender=otto, recipient=build.a_root(bot=cook.bot))
    build.take_in(cook)
    build.a_receipt("quarantined", sender=pilot, recipient=cook)
    build.fail_before(build.send(pilot, cook, "back to its place").receipt.recipient)

    assert not timelines.incomplete().exists()
    assert recovering.complete_timelines(clock=clock) == 0


@pytest.mark.parametrize("kind", ["user_message", "agent_follow_up_scheduled", "message_status"])
def test_the_recipients_timeline_is_completed(build, clock, answered, pilot, cook, kind):
    before = projected(pilot, cook)
    forget(cook, *events(cook, kind))
    assert projected(pilot, cook) != before

    assert recovering.complete_timelines(clock=clock) > 0

    assert projected(pilot, cook) == before
    assert recovering.complete_timelines(clock=clock) == 0
    assert findings(clock) == set()


@pytest.mark.parametrize("kind", ["agent_message", "message_status"])
def test_the_senders_timeline_is_completed(build, clock, answered, pilot, cook, kind):
    before = projected(pilot, cook)
    forget(pilot, *events(pilot, kind))
    assert projected(pilot, cook) != before

    assert recovering.complete_timelines(clock=clock) > 0

    assert projected(pilot, cook) == before
    assert findings(clock) == set()


def test_a_status_that_was_told_late_is_told_again(build, clock, answered, pilot, cook):
    """The newest line counts, not whether there was one."""
    lines = [row for row in events(pilot, "message_status") if row.subject == answered.id]
    forget(pilot, lines[-1])
    assert answered in timelines.incomplete()

    recovering.complete_timelines(clock=clock)

    told = [row.payload for row in events(pilot, "message_status") if row.subject == answered.id]
    assert (told[-1]["to"], told[-1]["reply_status"]) == ("delivered", "received")
    assert answered not in timelines.incomplete()


def test_an_attempt_that_was_not_told_is_told(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    build.fail_before(cook)
    lines = [row for row in events(cook, "message_status") if row.subject == receipt.id]
    forget(cook, lines[-1])

    recovering.complete_timelines(clock=clock)

    [*_lines, told] = events(cook, "message_status")
    assert (told.payload["to"], told.payload["attempt"], told.actor_kind) == ("queued", 2, "system")


def test_what_a_person_sent_has_one_timeline(build, clock, cook, otto):
    receipt = build.follow_up(cook, otto).receipt
    build.take_in(cook)
    forget(cook, *events(cook, "user_message"))

    assert recovering.complete_timelines(clock=clock) == 1

    [told] = events(cook, "user_message")
    assert (told.subject, told.body_id) == (receipt.id, receipt.body_id)
    assert told.payload["source"] == "person"


def test_nothing_is_too_old_and_nothing_is_left_out(build, clock, pilot, cook, otto):
    for number in range(30):
        build.follow_up(cook, otto, f"number {number}")
    clock.advance(1000 * 86_400)
    forget(cook, *events(cook, "agent_follow_up_scheduled"))

    assert recovering.complete_timelines(clock=clock) == 30
    assert not timelines.incomplete().exists()


def test_one_that_cannot_be_completed_leaves_the_others(build, clock, cook, otto, monkeypatch):
    bad, good = [build.follow_up(cook, otto, text).receipt for text in ("bad", "good")]
    forget(cook, *events(cook, "agent_follow_up_scheduled"))
    complete = timelines.complete

    def fails_for_one(receipt, *, now):
        if receipt.id == bad.id:
            raise RuntimeError("a bug")
        return complete(receipt, now=now)

    monkeypatch.setattr(timelines, "complete", fails_for_one)

    assert recovering.complete_timelines(clock=clock) == 1
    assert list(timelines.incomplete()) == [fresh(bad)]
    assert good not in timelines.incomplete()


def test_it_is_done_at_every_start():
    assert recovering.complete_timelines in sweeps.AT_START


def test_looking_is_one_query(build, clock, answered, django_assert_num_queries):
    with django_assert_num_queries(1):
        recovering.complete_timelines(clock=clock)
