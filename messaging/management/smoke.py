"""The live check: one prompt, four proofs, each read from a record of its own (SPEC §17)."""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from messaging.management.control_plane import ControlPlane, Refused

PROOFS: Final = ("sender_delivered", "recipient_delivered", "acknowledged", "reply_received")
PASSED: Final = "protocol proven; rendering not checked"
DIAGNOSTIC: Final = "Diagnostic only: not both are bot conversations, so this proves no delivery."

Facts = dict[str, Any]


class Unfit(Exception):
    """These two tasks can't be checked with each other."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The two conversations, as they were before the check."""

    sender: Facts
    recipient: Facts

    @property
    def is_of_bots(self) -> bool:
        return all(is_bot_conversation(task) for task in (self.sender, self.recipient))


def is_bot_conversation(task: Facts) -> bool:
    return task["kind"] == "bot_conversation" and task["bot"] is not None


def name(task: Facts) -> str:
    return f"@{task['bot']}" if task["bot"] else f"task {task['id']}"


def find_pair(
    plane: ControlPlane, sender_id: str, recipient_id: str, *, may_be_others: bool
) -> Pair:
    """The two tasks, if they can be checked with each other. Raises Unfit, OutOfReach."""
    if sender_id == recipient_id:
        raise Unfit("Sender and recipient are the same task. Name two different ones.")
    pair = Pair(find(plane, sender_id), find(plane, recipient_id))
    if pair.sender["workspace"] != pair.recipient["workspace"]:
        raise Unfit("The two tasks are not in the same workspace.")
    for task in (pair.sender, pair.recipient):
        if not (is_bot_conversation(task) or may_be_others):
            raise Unfit(f"Task {task['id']} is no conversation of a bot; see --allow-non-bot.")
    return pair


def find(plane: ControlPlane, task_id: str) -> Facts:
    try:
        return plane.get(f"tasks/{task_id}")
    except Refused as refusal:
        raise Unfit(f"Task {task_id} can't be read. {refusal}") from refusal


def made_up(kind: str) -> str:
    """A word that stands nowhere yet."""
    return f"{kind}-{secrets.token_hex(8)}"


def prompt(pair: Pair, *, marker: str, ack: str) -> str:
    """What the sender is told."""
    return (
        "This is a live check of how you and a teammate hand each other work.\n"
        f"TO: {name(pair.recipient)}\n"
        f"MARKER: {marker}\n"
        f"ACK: {ack}\n"
        "Send one message to the teammate named after TO. Put the lines MARKER and ACK into it as "
        "they stand here, and ask for an answer that holds the word after ACK. Send nothing else, "
        "and do not answer in the teammate's place. Its answer reaches you by itself."
    )


