"""Events and the audit in the admin."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.test import Client

from tests import admin_site
from tests.admin_site import detail_of, list_of
from timeline.clock import system_clock
from timeline.ids import first_id_of, new_id
from timeline.models import AuditEntry, Body, Event, Stream

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Client:
    return admin_site.owner()


def an_event(stream: Stream, *, seq: int, at: datetime) -> Event:
    """An event that was made at a time, with a text."""
    body = Body.objects.create(
        workspace_id=stream.workspace_id,
        text="not for lists",
        sha256="0" * 64,
        byte_count=13,
        created_at=at,
    )
    return Event.objects.create(
        id=UUID(int=first_id_of(at).int + seq),
        stream=stream,
        workspace_id=stream.workspace_id,
        seq=seq,
        type="note",
        payload={"level": "info"},
        body=body,
        subject=new_id(),
        actor_kind="agent",
        actor_id="1",
        actor_label="Anvil <b>",
        created_at=at,
    )


@pytest.fixture
def stream() -> Stream:
    return Stream.objects.create(key=new_id(), workspace_id=new_id())


def test_events_of_a_timeline_are_found_by_its_id(owner, stream):
    now = system_clock.now()
    mine = an_event(stream, seq=1, at=now)
    other = an_event(Stream.objects.create(key=new_id(), workspace_id=new_id()), seq=2, at=now)

    for term in (str(stream.key), stream.key.hex, str(mine.subject), str(mine.id)):
        found = owner.get(list_of(Event), {"q": term}).content.decode()
        assert detail_of(mine) in found
        assert detail_of(other) not in found
    assert detail_of(mine) not in owner.get(list_of(Event), {"q": "note"}).content.decode()


@pytest.mark.parametrize(
    ("within", "seen"), [("hour", {1}), ("day", {1, 2}), ("week", {1, 2, 3}), ("x", {1, 2, 3, 4})]
)
def test_events_are_filtered_by_how_old_they_are(owner, stream, within, seen):
    now = system_clock.now()
    made = {
        seq: an_event(stream, seq=seq, at=now - timedelta(hours=hours))
        for seq, hours in {1: 0.5, 2: 23, 3: 167, 4: 169}.items()
    }

    shown = owner.get(list_of(Event), {"within": within}).content.decode()

    assert {seq for seq, event in made.items() if detail_of(event) in shown} == seen


def test_an_event_shows_its_payload_and_not_its_text(owner, stream):
    event = an_event(stream, seq=1, at=system_clock.now())

    for address in (detail_of(event), list_of(Event)):
        shown = owner.get(address).content.decode()
        assert "not for lists" not in shown
        assert "Anvil &lt;b&gt;" in shown
    assert "level" in owner.get(detail_of(event)).content.decode()


def test_pages_follow_each_other_to_the_end(owner, stream):
    now = system_clock.now()
    made = [an_event(stream, seq=seq, at=now) for seq in range(1, 53)]

    first = owner.get(list_of(Event)).content.decode()
    second = owner.get(list_of(Event), {"p": "2"}).content.decode()

    assert "?p=2" in first
    assert "?p=3" not in second
    assert [event.seq for event in made if detail_of(event) in second] == [1, 2]
    assert owner.get(list_of(Event), {"p": "900"}).status_code in (200, 302)


def test_the_audit_is_found_by_what_was_done_to_whom(owner):
    entry = AuditEntry.objects.create(
        workspace_id=new_id(),
        actor_kind="person",
        actor_id="7",
        actor_label="olga",
        action="receipt.release",
        target_kind="receipt",
        target_id=str(new_id()),
        note="n" * 200,
        created_at=system_clock.now(),
    )

    for term in ("receipt.release", entry.target_id, "olga", str(entry.workspace_id)):
        assert detail_of(entry) in owner.get(list_of(AuditEntry), {"q": term}).content.decode()
    assert "n" * 80 not in owner.get(list_of(AuditEntry)).content.decode()
    assert "n" * 200 in owner.get(detail_of(entry)).content.decode()
