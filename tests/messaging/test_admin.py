"""The admin as a whole, and its receipts: looked at, never changed (SPEC §18, DESIGN §9)."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cowork.models import Credential, OutboxEntry, Secret, Task, Turn
from messaging.models import Receipt
from teams.models import Bot, Member, Person, RuntimeProfile, Team, Workspace
from tests import admin_site
from tests.admin_site import TEXT, detail_of, filters_in, list_of
from tests.provisioned import Lab
from timeline.models import AuditEntry, Event

pytestmark = pytest.mark.django_db

ROWS = (
    Receipt,
    Event,
    AuditEntry,
    Task,
    Turn,
    OutboxEntry,
    Credential,
    Team,
    Member,
    Bot,
    Person,
    Workspace,
    RuntimeProfile,
)
EVERY_LIST = pytest.mark.parametrize("model", ROWS, ids=lambda model: model.__name__)


@pytest.fixture
def full(lab: Lab) -> Lab:
    """A lab in which something of everything is there: a wake is owed for what waits."""
    admin_site.a_handoff(lab, 1)
    waits = lab.agent("forge").post(
        "send_agent_message",
        bot="echo",
        message="waits",
        sender_task_id=str(lab.task("forge").id),
    )
    assert waits.status_code == 202
    return lab


@pytest.fixture
def owner() -> Client:
    return admin_site.owner()


def test_every_row_of_ours_in_the_admin_is_known_here():
    assert set(admin_site.read_only()) == set(ROWS)


@EVERY_LIST
def test_every_list_and_detail_answers(full: Lab, owner, model):
    assert owner.get(list_of(model)).status_code == 200

    for row in model.objects.all()[:5]:
        page = owner.get(detail_of(row))
        assert page.status_code == 200
        assert str(row.pk) in page.content.decode()
    assert model.objects.exists()


@EVERY_LIST
def test_every_filter_works(full: Lab, other_lab: Lab, owner, model):
    page = owner.get(list_of(model)).content.decode()

    for address in set(filters_in(page)):
        assert owner.get(f"{list_of(model)}{address}").status_code == 200, address
    offered = admin_site.read_only()[model].list_filter
    assert len(set(filters_in(page))) >= len(offered), "each filter offers something"


@EVERY_LIST
def test_every_row_is_found_by_its_id(full: Lab, owner, model):
    row = model.objects.order_by("-pk")[0]

    found = owner.get(list_of(model), {"q": str(row.pk)}).content.decode()

    assert set(re.findall(rf'{list_of(model)}([^/"?]+)/change/', found)) == {str(row.pk)}


@EVERY_LIST
@pytest.mark.parametrize("term", ["no such thing", "a\0b", "0", "%", "'", "@", "   "])
def test_every_term_can_be_searched(full: Lab, owner, model, term):
    assert owner.get(list_of(model), {"q": term}).status_code in (200, 302)


@EVERY_LIST
def test_a_longer_list_asks_no_more_questions(full: Lab, owner, model):
    def questions() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert owner.get(list_of(model)).status_code == 200
        return len(asked)

    questions()  # the first one looks up what is kept afterwards
    before, rows = questions(), model.objects.count()
    for number in (2, 3, 4):
        admin_site.a_handoff(full, number)
    for number in range(3):
        admin_site.more_of_everything(full, number)

    assert model.objects.count() > rows
    assert questions() == before


@EVERY_LIST
def test_rows_are_not_counted(full: Lab, owner, model):
    with CaptureQueriesContext(connection) as asked:
        owner.get(list_of(model))
        owner.get(list_of(model), {"_facets": "True"})

    table = model._meta.db_table
    counts = [query["sql"] for query in asked if query["sql"].startswith("SELECT COUNT")]
    assert [sql for sql in counts if f'"{table}"' in sql] == []


@EVERY_LIST
def test_nobody_adds_changes_or_deletes(full: Lab, owner, model):
    row = model.objects.all()[0]
    before = model.objects.count()
    address = detail_of(row)

    for refused in (
        owner.get(f"{list_of(model)}add/"),
        owner.post(f"{list_of(model)}add/", {"id": str(row.pk)}),
        owner.post(address, {"id": str(row.pk)}),
        owner.get(address.replace("/change/", "/delete/")),
        owner.post(address.replace("/change/", "/delete/"), {"post": "yes"}),
    ):
        assert refused.status_code == 403
    owner.post(
        list_of(model),
        {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"},
    )

    assert model.objects.count() == before
    assert type(row).objects.filter(pk=row.pk).exists()
    shown = owner.get(address).content.decode()
    assert not re.search(r'name="(_save|_continue|_addanother|_saveasnew)"', shown)


@EVERY_LIST
def test_nobody_but_staff_gets_in(full: Lab, model):
    row = model.objects.all()[0]
    manager = full.manager.client
    stranger = Client()
    unpermitted = admin_site.staff("idle")

    for address in (list_of(model), detail_of(row)):
        assert stranger.get(address).status_code == 302
        assert stranger.get(address, follow=True).redirect_chain[-1][0].startswith("/sign-in/")
        assert manager.get(address, follow=True).status_code == 403
        assert unpermitted.get(address).status_code == 403


@EVERY_LIST
def test_staff_see_what_they_are_permitted(full: Lab, model):
    name = model._meta.model_name
    reader = admin_site.staff("reader", f"view_{name}")
    changer = admin_site.staff("changer", f"change_{name}", f"add_{name}", f"delete_{name}")
    row = model.objects.all()[0]

    assert reader.get(list_of(model)).status_code == 200
    assert reader.get(detail_of(row)).status_code == 200
    assert reader.post(detail_of(row), {}).status_code == 403
    assert changer.get(list_of(model)).status_code == 403
    assert changer.post(detail_of(row), {}).status_code == 403


def test_no_page_holds_a_secret_or_a_hash(full: Lab, owner):
    fences = {f'"{turn.claim_id}"' for turn in Turn.objects.exclude(claim_id="")}
    hidden = {
        *full.secrets.values(),
        *Secret.objects.values_list("prefix", flat=True),
        *Secret.objects.values_list("hashed_key", flat=True),
        *fences,
        *[person.user.password for person in Person.objects.select_related("user")],
    }
    assert len(hidden) > 10

    for model in ROWS:
        pages = [list_of(model), *[detail_of(row) for row in model.objects.all()]]
        for address in pages:
            shown = unescape(owner.get(address).content.decode())
            assert [secret for secret in hidden if secret in shown] == [], address


def test_the_text_of_a_message_is_in_the_detail_of_its_receipt_only(full: Lab, owner):
    receipt = Receipt.objects.get(message_id="m-1")

    shown = owner.get(detail_of(receipt)).content.decode()
    assert "&lt;b&gt;the crates&lt;/b&gt; &amp; the barrels" in shown
    assert TEXT not in shown
    for model in ROWS:
        rows = [detail_of(row) for row in model.objects.all() if row != receipt]
        for address in (list_of(model), *rows):
            assert "the barrels" not in owner.get(address).content.decode(), address


@pytest.mark.parametrize("term", ["m-1", " m-1 ", "atlas", "@atlas", "Atlas"])
def test_a_receipt_is_found(full: Lab, owner, term):
    found = owner.get(list_of(Receipt), {"q": term}).content.decode()

    assert detail_of(Receipt.objects.get(message_id="m-1")) in found


def test_a_receipt_is_filtered_by_its_state(full: Lab, owner):
    waits = Receipt.objects.get(recipient=full.task("echo"))
    taken = Receipt.objects.get(message_id="m-1")

    queued = owner.get(list_of(Receipt), {"status__exact": "queued"}).content.decode()

    assert detail_of(waits) in queued
    assert detail_of(taken) not in queued


def test_a_receipt_leads_to_its_conversation(full: Lab, owner):
    receipt = Receipt.objects.get(message_id="m-1")
    address = f"/bots/forge/c/{receipt.recipient_id}/#msg_{receipt.id}"

    assert f'href="{address}"' in owner.get(list_of(Receipt)).content.decode()
    assert f'href="{address}"' in owner.get(detail_of(receipt)).content.decode()


def test_a_team_tells_how_many_messages_are_held_for_it(full: Lab, owner):
    waits = Receipt.objects.get(recipient=full.task("echo"))
    held = full.operator.post(f"receipts/{waits.id}/quarantine", note="looks odd")
    assert held.status_code == 200, held.content

    shown = owner.get(detail_of(full.team)).content.decode()

    assert re.search(r"[Hh]eld messages.*?>\s*1\s*<", shown, re.DOTALL)
