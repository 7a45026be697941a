"""The roster: all bots of the workspace."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from messaging import roster
from messaging.views.page import Page, is_fragment
from teams.models import Bot
from timeline.refusals import InvalidRequest

_MOST_ROWS = 200
SHOWN: Final[dict[str, Callable[[roster.Row], bool]]] = {
    "you": lambda row: row.needs_you,
    "working": lambda row: row.is_working,
}


def home(request: HttpRequest) -> HttpResponse:
    """GET / leads to the bots."""
    return redirect("bots")


class Roster(Page):
    """GET /bots/?q=&show= and, for a script, the rows of some conversations (?rows=)."""

    def get(self, request: HttpRequest) -> HttpResponse:
        if "rows" in request.GET:
            return self.some(request)
        words = request.GET.get("q", "").strip()
        show = request.GET.get("show", "")
        bots = Bot.objects.filter(workspace=self.workspace)
        active = roster.rows(bots.filter(is_active=True))
        inactive_count = bots.filter(is_active=False).count()
        rows = roster.rows(bots.filter(is_active=False)) if show == "inactive" else active
        is_shown = SHOWN.get(show)
        rows = [row for row in rows if is_shown is None or is_shown(row)]
        context: dict[str, Any] = {
            "rows": [row for row in rows if not words or row.matches(words)],
            "words": words,
            "show": show,
            "count": len(active),
            "chips": self._chips(active, show),
            "inactive_count": inactive_count,
            "is_inactive": show == "inactive",
        }
        name = "messaging/_roster.html" if is_fragment(request) else "messaging/roster.html"
        return self.show(request, name, **context)

    def some(self, request: HttpRequest) -> HttpResponse:
        """The rows whose conversations have news; a bot without one has no row among them."""
        ids = ids_in(request.GET["rows"])
        bots = Bot.objects.filter(workspace=self.workspace, is_active=True, tasks__in=ids)
        context = self.context(
            rows=roster.rows(bots.distinct()), is_compact="compact" in request.GET
        )
        return render(request, "messaging/_bot_rows.html", context)

    def _chips(self, active: list[roster.Row], show: str) -> list[dict[str, object]]:
        named = [("", _("All")), ("you", _("Needs you")), ("working", _("Working"))]
        return [
            {
                "show": key,
                "label": label,
                "count": len([row for row in active if not key or SHOWN[key](row)]),
                "is_here": key == show,
            }
            for key, label in named
        ]


def ids_in(listed: str) -> list[UUID]:
    """The ids of a list with commas."""
    try:
        return [UUID(part) for part in listed.split(",")[:_MOST_ROWS] if part]
    except ValueError as error:
        raise InvalidRequest(reason="This is no list of ids.") from error
