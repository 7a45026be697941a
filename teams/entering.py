"""Entering by a sign-in link, which works once."""

from typing import Any

from teams import sign_in_links
from timeline.clock import Clock
from timeline.transactions import action


@action
def enter(token: str, *, clock: Clock) -> Any:
    """Use up a link; the user that it signs in. Raises LinkUsedUp."""
    return sign_in_links.use_up(token, now=clock.now())
