"""Creating, editing and deleting bots, for managers."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import slugify
from django.utils.translation import gettext as _

from messaging import histories, leaving
from messaging.views.page import Page, field
from teams import founding
from teams.models import Bot, RuntimeProfile
from teams.permissions import May
from timeline.clock import system_clock
from timeline.ids import new_id
from timeline.refusals import Refusal

ICONS = {
    "hammer": _("Hammer"), "compass": _("Compass"), "feather": _("Feather"),
    "telescope": _("Telescope"), "ship": _("Ship"), "shield": _("Shield"), "scale": _("Scale"),
    "megaphone": _("Megaphone"), "workflow": _("Workflow"), "anchor": _("Anchor"),
    "lightbulb": _("Lightbulb"), "wrench": _("Wrench"),
}  # fmt: skip
HUES = ("rust", "ochre", "moss", "lake", "slate", "iris", "plum", "rose")
FIELDS = ("display_name", "description", "instructions", "icon", "colour", "runtime")


class BotForm(Page):
    """What creating and editing share: the fields, and what was wrong with them."""

    permission = May.MANAGE

    def form(self, given: dict[str, str], refusal: Refusal | None = None) -> dict[str, Any]:
        profiles = RuntimeProfile.objects.filter(workspace=self.workspace, is_active=True)
        return {
            "given": given,
            "icons": ICONS.items(),
            "hues": [(hue, Bot.Colour(hue).label) for hue in HUES],
            "profiles": profiles.order_by("name").values_list("name", flat=True),
            "refusal": refusal,
        }

    def given(self, request: HttpRequest) -> dict[str, Any]:
        return {name: field(request, name) for name in FIELDS if name in request.POST}


class CreateBot(BotForm):
    """GET and POST /bots/new/."""

    def get(self, request: HttpRequest) -> HttpResponse:
        fresh = {"icon": "hammer", "colour": "rust", "runtime": RuntimeProfile.EXTERNAL_NAME}
        return self.show(request, "messaging/bot_new.html", **self.form(fresh))

    def post(self, request: HttpRequest) -> HttpResponse:
        given = self.given(request)
        try:
            bot = founding.make_bot(
                **{"display_name": "", "runtime": RuntimeProfile.EXTERNAL_NAME, **given},
                handle=handle_from(given.get("display_name", ""), new_id()),
                by=self.me.principal,
                clock=system_clock,
            )
        except Refusal as refusal:
            context = self.form(given, refusal)
            return self.show(request, "messaging/bot_new.html", status=refusal.status, **context)
        return redirect("bot", bot.handle)


class EditBot(BotForm):
    """GET and POST /bots/<handle>/edit/."""

    def get(self, request: HttpRequest, handle: str) -> HttpResponse:
        bot = self.bot(handle)
        given = {name: getattr(bot, name) for name in FIELDS if name != "runtime"}
        return self._form(request, bot, {**given, "runtime": bot.runtime.name})

    def post(self, request: HttpRequest, handle: str) -> HttpResponse:
        bot = self.bot(handle)
        given: dict[str, Any] = self.given(request)
        try:
            founding.edit_bot(handle, by=self.me.principal, clock=system_clock, **given)
        except Refusal as refusal:
            return self._form(request, bot, given, refusal)
        return redirect("bot", handle)

    def bot(self, handle: str) -> Bot:
        rows = Bot.objects.select_related("runtime").filter(workspace=self.workspace)
        return get_object_or_404(rows, handle=handle)

    def _form(
        self,
        request: HttpRequest,
        bot: Bot,
        given: dict[str, str],
        refusal: Refusal | None = None,
    ) -> HttpResponse:
        past = histories.history_of(bot)
        return self.show(
            request,
            "messaging/bot_edit.html",
            status=refusal.status if refusal else 200,
            bot=bot,
            count=len(past),
            archived_count=len([one for one in past if one.is_archived]),
            **self.form(given, refusal),
        )


class DeleteBot(EditBot):
    """POST /bots/<handle>/delete/: off the roster; everything it said stays readable."""

    def get(self, request: HttpRequest, handle: str) -> HttpResponse:
        return redirect("bot-edit", handle)

    def post(self, request: HttpRequest, handle: str) -> HttpResponse:
        bot = self.bot(handle)
        try:
            leaving.deactivate_bot(handle, by=self.me.principal, clock=system_clock)
        except Refusal as refusal:
            return self._form(request, bot, {}, refusal)
        return redirect("bots")


class BringBack(EditBot):
    """POST /bots/<handle>/back/: a deactivated bot is used again."""

    def get(self, request: HttpRequest, handle: str) -> HttpResponse:
        return redirect("bot-edit", handle)

    def post(self, request: HttpRequest, handle: str) -> HttpResponse:
        self.bot(handle)
        founding.edit_bot(handle, is_back=True, by=self.me.principal, clock=system_clock)
        return redirect("bot", handle)


def handle_from(name: str, unlike: UUID) -> str:
    """A handle made of a name; where the name has no letters for it, of a part of an id."""
    made = slugify(name).replace("_", "-")[:64].strip("-")
    return made or f"bot-{unlike.hex[-6:]}"
