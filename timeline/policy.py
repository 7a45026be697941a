"""The content security policy of every answer (DESIGN §7)."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

Answer = Callable[[HttpRequest], HttpResponse]

_COMMON: Final = "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
PAGES: Final = f"default-src 'self'; connect-src 'self'; {_COMMON}"
# The API's documentation sets its widget up in a script within the page.
DOCUMENTATION: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    f"img-src 'self' data:; {_COMMON}"
)
# The admin's theme evaluates expressions that stand in attributes.
ADMIN: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    f"style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; {_COMMON}"
)


class ContentSecurityPolicy:
    """Says to browsers where scripts, styles and connections may come from: this server."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy_for(request.path))
        return response


def policy_for(path: str) -> str:
    """The policy of an address."""
    if path.startswith("/admin/"):
        return ADMIN
    if path.startswith("/api/docs"):
        return DOCUMENTATION
    return PAGES
