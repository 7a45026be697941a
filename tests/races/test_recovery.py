"""Recovery that runs in several processes at once does everything once (SPEC §16.4)."""

from functools import partial

from cowork import sweeps
from cowork.models import OutboxEntry
from messaging import leaving, recovering
from messaging.models import Receipt
from teams import repairing
from tests.build import events, fresh
from tests.races.together import at_once
from tests.trio import Trio

ROUNDS = 3


def test_a_silent_turn_is_lost_once(trio: Trio) -> None:
    for _round in range(ROUNDS):
        receipt = trio.send(trio.atlas, trio.forge).receipt
        turn = trio.claimed(trio.forge).turn
        trio.clock.move_to(turn.lease_expires_at)

        counts = at_once(*[lambda: recovering.lose_silent_turns(clock=trio.clock)] * 4)

        assert sum(counts) == 1
        assert fresh(receipt).attempt == 2
        trio.take_all(trio.forge)


def test_a_missing_wake_is_promised_once(trio: Trio) -> None:
    trio.send(trio.atlas, trio.forge)
    OutboxEntry.objects.all().delete()

    at_once(*[lambda: recovering.wake_what_waits(clock=trio.clock)] * 4)

    assert OutboxEntry.objects.filter(target=trio.forge.id).count() == 1


def test_an_answer_that_is_owed_is_sent_once(trio: Trio) -> None:
    for _round in range(ROUNDS):
        asked = trio.send(trio.echo, trio.forge).receipt
        turn = trio.claimed(trio.forge).turn
        trio.incorporate(turn)
        # Its asker is out of reach when it ends, and is back before anybody looks.
        leaving.remove_member(trio.team.id, handle="echo", by=trio.founder, clock=trio.clock)
        trio.end(turn)
        repairing.restore(trio.team.id, handle="echo", by=trio.founder, clock=trio.clock)
        assert not Receipt.objects.filter(in_reply_to=asked).exists()

        at_once(*[lambda: recovering.answer_what_is_owed(clock=trio.clock)] * 4)

        [answer] = Receipt.objects.filter(in_reply_to=asked)
        assert answer.is_automatic
        trio.take_all(trio.echo)
        assert fresh(asked).reply == answer


def test_after_a_gap_the_leases_are_extended_once(trio: Trio) -> None:
    """SPEC §6.8"""
    turn = trio.a_turn(trio.forge)
    recovering.tick(clock=trio.clock)
    trio.clock.advance(3600)

    counts = at_once(*[lambda: recovering.tick(clock=trio.clock)] * 4)

    assert sorted(counts) == [0, 0, 0, 1]
    assert fresh(turn).lease_expires_at == trio.clock.now() + turn.lease


def test_everything_that_recovers_may_run_beside_itself_and_beside_work(trio: Trio) -> None:
    for number in range(ROUNDS):
        trio.send(trio.atlas, trio.forge)
        turn = trio.claimed(trio.forge).turn

        at_once(
            *[lambda: [repair(clock=trio.clock) for repair in sweeps.AT_START]] * 2,
            *[lambda: [sweep(clock=trio.clock) for sweep in sweeps.SWEEPS]] * 2,
            partial(trio.send, trio.echo, trio.forge, message_id=f"m-{number}"),
            partial(trio.incorporate, turn),
            trio.drain,
        )

        assert fresh(turn).status == "running"
        trio.end(turn)
        assert len(events(trio.forge, "turn_started")) == len(events(trio.forge, "turn_ended"))
        trio.take_all(trio.forge)
