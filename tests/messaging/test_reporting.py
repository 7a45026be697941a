"""Reporting: what a turn says of itself while it runs (SPEC §6.4, §6.6, §6.8)."""

from datetime import timedelta

import pytest

from cowork import editing
from cowork.turns import StaleTurn
from messaging import reporting, reports
from tests.build import Build, events, fresh, text_of
from timeline.refusals import Forbidden, InvalidRequest, NotFound


@pytest.fixture
def held(build, pilot, cook):
    """A turn that holds three messages of pilot."""
    editing.edit(cook, batch_inputs=True, by=build.founder, clock=build.clock)
    for number in range(3):
        build.send(pilot, cook, f"number {number}", message_id=f"m-{number}")
    return build.claimed(fresh(cook))


def statuses(claimed):
    return [fresh(row).status for row in claimed.inputs]


def transcript(task):
    return [text_of(event) for event in events(task, "user_message")]


def test_incorporation_delivers_all_and_writes_the_transcript(build, clock, held, cook):
    clock.advance(3)

    build.incorporate(held.turn)

    assert statuses(held) == ["delivered"] * 3
    assert transcript(cook) == ["number 0", "number 1", "number 2"]
    assert fresh(held.turn).incorporated_at == clock.now()
    first = fresh(held.inputs[0])
    assert first.accepted_at <= first.queued_at <= first.started_at <= first.delivered_at


def test_it_goes_through_one_receipt_and_all_before_it(build, held, cook):
    build.incorporate(held.turn, through=held.inputs[1])
    assert statuses(held) == ["delivered", "delivered", "started"]

    build.incorporate(held.turn, through=held.inputs[0])
    assert statuses(held) == ["delivered", "delivered", "started"]

    build.incorporate(held.turn)
    assert statuses(held) == ["delivered"] * 3
    assert transcript(cook) == ["number 0", "number 1", "number 2"]


def test_the_first_incorporation_keeps_its_time(build, clock, held):
    build.incorporate(held.turn, through=held.inputs[0])
    at = clock.now()
    clock.advance(5)

    build.incorporate(held.turn)

    assert fresh(held.turn).incorporated_at == at


def test_what_the_turn_does_not_hold_can_not_be_incorporated(build, held, pilot, cook):
    younger = build.send(pilot, cook).receipt

    with pytest.raises(InvalidRequest):
        build.incorporate(held.turn, through=younger)

    assert statuses(held) == ["started"] * 3


def test_the_transcript_holds_it_exactly_once(build, clock, pilot, cook):
    """CW-118: over duplicates, retries and losses."""
    build.send(pilot, cook, message_id="m-1")
    build.fail_before(cook)
    clock.advance(1)
    build.lose(build.claimed(cook).turn)
    build.send(pilot, cook, message_id="m-1")
    clock.advance(5)
    turn = build.claimed(cook).turn
    for _ in range(2):
        build.incorporate(turn)
    build.send(pilot, cook, message_id="m-1")
    build.end(turn)

    assert len(events(cook, "user_message")) == 1
    assert len(events(pilot, "agent_message")) == 1


def test_one_follow_up_is_scheduled_and_each_attempt_started(build, clock, pilot, cook):
    """CW-62"""
    build.send(pilot, cook)
    build.fail_before(cook)
    clock.advance(1)
    build.take_in(cook, text="done")

    told = [
        (event.type, event.payload.get("attempt"))
        for event in events(
            cook, "agent_follow_up_scheduled", "agent_follow_up_started", "assistant_message"
        )
    ]
    assert told == [
        ("agent_follow_up_scheduled", None),
        ("agent_follow_up_started", 1),
        ("agent_follow_up_started", 2),
        ("assistant_message", None),
    ]


def test_reports_are_taken_in_order_with_their_texts(build, held, cook):
    build.report(
        held.turn,
        {"type": "accepted"},
        {"type": "assistant_message", "text": "on it"},
        {"type": "tool_activity", "label": "grep", "phase": "started"},
        {"type": "note", "level": "warning", "text": "slow"},
        {"type": "assistant_message", "text": "a subagent's", "own": False},
    )

    told = events(cook, "assistant_message", "tool_activity", "note")
    assert [(event.type, text_of(event)) for event in told] == [
        ("assistant_message", "on it"),
        ("tool_activity", None),
        ("note", "slow"),
        ("assistant_message", "a subagent's"),
    ]
    turn = fresh(held.turn)
    assert turn.accepted_at == build.clock.now()
    assert turn.final_text.text == "on it"


def test_a_report_whose_id_is_known_changes_nothing(build, held, cook):
    said = {"type": "assistant_message", "text": "once", "event_id": "e-1"}

    build.report(held.turn, said, said)
    build.report(held.turn, said, {**said, "text": "other words"})

    assert [text_of(event) for event in events(cook, "assistant_message")] == ["once"]


def test_ids_of_reports_are_the_turns_own(build, held, cook):
    said = {"type": "assistant_message", "text": "once", "event_id": "e-1"}
    build.report(held.turn, said)
    build.end(held.turn)

    build.report(build.a_turn(cook), said)

    assert len(events(cook, "assistant_message")) == 2


def test_reports_are_taken_all_or_none(build, held, cook):
    count = len(events(cook))

    with pytest.raises(InvalidRequest):
        build.report(
            held.turn,
            {"type": "assistant_message", "text": "hello", "event_id": "e-1"},
            {"type": "incorporated", "through": str(cook.id)},
        )

    assert len(events(cook)) == count
    build.report(held.turn, {"type": "assistant_message", "text": "hello", "event_id": "e-1"})
    assert len(events(cook)) == count + 1


