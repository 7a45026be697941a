"""A sign-in link works once, within an hour, and not once the account was entered otherwise."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from teams import entering, installing, sign_in_links
from teams.models import Person, Workspace
from timeline.clock import ManualClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(clock: ManualClock) -> Any:
    assert installing.install(clock=clock)
    return get_user_model().objects.get(username="owner")


def test_an_empty_installation_begins_with_main_and_its_owner(
    owner: Any, clock: ManualClock
) -> None:
    assert not installing.install(clock=clock)
    assert [row.slug for row in Workspace.objects.all()] == ["main"]
    assert owner.is_superuser
    assert not owner.has_usable_password()
    assert Person.objects.get(user=owner).role == "manager"


def test_a_link_signs_in_once(owner: Any, clock: ManualClock) -> None:
    token = sign_in_links.make(owner, now=clock.now())
    other = sign_in_links.make(owner, now=clock.now())

    assert sign_in_links.user_of(token, now=clock.now()) == owner  # looking uses nothing up
    assert entering.enter(token, clock=clock) == owner
    for used in (token, other):
        with pytest.raises(sign_in_links.LinkUsedUp):
            entering.enter(used, clock=clock)


def test_a_link_is_too_old_after_an_hour(owner: Any, clock: ManualClock) -> None:
    token = sign_in_links.make(owner, now=clock.now())

    clock.advance(3600)
    sign_in_links.user_of(token, now=clock.now())
    clock.move_to(clock.now() + timedelta(milliseconds=1))
    with pytest.raises(sign_in_links.LinkUsedUp):
        entering.enter(token, clock=clock)


def test_a_link_ends_with_a_new_password(owner: Any, clock: ManualClock) -> None:
    token = sign_in_links.make(owner, now=clock.now())
    owner.set_password("correct-horse-battery-staple")
    owner.save()

    with pytest.raises(sign_in_links.LinkUsedUp):
        entering.enter(token, clock=clock)


@pytest.mark.parametrize("token", ["", "x", "a:b", "eyJ1c2VyIjoxfQ:abc"])
def test_what_was_never_given_out_signs_nobody_in(
    owner: Any, clock: ManualClock, token: str
) -> None:
    with pytest.raises(sign_in_links.LinkUsedUp):
        entering.enter(token, clock=clock)


def test_an_inactive_user_does_not_enter(owner: Any, clock: ManualClock) -> None:
    token = sign_in_links.make(owner, now=clock.now())
    owner.is_active = False
    owner.save()

    with pytest.raises(sign_in_links.LinkUsedUp):
        entering.enter(token, clock=clock)
