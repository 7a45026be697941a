"""The pages of signing in and out."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from cowork import attempts, credentials
from teams import entering, sign_in_links
from timeline.clock import system_clock


@method_decorator(never_cache, name="dispatch")
class SignIn(View):
    """GET shows the form, POST opens a session and leads to where the person was going."""

    def get(self, request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect("/")
        return render(request, "cowork/sign_in.html", {"next": request.GET.get("next", "")})

    @method_decorator(sensitive_post_parameters("password"))
    @method_decorator(sensitive_variables("password"))
    def post(self, request: HttpRequest) -> HttpResponse:
        username = request.POST.get("username", "")[:150]
        password = request.POST.get("password", "")[:1024]
        address = request.META.get("REMOTE_ADDR", "")
        try:
            attempts.refuse_if_too_many(username, address, now=system_clock.now())
        except attempts.TooManyAttempts as refusal:
            return self._again(request, str(refusal), status=refusal.status)
        # Takes equally long for a name that nobody bears.
        is_sane = "\0" not in username + password
        user = authenticate(request, username=username, password=password) if is_sane else None
        if user is None or not credentials.roles_of(user):
            attempts.note_failure(username, address, now=system_clock.now())
            return self._again(request, _("This name and this password do not belong together."))
        attempts.note_success(username, address)
        login(request, user)
        if "keep" not in request.POST:
            request.session.set_expiry(0)  # until the browser is closed
        return redirect(_own_address(request, request.POST.get("next", "")))

    def _again(self, request: HttpRequest, error: str, *, status: int = 401) -> HttpResponse:
        context: dict[str, Any] = {
            "error": error,
            "username": request.POST.get("username", ""),
            "next": request.POST.get("next", ""),
            "keep": "keep" in request.POST,
        }
        return render(request, "cowork/sign_in.html", context, status=status)


@method_decorator(never_cache, name="dispatch")
class SignInByLink(View):
    """GET shows one button and uses nothing up; POST signs in, once (SPEC §16.1)."""

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            sign_in_links.user_of(token, now=system_clock.now())
        except sign_in_links.LinkUsedUp as refusal:
            return self._refused(request, refusal)
        return self._show(request, {"token": token}, status=200)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            user = entering.enter(token, clock=system_clock)
        except sign_in_links.LinkUsedUp as refusal:
            return self._refused(request, refusal)
        login(request, user)
        return redirect("/")

    def _refused(self, request: HttpRequest, refusal: sign_in_links.LinkUsedUp) -> HttpResponse:
        return self._show(request, {"error": refusal.detail}, status=refusal.status)

    def _show(self, request: HttpRequest, context: dict[str, Any], *, status: int) -> HttpResponse:
        return render(request, "cowork/sign_in.html", context, status=status)


class SignOut(View):
    """POST ends the session."""

    def post(self, request: HttpRequest) -> HttpResponseBase:
        logout(request)
        return redirect("sign-in")

    def get(self, request: HttpRequest) -> HttpResponseBase:
        return redirect("/")


class StaffSignIn(View):
    """GET: where the admin sends whom it does not let in."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        wanted = request.GET.get("next", "/admin/")
        if not request.user.is_authenticated:
            return redirect_to_login(wanted)
        if not request.user.is_staff:
            raise PermissionDenied
        return redirect(_own_address(request, wanted))


def _own_address(request: HttpRequest, asked: str) -> str:
    """Where to go on: an address of this server, else the bots."""
    is_own = url_has_allowed_host_and_scheme(
        asked, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return asked if is_own and urlsplit(asked).path.startswith("/") else "/"
