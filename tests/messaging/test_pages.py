"""The pages as forms: every button posts, and nothing is changed by looking."""

import re
from typing import Any

import pytest
from django.test import Client

from cowork.models import Task
from messaging.models import Receipt
from tests.provisioned import PASSWORD, Lab
from timeline.models import Event

pytestmark = pytest.mark.django_db


def visitor(lab: Lab, name: str = "mia") -> Client:
    client = Client()
    answer = client.post("/sign-in/", {"username": f"{name}-{lab.slug}", "password": PASSWORD})
    assert answer.status_code == 302
    return client


def address(lab: Lab, handle: str) -> str:
    return f"/bots/{handle}/c/{lab.task(handle).id}/"


def say(client: Client, lab: Lab, **fields: Any) -> Any:
    given = {"message": "hello", "message_id": "m-1", "delivery_mode": "message", **fields}
    return client.post(address(lab, "atlas"), given)


def test_who_is_not_signed_in_is_led_there_and_back(lab: Lab):
    client = Client()

    answer = client.get("/bots/?q=atlas")
    assert answer.headers["Location"] == "/sign-in/?next=%2Fbots%2F%3Fq%3Datlas"
    answer = client.post(
        "/sign-in/", {"username": "mia-lab", "password": PASSWORD, "next": "/bots/?q=atlas"}
    )

    assert answer.headers["Location"] == "/bots/?q=atlas"


@pytest.mark.parametrize("elsewhere", ["https://example.org/", "//example.org", "javascript:x"])
def test_signing_in_leads_nowhere_else(lab: Lab, elsewhere):
    answer = Client().post(
        "/sign-in/", {"username": "mia-lab", "password": PASSWORD, "next": elsewhere}
    )

    assert answer.headers["Location"] == "/"


def test_a_wrong_password_is_told_and_opens_nothing(lab: Lab):
    client = Client()

    answer = client.post("/sign-in/", {"username": "mia-lab", "password": "guess"})

    assert answer.status_code == 401
    assert "do not belong together" in answer.content.decode()
    assert client.get("/bots/").status_code == 302


def test_signing_out_is_a_post(lab: Lab):
    client = visitor(lab)

    client.get("/sign-out/")
    assert client.get("/bots/").status_code == 200
    client.post("/sign-out/")

    assert client.get("/bots/").status_code == 302


def test_looking_changes_nothing(lab: Lab):
    client = visitor(lab)
    say(client, lab)
    before = (Event.objects.count(), Task.objects.count(), Receipt.objects.count())

    for path in ("/bots/", "/bots/atlas/", "/bots/dora/", "/bots/atlas/history/"):
        client.get(path)
    client.get(address(lab, "atlas"), {"details": "1"})
    client.get(f"{address(lab, 'atlas')}live/", {"after": "0"})

    assert (Event.objects.count(), Task.objects.count(), Receipt.objects.count()) == before


def test_a_double_submit_is_one_message(lab: Lab):
    client = visitor(lab)

    first, second = say(client, lab), say(client, lab)

    assert first.headers["Location"] == second.headers["Location"]
    receipt = Receipt.objects.get()
    assert first.headers["Location"].endswith(f"#msg_{receipt.id}")
    assert client.get(address(lab, "atlas")).content.decode().count('data-mid="m-1"') == 1


def test_a_used_id_keeps_the_text_and_offers_a_new_one(lab: Lab):
    client = visitor(lab)
    say(client, lab)

    answer = say(client, lab, message="something else")

    shown = answer.content.decode()
    assert answer.status_code == 409
    assert "something else</textarea>" in shown
    assert "Send with a new id" in shown
    fresh = re.search(r'name="message_id" value="([^"]+)"', shown)
    assert fresh is not None
    assert fresh.group(1) != "m-1"
    assert Receipt.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"message": "   "}, 400),
        ({"message": "a\0b"}, 400),
        ({"delivery_mode": "shout"}, 400),
        ({"message": "x" * 70_000}, 413),
    ],
)
def test_what_is_refused_is_told_on_the_page(lab: Lab, fields, status):
    answer = say(visitor(lab), lab, **fields)

    assert answer.status_code == status
    assert "Not accepted" in answer.content.decode()
    assert not Receipt.objects.exists()


def test_a_viewer_reads_and_may_not_write(lab: Lab):
    client = visitor(lab, "vera")

    assert 'id="composer"' not in client.get(address(lab, "atlas")).content.decode()
    assert say(client, lab).status_code == 403
    assert client.post("/bots/atlas/conversations/").status_code == 403
    assert client.get("/bots/atlas/edit/").status_code == 403
    assert not Receipt.objects.exists()


def test_another_workspace_is_not_there(lab: Lab, other_lab: Lab):
    client = visitor(other_lab)

    for path in (
        address(lab, "atlas"),
        f"{address(lab, 'atlas')}live/",
        f"{address(lab, 'atlas')}details/",
        f"{address(lab, 'atlas')}edit/",
    ):
        assert client.get(path).status_code == 404
    assert say(client, lab).status_code == 404
    rows = client.get("/bots/", {"rows": str(lab.task("atlas").id)})
    assert 'class="bot' not in rows.content.decode()


