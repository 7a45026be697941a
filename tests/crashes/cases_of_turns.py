"""A case for every action on turns, and for what is taken up after a death. See scene.py."""

from functools import partial
from uuid import UUID

from django.db.models import F

from cowork.models import OutboxEntry, Turn
from messaging import (
    finishing,
    leaving,
    mending,
    recovering,
)
from messaging.invariants import Finding
from messaging.models import Receipt
from teams import repairing
from tests.build import events, fresh
from tests.crashes.scene import Case, Scene, answered, crash_of, refused
from timeline.models import Event, Stream

# Turns


@crash_of("messaging.taking.claim")
def a_claim(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return answered(
        lambda: scene.claim(scene.forge, claim_id="c-1"),
        lambda: (
            (fresh(receipt).status, fresh(receipt).attempt) == ("started", 1)
            and Turn.objects.get().claim_id == "c-1"
        ),
    )


@crash_of("messaging.taking.claim")
def a_claim_that_nobody_repeats(scene: Scene) -> Case:
    """Its turn is lost; the messages come again, in their order."""
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge, message_id="first")
    scene.send(scene.echo, scene.forge, message_id="second")

    def is_read_after_the_loss() -> bool:
        scene.lose(Turn.objects.get())
        scene.settle()
        return (
            scene.take_all(scene.forge) == [["first"], ["second"]] and fresh(receipt).attempt == 2
        )

    return refused(lambda: scene.claim(scene.forge), is_read_after_the_loss, "TURN_RUNNING")


@crash_of("messaging.reporting.report")
def a_report(scene: Scene) -> Case:
    receipt = scene.a_receipt("started", sender=scene.atlas, recipient=scene.forge)
    turn = receipt.turn
    assert turn is not None
    said = {"event_id": "e-2", "type": "assistant_message", "text": "on it"}
    return answered(
        lambda: scene.report(turn, {"event_id": "e-1", "type": "incorporated"}, said),
        lambda: (
            fresh(receipt).status == "delivered"
            and len(events(scene.forge, "user_message", "assistant_message")) == 2
        ),
    )


@crash_of("messaging.reporting.report")
def a_report_that_takes_an_answer_in(scene: Scene) -> Case:
    asked = scene.a_receipt("delivered", sender=scene.atlas, recipient=scene.forge)
    answer = scene.send(scene.forge, scene.atlas, message_id="answer").receipt
    turn = scene.claimed(scene.atlas).turn
    return answered(
        lambda: scene.report(turn, {"event_id": "e-1", "type": "incorporated"}),
        lambda: fresh(asked).reply == answer and fresh(answer).status == "delivered",
    )


@crash_of("messaging.reporting.heartbeat")
def a_heartbeat(scene: Scene) -> Case:
    from messaging import reporting

    turn = scene.a_turn(scene.forge)
    key = scene.key_of(scene.forge)
    scene.clock.advance(1)
    return answered(
        lambda: reporting.heartbeat(turn_id=turn.id, by=key, fence=turn.fence, clock=scene.clock),
        lambda: fresh(turn).lease_expires_at >= scene.clock.now() + turn.lease,
    )


@crash_of("messaging.finishing._end")
def an_end_that_owes_an_answer(scene: Scene) -> Case:
    asked = scene.a_receipt("delivered", sender=scene.atlas, recipient=scene.forge)
    turn = asked.turn
    assert turn is not None
    return answered(
        lambda: scene.end(turn, text="It is 42."),
        lambda: (
            [row.body.text for row in Receipt.objects.filter(in_reply_to=asked)] == ["It is 42."]
            and len(scene.take_all(scene.atlas)) == 1
            and fresh(asked).reply_status == "received"
        ),
    )


@crash_of("messaging.finishing._end")
def an_end_before_anything_was_taken_in(scene: Scene) -> Case:
    receipt = scene.a_receipt("started", sender=scene.atlas, recipient=scene.forge)
    turn = receipt.turn
    assert turn is not None
    return answered(
        lambda: scene.end(turn, "error", error="It broke."),
        lambda: (
            (fresh(receipt).status, fresh(receipt).attempt) == ("queued", 2)
            and scene.take_all(scene.forge) == [[receipt.message_id]]
        ),
    )


@crash_of("messaging.finishing._look_again", commit=2)
def a_second_look_at_the_end(scene: Scene) -> Case:
    turn = scene.a_turn(scene.forge)
    return answered(lambda: scene.end(turn), lambda: fresh(turn).status == "done")


