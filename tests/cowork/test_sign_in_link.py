"""The page of a sign-in link: looking uses nothing up, signing in does (SPEC §16.1)."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from teams import sign_in_links
from tests.provisioned import Lab
from timeline.clock import system_clock

pytestmark = pytest.mark.django_db


def link(lab: Lab) -> str:
    user = get_user_model().objects.get(username=f"mia-{lab.slug}")
    return f"/sign-in/link/{sign_in_links.make(user, now=system_clock.now())}/"


def test_looking_uses_nothing_up(lab: Lab):
    address = link(lab)

    for _ in range(3):
        answer = Client().get(address)
        assert answer.status_code == 200
        assert answer.content.decode().count("<button") == 1

    assert Client().post(address).status_code == 302


def test_it_signs_in_once(lab: Lab):
    address, client, another = link(lab), Client(), Client()

    client.post(address)
    answer = another.post(address)

    assert client.get("/bots/").status_code == 200
    assert answer.status_code == 401
    assert another.get("/bots/").status_code == 302
    assert Client().get(address).status_code == 401


@pytest.mark.parametrize("token", ["x", "a:b", "..", "eyJ1c2VyIjoxfQ:x"])
def test_what_was_never_given_out_opens_nothing(lab: Lab, token):
    assert Client().get(f"/sign-in/link/{token}/").status_code == 401
    assert Client().post(f"/sign-in/link/{token}/").status_code == 401
