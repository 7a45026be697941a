"""Purging: texts are forgotten, events and the memory of ids stay (SPEC §4.4, §5.6, §16.5)."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from cowork import jobs, sweeps
from messaging import output, purging, releasing, withdrawing
from messaging.models import Receipt
from messaging.repeats import MessageIdConflict
from tests.build import events, fresh
from timeline import log, projection
from timeline.models import AuditEntry, Body, Event
from timeline.refusals import DatabaseBusy, Forbidden

DAYS = timedelta(days=1)


@pytest.fixture
def mona(build):
    """A manager."""
    return build.principal(build.a_person("mona", role="manager"))


@pytest.fixture
def taken_in(build, pilot, cook):
    """A message of pilot that cook has read, and answered with words of its own."""
    receipt = build.send(pilot, cook, "the secret", message_id="m-1").receipt
    build.take_in(cook, text="I know it now.")
    build.take_in(pilot)  # the automatic answer
    return fresh(receipt)


def texts():
    return set(Body.objects.filter(erased_at__isnull=True).values_list("text", flat=True))


def kept():
    return Body.objects.filter(erased_at__isnull=True).count()


def told(*tasks):
    """The stored events as they are, and what readers get."""
    return list(Event.objects.order_by("pk").values()), [
        log.as_json(event) for task in tasks for event in events(task)
    ]


# One message


def test_a_manager_erases_a_text_and_nothing_else(build, clock, mona, taken_in, pilot, cook):
    stored, shown = told(pilot, cook)
    seen = [line for line in shown if "the secret" in str(line)]
    assert {line["type"] for line in seen} == {"agent_message", "user_message"}

    erased = purging.erase(taken_in, by=mona, note="A slip.", clock=clock)

    assert erased.body.text is None
    assert told(pilot, cook)[0] == stored
    lines = {line["id"]: line["payload"] for line in told(pilot, cook)[1]}
    for line in seen:
        name = "preview" if line["type"] == "agent_message" else "text"
        assert lines[line["id"]] == {**line["payload"], name: None}
    assert output.receipt_in_full(fresh(taken_in))["message"] is None
    assert "I know it now." in texts()
    assert projection.rows_of(cook.stream)
    [entry] = AuditEntry.objects.filter(action="erase")
    assert (entry.target_id, entry.note, entry.actor_label) == (str(taken_in.id), "A slip.", "mona")
    assert "secret" not in str(entry.detail)


def test_erasing_again_changes_nothing(build, clock, mona, taken_in):
    first = purging.erase(taken_in, by=mona, note="", clock=clock)
    clock.advance(60)

    again = purging.erase(taken_in, by=mona, note="", clock=clock)

    assert again.body.erased_at == first.body.erased_at
    assert AuditEntry.objects.filter(action="erase").count() == 1


def test_a_repeat_of_an_erased_message_is_still_known(build, clock, mona, taken_in, pilot, cook):
    purging.erase(taken_in, by=mona, note="", clock=clock)

    sent = build.send(pilot, cook, "the secret", message_id="m-1")

    assert (sent.is_duplicate, sent.receipt.id) == (True, taken_in.id)
    with pytest.raises(MessageIdConflict):
        build.send(pilot, cook, "another one", message_id="m-1")
    assert Body.objects.get(pk=taken_in.body_id).text is None


@pytest.mark.parametrize("status", ["queued", "started", "failed", "quarantined"])
def test_what_may_still_be_read_is_not_erased(build, clock, mona, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook, text="needed")

    with pytest.raises(purging.StillOpen) as refused:
        purging.erase(receipt, by=mona, note="", clock=clock)

    assert refused.value.extra == {"delivery_status": status}
    assert "needed" in texts()


def test_what_is_closed_is_erased(build, clock, mona, pilot, cook):
    discarded = build.a_receipt("quarantined", sender=pilot, recipient=cook)
    releasing.discard(discarded, by=mona, note="", clock=clock)
    withdrawn = build.send(pilot, cook, "mine").receipt
    withdrawing.withdraw(withdrawn, by=build.key_of(pilot), clock=clock)

    for receipt in (discarded, withdrawn):
        assert purging.erase(receipt, by=mona, note="", clock=clock).body.text is None


def test_only_a_manager_erases(build, clock, taken_in, otto, ops, pilot):
    for caller in (build.principal(otto), ops, build.key_of(pilot)):
        with pytest.raises(Forbidden):
            purging.erase(taken_in, by=caller, note="", clock=clock)
    assert fresh(taken_in.body).text == "the secret"


# By age


def test_old_texts_that_are_done_with_are_forgotten(build, clock, taken_in, pilot, cook):
    stored, _shown = told(pilot, cook)
    clock.advance(90 * 86_400 + 1)
    build.send(pilot, cook, "young")

    assert purging.count_purgeable(keep=90 * DAYS, clock=clock) == kept() - 1
    count = purging.purge(keep=90 * DAYS, clock=clock)

    assert count == Body.objects.count() - 1
    assert texts() == {"young"}
    assert told(pilot, cook)[0][: len(stored)] == stored
    assert fresh(taken_in).message_hash == fresh(taken_in.body).sha256
    assert purging.purge(keep=90 * DAYS, clock=clock) == 0
    [entry] = AuditEntry.objects.filter(action="purge")
    assert entry.detail == {"texts": count}


def test_a_text_counts_from_when_its_message_came_to_rest(build, clock, pilot, cook, otto):
    build.follow_up(cook, otto, "slow")
    clock.advance(89 * 86_400)
    build.take_in(cook)
    clock.advance(2 * 86_400)

    assert purging.purge(keep=90 * DAYS, clock=clock) == 0

    clock.advance(89 * 86_400)
    purging.purge(keep=90 * DAYS, clock=clock)
    assert texts() == set()


@pytest.mark.parametrize("status", ["queued", "started", "failed", "quarantined"])
def test_open_messages_are_kept_however_old(build, clock, pilot, cook, status):
    receipt = build.a_receipt(status, sender=pilot, recipient=cook, text="needed")
    clock.advance(1000 * 86_400)

    purging.purge(keep=DAYS, clock=clock)

    assert "needed" in texts()
    assert fresh(receipt).status == status


def test_what_a_running_turn_holds_and_says_is_kept(build, clock, cook, otto):
    receipt = build.a_receipt("delivered", sender=otto, recipient=cook, text="asked")
    build.report(receipt.turn, {"type": "assistant_message", "text": "thinking"})
    build.report(receipt.turn, {"type": "note", "text": "a note"})
    clock.advance(1000 * 86_400)

    assert purging.purge(keep=DAYS, clock=clock) == 0
    assert texts() == {"asked", "thinking", "a note"}

    build.end(receipt.turn)
    clock.advance(2 * 86_400)
    assert purging.purge(keep=DAYS, clock=clock) == 3


def test_an_awaited_answer_keeps_the_question_and_the_words_that_may_answer_it(
    build, clock, pilot, cook, scout
):
    """Cook owes pilot an answer and waits for scout itself: nothing is sent for it meanwhile."""
    build.send(pilot, cook, "the question")
    turn = build.claimed(cook).turn
    build.incorporate(turn)
    build.send(cook, scout, "the inner question")
    build.end(turn, text="my last words")
    clock.advance(1000 * 86_400)

    purging.purge(keep=DAYS, clock=clock)

    assert texts() >= {"the question", "the inner question", "my last words"}


def test_it_goes_on_in_batches_until_nothing_is_left(build, clock, monkeypatch, pilot, cook, otto):
    monkeypatch.setattr(purging, "BATCH", 2)
    for number in range(5):
        build.follow_up(cook, otto, f"number {number}")
    while build.claim(cook) is not None:
        [running] = fresh(cook).turns.filter(status="running")
        build.incorporate(running)
        build.end(running)
    clock.advance(100 * 86_400)

    assert purging.purge(keep=DAYS, clock=clock) == 5
    assert AuditEntry.objects.filter(action="purge").count() == 3


# By the setting, once a day


def test_the_setting_says_how_long(build, clock, settings, taken_in):
    settings.COWORK_RETENTION = 10 * DAYS
    clock.advance(9 * 86_400)
    assert purging.retain(clock=clock)
    assert fresh(taken_in.body).text is not None

    clock.advance(2 * 86_400)
    assert purging.retain(clock=clock)

    assert fresh(taken_in.body).text is None


def test_without_retention_everything_is_kept(build, clock, settings, taken_in):
    settings.COWORK_RETENTION = 0 * DAYS
    clock.advance(1000 * 86_400)

    assert purging.retain(clock=clock)

    assert fresh(taken_in.body).text is not None


def test_what_takes_too_long_is_not_done(clock, monkeypatch, taken_in):
    monkeypatch.setattr(purging, "LONGEST", 0 * DAYS)

    assert not purging.retain(clock=clock)


def test_it_is_looked_at_once_a_day_and_again_at_once_when_it_is_not_done(db, clock, monkeypatch):
    assert purging.retain in sweeps.DAILY
    answers = [False, DatabaseBusy(), True]
    asked = []

    def look(*, clock):
        asked.append(clock.now())
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(sweeps, "DAILY", [look])
    for sweep in range(5):
        jobs.look_daily(owner=f"sweep {sweep}", clock=clock)
        clock.advance(15)
    assert len(asked) == 3

    answers.append(True)
    clock.advance(86_400)
    jobs.look_daily(owner="the next day", clock=clock)
    assert len(asked) == 4


# By hand


def test_the_command_forgets_what_is_older_than_it_is_told(taken_in, capsys):
    """The clock of the tests stands in the past, that of the command does not."""
    before = kept()
    call_command("purge", "--days", "1", "--dry-run")
    assert f"{before} texts older than 1 days would be" in capsys.readouterr().out
    assert kept() == before

    call_command("purge", "--days", "1")

    assert f"{before} texts older than 1 days are" in capsys.readouterr().out
    assert texts() == set()
    assert Receipt.objects.filter(pk=taken_in.pk).exists()


def test_the_command_keeps_to_the_setting(taken_in, settings, capsys):
    settings.COWORK_RETENTION = 100_000 * DAYS

    call_command("purge")

    assert "0 texts older than 100000 days are" in capsys.readouterr().out


@pytest.mark.parametrize("days", ["0", "-1"])
def test_the_command_forgets_nothing_by_mistake(taken_in, days):
    with pytest.raises(CommandError):
        call_command("purge", "--days", days)

    assert fresh(taken_in.body).text is not None


def test_the_command_asks_for_days_where_texts_are_kept_for_ever(taken_in, settings):
    settings.COWORK_RETENTION = 0 * DAYS

    with pytest.raises(CommandError):
        call_command("purge")

    assert fresh(taken_in.body).text is not None
