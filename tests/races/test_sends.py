"""Sends that meet: none is lost, none is doubled, and nobody is told of a deadlock."""

from functools import partial

import pytest

from cowork import editing
from cowork.models import OutboxEntry, Task
from messaging import leaving, releasing, retrying
from messaging.models import Receipt
from messaging.repeats import Sent
from teams import joining, repairing
from tests.build import fresh
from tests.races.together import at_once, kinds
from tests.trio import Trio

ROUNDS = 5


def test_messages_that_cross_are_all_accepted(trio: Trio) -> None:
    there = [
        partial(trio.send, trio.atlas, trio.forge, message_id=f"there-{number}")
        for number in range(8)
    ]
    back = [
        partial(trio.send, trio.forge, trio.atlas, message_id=f"back-{number}")
        for number in range(8)
    ]

    outcomes = at_once(*[call for pair in zip(there, back, strict=True) for call in pair])

    assert kinds(outcomes) == {"Sent": 16}
    for task in (trio.atlas, trio.forge):
        places = Receipt.objects.filter(recipient=task).values_list("sequence", flat=True)
        assert sorted(places) == list(range(1, 9))
        assert len(trio.take_all(task)) == 8


def test_twenty_equal_sends_are_one_message_and_one_wake(trio: Trio) -> None:
    outcomes = at_once(*[lambda: trio.send(trio.atlas, trio.forge, message_id="m-1")] * 20)

    assert kinds(outcomes) == {"Sent": 20}
    assert [sent.is_duplicate for sent in outcomes].count(False) == 1
    assert len({sent.receipt.id for sent in outcomes}) == 1
    assert Receipt.objects.count() == 1
    assert OutboxEntry.objects.filter(target=trio.forge.id).count() == 1


def test_of_two_contents_under_one_id_one_wins(trio: Trio) -> None:
    for number in range(ROUNDS):
        outcomes = at_once(
            *[
                partial(trio.send, trio.atlas, "forge", text, message_id=f"m-{number}")
                for text in ("heads", "tails")
            ]
        )

        assert kinds(outcomes) == {"Sent": 1, "MESSAGE_ID_CONFLICT": 1}
    assert Receipt.objects.count() == ROUNDS


def test_equal_sends_are_one_message_although_the_conversation_is_replaced(trio: Trio) -> None:
    for number in range(ROUNDS):
        send = [partial(trio.send, trio.atlas, "forge", message_id=f"m-{number}")] * 4
        replace = [lambda: trio.a_conversation(trio.bot(trio.forge))] * 2

        outcomes = at_once(*send, *replace)

        assert kinds(outcomes) == {"Sent": 4, "Task": 2}
        sent = [outcome for outcome in outcomes if isinstance(outcome, Sent)]
        assert [one.is_duplicate for one in sent].count(False) == 1
    assert Receipt.objects.count() == ROUNDS


def test_first_messages_at_once_open_one_conversation(trio: Trio) -> None:
    for number in range(3):
        handle = f"novice-{number}"
        novice = trio.a_bot(handle)
        joining.join(trio.team.id, handle=handle, guidance="", by=trio.founder, clock=trio.clock)

        outcomes = at_once(
            *[partial(trio.send, task, handle) for task in (trio.atlas, trio.echo) * 3]
        )

        assert kinds(outcomes) == {"Sent": 6}
        assert Task.objects.filter(bot=novice).count() == 1


def test_a_send_by_handle_is_accepted_although_the_conversation_is_put_away(trio: Trio) -> None:
    for number in range(ROUNDS):
        current = Task.objects.get(bot=trio.forge.bot, is_current=True)

        *sends, archived = at_once(
            *[
                partial(trio.send, trio.atlas, "forge", message_id=f"{word}-{number}")
                for word in ("one", "two")
            ],
            partial(editing.edit, current, archived=True, by=trio.operator, clock=trio.clock),
        )

        assert kinds(sends) == {"Sent": 2}
        assert archived.is_archived
        assert not Receipt.objects.queued().filter(recipient=current).exists()
        trio.a_conversation(trio.bot(trio.forge))
    ended = Receipt.objects.exclude(status="queued").values_list("failure_code", flat=True)
    assert set(ended) <= {"RECIPIENT_ENDED"}


