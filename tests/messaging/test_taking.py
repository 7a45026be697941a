"""Taking: the claim, the one way to start a turn (SPEC §6.2, §6.3, §6.8)."""

from datetime import timedelta

import pytest

from cowork import editing
from cowork.models import OutboxEntry, Turn
from cowork.tasks import TaskEnded, TaskNotFound, TurnRunning
from messaging import boundary, leaving
from messaging.models import Receipt
from tests.build import Build, events, fresh
from timeline.refusals import Forbidden


def texts(claimed):
    return [row.body.text for row in claimed.inputs]


def test_a_claim_opens_a_turn_with_what_it_takes(build, clock, pilot, cook):
    receipt = build.send(pilot, cook).receipt
    clock.advance(2)

    claimed = build.claimed(cook)

    turn, started = fresh(claimed.turn), fresh(receipt)
    assert (turn.status, turn.number, turn.claimer) == ("running", 1, build.key_of(cook).claimer)
    assert turn.lease_expires_at == clock.now() + timedelta(seconds=60)
    assert (started.status, started.turn_id, started.started_at) == (
        "started",
        turn.id,
        clock.now(),
    )
    assert fresh(cook).status == "running"
    assert [event.type for event in events(cook)][-4:] == [
        "task_status",
        "turn_started",
        "agent_follow_up_started",
        "message_status",
    ]
    [begun] = events(cook, "turn_started")
    assert begun.payload["receipt_ids"] == [str(receipt.id)]


def test_a_claim_drops_the_promise(build, pilot, cook):
    build.send(pilot, cook)
    build.claimed(cook)

    assert not OutboxEntry.objects.exists()


def test_nothing_waits_nothing_starts(build, cook):
    assert build.claim(cook) is None
    assert not Turn.objects.exists()


def test_a_runtime_may_start_by_itself(build, cook):
    claimed = build.claimed(cook, start=True)

    assert claimed.inputs == []
    assert (claimed.turn.cause_kind, claimed.turn.cause_id) == ("runtime", "")


def test_a_start_takes_what_would_start_nothing(build, cook, otto):
    build.tell(cook, otto, "by the way")
    assert build.claim(cook) is None

    assert texts(build.claimed(cook, start=True)) == ["by the way"]


def test_a_start_leaves_a_head_that_waits_for_its_retry(build, clock, pilot, cook):
    build.send(pilot, cook, "first")
    build.send(pilot, cook, "second")
    build.fail_before(cook)

    claimed = build.claimed(cook, start=True)

    assert claimed.inputs == []
    build.end(claimed.turn)
    clock.advance(1)
    assert texts(build.claimed(cook)) == ["first"]


def test_one_turn_at_a_time(build, pilot, cook):
    build.a_turn(cook)
    build.send(pilot, cook)

    for start in (False, True):
        with pytest.raises(TurnRunning):
            build.claim(cook, start=start)
    assert Turn.objects.count() == 1


def test_one_message_a_turn_in_the_order_of_the_queue(build, pilot, scout, cook):
    """CW-51"""
    for sender, text in ((pilot, "first"), (scout, "second"), (pilot, "third")):
        build.send(sender, cook, text)

    told = []
    for _ in range(3):
        told += texts(claimed := build.claimed(cook))
        build.incorporate(claimed.turn)
        build.end(claimed.turn)

    assert told == ["first", "second", "third"]
    assert build.claim(cook) is None


@pytest.mark.parametrize(("kind", "takes"), [("conversation", 1), ("root", 3)])
def test_roots_take_batches_and_conversations_do_not(build, cook, otto, kind, takes):
    task = cook if kind == "conversation" else build.a_root(bot=cook.bot)
    build.a_turn(task)
    for number in range(3):
        build.tell(task, otto, f"number {number}")
    build.end(task.turns.get())

    assert len(build.claimed(task).inputs) == takes


