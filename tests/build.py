"""Builders in words of the domain: every state is reached by the actions that reach it in life.

`Build(clock)` makes what it is asked for in workspace `lab`; a second world is `Build(clock,
slug="other")`. Nothing here writes a status: a failed message has failed four times.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import Model
from django.utils.crypto import get_random_string

from cowork import credentials, issuing, opening
from cowork.models import Credential, Task, Turn
from messaging import (
    finishing,
    following_up,
    quarantining,
    recovering,
    reporting,
    reports,
    sending,
    taking,
)
from messaging.finishing import Ending
from messaging.models import Receipt
from messaging.repeats import Sent
from messaging.taking import Claimed
from teams import founding, inviting
from teams.models import Bot, Person, Team, Workspace
from teams.permissions import Principal
from timeline.clock import ManualClock
from timeline.event_types import TurnLimit
from timeline.ids import new_id
from timeline.models import Event

PASSWORD = "correct-horse-battery-staple"
Caller = Principal | Person | Bot
Row = TypeVar("Row", bound=Model)


class Build:
    """A workspace and the means to fill it."""

    def __init__(self, clock: ManualClock, slug: str = "lab") -> None:
        self.clock = clock
        self.slug = slug
        self._keys: dict[Bot, tuple[Principal, str]] = {}

    # Who is there

    @cached_property
    def workspace(self) -> Workspace:
        return founding.found_workspace(slug=self.slug, name=self.slug.title(), clock=self.clock)

    @cached_property
    def founder(self) -> Principal:
        """Who may do everything in the workspace."""
        return Principal(
            kind="system",
            id=new_id(),
            label="The founder",
            workspace_id=self.workspace.id,
            workspace_slug=self.slug,
        )

    def a_bot(self, handle: str = "", *, runtime: str = "external", **looks: Any) -> Bot:
        handle = handle or f"bot-{get_random_string(8).lower()}"
        looks.setdefault("display_name", handle.title())
        return founding.make_bot(
            handle=handle, runtime=runtime, by=self.founder, clock=self.clock, **looks
        )

    def a_team(
        self, lead: Bot, *members: Bot, name: str = "Core", active: bool = True, lasts: bool = True
    ) -> Team:
        return founding.make_team(
            name=name,
            lead=lead.handle,
            handles=[bot.handle for bot in members],
            is_persistent=lasts,
            is_active=active,
            by=self.founder,
            clock=self.clock,
        )

    def a_conversation(
        self, bot: Bot | str, *, team: Team | None = None, title: str = "", **modes: Any
    ) -> Task:
        """A dormant conversation, in the bot's only team where none is named."""
        made = self.a_bot(bot) if isinstance(bot, str) else bot
        return opening.open_conversation(
            made, team=team, title=title, by=self.founder, clock=self.clock, **modes
        )

    def a_root(self, title: str = "Root", *, bot: Bot | None = None, **modes: Any) -> Task:
        runtime = self.workspace.runtimes.get(name="external")
        return opening.open_root(
            title=title, runtime=runtime, bot=bot, by=self.founder, clock=self.clock, **modes
        )

    def a_person(self, name: str = "", *, role: str = "operator") -> Person:
        name = name or f"person-{get_random_string(8).lower()}"
        return inviting.invite(
            username=name, password=PASSWORD, role=role, by=self.founder, clock=self.clock
        )

    def a_service(self, label: str = "ops") -> Principal:
        return self.issued("service", label=label)[0]

    def a_credential(self, subject: Bot | Task, label: str = "") -> Principal:
        """A new credential of a bot or of a task, as whoever calls with it."""
        return self._issued_for(subject, label)[0]

    def a_runtime(self, name: str, *rules: dict[str, Any]) -> str:
        """A profile of kind `script`; its name."""
        founding.make_runtime(
            name=name,
            kind="script",
            config={"rules": list(rules)},
            is_spawnable=False,
            by=self.founder,
            clock=self.clock,
        )
        return name

    def _issued_for(self, subject: Bot | Task, label: str) -> tuple[Principal, str]:
        label = label or f"key-{get_random_string(8)}"
        if isinstance(subject, Bot):
            return self.issued("bot", label=label, bot=subject.handle)
        return self.issued("task", label=label, task_id=subject.id)

    def issued(self, kind: str, *, label: str, **subject: Any) -> tuple[Principal, str]:
        issued = issuing.issue(
            kind=kind,
            label=label,
            expires_in=None,
            by=self.founder,
            clock=self.clock,
            **{"bot": None, "task_id": None, **subject},
        )
        return credentials.principal_of(issued.credential), issued.secret

    # Who calls

    def key_of(self, whose: Bot | Task) -> Principal:
        """The one credential of a bot, as whoever calls with it; of a task, that of its bot."""
        return self._key(whose)[0]

    def secret_of(self, whose: Bot | Task) -> str:
        """The secret of that credential."""
        return self._key(whose)[1]

    def _key(self, whose: Bot | Task) -> tuple[Principal, str]:
        bot = whose if isinstance(whose, Bot) else whose.bot
        assert bot is not None, "a task without a bot needs a credential of its own"
        if bot not in self._keys:
            self._keys[bot] = self._issued_for(bot, "")
        return self._keys[bot]

    def principal(self, caller: Caller) -> Principal:
        if isinstance(caller, Bot):
            return self.key_of(caller)
        if isinstance(caller, Person):
            return credentials.principal_of_person(caller)
        return caller

    # What they do

    def send(self, sender: Task, to: Task | Bot | str, text: str = "hello", **more: Any) -> Sent:
        """An agent's message, by its bot's key."""
        if isinstance(to, Task):
            more["task_id"] = to.id
        else:
            more["bot"] = to.handle if isinstance(to, Bot) else to
        by = more.pop("by", None) or self.key_of(sender)
        return sending.send_agent_message(
            sender=sender, by=by, message=text, clock=self.clock, **more
        )

    def follow_up(self, task: Task, by: Caller, text: str = "please", **more: Any) -> Sent:
        """A person's or a service's input that starts a turn."""
        return following_up.follow_up(
            recipient=task, by=self.principal(by), message=text, clock=self.clock, **more
        )

    def tell(self, task: Task, by: Caller, text: str = "by the way", **more: Any) -> Sent:
        """A person's or a service's input that waits for a turn."""
        return self.follow_up(task, by, text, delivery_mode="message", **more)

    def claim(self, task: Task, *, by: Principal | None = None, **more: Any) -> Claimed | None:
        return taking.claim(task=task, by=by or self.key_of(task), clock=self.clock, **more)

    def claimed(self, task: Task, **more: Any) -> Claimed:
        """A claim that there is something for."""
        found = self.claim(task, **more)
        assert found is not None, "nothing starts a turn"
        return found

    def report(self, turn: Turn, *events: dict[str, Any], fence: int | None = None) -> Turn:
        """Reports of a turn's claimer; each gets an id of its own unless it has one."""
        return reporting.report(
            turn_id=turn.id,
            by=self.claimer_of(turn),
            fence=turn.fence if fence is None else fence,
            events=reports.read([with_id(event) for event in events]),
            clock=self.clock,
        )

    def incorporate(self, turn: Turn, *, through: Receipt | None = None) -> Turn:
        event = {"type": "incorporated"}
        if through is not None:
            event["through"] = str(through.id)
        return self.report(turn, event)

    def end(
        self,
        turn: Turn,
        status: str = "done",
        *,
        text: str | None = None,
        error: str = "",
        limit: TurnLimit | None = None,
        events: Sequence[dict[str, Any]] = (),
        fence: int | None = None,
    ) -> bool:
        return finishing.end_turn(
            turn_id=turn.id,
            by=self.claimer_of(turn),
            fence=turn.fence if fence is None else fence,
            ending=Ending(status, text=text, error=error, limit=limit),
            events=reports.read([with_id(event) for event in events]),
            clock=self.clock,
        )

    def take_in(self, task: Task, *, text: str | None = None) -> Turn:
        """One whole turn: claimed, incorporated, done."""
        turn = self.claimed(task).turn
        self.incorporate(turn)
        self.end(turn, text=text)
        return turn

    def fail_before(self, task: Task, status: str = "error", **more: Any) -> Turn:
        """A turn that ends before it has taken anything in."""
        turn = self.claimed(task).turn
        self.end(turn, status, **more)
        return turn

    def claimer_of(self, turn: Turn) -> Principal:
        """Whoever claimed a turn, if that was a key of this world."""
        for key, _secret in self._keys.values():
            if key.claimer == turn.claimer:
                return key
        _, _, credential_id = turn.claimer.partition(":")
        found = Credential.objects.select_related("workspace", "bot", "task__bot")
        return credentials.principal_of(found.get(pk=credential_id))

    # States

    def a_turn(self, task: Task, status: str = "running", *, start: bool = True) -> Turn:
        """A turn in a state; by default one with input of its own."""
        turn = self.claimed(task, start=start).turn
        if status == Turn.Status.LOST:
            self.lose(turn)
        elif status != Turn.Status.RUNNING:
            self.end(turn, status)
        return fresh(turn)

    def lose(self, turn: Turn) -> None:
        """Nobody hears of a turn until its lease has run out."""
        self.clock.move_to(fresh(turn).lease_expires_at)
        recovering.lose_silent_turns(clock=self.clock)
        assert fresh(turn).status == Turn.Status.LOST

    def a_receipt(
        self,
        status: str = "queued",
        *,
        sender: Task | Caller,
        recipient: Task,
        text: str = "hello",
        **more: Any,
    ) -> Receipt:
        """A message in a state. A started or delivered one is held by a turn that runs still; a
        failed one can be retried."""
        if isinstance(sender, Task):
            receipt = self.send(sender, recipient, text, **more).receipt
        else:
            receipt = self.follow_up(recipient, sender, text, **more).receipt
        reach = {
            Receipt.Status.QUEUED: lambda _receipt: None,
            Receipt.Status.STARTED: self._start,
            Receipt.Status.DELIVERED: self._deliver,
            Receipt.Status.FAILED: self._fail,
            Receipt.Status.QUARANTINED: self._quarantine,
        }
        reach[Receipt.Status(status)](receipt)
        assert fresh(receipt).status == status
        return fresh(receipt)

    def _start(self, receipt: Receipt) -> Turn:
        turn = self.claimed(receipt.recipient).turn
        assert fresh(receipt).turn_id == turn.id, "older input was in the way"
        return turn

    def _deliver(self, receipt: Receipt) -> None:
        self.incorporate(self._start(receipt))

    def _fail(self, receipt: Receipt) -> None:
        while fresh(receipt).status != Receipt.Status.FAILED:
            self.clock.move_to(max(self.clock.now(), fresh(receipt).due_at))
            self.end(self._start(receipt), "error", error="It broke.")

    def _quarantine(self, receipt: Receipt) -> None:
        quarantining.quarantine(receipt, by=self.founder, note="Odd.", clock=self.clock)


def fresh(row: Row) -> Row:
    """The row as it stands in the database now."""
    found: Row = type(row)._default_manager.get(pk=row.pk)
    return found


def events(task: Task, *types: str) -> list[Event]:
    """The lines of a task's timeline, oldest first."""
    rows = Event.objects.filter(stream_id=task.stream).select_related("body").order_by("seq")
    return list(rows.filter(type__in=types) if types else rows)


def text_of(event: Event) -> str | None:
    """The text that a line tells; None where it tells none."""
    return event.body.text if event.body is not None else None


def with_id(event: dict[str, Any]) -> dict[str, Any]:
    return {"event_id": str(new_id()), **event}
