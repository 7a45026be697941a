"""The outbox: what is owed is done, in its order, at its time, and never half."""

import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cowork import draining, kinds, outbox, runs
from cowork.kinds import DONE, WAIT, Answer, Wait
from cowork.models import OutboxEntry, OutboxLane
from tests.cowork.kind_of_work import WORKSPACE, Note, Work
from timeline.clock import ManualClock
from timeline.ids import new_id
from timeline.models import Body
from timeline.transactions import action

OWNER = "test:1"
MILLISECOND = timedelta(milliseconds=1)


@action
def take(*, owner: str, now: datetime) -> OutboxEntry | None:
    """Take the next entry and do nothing with it, as a process does that dies then."""
    entry = next(runs.takeable(now), None)
    return entry if entry is not None and runs.take(entry, owner=owner, now=now) else None


def drain(clock: ManualClock) -> int:
    return draining.drain(owner=OWNER, clock=clock)


def fails(_entry: OutboxEntry) -> None:
    raise RuntimeError("a fault")


def waits(_entry: OutboxEntry, _result: Any, _now: datetime) -> Answer:
    return WAIT


def the(entry: OutboxEntry) -> OutboxEntry:
    entry.refresh_from_db()
    return entry


def test_work_is_done_once_and_gone(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-01"""
    work.owe("hello", target=target)

    assert drain(clock) == 1
    assert drain(clock) == 0
    assert work.ran == ["hello"]
    assert not OutboxEntry.objects.exists()
    assert not OutboxLane.objects.exists()


def test_a_targets_work_is_done_oldest_first(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-03"""
    for word in ("first", "second", "third"):
        work.owe(word, target=target)

    drain(clock)

    assert work.ran == ["first", "second", "third"]


def test_only_the_oldest_of_a_target_runs_at_a_time(work: Work, clock: ManualClock) -> None:
    """AD-03"""
    here, there = new_id(), new_id()
    work.owe("older", target=here)
    work.owe("newer", target=here)
    work.owe("elsewhere", target=there)

    def meanwhile(entry: OutboxEntry) -> None:
        if entry.payload["word"] == "older":
            assert draining.drain(owner="test:2", clock=clock) == 1

    work.outside = meanwhile
    drain(clock)

    assert work.ran == ["older", "elsewhere", "newer"]


def test_a_failing_handler_is_tried_at_its_times_and_then_parked_once(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-04"""
    work.outside = fails
    entry = work.owe("hello", target=target)

    assert drain(clock) == 1
    for runs_before, seconds in enumerate((1, 5, 30), start=1):
        due_at = clock.now() + timedelta(seconds=seconds)
        assert (the(entry).status, entry.attempts) == ("retry", runs_before)
        assert entry.not_before == due_at
        clock.move_to(due_at - MILLISECOND)
        assert drain(clock) == 0
        clock.move_to(due_at)
        assert drain(clock) == 1
    clock.advance(3600)

    assert drain(clock) == 0
    assert len(work.ran) == 4
    assert (the(entry).status, entry.attempts) == ("parked", 4)
    assert work.parked == [(entry.id, 4, "RuntimeError: a fault")]
    assert [line["what"] for line in entry.history] == ["failed", "failed", "failed", "parked"]
    assert not OutboxLane.objects.exists()


def test_a_failure_is_remembered_with_its_time(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-05"""
    work.outside = fails
    entry = work.owe(target=target)
    failed_at = clock.now()
    drain(clock)

    clock.advance(0.9)
    draining.void_leases("test:", clock=clock)

    assert drain(clock) == 0
    assert (the(entry).attempts, entry.not_before) == (1, failed_at + timedelta(seconds=1))


def test_younger_work_does_not_overtake_a_retry(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    work.outside = lambda entry: fails(entry) if len(work.ran) == 1 else None
    work.owe("older", target=target)
    drain(clock)
    work.owe("younger", target=target)

    assert drain(clock) == 0
    clock.advance(1)
    drain(clock)

    assert work.ran == ["older", "older", "younger"]


def test_what_waits_runs_after_a_wake_of_its_target_only(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-07"""
    work.inside = waits
    entry = work.owe(target=target)
    drain(clock)

    for _jump in range(10):
        clock.advance(30)
        assert drain(clock) == 0
    work.wake(new_id())
    assert drain(clock) == 0
    work.wake(target)

    assert drain(clock) == 1
    assert (the(entry).status, entry.attempts) == ("waiting", 0)
    assert entry.not_before is None


def test_waiting_holds_no_lane(work: Work, clock: ManualClock, target: UUID) -> None:
    work.inside = lambda entry, _result, _now: WAIT if entry.payload["word"] == "waits" else DONE
    work.owe("waits", target=target)
    work.owe("goes", target=target)

    drain(clock)

    assert work.ran == ["waits", "goes"]


def test_a_wake_while_the_handler_decides_to_wait_is_not_lost(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    work.inside = waits
    work.outside = lambda _entry: work.wake(target) if len(work.ran) == 1 else None
    work.owe(target=target)

    assert drain(clock) == 2


def test_many_wakes_are_at_most_one_run_more_each(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    work.inside = waits
    work.owe(target=target)
    for _wake in range(3):
        work.wake(target)

    assert drain(clock) == 1


def test_a_wait_until_a_time_ends_then(work: Work, clock: ManualClock, target: UUID) -> None:
    until = clock.now() + timedelta(seconds=5)
    work.inside = lambda _entry, _result, now: Wait(until=until) if now < until else DONE
    entry = work.owe(target=target)
    drain(clock)

    assert (the(entry).status, entry.looks) == ("waiting", 1)
    assert draining.next_due(clock) == until
    clock.move_to(until - MILLISECOND)
    assert drain(clock) == 0
    clock.move_to(until)
    assert drain(clock) == 1
    assert not OutboxEntry.objects.exists()


def test_a_wait_until_now_does_not_spin(work: Work, clock: ManualClock, target: UUID) -> None:
    work.inside = lambda _entry, _result, now: Wait(until=now)
    work.owe(target=target)

    assert drain(clock) == 1
    clock.advance(0.1)
    assert drain(clock) == 1


def test_work_that_is_not_due_holds_nothing(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-11"""
    work.owe("later", target=target, after=60)
    work.owe("now", target=target)
    drain(clock)
    assert work.ran == ["now"]

    clock.advance(59.999)
    assert drain(clock) == 0
    clock.advance(0.001)
    drain(clock)

    assert work.ran == ["now", "later"]


def test_what_came_due_meanwhile_runs_at_once(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-27"""
    work.owe(target=target, after=60)
    clock.advance(3600)

    assert drain(clock) == 1


def test_a_target_that_is_gone_keeps_what_outlives_it(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-06 AD-15"""
    work.register("test-ending", outlives=True)
    work.owe("ending", kind="test-ending", target=target)
    work.owe("wake", target=target)
    work.owe("other", target=new_id())
    work.owe("foreign", target=new_id(), workspace_id=new_id())

    removed = action(outbox.remove_with_target)(target)
    drain(clock)

    assert removed == 1
    assert work.ran == ["ending", "other", "foreign"]


def test_only_reviving_work_goes_with_a_stop(work: Work, clock: ManualClock, target: UUID) -> None:
    work.register("test-reviving", revives=True)
    work.owe("revives", kind="test-reviving", target=target)
    work.owe("stays", target=target)

    assert action(outbox.remove_reviving)(target) == 1
    drain(clock)
    assert work.ran == ["stays"]


def test_a_run_that_died_is_made_again_with_the_same_id(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-16"""
    entry = work.owe(target=target)
    take(owner="dead:1", now=clock.now())
    assert drain(clock) == 0

    draining.void_leases("dead:", clock=clock)

    def looks_back(entry: OutboxEntry) -> None:
        assert (entry.crashes, entry.attempts) == (1, 0)

    work.outside = looks_back

    assert drain(clock) == 1
    assert work.ids == [entry.id]


def test_a_dead_workers_entry_is_taken_over_when_its_lease_is_out(
    work: Work, clock: ManualClock, target: UUID, settings: Any
) -> None:
    work.owe(target=target)
    take(owner="dead:1", now=clock.now())

    clock.move_to(clock.now() + settings.COWORK_OUTBOX_LEASE - MILLISECOND)
    assert drain(clock) == 0
    assert draining.next_due(clock) == clock.now() + MILLISECOND
    clock.move_to(clock.now() + MILLISECOND)
    assert drain(clock) == 1


def test_the_fourth_crash_in_a_row_is_poison(work: Work, clock: ManualClock, target: UUID) -> None:
    entry = work.owe(target=target)
    for _crash in range(4):
        assert take(owner="dead:1", now=clock.now()) is not None
        draining.void_leases("dead:", clock=clock)

    assert drain(clock) == 1
    assert drain(clock) == 0
    assert work.ran == []
    assert (the(entry).status, entry.crashes, entry.attempts) == ("poison", 4, 0)
    assert [parked[0] for parked in work.parked] == [entry.id]


def test_a_run_that_was_overtaken_stores_nothing(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    def write(entry: OutboxEntry, _result: Any, now: datetime) -> Answer:
        Body.objects.create(
            workspace_id=WORKSPACE, text=entry.owner, sha256="", byte_count=0, created_at=now
        )
        return DONE

    def lose_the_lease(entry: OutboxEntry) -> None:
        if entry.owner == OWNER:
            draining.void_leases(OWNER, clock=clock)
            assert draining.drain(owner="test:2", clock=clock) == 1

    work.inside = write
    work.outside = lose_the_lease
    work.owe(target=target)
    drain(clock)

    assert list(Body.objects.values_list("text", flat=True)) == ["test:2"]
    assert not OutboxEntry.objects.exists()


@pytest.mark.parametrize("then", ["returns", "fails"])
def test_what_was_removed_while_it_ran_does_not_come_back(
    work: Work, clock: ManualClock, target: UUID, then: str
) -> None:
    """AD-18"""

    def remove(entry: OutboxEntry) -> None:
        assert action(outbox.remove)(target, "test-work") == 1
        if then == "fails":
            fails(entry)

    work.outside = remove
    work.owe(target=target)
    drain(clock)

    assert not OutboxEntry.objects.exists()
    assert not OutboxLane.objects.exists()
    assert work.parked == []


def test_an_unreadable_payload_is_kept_and_reported_and_holds_nobody_up(
    work: Work, clock: ManualClock, target: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    """AD-23"""
    bad = work.owe("bad", target=target)
    OutboxEntry.objects.filter(pk=bad.pk).update(payload={"wrong": 1})
    work.owe("good", target=target)

    assert drain(clock) == 1
    assert work.ran == ["good"]
    assert (the(bad).status, bad.payload, bad.attempts) == ("due", {"wrong": 1}, 0)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_unknown_kind_waits_for_a_version_that_knows_it(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-24"""
    work.register("test-new")
    work.owe("new", kind="test-new", target=target)
    kept = work.register, dict(kinds.KINDS)
    del kinds.KINDS["test-new"]

    assert drain(clock) == 0
    assert draining.next_due(clock) is None
    assert runs.unknown_kinds() == {"test-new": 1}
    kinds.KINDS.update(kept[1])
    assert drain(clock) == 1


def test_an_unfit_payload_is_refused(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-25"""

    class Other(Note):
        more: int = 1

    @action
    def owe(kind: str) -> None:
        outbox.enqueue(
            kind, target=target, workspace_id=WORKSPACE, payload=Other(), now=clock.now()
        )

    for kind in ("test-work", "test-unknown"):
        with pytest.raises(outbox.UnfitPayload):
            owe(kind)
    assert not OutboxEntry.objects.exists()


def test_a_wake_leaves_the_time_of_a_retry(work: Work, clock: ManualClock, target: UUID) -> None:
    """AD-28"""
    work.outside = fails
    entry = work.owe(target=target)
    drain(clock)
    due_at = the(entry).not_before

    work.wake(target)

    assert (the(entry).status, entry.not_before) == ("retry", due_at)


def test_after_a_restart_each_waiting_entry_runs_once(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-29"""
    work.inside = waits
    work.owe("here", target=target)
    work.owe("there", target=new_id())
    drain(clock)

    action(outbox.look_again)(now=clock.now())

    assert drain(clock) == 2
    assert work.ran == ["here", "there"] * 2


def test_nothing_is_due_while_things_only_wait(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-22"""
    work.inside = waits
    work.owe(target=target)
    drain(clock)
    work.owe(target=target, after=5)

    assert drain(clock) == 0
    assert draining.next_due(clock) == clock.now() + timedelta(seconds=5)


def test_a_unique_promise_stands_once(work: Work, clock: ManualClock, target: UUID) -> None:
    first = work.owe("one", target=target, unique=True, after=60)
    again = work.owe("two", target=target, unique=True)

    assert again.id == first.id
    assert drain(clock) == 1


def test_a_unique_promise_that_waits_is_brought_forward(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    work.inside = waits
    entry = work.owe(target=target, unique=True)
    drain(clock)

    work.owe(target=target, unique=True, after=5)
    assert (the(entry).status, entry.not_before) == ("waiting", clock.now() + timedelta(seconds=5))
    work.wake(target)
    assert drain(clock) == 1
    work.owe(target=target, unique=True)
    assert drain(clock) == 1


def test_a_unique_promise_that_runs_is_kept_once_more(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    work.outside = lambda _entry: (
        work.owe(target=target, unique=True, after=5) if len(work.ran) == 1 else None
    )
    entry = work.owe(target=target, unique=True)

    assert drain(clock) == 1
    assert (the(entry).status, entry.not_before) == ("due", clock.now() + timedelta(seconds=5))
    clock.advance(5)
    assert drain(clock) == 1
    assert not OutboxEntry.objects.exists()


def test_a_unique_promise_that_is_retried_keeps_its_time(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    """AD-28"""
    work.outside = fails
    entry = work.owe(target=target, unique=True)
    drain(clock)
    due_at = the(entry).not_before

    work.owe(target=target, unique=True)

    assert (the(entry).status, entry.not_before) == ("retry", due_at)


def test_what_was_asked_for_again_is_owed_although_the_entry_is_parked(
    work: Work, clock: ManualClock, target: UUID
) -> None:
    def ask_again_and_fail(entry: OutboxEntry) -> None:
        if len(work.ran) == 4:
            work.owe(target=target, unique=True)
        fails(entry)

    work.outside = ask_again_and_fail
    entry = work.owe(target=target, unique=True)
    for seconds in (0, 1, 5, 30):
        clock.advance(seconds)
        assert draining.drain_one(owner=OWNER, clock=clock)

    assert the(entry).status == "parked"
    assert OutboxEntry.objects.filter(status="due", target=target).count() == 1


def test_work_with_several_lanes_waits_for_what_runs_on_them_only(
    work: Work, clock: ManualClock
) -> None:
    here, there = new_id(), new_id()

    def meanwhile(entry: OutboxEntry) -> None:
        if entry.payload["word"] == "runs there":
            work.owe("queued there", target=there)
            work.owe("both", target=here, lanes=[there])
            work.owe("behind both", target=here)
            assert draining.drain(owner="test:2", clock=clock) == 0

    work.outside = meanwhile
    work.owe("runs there", target=there)
    drain(clock)

    assert work.ran[0] == "runs there"
    assert sorted(work.ran[1:]) == ["behind both", "both", "queued there"]
    assert work.ran.index("both") < work.ran.index("behind both")


def test_while_work_holds_several_lanes_nothing_else_runs_on_them(
    work: Work, clock: ManualClock
) -> None:
    here, there = new_id(), new_id()

    def meanwhile(entry: OutboxEntry) -> None:
        if entry.payload["word"] == "both":
            assert draining.drain(owner="test:2", clock=clock) == 0

    work.outside = meanwhile
    work.owe("both", target=here, lanes=[there])
    work.owe("here", target=here)
    work.owe("there", target=there)
    drain(clock)

    assert work.ran[0] == "both"
    assert sorted(work.ran) == ["both", "here", "there"]


def test_a_handler_over_its_limit_has_failed_and_stores_nothing(
    work: Work, clock: ManualClock, target: UUID, settings: Any
) -> None:
    settings.COWORK_HANDLER_LIMIT = timedelta(seconds=0.01)
    work.outside = lambda _entry: time.sleep(0.02)
    entry = work.owe(target=target)
    drain(clock)

    assert (the(entry).status, entry.attempts) == ("retry", 1)
    assert "HandlerTooSlow" in entry.last_error


def test_a_kind_that_stumbles_over_a_dead_letter_gets_one_all_the_same(
    work: Work, clock: ManualClock, target: UUID, settings: Any
) -> None:
    settings.COWORK_RETRY_DELAYS = []
    work.outside = fails
    work.parked = None  # type: ignore[assignment]  # on_parked raises
    entry = work.owe(target=target)
    drain(clock)

    assert the(entry).status == "parked"