def batching(build, cook, count, size=1):
    editing.edit(cook, batch_inputs=True, by=build.founder, clock=build.clock)
    pilot = build.a_conversation(cook.team.lead)
    for _ in range(count):
        build.send(pilot, cook, "x" * size)
    return fresh(cook)


def test_a_batch_has_twenty_inputs_at_most(build, cook):
    """C049"""
    task = batching(build, cook, 22)

    first = build.claimed(task)
    build.incorporate(first.turn)
    build.end(first.turn)

    assert len(first.inputs) == 20
    assert len(build.claimed(task).inputs) == 2


@pytest.mark.parametrize(("size", "takes"), [(32 * 1024, 4), (32 * 1024 + 1, 3), (65_536, 2)])
def test_a_batch_has_128_kib_at_most(build, cook, size, takes):
    task = batching(build, cook, 5, size)

    assert len(build.claimed(task).inputs) == takes


def test_all_up_to_the_first_follow_up_is_taken(build, pilot, cook, otto):
    build.send(pilot, cook, "first")
    build.tell(cook, otto, "second")
    build.follow_up(cook, otto, "third")
    build.follow_up(cook, otto, "fourth")

    first = build.claimed(cook)

    assert texts(first) == ["first", "second", "third"]
    assert (first.turn.cause_kind, first.turn.cause_id) == (
        "follow_up",
        str(first.inputs[2].id),
    )
    build.incorporate(first.turn)
    build.end(first.turn)
    assert texts(build.claimed(cook)) == ["fourth"]


def test_a_follow_up_takes_along_more_than_a_batch(build, cook, otto):
    task = batching(build, cook, 25)
    build.follow_up(task, otto)

    assert len(build.claimed(task).inputs) == 26


# Chains (SPEC §7.6): stored, not yet judged


def test_a_turn_has_the_chain_of_its_nearest_input(build, pilot, cook, otto):
    far = build.send(pilot, cook).receipt
    near = build.follow_up(cook, otto).receipt
    assert (far.hop, near.hop) == (1, 0)

    turn = build.claimed(cook).turn

    assert (turn.chain, turn.hop) == (near.chain, 0)
    sent = build.send(cook, pilot).receipt
    assert (sent.chain, sent.hop, sent.cause_kind, sent.cause_id) == (
        near.chain,
        1,
        "turn",
        str(turn.id),
    )


def test_a_message_outside_a_turn_goes_on_with_the_last_chain(build, pilot, cook, otto):
    build.follow_up(cook, otto)
    turn = build.take_in(cook)

    sent = build.send(cook, pilot).receipt

    assert (sent.chain, sent.hop, sent.cause_kind) == (turn.chain, 1, "task")


def test_a_turn_of_its_own_goes_on_with_the_chain_of_its_task(build, cook, otto):
    build.follow_up(cook, otto)
    first = build.take_in(cook)

    assert build.a_turn(cook).chain == first.chain


# Who claims, and how often (SPEC §6.8)


def test_the_same_claim_gives_the_same_turn(build, pilot, cook):
    build.send(pilot, cook)
    first = build.claimed(cook, claim_id="c-1")

    again = build.claimed(cook, claim_id="c-1")

    assert (first.is_known, again.is_known) == (False, True)
    assert again.turn == first.turn
    assert [row.id for row in again.inputs] == [row.id for row in first.inputs]


def test_the_same_claim_gives_its_turn_even_after_its_end(build, pilot, cook):
    build.send(pilot, cook)
    first = build.claimed(cook, claim_id="c-1")
    build.end(first.turn)

    again = build.claimed(cook, claim_id="c-1")

    assert (again.turn.id, again.turn.status) == (first.turn.id, "done")
    assert Turn.objects.count() == 1


def test_a_claim_id_is_its_claimers_own(build, pilot, cook, cook_bot):
    build.send(pilot, cook)
    build.claimed(cook, claim_id="c-1")

    with pytest.raises(TurnRunning):
        build.claim(cook, by=build.a_credential(cook_bot), claim_id="c-1")


