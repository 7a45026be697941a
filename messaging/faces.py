"""Faces: how a sender looks on a page. People are round, agents are square (DESIGN §1)."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from teams.models import Bot
from timeline.projection import Party


@dataclass(frozen=True, slots=True)
class Face:
    """Somebody, ready to show."""

    name: str
    kind: str  # person, bot, teammate, system: the shape of the mark beside the name
    provenance: str
    hue: str = ""
    icon: str = ""
    handle: str = ""
    is_you: bool = False

    @property
    def is_round(self) -> bool:
        return self.kind == "person"

    @property
    def is_teammate(self) -> bool:
        return self.kind == "teammate"

    @property
    def initial(self) -> str:
        return self.name[:1].upper()


class Faces:
    """The faces of a workspace, seen by one person in the conversation of one bot."""

    def __init__(self, bots: Iterable[Bot], *, me: str) -> None:
        self._bots = {bot.handle: bot for bot in bots}
        self._me = me

    def of(self, party: Party) -> Face:
        """The face of a sender or a recipient that an event names."""
        if party["kind"] == "person":
            is_you = party["label"] == self._me
            name = _("You") if is_you else party["label"]
            return Face(name, "person", _("Person"), is_you=is_you)
        if party["kind"] == "service":
            return Face(party["label"], "system", _("System"), "slate", "server")
        bot = self._bots.get(party["bot"] or "")
        if bot is None:
            return Face(party["label"], "teammate", _("Teammate"), "slate", "bot")
        return Face(bot.display_name, "teammate", _("Teammate"), bot.colour, bot.icon, bot.handle)

    def said_by(self, bot: Bot) -> Face:
        """The face of the bot whose conversation it is."""
        return Face(bot.display_name, "bot", _("Bot"), bot.colour, bot.icon, bot.handle)
