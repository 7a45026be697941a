"""What a browser prefers, by its cookies: the theme, and the zone in which times are written."""

from collections.abc import Callable
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

Answer = Callable[[HttpRequest], HttpResponse]
_THEMES = ("light", "dark")


class TimesOfTheReader:
    """Writes times in the zone that the browser named; without scripts they are in UTC."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = _zone(unquote(request.COOKIES.get("zone", "")))
        if zone is None:
            return self.get_response(request)
        with timezone.override(zone):
            return self.get_response(request)


def _zone(named: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(named) if named else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None  # a cookie says what it likes


def theme(request: HttpRequest) -> dict[str, str]:
    """The pinned theme for templates; empty where it follows the system."""
    chosen = request.COOKIES.get("theme", "")
    return {"theme": chosen if chosen in _THEMES else ""}