def test_a_lease_may_be_asked_for(build, clock, cook):
    turn = build.claimed(cook, start=True, lease=timedelta(seconds=900)).turn

    assert turn.lease_expires_at == clock.now() + timedelta(seconds=900)


def test_only_its_agent_claims(build, clock, pilot, cook, scout, otto, ops):
    build.send(pilot, cook)

    for caller in (build.key_of(scout), build.a_credential(scout), build.principal(otto), ops):
        with pytest.raises(Forbidden):
            build.claim(cook, by=caller)
    there = Build(clock, "other")
    stranger = there.a_bot("cook")
    with pytest.raises(TaskNotFound):
        build.claim(cook, by=there.key_of(stranger))
    assert build.claim(cook, by=build.a_credential(cook)) is not None


def test_an_archived_task_starts_nothing(build, pilot, cook):
    editing.edit(cook, archived=True, by=build.founder, clock=build.clock)

    assert build.claim(cook) is None
    with pytest.raises(TaskEnded):
        build.claim(cook, start=True)


# The walk of the queue (SPEC §2.4)


def test_what_may_not_be_delivered_is_quarantined_and_the_walk_goes_on(
    build, pilot, scout, cook, team
):
    refused = build.send(scout, cook, "first").receipt
    fine = build.send(pilot, cook, "second").receipt
    leaving.remove_member(team.id, handle="scout", by=build.founder, clock=build.clock)

    claimed = build.claimed(cook)

    assert [row.id for row in claimed.inputs] == [fine.id]
    held = fresh(refused)
    assert (held.status, held.failure_code) == (
        "quarantined",
        "BOT_MESSAGE_TEAM_AUTHORIZATION_REVOKED",
    )
    assert held.quarantined_at == build.clock.now()
    assert events(scout)[-1].payload["to"] == "quarantined"


def test_nothing_starts_when_all_that_waited_is_held(build, pilot, cook, team):
    receipt = build.send(pilot, cook).receipt
    leaving.change_team(team.id, is_active=False, by=build.founder, clock=build.clock)

    assert build.claim(cook) is None
    assert fresh(receipt).status == "quarantined"
    assert not Turn.objects.exists()
    assert fresh(cook).status == "idle"


def test_a_person_who_may_write_no_more_is_not_heard(build, cook, otto):
    receipt = build.follow_up(cook, otto).receipt
    type(otto).objects.filter(pk=otto.pk).update(role="viewer")

    assert build.claim(cook) is None
    assert fresh(receipt).status == "quarantined"


def test_a_screen_is_asked_once(build, settings, clock, pilot, cook):
    from messaging import releasing

    settings.COWORK_MESSAGE_SCREEN = "tests.messaging.test_taking.no_bombs"
    odd = build.send(pilot, cook, "a bomb").receipt
    build.send(pilot, cook, "a cake")

    claimed = build.claimed(cook)

    assert texts(claimed) == ["a cake"]
    assert (fresh(odd).status, fresh(odd).failure_code) == ("quarantined", "MESSAGE_UNSAFE")
    assert fresh(odd).failure_reason == "It ticks."
    build.incorporate(claimed.turn)
    build.end(claimed.turn)
    releasing.release(fresh(odd), by=build.founder, note="a toy", clock=clock)
    assert texts(build.claimed(cook)) == ["a bomb"]


def no_bombs(text):
    return "It ticks." if "bomb" in text else None


# Whoever waits for input is told by the same test


def test_the_tasks_that_can_be_claimed_are_those_that_may_start(build, clock, pilot, cook, otto):
    by = build.key_of(cook)

    def claimable():
        return boundary.claimable_tasks(by, now=clock.now())

    build.tell(cook, otto)
    assert claimable() == []
    build.send(pilot, cook)
    assert claimable() == [cook.id]
    build.claimed(cook)
    assert claimable() == []
    assert Receipt.objects.queued().filter(recipient=cook).exists()
