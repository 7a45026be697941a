"""Links that sign a user in once, within an hour (SPEC §16.1).

A link names the state of the account: signing in changes it, and so does setting a password. So
whichever way the account is entered first, every link made before is used up.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from timeline.refusals import Refusal
from timeline.transactions import require_transaction

VALID_FOR: Final = timedelta(hours=1)
PATH: Final = "/sign-in/link/{token}/"
_SALT: Final = "cowork.sign-in-link"


class LinkUsedUp(Refusal):
    """This link has been used, is older than an hour, or was never given out. The command
    sign_in_link prints a new one."""

    code = "NOT_AUTHENTICATED"
    status = 401


def make(user: Any, *, now: datetime) -> str:
    """The token of a link for a user."""
    until = (now + VALID_FOR).timestamp()
    return signing.Signer(salt=_SALT).sign_object(
        {"user": user.pk, "until": until, "state": _state(user)}
    )


def user_of(token: str, *, now: datetime) -> Any:
    """The user that a link would sign in; reading uses nothing up. Raises LinkUsedUp."""
    try:
        told = signing.Signer(salt=_SALT).unsign_object(token)
    except signing.BadSignature:
        raise LinkUsedUp from None
    user = get_user_model().objects.filter(pk=told["user"], is_active=True).first()
    if user is None or told["until"] < now.timestamp():
        raise LinkUsedUp
    if not constant_time_compare(told["state"], _state(user)):
        raise LinkUsedUp
    return user


def use_up(token: str, *, now: datetime) -> Any:
    """The user, once: of two that come at the same time the second is refused."""
    require_transaction()
    user = user_of(token, now=now)
    rows = get_user_model().objects.filter(pk=user.pk, last_login=user.last_login)
    if not rows.update(last_login=now):
        raise LinkUsedUp
    user.last_login = now
    return user


def _state(user: Any) -> str:
    last_login = "" if user.last_login is None else user.last_login.isoformat()
    return salted_hmac(_SALT, f"{user.pk}:{last_login}:{user.password}").hexdigest()