@pytest.mark.parametrize("how", ["report", "heartbeat", "no reports"])
def test_whatever_is_heard_of_a_turn_gives_it_its_lease_again(build, clock, held, how):
    clock.advance(59)
    calls = {
        "report": lambda: build.report(held.turn, {"type": "accepted"}),
        "no reports": lambda: build.report(held.turn),
        "heartbeat": lambda: reporting.heartbeat(
            turn_id=held.turn.id,
            by=build.claimer_of(held.turn),
            fence=held.turn.fence,
            clock=clock,
        ),
    }

    calls[how]()

    assert fresh(held.turn).lease_expires_at == clock.now() + timedelta(seconds=60)


def test_a_lease_that_was_longer_is_not_cut(build, held, clock):
    from messaging import recovering

    recovering.extend_leases(clock=clock)
    before = fresh(held.turn).lease_expires_at

    build.report(held.turn)

    assert fresh(held.turn).lease_expires_at == before


@pytest.mark.parametrize("off", [-1, 1])
def test_another_fence_is_refused(build, held, off):
    """C120"""
    with pytest.raises(StaleTurn) as refused:
        build.report(held.turn, {"type": "incorporated"}, fence=held.turn.fence + off)

    assert refused.value.extra == {"requeued": []}
    assert statuses(held) == ["started"] * 3


def test_a_turn_that_is_over_is_told_what_comes_again(build, held):
    """SPEC §6.6"""
    build.incorporate(held.turn, through=held.inputs[0])
    build.end(held.turn, "error")

    with pytest.raises(StaleTurn) as refused:
        build.report(held.turn, {"type": "incorporated"})

    assert refused.value.extra == {"requeued": [str(row.id) for row in held.inputs[1:]]}


def test_what_has_failed_for_good_does_not_come_again(build, pilot, cook, otto):
    message = build.send(pilot, cook).receipt
    build.follow_up(cook, otto)
    turn = build.fail_before(cook)

    with pytest.raises(StaleTurn) as refused:
        build.report(turn)

    assert refused.value.extra == {"requeued": [str(message.id)]}


def test_what_a_later_turn_holds_has_come_again(build, clock, held, cook):
    build.lose(held.turn)
    clock.advance(1)
    build.incorporate(build.claimed(fresh(cook)).turn)

    with pytest.raises(StaleTurn) as refused:
        build.report(held.turn)

    assert refused.value.extra == {"requeued": [str(row.id) for row in held.inputs]}


def test_what_comes_again_says_that_it_was_shown(build, clock, held, cook):
    assert not any(row.was_shown for row in held.inputs)
    build.end(held.turn, "error")
    clock.advance(1)

    again = build.claimed(fresh(cook))

    assert [row.id for row in again.inputs] == [row.id for row in held.inputs]
    assert all(row.was_shown and row.attempt == 2 for row in again.inputs)


def test_a_turn_is_its_claimers_own(build, clock, held, cook, cook_bot, pilot, otto):
    """SPEC §2.7"""
    callers = [
        build.a_credential(cook_bot),
        build.a_credential(cook),
        build.key_of(pilot),
        build.principal(otto),
    ]
    for caller in callers:
        with pytest.raises(Forbidden):
            reporting.own_turn(held.turn.id, by=caller)
    there = Build(clock, "other")
    with pytest.raises(NotFound):
        reporting.own_turn(held.turn.id, by=there.a_service())


# What is no report


@pytest.mark.parametrize(
    "event",
    [
        {},
        "accepted",
        None,
        7,
        [],
        {"type": "accepted"},
        {"event_id": "e"},
        {"type": "accepted", "event_id": ""},
        {"type": "accepted", "event_id": "x" * 129},
        {"type": "accepted", "event_id": 7},
        {"type": "accepted", "event_id": None},
        {"type": "accepted", "event_id": "e", "more": 1},
        {"type": "unheard_of", "event_id": "e"},
        {"type": 7, "event_id": "e"},
        {"type": [], "event_id": "e"},
        {"type": "incorporated", "event_id": "e", "through": "m-1"},
        {"type": "incorporated", "event_id": "e", "through": 7},
        {"type": "assistant_message", "event_id": "e"},
        {"type": "assistant_message", "event_id": "e", "text": 7},
        {"type": "assistant_message", "event_id": "e", "text": "x", "own": "yes"},
        {"type": "assistant_message", "event_id": "e", "text": "x" * (256 * 1024 + 1)},
        {"type": "note", "event_id": "e", "text": "x", "level": "loud"},
        {"type": "tool_activity", "event_id": "e", "label": "", "phase": "x"},
        {"type": "tool_activity", "event_id": "e", "label": "x" * 201, "phase": "x"},
        {"type": "tool_activity", "event_id": "e", "label": "x"},
    ],
)
def test_what_is_no_report_is_refused_by_name(event):
    with pytest.raises(InvalidRequest) as refused:
        reports.read([{"type": "accepted", "event_id": "fine"}, event])

    [*errors] = refused.value.extra["errors"]
    assert all(row["field"].startswith("events[1]") for row in errors)


@pytest.mark.parametrize("given", [None, {}, "x", 7])
def test_what_is_no_list_of_reports_is_refused(given):
    with pytest.raises(InvalidRequest):
        reports.read(given)


def test_two_hundred_reports_are_taken_at_once_and_no_more():
    event = {"type": "accepted", "event_id": "e"}

    assert len(reports.read([event] * 200)) == 200
    with pytest.raises(InvalidRequest):
        reports.read([event] * 201)
