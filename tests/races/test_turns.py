"""Claims, reports and ends that meet: one turn, one fate for each message, nothing left behind."""

import os
from functools import partial
from typing import Any

import pytest

from cowork import editing
from cowork.models import Turn
from messaging import finishing, leaving, recovering, taking, withdrawing
from messaging.models import Receipt
from messaging.taking import Claimed
from teams import repairing
from teams.models import Member
from tests import records
from tests.build import events, fresh
from tests.races.together import at_once, kinds
from tests.trio import Trio
from timeline.clock import system_clock

ROUNDS = 5
# How often a send meets the very end of a turn.
END_ROUNDS = int(os.environ.get("COWORK_TEST_ROUNDS", "50"))


def test_claims_at_once_open_one_turn(trio: Trio) -> None:
    for _round in range(ROUNDS):
        sent = trio.send(trio.atlas, trio.forge)

        outcomes = at_once(*[lambda: trio.claim(trio.forge)] * 3)

        assert kinds(outcomes) == {"Claimed": 1, "TURN_RUNNING": 2}
        [turn] = Turn.objects.filter(status="running")
        assert fresh(sent.receipt).turn == turn
        trio.incorporate(turn)
        trio.end(turn)


def test_a_claim_that_is_made_twice_at_once_is_answered_twice(trio: Trio) -> None:
    for number in range(ROUNDS):
        trio.send(trio.atlas, trio.forge)

        outcomes = at_once(*[partial(trio.claim, trio.forge, claim_id=f"c-{number}")] * 3)

        assert kinds(outcomes) == {"Claimed": 3}
        assert [claimed.is_known for claimed in outcomes].count(False) == 1
        [turn] = {claimed.turn for claimed in outcomes}
        assert len({tuple(row.id for row in claimed.inputs) for claimed in outcomes}) == 1
        trio.incorporate(turn)
        trio.end(turn)


def test_of_a_claim_and_a_withdrawal_one_wins(trio: Trio) -> None:
    for _round in range(ROUNDS * 2):
        receipt = trio.send(trio.atlas, trio.forge).receipt

        claimed, withdrawn = at_once(
            lambda: trio.claim(trio.forge),
            partial(withdrawing.withdraw, receipt, by=trio.key_of(trio.atlas), clock=trio.clock),
        )

        if claimed is None:
            assert withdrawn.failure_code == "WITHDRAWN"
        else:
            assert kinds([withdrawn]) == {"INVALID_TRANSITION": 1}
            assert [row.id for row in claimed.inputs] == [receipt.id]
            trio.incorporate(claimed.turn)
            trio.end(claimed.turn)


def test_nothing_is_started_after_a_revocation(trio: Trio) -> None:
    for _round in range(ROUNDS * 2):
        receipt = trio.send(trio.echo, trio.forge).receipt

        claimed, removed = at_once(
            lambda: taking.claim(task=trio.forge, by=trio.key_of(trio.forge), clock=system_clock),
            lambda: leaving.remove_member(
                trio.team.id, handle="echo", by=trio.founder, clock=system_clock
            ),
        )
        trio.clock.move_to(system_clock.now())
        trio.drain()

        assert removed is None
        if isinstance(claimed, Claimed):
            left = Member.objects.get(bot=trio.echo.bot, team=trio.team)
            assert left.left_at is not None
            assert claimed.turn.started_at <= left.left_at
            trio.incorporate(claimed.turn)
            trio.end(claimed.turn)
            assert fresh(receipt).status == "delivered"
        else:
            assert fresh(receipt).status == "quarantined"
        assert trio.claim(trio.forge) is None
        repairing.restore(trio.team.id, handle="echo", by=trio.founder, clock=trio.clock)


@pytest.mark.timeout(120 + 5 * END_ROUNDS)
def test_a_send_at_the_very_end_of_a_turn_is_not_left_behind(trio: Trio) -> None:
    trio.send(trio.atlas, trio.forge, message_id="m-0")
    for number in range(1, END_ROUNDS + 1):
        claimed = trio.claimed(trio.forge)
        assert [row.message_id for row in claimed.inputs] == [f"m-{number - 1}"]
        trio.incorporate(claimed.turn)

        sent, may_go_on, _runs = at_once(
            partial(trio.send, trio.atlas, trio.forge, message_id=f"m-{number}"),
            partial(trio.end, claimed.turn),
            trio.drain,
        )

        assert kinds([sent]) == {"Sent": 1}
        assert may_go_on in (True, False)
        assert records.unpromised(now=trio.clock.now()) == []
        # What the drain was told of before it looked is not forgotten after it.
        trio.drain()
        assert records.unpromised(now=trio.clock.now()) == []
    assert trio.take_all(trio.forge) == [[f"m-{END_ROUNDS}"]]


def test_a_turn_that_is_ended_several_times_at_once_ends_once(trio: Trio) -> None:
    for _round in range(ROUNDS):
        trio.send(trio.atlas, trio.forge)
        trio.send(trio.atlas, trio.forge)
        turn = trio.claimed(trio.forge).turn
        trio.incorporate(turn)

        outcomes = at_once(*[partial(trio.end, turn)] * 4)

        assert outcomes == [True] * 4
        ended = [event for event in events(trio.forge, "turn_ended") if event.subject == turn.id]
        assert len(ended) == 1
        trio.take_all(trio.forge)


