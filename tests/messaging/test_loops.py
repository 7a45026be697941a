"""Chains and hops: nothing is dropped, and nothing goes on for ever (SPEC §7.6)."""

import pytest

from cowork.models import OutboxEntry, Turn
from messaging import following_up, recovering, releasing
from messaging.models import Receipt
from tests.build import events, fresh
from timeline.models import AuditEntry
from timeline.refusals import Forbidden
from timeline.transitions import InvalidTransition


def ping_pong(build, here, there, hops):
    """Two that go on writing to each other in turns; the messages, as many as the hops."""
    sent = [build.send(here, there, "0").receipt]
    for number in range(1, hops):
        turn = build.claimed(fresh(there)).turn
        build.incorporate(turn)
        sent.append(build.send(there, here, str(number)).receipt)
        build.end(turn)
        here, there = there, here
    return sent


def test_a_persons_input_begins_a_chain_at_nought(build, cook, otto, ops):
    asked = build.follow_up(cook, otto).receipt
    told = build.tell(cook, ops).receipt

    assert (asked.hop, told.hop) == (0, 0)
    assert asked.chain != told.chain
    turn = build.claimed(cook).turn
    assert (turn.chain, turn.hop) == (asked.chain, 0)


def test_a_message_is_one_hop_further_than_its_senders_turn(build, pilot, cook, scout, otto):
    asked = build.follow_up(pilot, otto).receipt
    build.incorporate(build.claimed(pilot).turn)
    first = build.send(pilot, cook).receipt
    build.incorporate(build.claimed(cook).turn)
    second = build.send(cook, scout).receipt

    assert [(row.chain, row.hop) for row in (first, second)] == [(asked.chain, 1), (asked.chain, 2)]


def test_outside_a_turn_it_goes_on_from_the_last_one(build, pilot, cook, otto):
    asked = build.follow_up(pilot, otto).receipt
    build.take_in(pilot)

    sent = build.send(pilot, cook).receipt

    assert (sent.chain, sent.hop) == (asked.chain, 1)


def test_a_sender_that_never_ran_begins_at_one(build, pilot, cook):
    sent = [build.send(pilot, cook).receipt for _ in range(2)]

    assert [row.hop for row in sent] == [1, 1]
    assert sent[0].chain != sent[1].chain


def test_a_turn_is_as_near_as_its_nearest_input(build, pilot, cook, scout, otto):
    build.send(pilot, cook)
    asked = build.follow_up(cook, otto).receipt

    claimed = build.claimed(cook)

    assert len(claimed.inputs) == 2
    assert (claimed.turn.chain, claimed.turn.hop) == (asked.chain, 0)


def test_the_ninth_hop_is_stored_and_wakes_nobody(build, clock, pilot, cook):
    sent = ping_pong(build, pilot, cook, 9)

    assert [row.hop for row in sent] == list(range(1, 10))
    assert [row.wakes for row in sent] == [True] * 8 + [False]
    assert [row.is_held for row in sent] == [False] * 8 + [True]
    assert sent[-1].status == "queued"


def a_held_message(build, pilot, cook, settings):
    """Pilot's message of a chain that has gone on for too long; cook is idle."""
    settings.COWORK_MAX_HOPS = 0
    return build.send(pilot, cook).receipt


def test_a_held_message_is_claimed_by_nobody(build, clock, pilot, cook, settings):
    held = a_held_message(build, pilot, cook, settings)

    recovering.recover(clock=clock)

    assert (held.is_held, held.wakes, held.reply_status) == (True, False, "pending")
    assert not OutboxEntry.objects.filter(target=cook.id).exists()
    assert build.claim(cook) is None


def test_the_end_of_a_turn_does_not_wake_it(build, pilot, cook, settings):
    turn = build.a_turn(cook)
    held = a_held_message(build, pilot, cook, settings)

    assert build.end(turn) is False

    assert (fresh(held).wakes, fresh(held).is_held) == (False, True)
    assert build.claim(fresh(cook)) is None


def test_it_goes_along_with_other_input(build, pilot, cook, otto, settings):
    held = a_held_message(build, pilot, cook, settings)
    asked = build.follow_up(cook, otto).receipt

    assert build.claimed(cook).inputs == [held, asked]


def test_a_persons_message_is_never_held(build, cook, otto, settings):
    settings.COWORK_MAX_HOPS = settings.COWORK_MAX_CHAIN_TURNS = 0

    asked = following_up.follow_up(
        recipient=cook, by=build.principal(otto), message="hello", clock=build.clock
    ).receipt

    assert (asked.is_held, asked.wakes) == (False, True)


def test_after_32_turns_of_a_chain_the_next_message_is_held(build, pilot, cook, settings):
    """C150"""
    settings.COWORK_MAX_HOPS = 1000
    sent = ping_pong(build, pilot, cook, 33)
    chain = sent[0].chain
    assert Turn.objects.filter(chain=chain, cause_kind="message").count() == 32

    assert [row.is_held for row in sent] == [False] * 32 + [True]


def test_another_chain_is_not_held_with_it(build, pilot, cook, scout, settings):
    settings.COWORK_MAX_CHAIN_TURNS = 1
    ping_pong(build, pilot, cook, 2)

    assert build.send(scout, cook).receipt.is_held is False


def test_an_automatic_reply_of_a_long_chain_is_held_too(build, pilot, cook, settings):
    handoff = build.a_receipt("delivered", sender=pilot, recipient=cook)
    settings.COWORK_MAX_HOPS = 1

    build.end(handoff.turn, text="done")

    [reply] = Receipt.objects.filter(is_automatic=True)
    assert (reply.hop, reply.is_held, reply.wakes) == (2, True, False)


# Let it go


def let_go(build, receipt, by=None):
    return releasing.let_go(receipt, by=by or build.founder, note="All right.", clock=build.clock)


def test_an_operator_lets_it_go(build, pilot, cook, otto, settings):
    held = a_held_message(build, pilot, cook, settings)

    freed = let_go(build, held, by=build.principal(otto))

    assert (freed.is_held, freed.wakes, freed.status, freed.attempt) == (False, True, "queued", 1)
    assert OutboxEntry.objects.filter(target=cook.id, kind="wake-task").count() == 1
    assert build.claimed(cook).inputs == [held]
    for task in (pilot, cook):
        assert events(task, "message_status")[1].actor_label == "otto"
    [row] = audit_rows(build, "let_go")
    assert (row.target_id, row.note) == (str(held.id), "All right.")


def test_a_second_time_is_refused(build, pilot, cook, settings):
    held = a_held_message(build, pilot, cook, settings)
    let_go(build, held)

    with pytest.raises(InvalidTransition):
        let_go(build, held)
    assert len(audit_rows(build, "let_go")) == 1


@pytest.mark.parametrize("status", ["queued", "started", "delivered", "failed", "quarantined"])
def test_what_is_not_held_is_not_let_go(build, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook)

    with pytest.raises(InvalidTransition) as refused:
        let_go(build, receipt)

    assert refused.value.extra == {"delivery_status": status}


def test_agents_services_and_viewers_let_nothing_go(build, pilot, cook, ops, settings):
    held = a_held_message(build, pilot, cook, settings)
    viewer = build.principal(build.a_person("vera", role="viewer"))

    for caller in (build.key_of(pilot), ops, viewer):
        with pytest.raises(Forbidden):
            let_go(build, held, by=caller)
    assert fresh(held).is_held


def audit_rows(build, action):
    return list(AuditEntry.objects.filter(workspace_id=build.workspace.id, action=action))