@dataclass(slots=True)
class Check:
    """One run of it: begin, then look until it has passed or is over."""

    plane: ControlPlane
    pair: Pair
    marker: str
    ack: str
    proofs: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(PROOFS, False))
    _after: dict[str, int] = field(default_factory=dict)
    _prompted: Facts = field(default_factory=dict)
    _message: Facts | None = None  # the receipt of the sender's message with the marker
    _delivered_at: set[tuple[str, str]] = field(default_factory=set)  # side and receipt
    _taken_in: set[str] = field(default_factory=set)  # receipts whose text had the marker

    @property
    def has_passed(self) -> bool:
        return all(self.proofs.values())

    @property
    def is_over(self) -> bool:
        """Whether waiting longer is of no use."""
        at_rest = ("failed", "quarantined")
        stands = [self._prompted, *([self._message] if self._message else [])]
        is_stuck = any(receipt["delivery_status"] in at_rest for receipt in stands)
        is_late = self._message is not None and self._message["reply_status"] == "timed_out"
        return self.has_passed or is_stuck or is_late

    def begin(self) -> None:
        """Give the sender its prompt. Raises Refused, OutOfReach."""
        for task in (self.pair.sender, self.pair.recipient):
            self._after[task["id"]] = task["last_seq"]
        self._prompted = self.plane.post(
            f"tasks/{self.pair.sender['id']}/follow_ups",
            message=prompt(self.pair, marker=self.marker, ack=self.ack),
            message_id=self.ack,
        )

    def look(self) -> None:
        """See what has come to be since the last look. Raises Refused, OutOfReach."""
        self._prompted = self.plane.get(f"receipts/{self._prompted['id']}")
        self._see_news(self.pair.sender, self._see_at_sender)
        self._see_news(self.pair.recipient, self._see_at_recipient)
        if self._message is None:
            return
        self._message = self.plane.get(f"receipts/{self._message['id']}")
        original = self._message["id"]
        self.proofs["sender_delivered"] = ("sender", original) in self._delivered_at
        self.proofs["recipient_delivered"] = (
            original in self._taken_in and ("recipient", original) in self._delivered_at
        )
        self.proofs["reply_received"] = (
            self._message["reply_status"] == "received"
            and self._message["reply_message_id"] is not None
        )

    def _see_news(self, task: Facts, see: Callable[[str, Facts], None]) -> None:
        for event in self.plane.events(task["id"], after=self._after[task["id"]]):
            see(event["type"], event["payload"])
            self._after[task["id"]] = event["seq"]

    def _see_at_sender(self, kind: str, told: Facts) -> None:
        self._see_delivery(kind, told)
        is_to_it = kind == "agent_message" and told["recipient"]["task_id"] == self._recipient_id
        if not is_to_it or self._message is not None:
            return
        receipt = self.plane.get(f"receipts/{told['receipt_id']}")
        if holds(receipt["message"], self.marker):
            self._message = receipt

    def _see_at_recipient(self, kind: str, told: Facts) -> None:
        self._see_delivery(kind, told)
        if kind == "user_message" and told["sender"]["task_id"] == self.pair.sender["id"]:
            if holds(told["text"], self.marker):
                self._taken_in.add(told["receipt_id"])
        elif kind == "assistant_message" and told["own"] and holds(told["text"], self.ack):
            # What a tool repeats is another event and proves nothing.
            self.proofs["acknowledged"] = True

    def _see_delivery(self, kind: str, told: Facts) -> None:
        if kind == "message_status" and told["to"] == "delivered":
            self._delivered_at.add((told["side"], told["receipt_id"]))

    @property
    def _recipient_id(self) -> str:
        return str(self.pair.recipient["id"])

    @property
    def snapshot(self) -> Facts:
        """Where everything stood at the last look."""
        return {
            "marker": self.marker,
            "prompt": shown(self._prompted),
            "message": shown(self._message) if self._message else None,
            "sender": {"task_id": self.pair.sender["id"], "bot": self.pair.sender["bot"]},
            "recipient": {"task_id": self._recipient_id, "bot": self.pair.recipient["bot"]},
        }

    @property
    def hint(self) -> str:
        """What to look at, by what is missing first."""
        sender, recipient = name(self.pair.sender), name(self.pair.recipient)
        if self.has_passed:
            return PASSED
        if self._prompted["delivery_status"] != "delivered":
            return f"The prompt to {sender} is {standing(self._prompted)}."
        if self._message is None:
            return f"{sender} has taken the prompt in and sent {recipient} no message with it."
        if self._message["delivery_status"] != "delivered":
            return f"The message of {sender} to {recipient} is {standing(self._message)}."
        if not self.proofs["recipient_delivered"]:
            return f"The timeline of {recipient} does not hold the message with the marker."
        if not self.proofs["acknowledged"]:
            return f"{recipient} has taken the message in and not said the word after ACK."
        return f"No answer of {recipient} has been taken in by {sender}."


def holds(text: str | None, word: str) -> bool:
    """Whether the word stands in a text, and not as a part of a longer one."""
    return text is not None and bool(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text))


def shown(receipt: Facts) -> Facts:
    """What a snapshot tells of a receipt: where it stands, never its text."""
    wanted = ("id", "message_id", "delivery_status", "attempt", "failure_code", "failure_reason")
    replied = ("reply_status", "reply_message_id")
    return {key: receipt[key] for key in (*wanted, *replied)}


def standing(receipt: Facts) -> str:
    """Its state and what that may mean, for people."""
    state = receipt["delivery_status"]
    if state == "queued":
        return (
            "still queued: no turn has taken it. Does a worker run (`up` without --role web)? "
            "Does somebody run this bot?"
        )
    if state == "started":
        return "started: a turn has begun with it and has not taken it in"
    return f"{state} ({receipt['failure_code']}): {receipt['failure_reason']}"
