"""The collaboration header: who of the team is on it, from a task's events (DESIGN §4).

A pure function of events as readers get them, oldest first; it has no state of its own. Needed are
the messages sent and received that may matter, their states, and the turns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from timeline.projection import Delivery, Facts, Party, deliveries, moment

RECENT = 5


class State(models.TextChoices):
    """Where the collaboration stands; of several the first counts."""

    WAITING = "waiting", _("Waiting on a teammate")
    WORKING = "working", _("Working with the team")
    FINISHED = "finished", _("Finished")


GLYPHS = {State.WAITING: "wait", State.WORKING: "work", State.FINISHED: "done"}


@dataclass(frozen=True, slots=True)
class Handoff:
    """A message to or from a teammate."""

    teammate: Party
    preview: str
    delivery: Delivery
    at: datetime
    seq: int
    is_sent: bool
    asks_reply: bool

    @property
    def reply_label(self) -> str:
        if not self.asks_reply:
            return str(_("No reply asked"))
        if self.delivery.reply_status == "received":
            return str(_("Reply received"))
        if self.delivery.reply_status == "timed_out":
            return str(_("No reply in time"))
        return str(_("Reply not read yet"))


@dataclass(frozen=True, slots=True)
class Header:
    """What the header shows: a state, a sentence about teammates, what needs a person."""

    state: State
    teammates: list[Party]
    text: str  # follows the teammates' names
    since: datetime | None
    handoffs: list[Handoff]
    latest: str | None
    attention: list[Handoff]

    @property
    def glyph(self) -> str:
        return GLYPHS[self.state]

    @property
    def is_live(self) -> bool:
        return self.state is State.WORKING


def header(events: Iterable[Facts], *, own_name: str) -> Header | None:
    """The header of a task; None for one that never dealt with a teammate."""
    events = list(events)
    standing = deliveries(events)
    sent = [_sent(event, standing) for event in events if event["type"] == "agent_message"]
    got = [
        _received(event, standing)
        for event in events
        if event["type"] == "user_message" and event["payload"]["source"] == "agent"
    ]
    if not sent and not got:
        return None
    both = sorted([*sent, *got], key=lambda handoff: handoff.seq)
    human = _human_turn(events)
    current = [handoff for handoff in sent if handoff.seq > human]
    awaited = [handoff for handoff in current if handoff.delivery.is_awaited]
    if awaited and not _is_running(events):
        state, teammates, text, since = _waiting(awaited)
    elif _is_running(events) and current:
        state, teammates, text, since = _working(current, awaited, own_name)
    else:
        state, teammates, text, since = _finished(sent, both)
    return Header(
        state,
        teammates,
        text,
        since,
        handoffs=both[: -RECENT - 1 : -1],
        latest=_latest(events),
        attention=[handoff for handoff in sent if handoff.delivery.needs_a_person],
    )


_Sentence = tuple[State, list[Party], str, datetime | None]


def _waiting(awaited: list[Handoff]) -> _Sentence:
    if len(awaited) > 1:
        text = str(_("have requests of this conversation; the newest was sent"))
        return State.WAITING, _each(awaited), text, awaited[-1].at
    [one] = awaited
    text = str(_("has “%(preview)s”, %(state)s")) % {
        "preview": _short(one.preview),
        "state": one.delivery.label.lower(),
    }
    return State.WAITING, [one.teammate], text, one.delivery.at


def _working(current: list[Handoff], awaited: list[Handoff], own_name: str) -> _Sentence:
    on_it = awaited or current
    text = str(_("and %(name)s are on it; the newest request was sent")) % {"name": own_name}
    return State.WORKING, _each(on_it), text, on_it[-1].at


def _finished(sent: list[Handoff], both: list[Handoff]) -> _Sentence:
    answered = [one for one in sent if one.delivery.replied_at is not None]
    if answered:
        newest = max(answered, key=lambda one: one.delivery.replied_at or one.at)
        text = str(_("answered “%(preview)s”; reply received"))
        text %= {"preview": _short(newest.preview)}
        return State.FINISHED, [newest.teammate], text, newest.delivery.replied_at
    newest = both[-1]
    words = (
        _("got “%(preview)s”, %(state)s") if newest.is_sent else _("sent “%(preview)s”, %(state)s")
    )
    text = str(words) % {
        "preview": _short(newest.preview),
        "state": newest.delivery.label.lower(),
    }
    return State.FINISHED, [newest.teammate], text, newest.delivery.at


def _sent(event: Facts, standing: Mapping[str, Delivery]) -> Handoff:
    told = event["payload"]
    return Handoff(
        told["recipient"],
        told["preview"] or "",
        standing[told["receipt_id"]],
        moment(event),
        event["seq"],
        is_sent=True,
        asks_reply=told["handoff"],
    )


def _received(event: Facts, standing: Mapping[str, Delivery]) -> Handoff:
    told = event["payload"]
    delivery = standing[told["receipt_id"]]
    return Handoff(
        told["sender"],
        told["text"] or "",
        delivery,
        moment(event),
        event["seq"],
        is_sent=False,
        asks_reply=delivery.reply_status is not None,
    )


def _human_turn(events: Iterable[Facts]) -> int:
    """The number of the newest input of a person or a service that was taken in; 0 for none."""
    seq = 0
    for event in events:
        if event["type"] == "user_message" and event["payload"]["source"] != "agent":
            seq = event["seq"]
    return seq


def _is_running(events: Iterable[Facts]) -> bool:
    turns = [event["type"] for event in events if event["type"] in ("turn_started", "turn_ended")]
    return bool(turns) and turns[-1] == "turn_started"


def _latest(events: Iterable[Facts]) -> str | None:
    """The newest text that the agent said."""
    said = [event["payload"]["text"] for event in events if event["type"] == "assistant_message"]
    return said[-1] if said else None


def _each(handoffs: Iterable[Handoff]) -> list[Party]:
    found = {handoff.teammate["label"]: handoff.teammate for handoff in handoffs}
    return list(found.values())


def _short(text: str, length: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
