"""The roster: what a row says, and how many questions it asks."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import roster
from messaging.roster import Readiness, Result
from teams.models import Bot
from tests.provisioned import Caller, Lab

pytestmark = pytest.mark.django_db


class Turn:
    """A turn that an agent claims over the API."""

    def __init__(self, lab: Lab, handle: str) -> None:
        self._caller: Caller = lab.agent(handle)
        answer = self._caller.post(f"tasks/{lab.task(handle).id}/turns", wait_seconds=0)
        assert answer.status_code == 201, answer.content
        self._told: dict[str, Any] = answer.json()

    def take_in(self, *said: str) -> None:
        events = [{"event_id": "in", "type": "incorporated"}]
        events += [
            {"event_id": f"say-{number}", "type": "assistant_message", "text": text}
            for number, text in enumerate(said)
        ]
        self._post("events", events=events)

    def end(self, status: str = "done") -> None:
        self._post("end", status=status)

    def _post(self, what: str, **body: Any) -> None:
        path = f"turns/{self._told['id']}/{what}"
        answer = self._caller.post(path, fence=self._told["fence"], **body)
        assert answer.status_code == 200, answer.content


def follow_up(lab: Lab, handle: str, message: str, mode: str = "follow_up") -> None:
    path = f"tasks/{lab.task(handle).id}/follow_ups"
    answer = lab.operator.post(path, message=message, delivery_mode=mode)
    assert answer.status_code == 202, answer.content


def row(lab: Lab, handle: str) -> roster.Row:
    return roster.row_of(lab.bot(handle))


def test_a_bot_that_nobody_wrote_to(lab: Lab):
    found = row(lab, "atlas")

    assert (found.readiness, found.result) == (Readiness.READY, Result.NONE)
    assert found.latest is None


def test_readiness_and_last_run_are_two_things(lab: Lab):
    follow_up(lab, "atlas", "**Count** the rows")
    waiting = row(lab, "atlas")
    turn = Turn(lab, "atlas")
    working = row(lab, "atlas")
    turn.take_in("Counted.")
    turn.end()
    ready = row(lab, "atlas")

    assert (waiting.queued, waiting.readiness) == (1, Readiness.READY)
    assert waiting.latest is not None
    assert (waiting.latest.kind, waiting.latest.text) == ("person", "Count the rows")
    assert (working.readiness, working.result) == (Readiness.WORKING, Result.RUNNING)
    assert (ready.readiness, ready.result) == (Readiness.READY, Result.COMPLETED)
    assert ready.latest is not None
    assert (ready.latest.sender, ready.latest.text) == ("Atlas", "Counted.")


def test_a_turn_that_broke_is_ready_to_retry(lab: Lab):
    follow_up(lab, "atlas", "Count the rows")
    turn = Turn(lab, "atlas")
    turn.take_in()
    turn.end("error")

    found = row(lab, "atlas")

    assert (found.readiness, found.result) == (Readiness.RETRY, Result.FAILED)
    assert found.needs_you


def test_it_waits_on_a_teammate_until_the_reply_is_read(lab: Lab):
    follow_up(lab, "atlas", "Ask Forge")
    turn = Turn(lab, "atlas")
    turn.take_in()
    sent = lab.agent("atlas").post("send_agent_message", bot="forge", message="How many?")
    assert sent.status_code == 202, sent.content
    turn.end()
    waiting = row(lab, "atlas")
    asked = Turn(lab, "forge")
    asked.take_in("Four.")
    asked.end()
    still_waiting = row(lab, "atlas")
    reading = Turn(lab, "atlas")
    reading.take_in()
    reading.end()

    assert waiting.readiness is Readiness.WAITING
    assert still_waiting.readiness is Readiness.WAITING  # an answer that is queued is not read
    assert row(lab, "atlas").readiness is Readiness.READY


def test_the_number_of_queries_does_not_grow_with_the_bots(lab: Lab):
    follow_up(lab, "atlas", "one")
    bots = Bot.objects.filter(workspace=lab.workspace)

    with CaptureQueriesContext(connection) as of_one:
        roster.rows(bots.filter(handle="atlas"))
    for handle in ("forge", "echo", "dora"):
        follow_up(lab, handle, "more")
    with CaptureQueriesContext(connection) as of_all:
        assert len(roster.rows(bots)) == 4

    assert len(of_all) == len(of_one)


def test_the_newest_message_is_first_and_the_silent_are_last(lab: Lab):
    follow_up(lab, "echo", "first")
    follow_up(lab, "forge", "second")

    found = roster.rows(Bot.objects.filter(workspace=lab.workspace))

    assert [one.bot.handle for one in found] == ["forge", "echo", "atlas", "dora"]


@pytest.mark.parametrize("words", ["ATLAS", "atl", "rows", "lead of"])
def test_search_finds_name_handle_description_and_message(lab: Lab, words):
    Bot.objects.filter(workspace=lab.workspace, handle="atlas").update(description="Lead of all")
    follow_up(lab, "atlas", "Count the rows")

    assert row(lab, "atlas").matches(words)
    assert not row(lab, "forge").matches(words)
