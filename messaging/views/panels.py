"""The panels of a conversation page, ready to show: templates ask nothing and compare nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from cowork.models import Task
from messaging import collaboration, rendering, roster, transcript, windows
from messaging.faces import Face, Faces
from messaging.histories import history_of
from messaging.views.page import Me
from teams.models import Bot
from timeline.ids import new_id
from timeline.projection import REASONS, Delivery
from timeline.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Trace:
    """A receipt and what its detail tells."""

    delivery: Delivery
    to: Face
    to_title: str
    note: str
    may_retry: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the transcript."""

    item: transcript.Item
    face: Face | None
    html: SafeString | None
    trace: Trace | None
    count: str = ""  # how many characters a text has that is clipped or cut
    is_clipped: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Composer:
    """The form under a transcript: the id of its next message, and a text that was refused."""

    message_id: str
    text: str = ""

    @classmethod
    def fresh(cls, text: str = "") -> "Composer":
        return cls(str(new_id()), text)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a message was not accepted, and with which button it was sent."""

    refusal: Refusal
    delivery_mode: str

    @property
    def is_conflict(self) -> bool:
        return self.refusal.code == "MESSAGE_ID_CONFLICT"

    @property
    def title(self) -> str:
        if self.is_conflict:
            return _("Not accepted: this id belongs to another message")
        return str(REASONS.get(self.refusal.code, _("Not accepted")))


@dataclass(frozen=True, slots=True)
class Teamwork:
    """The collaboration header with faces in place of parties."""

    header: collaboration.Header
    names: list[Face]
    handoffs: list[tuple[Face, collaboration.Handoff]]
    attention: list[tuple[Face, collaboration.Handoff]]


class Panels:
    """All that a conversation page shows, each panel with its own queries."""

    def __init__(self, *, bot: Bot, task: Task | None, me: Me, now: datetime) -> None:
        self._bot, self._task, self._me, self._now = bot, task, me, now

    def page(
        self,
        window: windows.Window | None = None,
        *,
        before: int | None = None,
        composer: Composer | None = None,
        refused: Refused | None = None,
        with_details: bool = False,
    ) -> dict[str, Any]:
        """Everything."""
        return {
            **self.rail(),
            **self._head(),
            "task": self._task,
            "window": window,
            "is_earlier": before is not None,
            "lines": self._lines(window.items) if window else [],
            "with_details": with_details,
            "rows": self._rows,
            "composer": composer or Composer.fresh(),
            "refused": refused,
        }

    def older(self, window: windows.Window) -> dict[str, Any]:
        """Earlier lines, and where those before them are."""
        return {
            "bot": self._bot,
            "task": self._task,
            "window": window,
            "lines": self._lines(window.items),
        }

    def changes(
        self, window: windows.Window | None, touched: list[transcript.Item]
    ) -> dict[str, Any]:
        """Lines that are new or changed, and the panels that tell where things stand."""
        known = {item.key: item for item in [*touched, *(window.items if window else [])]}
        items = sorted(known.values(), key=lambda item: (item.is_admitted, item.seq))
        return {
            **self._head(),
            "task": self._task,
            "window": window,
            "lines": self._lines(items),
        }

    def rail(self) -> dict[str, Any]:
        """The bot's facts and its past conversations."""
        past = history_of(self._bot)
        return {
            "bot": self._bot,
            "row": self._row,
            "team": self._task.team if self._task else None,
            "open_past": [one for one in past if not one.is_archived],
            "archived_past": [one for one in past if one.is_archived],
            "here": self._task.id if self._task else None,
        }

    def collab(self) -> Teamwork | None:
        """The collaboration header; None where no teammate was dealt with."""
        if self._task is None:
            return None
        found = windows.header(self._task, own_name=self._bot.display_name)
        if found is None:
            return None
        face = self._faces.of
        return Teamwork(
            found,
            [face(party) for party in found.teammates],
            [(face(handoff.teammate), handoff) for handoff in found.handoffs],
            [(face(handoff.teammate), handoff) for handoff in found.attention],
        )

    def line(self, item: transcript.Item, *, in_full: bool = False) -> Line:
        """One line; a long text is cut unless it is asked for in full."""
        trace = self._trace(item) if item.delivery is not None else None
        if item.is_hop:
            return Line(item, self._faces.of(item.recipient or {}), None, trace)
        if item.is_label or item.is_day:
            return Line(item, None, None, None)
        face = self._faces.of(item.sender) if item.sender else self._faces.said_by(self._bot)
        text = item.text
        if text is None:
            return Line(item, face, None, trace)
        is_cut = rendering.is_cut(text) and not in_full
        return Line(
            item,
            face,
            rendering.prose(rendering.beginning(text) if is_cut else text),
            trace,
            count=f"{len(text):,}",
            is_clipped=rendering.is_long(text) and not in_full and not is_cut,
            is_cut=is_cut,
        )

    def _lines(self, items: Iterable[transcript.Item]) -> list[Line]:
        zone = timezone.get_current_timezone()
        return [self.line(item) for item in transcript.with_days(items, zone)]

    def _head(self) -> dict[str, Any]:
        return {
            "bot": self._bot,
            "row": self._row,
            "collab": self.collab(),
            "composer_now": self._composer_now(),
            "may_send": self._may_send(),
        }

    def _composer_now(self) -> str:
        """What queueing means right now."""
        if self._task is not None and self._row.is_working:
            words = _("%s is working. A queued message is read when this turn ends.")
            return words % self._bot.display_name
        return _("Idle. A queued message waits until something starts a run.")

    def _may_send(self) -> bool:
        is_put_away = self._task is not None and self._task.is_archived
        return self._me.may_write and self._bot.is_active and not is_put_away

    @cached_property
    def _rows(self) -> list[roster.Row]:
        active = Bot.objects.filter(workspace_id=self._bot.workspace_id, is_active=True)
        return roster.rows(active)

    @cached_property
    def _row(self) -> roster.Row:
        """Where the shown conversation stands, which need not be the bot's latest."""
        return roster.row_of_conversation(self._bot, self._task)

    @cached_property
    def _faces(self) -> Faces:
        everybody = Bot.objects.filter(workspace_id=self._bot.workspace_id)
        return Faces(everybody, me=self._me.label)

    def _trace(self, item: transcript.Item) -> Trace:
        delivery = item.delivery
        assert delivery is not None
        if item.recipient is not None:
            to, title = self._faces.of(item.recipient), ""
        else:
            to = self._faces.said_by(self._bot)
            title = self._task.title if self._task else ""
        may_retry = delivery.is_failed and delivery.needs_a_person and self._me.may_retry
        return Trace(delivery, to, title, self._note(delivery, to), may_retry)

    def _note(self, delivery: Delivery, to: Face) -> str:
        """The one thing worth knowing about a message, if there is one."""
        if delivery.replied_at is not None:
            at = timezone.localtime(delivery.replied_at).strftime("%H:%M")
            return _("Reply received %(at)s as %(id)s") % {
                "at": at,
                "id": delivery.reply_message_id,
            }
        if delivery.is_waiting and not delivery.times.get("started"):
            return _("%s reads it at its next input boundary.") % to.name
        if delivery.is_delivered and delivery.attempt > 1:
            return _("Tried %d times. Shown once.") % delivery.attempt
        return delivery.reason or "" if not delivery.is_delivered else ""