@crash_of("messaging.finishing.complete")
def a_completion(scene: Scene) -> Case:
    scene.a_receipt("delivered", sender=scene.atlas, recipient=scene.forge)
    key = scene.key_of(scene.forge)
    say = partial(
        finishing.complete, scene.forge, outcome="completed", summary="Done.", clock=scene.clock
    )
    return answered(
        lambda: say(by=key),
        lambda: (
            fresh(scene.forge).status == "completed"
            and len(events(scene.forge, "turn_ended")) == 1
            and Receipt.objects.filter(sender_task=scene.forge).count() == 1
        ),
    )


# Recovery itself


@crash_of("messaging.recovering.extend_leases")
def leases_at_the_start(scene: Scene) -> Case:
    turn = scene.a_turn(scene.forge)
    scene.clock.advance(3600)
    return answered(
        lambda: recovering.extend_leases(clock=scene.clock),
        lambda: (
            fresh(turn).status == "running"
            and fresh(turn).lease_expires_at >= scene.clock.now() + turn.lease
        ),
    )


@crash_of("messaging.recovering.tick")
def a_tick_after_a_gap(scene: Scene) -> Case:
    turn = scene.a_turn(scene.forge)
    scene.clock.advance(3600)
    return answered(
        lambda: recovering.tick(clock=scene.clock), lambda: fresh(turn).status == "running"
    )


@crash_of("messaging.recovering._lose")
def a_loss(scene: Scene) -> Case:
    receipt = scene.a_receipt("started", sender=scene.atlas, recipient=scene.forge)
    turn = receipt.turn
    assert turn is not None
    scene.clock.move_to(turn.lease_expires_at)
    return answered(
        lambda: recovering.lose_silent_turns(clock=scene.clock),
        lambda: (
            fresh(turn).status == "lost"
            and fresh(receipt).attempt == 2
            and scene.take_all(scene.forge) == [[receipt.message_id]]
        ),
    )


@crash_of("messaging.recovering._wake")
def a_wake_that_was_missing(scene: Scene) -> Case:
    scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    OutboxEntry.objects.all().delete()
    return answered(
        lambda: recovering.wake_what_waits(clock=scene.clock),
        lambda: OutboxEntry.objects.filter(target=scene.forge.id).count() == 1,
    )


@crash_of("messaging.recovering._answer")
def an_answer_that_was_owed(scene: Scene) -> Case:
    asked = scene.a_receipt("delivered", sender=scene.echo, recipient=scene.forge)
    assert asked.turn is not None
    # Its asker is out of reach when the turn ends, and is back before anybody looks.
    leaving.remove_member(scene.team.id, handle="echo", by=scene.founder, clock=scene.clock)
    scene.end(asked.turn)
    repairing.restore(scene.team.id, handle="echo", by=scene.founder, clock=scene.clock)
    return answered(
        lambda: recovering.answer_what_is_owed(clock=scene.clock),
        lambda: (
            Receipt.objects.filter(in_reply_to=asked).count() == 1
            and len(scene.take_all(scene.echo)) == 1
            and fresh(asked).reply_status == "received"
        ),
    )


@crash_of("messaging.recovering._bound")
def a_wait_without_an_end(scene: Scene) -> Case:
    asked = scene.a_receipt("delivered", sender=scene.echo, recipient=scene.forge)
    assert asked.turn is not None
    # Its asker is out of reach, so nothing answers it; and the end that its wait was given is gone.
    leaving.remove_member(scene.team.id, handle="echo", by=scene.founder, clock=scene.clock)
    scene.end(asked.turn)
    Receipt.objects.filter(pk=asked.pk).update(reply_deadline_at=None)
    return answered(
        lambda: recovering.bound_waits(clock=scene.clock),
        lambda: fresh(asked).reply_deadline_at is not None,
    )


# Mending


@crash_of("messaging.mending.complete_views")
def a_timeline_that_was_not_told(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    _tear_off_the_last_line(scene.atlas.stream)
    found = Finding("told", [str(receipt.id)], "", receipt_id=receipt.id)
    return answered(
        lambda: mending.mend([found], clock=scene.clock),
        lambda: scene.take_all(scene.forge) == [[receipt.message_id]],
    )


def _tear_off_the_last_line(stream: UUID) -> None:
    """As a write by hand would: nothing of the product does."""
    Event.objects.filter(stream_id=stream).latest("seq").delete()
    Stream.objects.filter(pk=stream).update(last_seq=F("last_seq") - 1)


@crash_of("messaging.mending._wake")
def a_wake_that_the_doctor_missed(scene: Scene) -> Case:
    scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    OutboxEntry.objects.all().delete()
    found = Finding("wakes", [str(scene.forge.id)], "", task_id=scene.forge.id)
    return answered(
        lambda: mending.mend([found], clock=scene.clock),
        lambda: OutboxEntry.objects.filter(target=scene.forge.id).count() == 1,
    )
