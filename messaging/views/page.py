"""The ground of the pages: a signed-in person in a workspace, and what becomes of refusals."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.views import View

from cowork import credentials
from teams.models import Workspace
from teams.permissions import May, Principal, may, require
from timeline.clock import system_clock
from timeline.refusals import Forbidden, InvalidRequest, NotFound, Refusal


@dataclass(frozen=True, slots=True)
class Me:
    """Who looks at the page."""

    principal: Principal
    is_staff: bool

    @property
    def label(self) -> str:
        return self.principal.label

    @property
    def initial(self) -> str:
        return self.label[:1].upper()

    @property
    def may_write(self) -> bool:
        return may(self.principal, May.FOLLOW_UP)

    @property
    def may_edit(self) -> bool:
        return may(self.principal, May.EDIT_TASKS)

    @property
    def may_open(self) -> bool:
        return may(self.principal, May.OPEN_TASKS)

    @property
    def may_retry(self) -> bool:
        return may(self.principal, May.HANDLE_RECEIPTS)

    @property
    def may_manage(self) -> bool:
        return may(self.principal, May.MANAGE)


class Page(View):
    """A page of a workspace. Who is not signed in is led to do so and back."""

    permission = May.READ
    me: Me
    workspace: Workspace

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect(f"/sign-in/?{urlencode({'next': request.get_full_path()})}")
        try:
            self._enter(request, request.user)
            require(self.me.principal, self.permission)
            response = super().dispatch(request, *args, **kwargs)
        except Forbidden as refusal:
            raise PermissionDenied from refusal
        except Refusal as refusal:
            if refusal.status == NotFound.status:
                raise Http404 from refusal
            response = self.refused(request, refusal)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def _enter(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        people = credentials.roles_of(user)
        if not people:
            raise Forbidden
        named = request.session.get("workspace")
        person = next((one for one in people if one.workspace.slug == named), people[0])
        self.me = Me(credentials.principal_of_person(person), getattr(user, "is_staff", False))
        self.workspace = person.workspace

    def refused(self, request: HttpRequest, refusal: Refusal) -> HttpResponse:
        """The answer to a request that a rule refuses, where the page has no place for it."""
        context = self.context(refusal=refusal)
        return render(request, "messaging/refused.html", context, status=refusal.status)

    def show(
        self, request: HttpRequest, template: str, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        return render(request, template, self.context(**more), status=status)

    def context(self, **more: Any) -> dict[str, Any]:
        return {"me": self.me, "workspace": self.workspace, "now": system_clock.now(), **more}


def is_fragment(request: HttpRequest) -> bool:
    """Whether a script asks for a part of the page."""
    return request.headers.get("HX-Request") == "true"


def field(request: HttpRequest, name: str) -> str:
    """A field of a form. NUL is refused, as everywhere (SPEC §2.6)."""
    value: str = request.POST.get(name, "")
    if "\0" in value:
        raise InvalidRequest(reason=f"{name}: the character NUL is not taken.")
    return value.replace("\r\n", "\n")