def test_text_of_agents_is_no_markup(lab: Lab):
    client = visitor(lab)
    say(client, lab, message="<script>alert(1)</script> <img src=x> [x](javascript:alert(1))")

    shown = client.get(address(lab, "atlas")).content.decode()

    assert "<script>alert" not in shown
    assert "<img" not in shown
    assert 'href="javascript' not in shown


def test_the_pages_load_from_here_only(lab: Lab):
    answer = visitor(lab).get(address(lab, "atlas"))

    shown = answer.content.decode()
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert not re.search(r"<script(?![^>]*\bsrc=)", shown)
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", shown)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', shown)


def test_archive_and_back(lab: Lab):
    client = visitor(lab)

    client.post(f"{address(lab, 'atlas')}archive/", {"archived": "yes"})
    put_away = client.get(address(lab, "atlas")).content.decode()
    client.post(f"{address(lab, 'atlas')}archive/", {"archived": "no"})
    back = client.get(address(lab, "atlas")).content.decode()

    assert 'id="composer"' not in put_away
    assert "in the archive" in put_away
    assert 'id="composer"' in back


def test_a_conversation_can_be_renamed(lab: Lab):
    client = visitor(lab)

    client.post(f"{address(lab, 'atlas')}edit/", {"title": "Partition migration"})
    refused = client.post(f"{address(lab, 'atlas')}edit/", {"title": "x" * 201})

    assert lab.task("atlas").title == "Partition migration"
    assert refused.status_code == 400


def test_earlier_messages_are_a_page_of_their_own(lab: Lab):
    client = visitor(lab)
    operator = lab.operator
    caller, task = lab.agent("atlas"), lab.task("atlas")
    operator.post(f"tasks/{task.id}/follow_ups", message="go", delivery_mode="follow_up")
    turn = caller.post(f"tasks/{task.id}/turns", wait_seconds=0).json()
    said = [
        {"event_id": f"say-{number}", "type": "assistant_message", "text": f"line {number}."}
        for number in range(60)
    ]
    caller.post(f"turns/{turn['id']}/events", fence=turn["fence"], events=said)

    newest = client.get(address(lab, "atlas")).content.decode()
    link = re.search(r'href="(\?before=\d+)"', newest)
    assert link is not None
    older = client.get(address(lab, "atlas") + link.group(1)).content.decode()

    assert "Show 10 earlier messages" in newest
    assert "line 9." not in newest
    assert "line 9." in older
    assert "line 10." not in older


def test_a_fragment_holds_only_what_is_new(lab: Lab):
    client = visitor(lab)
    say(client, lab)
    seen = re.search(r'data-after="(\d+)"', client.get(address(lab, "atlas")).content.decode())
    assert seen is not None
    say(client, lab, message="second", message_id="m-2")

    shown = client.get(f"{address(lab, 'atlas')}live/", {"after": seen.group(1)}).content.decode()

    assert 'data-mid="m-2"' in shown
    assert 'data-mid="m-1"' not in shown
    assert "<textarea" not in shown


def test_details_are_not_in_the_page_until_they_are_opened(lab: Lab):
    client = visitor(lab)
    lab.agent("atlas").post("send_agent_message", bot="forge", message="How many?")

    closed = client.get(address(lab, "atlas")).content.decode()
    opened = client.get(address(lab, "atlas"), {"details": "1"}).content.decode()

    assert "Latest outcome" not in closed
    assert "Latest outcome" in opened
    assert "Reply not read yet" in opened


def test_a_failed_handoff_shows_its_way_out_and_can_be_retried(lab: Lab):
    client = visitor(lab)
    sent = lab.agent("atlas").post("send_agent_message", bot="forge", message="How many?")
    receipt_id = sent.json()["receipt_id"]
    for _ in range(4):
        _fail_a_turn(lab, "forge")
    assert Receipt.objects.get(pk=receipt_id).status == "failed"

    shown = client.get(address(lab, "atlas")).content.decode()
    assert "A handoff to" in shown
    assert "Retry same message" in shown
    client.post(f"/receipts/{receipt_id}/retry/", {"task": str(lab.task("atlas").id)})

    receipt = Receipt.objects.get(pk=receipt_id)
    assert receipt.status == "queued"
    assert receipt.attempt > 4


def _fail_a_turn(lab: Lab, handle: str) -> None:
    Receipt.objects.filter(recipient=lab.task(handle)).update(due_at="2020-01-01T00:00:00Z")
    caller = lab.agent(handle)
    turn = caller.post(f"tasks/{lab.task(handle).id}/turns", wait_seconds=0).json()
    caller.post(f"turns/{turn['id']}/end", fence=turn["fence"], status="error", error="no")