def test_of_two_ends_that_differ_one_wins(trio: Trio) -> None:
    for _round in range(ROUNDS):
        trio.send(trio.atlas, trio.forge)
        turn = trio.claimed(trio.forge).turn
        trio.incorporate(turn)

        outcomes = at_once(partial(trio.end, turn, "done"), partial(trio.end, turn, "error"))

        assert kinds(outcomes) == {"bool": 1, "STALE_TURN": 1}


def test_of_a_report_and_the_loss_of_the_lease_one_wins(trio: Trio) -> None:
    for _round in range(ROUNDS):
        receipt = trio.send(trio.atlas, trio.forge).receipt
        turn = trio.claimed(trio.forge).turn
        trio.clock.move_to(turn.lease_expires_at)

        reported, lost = at_once(
            partial(trio.incorporate, turn),
            lambda: recovering.lose_silent_turns(clock=trio.clock),
        )

        if isinstance(reported, Turn):
            assert lost == 0
            assert (fresh(turn).status, fresh(receipt).status) == ("running", "delivered")
            trio.end(turn)
        else:
            assert (reported.code, lost) == ("STALE_TURN", 1)
            assert (fresh(turn).status, fresh(receipt).status) == ("lost", "queued")
            trio.take_all(trio.forge)


def test_an_answer_that_is_taken_in_while_its_asker_sends_is_received_once(trio: Trio) -> None:
    for number in range(ROUNDS):
        trio.atlas, trio.forge = (
            trio.a_conversation(trio.bot(task)) for task in (trio.atlas, trio.forge)
        )
        asked = trio.send(trio.atlas, trio.forge).receipt
        turn = trio.claimed(trio.forge).turn
        trio.incorporate(turn)
        answer = trio.send(trio.forge, trio.atlas).receipt
        trio.end(turn)
        asking = trio.claimed(trio.atlas).turn

        outcomes = at_once(
            partial(trio.report, asking, {"event_id": "e-1", "type": "incorporated"}),
            partial(trio.send, trio.atlas, trio.forge, message_id=f"more-{number}"),
            lambda: trio.send(trio.forge, trio.atlas),
            partial(trio.report, asking, {"event_id": "e-1", "type": "incorporated"}),
        )

        assert kinds(outcomes) == {"Turn": 2, "Sent": 2}
        assert fresh(asked).reply == answer
        trio.end(asking)
        trio.take_everything()


def test_a_conversation_is_put_away_or_its_turn_runs(trio: Trio) -> None:
    for _round in range(ROUNDS):
        trio.forge = trio.a_conversation(trio.bot(trio.forge))
        receipt = trio.send(trio.atlas, trio.forge).receipt

        claimed, archived = at_once(
            lambda: trio.claim(trio.forge),
            lambda: editing.edit(trio.forge, archived=True, by=trio.operator, clock=trio.clock),
        )

        if isinstance(claimed, Claimed):
            assert kinds([archived]) == {"TURN_RUNNING": 1}
            trio.incorporate(claimed.turn)
            trio.end(claimed.turn)
        else:
            assert fresh(receipt).failure_code == "RECIPIENT_ENDED"


def test_a_failed_conversation_is_taken_up_and_put_away_without_a_deadlock(trio: Trio) -> None:
    for _round in range(ROUNDS):
        trio.forge = trio.a_conversation(trio.bot(trio.forge))
        finishing.complete(
            trio.forge, outcome="failed", summary="", by=trio.operator, clock=trio.clock
        )
        trio.follow_up(trio.forge, trio.operator)
        calls: list[Any] = [
            lambda: trio.claim(fresh(trio.forge)),
            lambda: editing.edit(trio.forge, archived=True, by=trio.operator, clock=trio.clock),
            lambda: trio.a_conversation(trio.bot(trio.forge)),
        ]

        claimed, archived, opened = at_once(*calls)

        assert kinds([opened]) == {"Task": 1}
        assert isinstance(claimed, Claimed) != (fresh(trio.forge).archived_at is not None)
        if isinstance(claimed, Claimed):
            assert kinds([archived]) == {"TURN_RUNNING": 1}
            trio.incorporate(claimed.turn)
            trio.end(claimed.turn)
        trio.check()


def test_a_bot_goes_while_it_is_written_to_and_while_it_works(trio: Trio) -> None:
    trio.send(trio.atlas, trio.forge)

    claimed, *sends, gone = at_once(
        lambda: trio.claim(trio.forge),
        *[partial(trio.send, task, "forge") for task in (trio.atlas, trio.echo) * 2],
        lambda: leaving.deactivate_bot("forge", by=trio.founder, clock=trio.clock),
    )
    trio.drain()

    assert not gone.is_active
    assert set(kinds(sends)) <= {"Sent", "BOT_NOT_FOUND"}
    assert not Receipt.objects.queued().exists()
    if isinstance(claimed, Claimed):
        # Nobody may claim it any more to find out that it may not be delivered (SPEC §2.4).
        trio.lose(claimed.turn)
        assert [fresh(row).status for row in claimed.inputs] == ["quarantined"]


def test_a_failed_conversation_that_is_completed_takes_what_has_waited(trio: Trio) -> None:
    trio.send(trio.atlas, trio.forge, message_id="m-1")
    say = partial(finishing.complete, trio.forge, summary="", by=trio.operator, clock=trio.clock)
    say(outcome="failed")
    trio.clock.advance(60)
    trio.drain()

    at_once(partial(say, outcome="completed"), trio.drain)

    trio.check()
    assert trio.take_all(trio.forge) == [["m-1"]]
