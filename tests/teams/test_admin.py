"""Users and groups in the admin: Django's own, for superusers."""

import pytest
from django.contrib.auth.models import Group, User

from teams.models import Bot, Team
from tests import admin_site
from tests.admin_site import detail_of, list_of
from tests.provisioned import Lab, a_lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab() -> Lab:
    return a_lab("lab")


def test_a_superuser_makes_somebody_staff(lab: Lab):
    owner = admin_site.owner()
    user = User.objects.get(username="omar-lab")
    assert owner.get(detail_of(user)).status_code == 200

    answer = owner.post(
        detail_of(user), {"username": user.username, "is_active": "on", "is_staff": "on"}
    )

    assert answer.status_code == 302
    changed = User.objects.get(pk=user.pk)
    assert changed.is_staff
    assert changed.password == user.password


def test_nothing_of_a_hash_is_shown(lab: Lab):
    user = User.objects.get(username="omar-lab")
    algorithm, salt, digest = user.password.split("$")

    shown = admin_site.owner().get(detail_of(user)).content.decode()

    for part in (algorithm, salt[:2] + "*", salt, digest[:6]):
        assert part not in shown, part
    assert "Set another one" in shown


def test_another_password_can_be_set(lab: Lab):
    user = User.objects.get(username="omar-lab")
    address = detail_of(user).replace("/change/", "/password/")
    owner = admin_site.owner()
    assert owner.get(address).status_code == 200

    owner.post(address, {"password1": "a-fresh-long-phrase", "password2": "a-fresh-long-phrase"})

    assert User.objects.get(pk=user.pk).check_password("a-fresh-long-phrase")


@pytest.mark.parametrize("model", [User, Group])
def test_staff_with_every_permission_make_nobody_more_than_they_are(lab: Lab, model):
    name = model._meta.model_name
    client = admin_site.staff(
        "climber", *[f"{verb}_{name}" for verb in ("view", "add", "change", "delete")]
    )
    row = User.objects.get(username="climber") if model is User else Group.objects.create(name="g")

    assert client.get(list_of(model)).status_code == 200
    assert client.get(f"{list_of(model)}add/").status_code == 403
    assert (
        client.post(detail_of(row), {"username": "climber", "is_superuser": "on"}).status_code
        == 403
    )
    assert client.get(detail_of(row).replace("/change/", "/delete/")).status_code == 403
    if model is User:
        password = detail_of(row).replace("/change/", "/password/")
        assert client.get(password).status_code == 403


def test_a_group_has_a_page(lab: Lab):
    group = Group.objects.create(name="readers")

    assert admin_site.owner().get(detail_of(group)).status_code == 200


def test_a_team_is_found_once_by_any_of_its_members(lab: Lab):
    owner = admin_site.owner()

    for term in ("forge", "@echo", "core", "atlas"):
        found = owner.get(list_of(Team), {"q": term}).content.decode()
        assert detail_of(lab.team) in found
        assert found.count(detail_of(lab.team)) == 1
    assert detail_of(lab.team) not in owner.get(list_of(Team), {"q": "dora"}).content.decode()


def test_a_bot_is_found_by_handle_and_by_name(lab: Lab):
    owner = admin_site.owner()

    for term in ("forge", "@forge", "For"):
        found = owner.get(list_of(Bot), {"q": term}).content.decode()
        assert detail_of(lab.bot("forge")) in found
        assert detail_of(lab.bot("atlas")) not in found
