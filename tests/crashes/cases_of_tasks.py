"""A case for every action on tasks and credentials. See scene.py."""

from datetime import timedelta
from functools import partial

from cowork import (
    announcing,
    blueprint,
    editing,
    interrupting,
    issuing,
    opening,
    provisioning,
    reopening,
)
from cowork.models import Credential, Task
from teams.models import Workspace
from tests.build import events, fresh
from tests.crashes.scene import Case, Scene, answered, crash_of, refused
from tests.provisioned import plan

# Tasks


@crash_of("cowork.opening.open_conversation")
def a_conversation(scene: Scene) -> Case:
    bot = scene.bot(scene.forge)
    return answered(
        lambda: scene.a_conversation(bot, title="Second"),
        lambda: Task.objects.get(bot=bot, is_current=True).title == "Second",
    )


@crash_of("cowork.opening.open_root")
def a_root(scene: Scene) -> Case:
    runtime = scene.workspace.runtimes.get(name="external")
    make = partial(opening.open_root, title="Root", runtime=runtime, clock=scene.clock)
    return answered(
        lambda: make(by=scene.founder), lambda: Task.objects.filter(kind="root").exists()
    )


@crash_of("cowork.editing.edit")
def a_conversation_that_is_put_away(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    return answered(
        lambda: editing.edit(scene.forge, archived=True, by=scene.operator, clock=scene.clock),
        lambda: fresh(scene.forge).is_archived and fresh(receipt).failure_code == "RECIPIENT_ENDED",
    )


@crash_of("cowork.reopening.reopen")
def a_conversation_that_is_reopened(scene: Scene) -> Case:
    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    bot = scene.bot(scene.forge)
    return answered(
        lambda: reopening.reopen(scene.forge, by=scene.operator, clock=scene.clock),
        lambda: (
            Task.objects.get(bot=bot, is_current=True).branch_from_id == scene.forge.id
            and fresh(receipt).failure_code == "RECIPIENT_ENDED"
        ),
    )


@crash_of("cowork.interrupting.pause")
def a_pause(scene: Scene) -> Case:
    scene.send(scene.atlas, scene.forge)
    return answered(
        lambda: interrupting.pause(scene.forge, by=scene.operator, clock=scene.clock),
        lambda: fresh(scene.forge).status == "paused" and scene.claim(scene.forge) is None,
    )


@crash_of("cowork.interrupting.pause")
def a_pause_of_a_turn_that_runs(scene: Scene) -> Case:
    turn = scene.a_turn(scene.forge)

    def is_confirmed_at_its_end() -> bool:
        is_running = fresh(scene.forge).status == "running"
        scene.end(turn)
        return is_running and fresh(scene.forge).status == "paused"

    return answered(
        lambda: interrupting.pause(scene.forge, by=scene.operator, clock=scene.clock),
        is_confirmed_at_its_end,
    )


@crash_of("cowork.interrupting.resume")
def a_resumption(scene: Scene) -> Case:
    scene.send(scene.atlas, scene.forge, message_id="m-1")
    interrupting.pause(scene.forge, by=scene.operator, clock=scene.clock)
    return refused(
        lambda: interrupting.resume(scene.forge, by=scene.operator, clock=scene.clock),
        lambda: scene.take_all(scene.forge) == [["m-1"]],
        "INVALID_TRANSITION",
    )


@crash_of("cowork.interrupting.stop")
def a_stop(scene: Scene) -> Case:
    scene.send(scene.atlas, scene.forge, message_id="m-1")
    turn = scene.a_turn(scene.forge)
    scene.send(scene.echo, scene.forge, message_id="m-2")

    def starts_with_a_follow_up_only() -> bool:
        scene.end(turn, "aborted")
        is_stopped = scene.claim(scene.forge) is None
        scene.follow_up(scene.forge, scene.operator, message_id="f-1")
        return is_stopped and scene.take_all(scene.forge) == [["m-1", "m-2", "f-1"]]

    def was_told_once() -> bool:
        told = events(scene.forge, "agent_interrupt_requested")
        return len(told) == 1 and starts_with_a_follow_up_only()

    return answered(
        lambda: interrupting.stop(scene.forge, by=scene.operator, clock=scene.clock),
        was_told_once,
    )


# Who calls


def _live(label: str) -> int:
    return Credential.objects.filter(label=label, revoked_at__isnull=True).count()


@crash_of("cowork.issuing.issue")
def a_credential(scene: Scene) -> Case:
    issue = partial(issuing.issue, kind="service", label="ops", bot=None, task_id=None)
    return refused(
        lambda: issue(expires_in=None, by=scene.founder, clock=scene.clock),
        lambda: _live("ops") == 1,
        "INVALID_REQUEST",
    )


@crash_of("cowork.issuing.rotate")
def a_rotation(scene: Scene) -> Case:
    key = scene.a_service("ops")
    return answered(
        lambda: issuing.rotate(key.id, grace=timedelta(0), by=scene.founder, clock=scene.clock),
        # Only the newest secret is taken from now on, and it is the same identity.
        lambda: Credential.objects.get(pk=key.id).secrets.filter(expiry_date=None).count() == 1,
    )


@crash_of("cowork.issuing.revoke")
def a_revocation(scene: Scene) -> Case:
    key = scene.a_service("ops")
    return answered(
        lambda: issuing.revoke(key.id, by=scene.founder, clock=scene.clock),
        lambda: _live("ops") == 0,
    )


@crash_of("cowork.issuing.note_use")
def a_use(scene: Scene) -> Case:
    key = scene.a_service("ops")
    return answered(
        lambda: issuing.note_use(Credential.objects.get(pk=key.id), clock=scene.clock),
        lambda: Credential.objects.get(pk=key.id).last_used_at == scene.clock.now(),
    )


@crash_of("cowork.announcing.issue")
def an_announcement(scene: Scene) -> Case:
    slug = scene.workspace.slug
    return answered(
        lambda: announcing.issue(workspace=slug, label="server", clock=scene.clock),
        lambda: _live("server") == 1,
    )


@crash_of("cowork.announcing.revoke")
def an_announcement_that_ends(scene: Scene) -> Case:
    slug = scene.workspace.slug
    announcing.issue(workspace=slug, label="server", clock=scene.clock)
    return answered(
        lambda: announcing.revoke(label="server", clock=scene.clock), lambda: _live("server") == 0
    )


@crash_of("cowork.provisioning._provision")
def a_workspace_from_a_file(scene: Scene) -> Case:
    written = blueprint.read({"workspaces": [plan("second")]})

    def is_there_once() -> bool:
        second = Workspace.objects.get(slug="second")
        return (second.bots.count(), second.people.count(), second.tasks.count()) == (4, 3, 4)

    return answered(
        lambda: provisioning.provision(written, environment={}, clock=scene.clock), is_there_once
    )