def test_conversations_opened_and_put_away_at_once_leave_one_current(trio: Trio) -> None:
    bot = trio.bot(trio.forge)
    for number in range(ROUNDS):
        current = Task.objects.get(bot=bot, is_current=True)
        outcomes = at_once(
            lambda: trio.a_conversation(bot),
            partial(editing.edit, current, archived=True, by=trio.operator, clock=trio.clock),
            lambda: trio.a_conversation(bot),
            partial(trio.send, trio.atlas, "forge", message_id=f"m-{number}"),
        )

        assert kinds(outcomes) == {"Task": 3, "Sent": 1}
        trio.check()


def test_a_retry_and_a_repeat_queue_a_failed_message_once(trio: Trio) -> None:
    for number in range(3):
        failed = trio.a_failed_message(message_id=f"m-{number}")
        before = failed.attempt

        outcomes = at_once(
            partial(retrying.retry, failed, by=trio.operator, clock=trio.clock),
            partial(trio.send, trio.atlas, trio.forge, message_id=f"m-{number}"),
            partial(retrying.retry, failed, by=trio.operator, clock=trio.clock),
        )

        assert kinds(outcomes) in (
            {"Receipt": 1, "Sent": 1, "INVALID_TRANSITION": 1},
            {"Sent": 1, "INVALID_TRANSITION": 2},
        )
        assert (fresh(failed).status, fresh(failed).attempt) == ("queued", before + 1)
        assert trio.take_all(trio.forge) == [[f"m-{number}"]]


def test_a_message_that_two_people_release_is_queued_once(trio: Trio) -> None:
    for number in range(3):
        held = trio.a_receipt(
            "quarantined", sender=trio.atlas, recipient=trio.forge, message_id=f"m-{number}"
        )

        outcomes = at_once(
            *[partial(releasing.release, held, by=trio.operator, note="", clock=trio.clock)] * 3
        )

        assert kinds(outcomes) == {"Receipt": 1, "INVALID_TRANSITION": 2}
        assert fresh(held).attempt == 2
        assert trio.take_all(trio.forge) == [[f"m-{number}"]]


def test_a_release_and_a_discard_are_one_of_them(trio: Trio) -> None:
    for _number in range(3):
        held = trio.a_receipt("quarantined", sender=trio.atlas, recipient=trio.forge)

        outcomes = at_once(
            partial(releasing.release, held, by=trio.operator, note="", clock=trio.clock),
            partial(releasing.discard, held, by=trio.operator, note="", clock=trio.clock),
        )

        assert kinds(outcomes) in (
            {"Receipt": 1, "INVALID_TRANSITION": 1},
            {"Receipt": 1, "RECEIPT_CLOSED": 1},
        )
        trio.take_all(trio.forge)


@pytest.mark.parametrize("handle", ["forge", "echo"])
def test_sends_and_a_revocation_that_meet_leave_nothing_to_a_stranger(
    trio: Trio, handle: str
) -> None:
    for number in range(ROUNDS):
        *sends, removed = at_once(
            *[
                partial(trio.send, trio.echo, "forge", message_id=f"{word}-{number}")
                for word in ("one", "two", "three")
            ],
            lambda: leaving.remove_member(
                trio.team.id, handle=handle, by=trio.founder, clock=trio.clock
            ),
        )
        trio.drain()

        assert removed is None
        assert set(kinds(sends)) <= {"Sent", "BOT_MEMBERSHIP_REVOKED"}
        assert not Receipt.objects.queued().exists()
        repairing.restore(trio.team.id, handle=handle, by=trio.founder, clock=trio.clock)
