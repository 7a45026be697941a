"""One path, with or without a slash at its end (docs/wire.md)."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

API = "/api/"


class SlashIsNoMatter:
    """Middleware: a path of the API answers with a slash at its end as it does without."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(API) and request.path_info.endswith("/"):
            request.path_info = request.path_info.rstrip("/")
        return self._get_response(request)
