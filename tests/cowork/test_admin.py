"""The admin's door, the bots' columns, and what is not in it."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from rest_framework_api_key.models import APIKey

from cowork.models import Secret, Task
from teams.models import Bot
from tests import admin_site
from tests.admin_site import detail_of, list_of
from tests.provisioned import PASSWORD, Lab, a_lab
from timeline.clock import system_clock
from timeline.ids import first_id_of, new_id

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab() -> Lab:
    return a_lab("lab")


def test_staff_sign_in_where_everybody_does(lab: Lab):
    User.objects.filter(username="mia-lab").update(is_staff=True)
    client = Client()
    wanted = list_of(Task)

    answer = client.get(wanted, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/sign-in/?next=/admin/")
    client.post("/sign-in/", {"username": "mia-lab", "password": PASSWORD, "next": wanted})

    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/login/").headers["Location"] == "/admin/"
    outside = client.get("/admin/login/", {"next": "https://example.org/"})
    assert outside.headers["Location"] == "/"


def test_the_admin_takes_no_password_itself(lab: Lab):
    User.objects.filter(username="mia-lab").update(is_staff=True)
    client = Client()

    answer = client.post("/admin/login/", {"username": "mia-lab", "password": PASSWORD})

    assert answer.status_code == 405
    assert client.get("/admin/").status_code == 302


def test_leaving_is_a_post(lab: Lab):
    owner = admin_site.owner()

    owner.get("/admin/logout/")
    assert owner.get("/admin/").status_code == 200
    owner.post("/admin/logout/")

    assert owner.get("/admin/").status_code == 302


def test_the_admin_is_called_cowork(lab: Lab):
    answer = admin_site.owner().get("/admin/")

    assert "CoWork</title>" in answer.content.decode()
    assert "'unsafe-eval'" in answer.headers["Content-Security-Policy"]


def test_neither_jobs_nor_keys_of_libraries_are_there():
    not_ours: list[type[Model]] = [APIKey, Secret, *apps.get_app_config("django_q").get_models()]

    assert [model for model in not_ours if admin.site.is_registered(model)] == []


def test_a_conversation_has_a_page_and_a_root_task_has_none(lab: Lab):
    made = lab.operator.post("tasks", kind="root", title="Sweep the deck")
    assert made.status_code == 201, made.content
    owner = admin_site.owner()

    conversation = owner.get(detail_of(lab.task("atlas"))).content.decode()
    root = owner.get(detail_of(Task.objects.get(title="Sweep the deck"))).content.decode()

    assert f'href="/bots/atlas/c/{lab.task("atlas").id}/"' in conversation
    assert "Open in CoWork" not in root


def test_a_bot_tells_its_conversations_and_its_last_run(lab: Lab):
    admin_site.a_handoff(lab, 1)
    shown = admin.site._registry[Bot]
    request = admin_site.request_of(User.objects.create_superuser("asker"))

    rows = {bot.handle: bot for bot in shown.get_queryset(request)}

    assert {handle: bot.conversation_count for handle, bot in rows.items()} == {
        "atlas": 1,
        "forge": 1,
        "echo": 1,
        "dora": 1,
    }
    assert rows["forge"].last_run_at == lab.task("forge").turns.get().started_at
    assert rows["dora"].last_run_at is None


def test_ids_are_not_below_the_first_of_their_time():
    before = system_clock.now()
    made = new_id()

    assert first_id_of(before) <= made
    assert first_id_of(before + timedelta(minutes=1)) > made
