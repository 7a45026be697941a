"""A case for every action of cowork. See tests/crashes/scene.py."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cowork import (
    announcing,
    blueprint,
    draining,
    editing,
    holding,
    issuing,
    opening,
    provisioning,
    restarting,
    runs,
    unparking,
)
from cowork.kinds import DONE, WAIT, Answer
from cowork.models import Credential, OutboxEntry, Slot, Task
from teams.models import Workspace
from tests.build import fresh
from tests.crashes.scene import Case, Scene, answered, crash_of, refused
from tests.provisioned import plan
from timeline.models import Body
from timeline.refusals import DatabaseBusy
from timeline.transactions import action

# The outbox


def _write_a_mark(entry: OutboxEntry, _result: Any, now: datetime) -> Answer:
    """What a handler stores: exactly once, whoever died."""
    Body.objects.create(
        workspace_id=entry.workspace_id, text="mark", sha256="", byte_count=0, created_at=now
    )
    return DONE


def _is_done_once() -> bool:
    return Body.objects.filter(text="mark").count() == 1 and not OutboxEntry.objects.exists()


def _fails(_entry: OutboxEntry) -> None:
    raise RuntimeError("a fault")


def _is_busy(_entry: OutboxEntry) -> None:
    raise DatabaseBusy


def _owed(scene: Scene) -> OutboxEntry:
    scene.work.inside = _write_a_mark
    return scene.owe(scene.forge.id)


def _taken_by_the_dead(scene: Scene) -> OutboxEntry:
    entry = _owed(scene)
    assert action(runs.take)(entry, owner="dead:1", now=scene.clock.now())
    return entry


def _parked(scene: Scene) -> OutboxEntry:
    scene.work.outside = _fails
    entry = _owed(scene)
    while fresh(entry).status != OutboxEntry.State.PARKED:
        scene.drain()
        scene.clock.advance(60)
    scene.work.outside = lambda _entry: None
    return entry


@crash_of("cowork.draining._take")
def a_drain_that_has_taken(scene: Scene) -> Case:
    _owed(scene)
    return answered(scene.drain_one, _is_done_once)


@crash_of("cowork.draining._complete", commit=2)
def a_drain_that_has_completed(scene: Scene) -> Case:
    _owed(scene)
    return answered(scene.drain_one, _is_done_once)


@crash_of("cowork.draining._complete", commit=2)
def a_drain_that_wakes_a_task(scene: Scene) -> Case:
    scene.send(scene.atlas, scene.forge, message_id="m-1")
    return answered(scene.drain_one, lambda: scene.take_all(scene.forge) == [["m-1"]])


@crash_of("cowork.draining._complete", commit=2)
def a_drain_that_looks_at_a_team(scene: Scene) -> Case:
    from messaging import leaving

    receipt = scene.a_receipt(sender=scene.atlas, recipient=scene.forge)
    OutboxEntry.objects.all().delete()
    leaving.remove_member(scene.team.id, handle="forge", by=scene.founder, clock=scene.clock)
    return answered(scene.drain_one, lambda: fresh(receipt).status == "quarantined")


@crash_of("cowork.draining._give_back", commit=2)
def a_drain_that_met_a_busy_database(scene: Scene) -> Case:
    scene.work.outside = _is_busy
    entry = _owed(scene)

    def is_done_later() -> bool:
        is_free_of_blame = fresh(entry).attempts == 0
        scene.work.outside = lambda _entry: None
        scene.clock.advance(60)
        scene.drain()
        return is_free_of_blame and _is_done_once()

    return answered(scene.drain_one, is_done_later)


@crash_of("cowork.draining._fail", commit=2)
def a_drain_whose_handler_failed(scene: Scene) -> Case:
    scene.work.outside = _fails
    entry = _owed(scene)
    return answered(
        scene.drain_one,
        lambda: (fresh(entry).status, fresh(entry).attempts) == ("retry", 1),
    )


@crash_of("cowork.draining._poison", commit=2)
def a_drain_that_gave_up(scene: Scene) -> Case:
    entry = _owed(scene)
    for _death in range(4):
        assert action(runs.take)(fresh(entry), owner="dead:1", now=scene.clock.now())
        draining.void_leases("dead:", clock=scene.clock)
    return answered(scene.drain_one, lambda: fresh(entry).status == "poison")


@crash_of("cowork.draining.renew")
def a_lease_that_is_renewed(scene: Scene) -> Case:
    entry = _taken_by_the_dead(scene)
    scene.clock.advance(1)

    def renew() -> None:
        if OutboxEntry.objects.filter(pk=entry.pk).exists():
            draining.renew(entry, clock=scene.clock)

    return answered(renew, _is_done_once)


@crash_of("cowork.draining.void_leases")
def leases_of_the_dead(scene: Scene) -> Case:
    _taken_by_the_dead(scene)
    return answered(lambda: draining.void_leases("dead:", clock=scene.clock), _is_done_once)


@crash_of("cowork.restarting.bury")
def a_burial(scene: Scene) -> Case:
    _taken_by_the_dead(scene)
    holding.hold("drain:0", owner="dead:1", lease=timedelta(hours=1), clock=scene.clock)
    return answered(
        lambda: restarting.bury("dead:", clock=scene.clock),
        lambda: _is_done_once() and not Slot.objects.filter(owner="dead:1").exists(),
    )


@crash_of("cowork.restarting.let_waiting_run")
def what_waits_at_a_start(scene: Scene) -> Case:
    scene.work.inside = lambda _entry, _result, _now: WAIT
    scene.owe(scene.forge.id)
    scene.drain()
    scene.work.inside = _write_a_mark
    return answered(lambda: restarting.let_waiting_run(clock=scene.clock), _is_done_once)


@crash_of("cowork.unparking.retry")
def a_retry_of_what_was_given_up(scene: Scene) -> Case:
    entry = _parked(scene)
    return refused(
        lambda: unparking.retry(entry.id, by=scene.operator, clock=scene.clock),
        _is_done_once,
        "NOT_FOUND",
    )


@crash_of("cowork.unparking.discard")
def a_discard_of_what_was_given_up(scene: Scene) -> Case:
    entry = _parked(scene)
    return refused(
        lambda: unparking.discard(entry.id, by=scene.operator, clock=scene.clock),
        lambda: not OutboxEntry.objects.exists() and not Body.objects.filter(text="mark").exists(),
        "NOT_FOUND",
    )


@crash_of("cowork.holding.hold")
def a_slot_that_is_taken(scene: Scene) -> Case:
    hold = partial(holding.hold, "sweep", lease=timedelta(seconds=15), clock=scene.clock)

    def is_free_in_time() -> bool:
        is_held = not hold(owner="test:2")
        scene.clock.advance(15)
        return is_held and hold(owner="test:2")

    return answered(lambda: hold(owner="test:1"), is_free_in_time)


@crash_of("cowork.holding.offer")
def a_slot_that_is_offered(scene: Scene) -> Case:
    hold = partial(holding.hold, "sweep", lease=timedelta(hours=1), clock=scene.clock)
    hold(owner="test:1")
    return answered(
        lambda: holding.offer("sweep", owner="test:1", clock=scene.clock),
        lambda: hold(owner="test:2"),
    )


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
