"""Who calls over HTTP: a bearer secret, or a session with its token (docs/wire.md)."""

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from cowork import credentials, issuing
from cowork.models import Credential
from teams.permissions import Principal
from timeline.clock import system_clock
from timeline.refusals import DatabaseBusy, Forbidden, NotFound

logger = logging.getLogger(__name__)


class BearerOrSession(BaseAuthentication):
    """Names the principal. A request with an Authorization header never opens a session.

    A view that says `needs_workspace = False` is asked before one is chosen: there the first of a
    person's workspaces stands in for it.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Credential | None] | None:
        header = request.headers.get("Authorization")
        if header is not None:
            return self._bearer(request, header)
        user = request._request.user
        if not user.is_authenticated:
            return None
        check_token_of_page(request)
        return _person(request, user), None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def _bearer(self, request: Request, header: str) -> tuple[Principal, Credential]:
        scheme, _, secret = header.partition(" ")
        credential = credentials.find(secret.strip()) if scheme.lower() == "bearer" else None
        if credential is None:
            raise AuthenticationFailed
        principal = credentials.principal_of(credential)
        named = named_workspace(request)
        if named is not None and named != principal.workspace_slug:
            raise NotFound
        note_use(credential)
        return principal, credential


def _person(request: Request, user: Any) -> Principal:
    """Who a signed-in user is in this request."""
    named = named_workspace(request)
    needs_one = getattr(request.parser_context["view"], "needs_workspace", True)
    people = credentials.roles_of(user)
    if named is None and not needs_one and people:
        return credentials.principal_of_person(people[0])
    return credentials.principal_of_user(user, named)


def named_workspace(request: Request) -> str | None:
    named: str | None = request.headers.get(credentials.WORKSPACE_HEADER)
    return named


def note_use(credential: Credential) -> None:
    """Remember the use of a credential, at most once a minute."""
    if not credentials.use_is_stale(credential, system_clock.now()):
        return
    try:
        issuing.note_use(credential, clock=system_clock)
    except DatabaseBusy:
        # The call itself matters more than a note of it; the next one makes it.
        logger.info("the use of %s was not noted: the database is busy", credential)


def check_token_of_page(request: Request) -> None:
    """Refuse an unsafe call of a session that does not carry the token of its page."""
    check = CSRFCheck(_no_response)
    check.process_request(request._request)
    if check.process_view(request._request, _no_response, (), {}) is not None:
        raise Forbidden


def _no_response(request: HttpRequest) -> HttpResponse:
    raise AssertionError("only the check is used")
