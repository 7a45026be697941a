"""A case for every action of messaging. See tests/crashes/scene.py."""

from functools import partial

from cowork.models import OutboxEntry, Turn
from messaging import (
    finishing,
    leaving,
    quarantining,
    recovering,
    releasing,
    retrying,
    sending,
    withdrawing,
)
from messaging.models import Receipt
from teams import repairing
from teams.models import Member
from tests.build import events, fresh
from tests.crashes.scene import Case, Scene, answered, crash_of, refused
from timeline.models import AuditEntry

# Sending


@crash_of("messaging.sending._admit")
def a_message(scene: Scene) -> Case:
    return answered(
        lambda: scene.send(scene.atlas, "forge", message_id="m-1"),
        lambda: scene.take_all(scene.forge) == [["m-1"]] and scene.take_all(scene.forge) == [],
    )


@crash_of("messaging.sending._admit")
def a_message_between_others(scene: Scene) -> Case:
    def send_and_go_on() -> None:
        scene.send(scene.atlas, "forge", message_id="m-1")

    def read() -> bool:
        scene.send(scene.echo, "forge", message_id="last")
        return scene.take_all(scene.forge) == [["first"], ["m-1"], ["last"]]

    scene.send(scene.echo, "forge", message_id="first")
    return answered(send_and_go_on, read)


@crash_of("messaging.sending._admit")
def a_failed_message_again(scene: Scene) -> Case:
    failed = scene.a_receipt("failed", sender=scene.atlas, recipient=scene.forge, message_id="m-1")
    return answered(
        lambda: scene.send(scene.atlas, "forge", message_id="m-1"),
        lambda: (
            fresh(failed).attempt == failed.attempt + 1 and scene.take_all(scene.forge) == [["m-1"]]
        ),
    )


@crash_of("messaging.sending._admit")
def the_first_message_to_a_bot(scene: Scene) -> Case:
    bot = scene.bot(scene.forge)
    scene.a_receipt(sender=scene.echo, recipient=scene.forge)
    finishing.complete(
        scene.forge, outcome="failed", summary="", by=scene.operator, clock=scene.clock
    )
    return answered(
        lambda: scene.send(scene.atlas, "forge", message_id="m-1"),
        lambda: (
            [
                list(task.inbox.values_list("message_id", flat=True))
                for task in bot.tasks.exclude(pk=scene.forge.pk)
            ]
            == [["m-1"]]
        ),
    )


@crash_of("messaging.sending._tell_failure")
def a_line_about_a_failed_send(scene: Scene) -> Case:
    key = scene.key_of(scene.atlas)
    return answered(
        lambda: sending._tell_failure(scene.atlas, by=key, clock=scene.clock),
        lambda: (
            {event.payload["code"] for event in events(scene.atlas, "error")}
            == {"BOT_MESSAGE_DELIVERY_FAILED"}
        ),
    )


@crash_of("messaging.following_up._admit")
def a_follow_up(scene: Scene) -> Case:
    return answered(
        lambda: scene.follow_up(scene.forge, scene.operator, message_id="f-1"),
        lambda: scene.take_all(scene.forge) == [["f-1"]] and scene.take_all(scene.forge) == [],
    )


@crash_of("messaging.withdrawing.withdraw")
def a_withdrawal(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    key = scene.key_of(scene.atlas)
    return refused(
        lambda: withdrawing.withdraw(receipt, by=key, clock=scene.clock),
        lambda: fresh(receipt).failure_code == "WITHDRAWN" and scene.claim(scene.forge) is None,
        "INVALID_TRANSITION",
    )


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


# What people do about a message


@crash_of("messaging.retrying.retry")
def a_retry(scene: Scene) -> Case:
    failed = scene.a_receipt("failed", sender=scene.atlas, recipient=scene.forge)
    return refused(
        lambda: retrying.retry(failed, by=scene.operator, clock=scene.clock),
        lambda: (
            fresh(failed).attempt == failed.attempt + 1
            and scene.take_all(scene.forge) == [[failed.message_id]]
            and AuditEntry.objects.filter(action="retry").count() == 1
        ),
        "INVALID_TRANSITION",
    )


@crash_of("messaging.releasing.release")
def a_release(scene: Scene) -> Case:
    held = scene.a_receipt("quarantined", sender=scene.atlas, recipient=scene.forge)
    return refused(
        lambda: releasing.release(held, by=scene.operator, note="", clock=scene.clock),
        lambda: (
            fresh(held).attempt == 2
            and scene.take_all(scene.forge) == [[held.message_id]]
            and AuditEntry.objects.filter(action="release").count() == 1
        ),
        "INVALID_TRANSITION",
    )


@crash_of("messaging.releasing.discard")
def a_discard(scene: Scene) -> Case:
    held = scene.a_receipt("quarantined", sender=scene.atlas, recipient=scene.forge)
    return refused(
        lambda: releasing.discard(held, by=scene.operator, note="", clock=scene.clock),
        lambda: (
            fresh(held).closed_at is not None
            and AuditEntry.objects.filter(action="discard").count() == 1
        ),
        "RECEIPT_CLOSED",
    )


@crash_of("messaging.quarantining.quarantine")
def a_quarantine(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return refused(
        lambda: quarantining.quarantine(receipt, by=scene.operator, note="Odd.", clock=scene.clock),
        lambda: fresh(receipt).status == "quarantined" and scene.claim(scene.forge) is None,
        "INVALID_TRANSITION",
    )


# What takes authority


@crash_of("messaging.leaving.remove_member")
def a_removal(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return refused(
        lambda: leaving.remove_member(
            scene.team.id, handle="forge", by=scene.founder, clock=scene.clock
        ),
        lambda: (
            Member.objects.get(bot=scene.forge.bot).status == "removed"
            and fresh(receipt).status == "quarantined"
        ),
        "INVALID_TRANSITION",
    )


@crash_of("messaging.leaving.change_team")
def a_team_that_is_switched_off(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return answered(
        lambda: leaving.change_team(
            scene.team.id, is_active=False, by=scene.founder, clock=scene.clock
        ),
        lambda: fresh(receipt).status == "quarantined",
    )


@crash_of("messaging.leaving.deactivate_bot")
def a_bot_that_is_put_out_of_use(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return answered(
        lambda: leaving.deactivate_bot("forge", by=scene.founder, clock=scene.clock),
        lambda: (
            fresh(receipt).failure_code == "RECIPIENT_ENDED"
            and not fresh(scene.bot(scene.forge)).is_active
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
