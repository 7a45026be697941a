"""A case for every action on messages: sent, set aside, let in again. See scene.py."""

from datetime import timedelta
from functools import partial

from django.test import override_settings

from messaging import (
    finishing,
    leaving,
    purging,
    quarantining,
    releasing,
    retrying,
    sending,
    withdrawing,
)
from messaging.models import Receipt
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


@crash_of("messaging.releasing.let_go")
def a_message_that_is_let_go(scene: Scene) -> Case:
    with override_settings(COWORK_MAX_HOPS=0):
        held = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    assert scene.claim(scene.forge) is None
    return refused(
        lambda: releasing.let_go(held, by=scene.operator, note="", clock=scene.clock),
        lambda: (
            scene.take_all(scene.forge) == [[held.message_id]]
            and AuditEntry.objects.filter(action="let_go").count() == 1
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


@crash_of("messaging.releasing._for_one_recipient")
def a_release_of_many(scene: Scene) -> Case:
    held = [
        scene.a_receipt("quarantined", sender=scene.atlas, recipient=scene.forge, message_id=word)
        for word in ("first", "second")
    ]
    chosen = Receipt.objects.filter(pk__in=[receipt.pk for receipt in held])
    release = partial(releasing.bulk, chosen, remedy="release", note="", is_dry_run=False)
    return answered(
        lambda: release(by=scene.operator, clock=scene.clock),
        lambda: (
            scene.take_all(scene.forge) == [["first"], ["second"]]
            and {fresh(receipt).attempt for receipt in held} == {2}
        ),
    )


@crash_of("messaging.purging.erase")
def a_text_that_is_erased(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    scene.take_all(scene.forge)
    return answered(
        lambda: purging.erase(receipt, by=scene.founder, note="", clock=scene.clock),
        lambda: (
            fresh(receipt).body.text is None
            and AuditEntry.objects.filter(action="erase").count() == 1
        ),
    )


@crash_of("messaging.purging._erase_some")
def texts_that_are_old(scene: Scene) -> Case:
    read = scene.a_receipt(sender=scene.atlas, recipient=scene.forge, text="read")
    scene.take_everything()
    waits = scene.a_receipt(sender=scene.atlas, recipient=scene.forge, text="waits")
    scene.clock.advance(3600)
    return answered(
        lambda: purging.purge(keep=timedelta(minutes=1), clock=scene.clock),
        lambda: (fresh(read).body.text, fresh(waits).body.text) == (None, "waits"),
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
