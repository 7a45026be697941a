"""Who opens a socket, and what they may watch: fills the port of `timeline/access.py`."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib import auth
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from cowork import credentials
from cowork.models import Task
from messaging import authority
from teams.models import Workspace
from teams.permissions import May, Principal, may
from timeline.access import Scope, Seen
from timeline.refusals import Refusal

WEB_SCHEMES = {"http", "https"}


class Visitors:
    """Agents and services by their bearer secret, people by their session."""

    def who(self, scope: Scope) -> object | None:
        """A principal, or the user of a session, who may be somebody in several workspaces."""
        given = _header(scope, b"authorization")
        if given is None:
            return _user_of_session(scope)
        scheme, _, secret = given.partition(" ")
        is_bearer = scheme.lower() == "bearer"
        return credentials.authenticate_bearer(secret.strip()) if is_bearer else None

    def may_see_stream(self, visitor: object, stream: UUID) -> Seen:
        task = Task.objects.select_related("workspace").filter(pk=stream).first()
        principal = _in_workspace(visitor, task.workspace.slug) if task is not None else None
        if task is None or principal is None:
            return "unknown"
        return "yes" if authority.may_see_task(principal, task) else "forbidden"

    def may_see_workspace(self, visitor: object, slug: str) -> Seen:
        principal = _in_workspace(visitor, slug)
        if principal is None:
            return "unknown"
        return "yes" if may(principal, May.READ) else "forbidden"

    def workspace_id(self, slug: str) -> UUID:
        return Workspace.objects.values_list("pk", flat=True).get(slug=slug)


def _in_workspace(visitor: object, slug: str) -> Principal | None:
    """Who a visitor is in a workspace; None where it is nobody."""
    if isinstance(visitor, Principal):
        return visitor if visitor.workspace_slug == slug else None
    try:
        return credentials.principal_of_user(visitor, slug)
    except Refusal:
        return None


def _user_of_session(scope: Scope) -> object | None:
    """The signed-in user whose browser opens it from one of our own pages."""
    key = parse_cookie(_header(scope, b"cookie") or "").get(settings.SESSION_COOKIE_NAME)
    if not key or not _is_from_our_page(scope):
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Django asks for a request, of which it reads the session.
    request: Any = SimpleNamespace(session=session)
    user = auth.get_user(request)
    return user if user.is_authenticated and user.is_active else None


def _is_from_our_page(scope: Scope) -> bool:
    """Browsers send cookies with sockets of any page, so the page's address decides."""
    origin = _header(scope, b"origin")
    if origin is None:
        return False
    if origin == settings.COWORK_PUBLIC_URL:
        return True
    parts = urlsplit(origin)
    host = _header(scope, b"host") or ""
    domain, _ = split_domain_port(host)
    is_ours = parts.scheme in WEB_SCHEMES and parts.netloc.lower() == host.lower()
    if settings.SESSION_COOKIE_SECURE and parts.scheme != "https":
        return False
    return is_ours and validate_host(domain, settings.ALLOWED_HOSTS)


def _header(scope: Scope, name: bytes) -> str | None:
    for found, value in scope["headers"]:
        if found == name:
            return str(value.decode("latin-1"))
    return None
