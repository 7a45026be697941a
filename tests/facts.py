"""Events as readers get them, made by hand: what the projections are tried on."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

START = datetime(2026, 3, 12, 13, 0, tzinfo=UTC)
RECEIPT = "01a00000-0000-7000-8000-0000000000{:02d}"


def receipt_id(number: int) -> str:
    return RECEIPT.format(number)


def agent(handle: str) -> dict[str, Any]:
    return {"kind": "agent", "task_id": f"task-{handle}", "bot": handle, "label": handle.title()}


PERSON = {"kind": "person", "task_id": None, "bot": None, "label": "olga"}


class Story:
    """The events of one task, one after the other, a minute apart."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._seq = count(1)

    def add(self, kind: str, **payload: Any) -> int:
        seq = next(self._seq)
        at = START + timedelta(minutes=seq)
        self.events.append(
            {
                "seq": seq,
                "id": f"event-{seq}",
                "type": kind,
                "actor": {"kind": "system", "id": "cowork", "label": "CoWork"},
                "payload": payload,
                "created_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
        )
        return seq

    def admit(self, number: int, *, sender: dict[str, Any] = PERSON) -> None:
        """A message to this task is accepted and queued."""
        self.add(
            "agent_follow_up_scheduled",
            message_id=f"m-{number}",
            receipt_id=receipt_id(number),
            source=sender["kind"],
            sender=sender,
            delivery_mode="follow_up",
        )
        self.move(number, None, "queued", side="recipient")

    def take_in(self, number: int, text: str | None, *, sender: dict[str, Any] = PERSON) -> None:
        """It is started and delivered."""
        self.move(number, "queued", "started", side="recipient")
        self.add(
            "user_message",
            message_id=f"m-{number}",
            receipt_id=receipt_id(number),
            source=sender["kind"],
            sender=sender,
            sequence=number,
            in_reply_to=None,
            attempt=1,
            text=text,
        )
        self.move(number, "started", "delivered", side="recipient")

    def send(self, number: int, bot: str, preview: str, *, handoff: bool = True) -> None:
        """This task sends a message to a teammate."""
        self.add(
            "agent_message",
            message_id=f"m-{number}",
            receipt_id=receipt_id(number),
            recipient=agent(bot),
            in_reply_to=None,
            handoff=handoff,
            automatic=False,
            preview=preview,
            body="body",
        )
        self.move(number, None, "queued", reply="pending" if handoff else None)

    def move(
        self,
        number: int,
        before: str | None,
        to: str,
        *,
        side: str = "sender",
        attempt: int = 1,
        code: str | None = None,
        reply: str | None = None,
        replied_by: str | None = None,
    ) -> None:
        self.add(
            "message_status",
            message_id=f"m-{number}",
            receipt_id=receipt_id(number),
            side=side,
            to=to,
            attempt=attempt,
            code=code,
            reason=None,
            reply_status=reply,
            reply_message_id=replied_by,
            **{"from": before},
        )

    def say(self, text: str | None) -> int:
        return self.add("assistant_message", turn_id="turn", text=text, own=True)

    def begin_turn(self) -> None:
        self.add("turn_started", turn_id="turn", number=1)

    def end_turn(self) -> None:
        self.add("turn_ended", turn_id="turn", number=1, status="done", error=None, limit=None)
