"""The transcript: what a task's events say as a conversation (SPEC §5.6, DESIGN §4).

A pure function of events as readers get them, oldest first. Each message is there once, whatever
the number of attempts; tool activity, notes and the protocol are not.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from timeline.projection import Delivery, Facts, Party, deliveries, moment

# The types of events that stand in the transcript by themselves.
SHOWN = ("user_message", "assistant_message", "agent_message")
_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(.*)\n\s*```\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the transcript; `key` is its address on the page."""

    kind: str
    key: str
    seq: int
    at: datetime
    sender: Party | None = None
    text: str | None = None
    delivery: Delivery | None = None
    recipient: Party | None = None
    is_handoff: bool = False
    is_admitted: bool = False  # accepted, and not taken in yet

    @property
    def is_day(self) -> bool:
        return self.kind == "day"

    @property
    def is_message(self) -> bool:
        """A message to the bot."""
        return self.kind == "message"

    @property
    def is_said(self) -> bool:
        """What the bot itself said."""
        return self.kind == "said"

    @property
    def is_hop(self) -> bool:
        """A handoff that the bot sent: one line."""
        return self.kind == "hop"

    @property
    def is_label(self) -> bool:
        """A receipt that the bot said, told as a label instead (SPEC §18)."""
        return self.kind == "label"

    @property
    def is_erased(self) -> bool:
        return self.text is None


def items(events: Iterable[Facts], waiting_texts: Mapping[str, str | None]) -> list[Item]:
    """The transcript in the order of taking in; what is only admitted comes last.

    `waiting_texts` has the text of each message that was admitted and not taken in, by receipt:
    its text stands in no event of the recipient yet.
    """
    events = list(events)
    standing = deliveries(events)
    taken_in = {
        event["payload"]["receipt_id"] for event in events if event["type"] == "user_message"
    }
    settled: list[Item] = []
    waiting: list[Item] = []
    for event in events:
        if event["type"] == "agent_follow_up_scheduled":
            receipt_id = event["payload"]["receipt_id"]
            if receipt_id in taken_in or receipt_id not in waiting_texts:
                continue
            item = _admitted(event, standing[receipt_id], waiting_texts[receipt_id])
            # A closed message will never be taken in: it stays where it was admitted.
            (settled if standing[receipt_id].is_closed else waiting).append(item)
        elif (make := _MAKERS.get(event["type"])) is not None:
            settled.append(make(event, standing))
    return settled + waiting


def with_days(rows: Iterable[Item], zone: tzinfo) -> Iterator[Item]:
    """The rows with a line before the first one of each day, once for each day."""
    shown = set()
    for row in rows:
        local = row.at.astimezone(zone)
        if local.date() not in shown:
            shown.add(local.date())
            yield Item("day", f"day_{local.date()}", row.seq, local)
        yield row


def _taken_in(event: Facts, standing: Mapping[str, Delivery]) -> Item:
    told = event["payload"]
    return Item(
        "message",
        f"msg_{told['receipt_id']}",
        event["seq"],
        moment(event),
        sender=told["sender"],
        text=told["text"],
        delivery=standing[told["receipt_id"]],
    )


def _admitted(event: Facts, delivery: Delivery, text: str | None) -> Item:
    told = event["payload"]
    return Item(
        "message",
        f"msg_{told['receipt_id']}",
        event["seq"],
        moment(event),
        sender=told["sender"],
        text=text,
        delivery=delivery,
        is_admitted=not delivery.is_closed,
    )


def _sent(event: Facts, standing: Mapping[str, Delivery]) -> Item:
    told = event["payload"]
    return Item(
        "hop",
        f"msg_{told['receipt_id']}",
        event["seq"],
        moment(event),
        text=told["preview"],
        delivery=standing[told["receipt_id"]],
        recipient=told["recipient"],
        is_handoff=told["handoff"],
    )


def _said(event: Facts, _standing: Mapping[str, Delivery]) -> Item:
    text = event["payload"]["text"]
    receipt = receipt_in(text) if text is not None else None
    at = moment(event)
    if receipt is not None:
        return Item("label", f"msg_{event['seq']}", event["seq"], at, text=label_of(receipt))
    return Item("said", f"msg_{event['seq']}", event["seq"], at, text=text)


_MAKERS = {"user_message": _taken_in, "agent_message": _sent, "assistant_message": _said}


def receipt_in(text: str) -> dict[str, Any] | None:
    """The receipt that a text consists of, bare or in a code fence; None for any other text."""
    fenced = _FENCED.match(text)
    bare = (fenced.group(1) if fenced else text).strip()
    if not bare.startswith("{"):
        return None
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    is_receipt = "delivery_status" in found and ("receipt_id" in found or "message_id" in found)
    return found if is_receipt else None


def label_of(receipt: Mapping[str, Any]) -> str:
    """A receipt in few words: its state, and the beginning of its id."""
    named = str(receipt.get("message_id") or receipt.get("receipt_id") or receipt.get("id"))
    return f"Receipt {named[:8]}: {receipt['delivery_status']}"
