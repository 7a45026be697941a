"""The script runtime: deterministic rules, for demos and tests (SPEC §13, docs/wire.md).

It runs in the process of the drain, right after the wake. Everything it does is keyed on the entry
of the outbox or on the turn, so that another process which takes the entry over goes on with the
same turn and sends nothing twice.
"""

import re
import time
from dataclasses import dataclass
from typing import Any

from cowork.models import OutboxEntry, Task, Turn
from messaging import finishing, reporting, reports, sending, taking
from messaging.finishing import Ending
from messaging.models import Receipt
from messaging.taking import Claimed
from teams import profiles
from teams.permissions import Principal
from timeline.clock import Clock, system_clock
from timeline.refusals import Refusal

TURNS_PER_WAKE = 20  # then the wake is looked at again, so that others get their turn


class Left(Exception):
    """The rules say that the process leaves without a word: its turn is lost."""


class ScriptRuntime:
    """The port of the kind `script`."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock

    def wake(self, task: Task, entry: OutboxEntry) -> None:
        """Run the turns that the task may start now."""
        agent = _Agent(task, self._clock)
        known = _unfinished_turn(task, agent.principal)
        for number in range(TURNS_PER_WAKE):
            claim_id = known or f"{entry.id}:{entry.fence}:{number}"
            known = None
            try:
                claimed = agent.claim(claim_id)
                if claimed is None:
                    return
                agent.run(claimed)
            except Left:
                return


def _unfinished_turn(task: Task, by: Principal) -> str | None:
    """The claim of a turn that a process which died has left."""
    rows = Turn.objects.filter(task=task, status=Turn.Status.RUNNING, claimer=by.claimer)
    return rows.values_list("claim_id", flat=True).first()


@dataclass(frozen=True, slots=True)
class _Found:
    """The rule that fits an input: its steps, and what its texts may refer to."""

    steps: list[profiles.Part]
    match: re.Match[str]
    receipt: Receipt

    def fails(self, when: str) -> bool:
        """Whether the turn fails before or after incorporation, as often as the rule says."""
        return any(
            isinstance(step, profiles.Fail)
            and step.fail == when
            and self.receipt.attempt <= step.times
            for step in self.steps
        )

    def filled(self, text: str) -> str:
        """The text with `$0`, `$1`…, `$sender` and `$message_id` filled in."""
        sender = self.receipt.sender_bot
        names = {
            "sender": sender.handle if sender else self.receipt.sender_label,
            "message_id": self.receipt.message_id,
        }

        def value(place: re.Match[str]) -> str:
            name = place.group(1)
            if name in names:
                return names[name]
            number = int(name)
            groups = (self.match.group(0), *self.match.groups(default=""))
            return groups[number] if number < len(groups) else ""

        return re.sub(r"\$(sender|message_id|\d+)", value, text)


class _Agent:
    """A script that acts as one task."""

    def __init__(self, task: Task, clock: Clock) -> None:
        profile = task.runtime
        self._task = task
        self._clock = clock
        self._rules = profiles.rules_of(profile)
        self.principal = Principal(
            kind="runtime",
            id=profile.id,
            label=task.bot.display_name if task.bot else profile.name,
            workspace_id=task.workspace_id,
            workspace_slug=task.workspace.slug,
            bot_id=task.bot_id,
            bot_handle=task.bot.handle if task.bot else None,
            task_id=task.id,
        )

    def claim(self, claim_id: str) -> Claimed | None:
        return taking.claim(
            task=self._task, by=self.principal, claim_id=claim_id, clock=self._clock
        )

    def run(self, claimed: Claimed) -> None:
        """Do what the rules say for each input, then end the turn. Raises Left."""
        run = _Run(self._task, claimed.turn, self.principal, self._clock)
        found = [rule for row in claimed.inputs if (rule := self._rule_for(row)) is not None]
        if any(rule.fails("before") for rule in found):
            run.end(Ending(Turn.Status.ERROR, error="The script fails before incorporation."))
            return
        run.incorporate()
        for rule in found:
            run.follow(rule)
        if any(rule.fails("after") for rule in found):
            run.end(Ending(Turn.Status.ERROR, error="The script fails after incorporation."))
            return
        run.end(Ending(Turn.Status.DONE))

    def _rule_for(self, receipt: Receipt) -> _Found | None:
        text = receipt.body.text or ""
        for rule in self._rules:
            match = re.search(rule.when, text)
            if match is not None:
                return _Found(list(rule.do), match, receipt)
        return None


class _Run:
    """One turn of a script: its reports, each with an id that a second process gives it too.

    Reports are kept until something depends on them: what a turn of words alone has to say, it
    says in the transaction of its end (SPEC §6.4).
    """

    def __init__(self, task: Task, turn: Turn, by: Principal, clock: Clock) -> None:
        self._task, self._turn, self._by, self._clock = task, turn, by, clock
        self._kept: list[dict[str, object]] = []

    def incorporate(self) -> None:
        self._keep("incorporated", {"type": "incorporated"})

    def follow(self, rule: _Found) -> None:
        """Take the steps of a rule, in order. Raises Left."""
        for number, step in enumerate(rule.steps):
            place = f"{rule.receipt.sequence}:{number}"
            match step:
                case profiles.Say(say=text):
                    self._say(place, rule.filled(text))
                case profiles.Reply(reply=text):
                    self._reply(place, rule, rule.filled(text))
                case profiles.Send(send=message):
                    bot, text = rule.filled(message.bot), rule.filled(message.message)
                    self._send(place, bot=bot, message=text)
                case profiles.Sleep(sleep_ms=milliseconds):
                    time.sleep(milliseconds / 1000)
                case profiles.Exit():
                    raise Left

    def end(self, ending: Ending) -> None:
        finishing.end_turn(
            turn_id=self._turn.id,
            by=self._by,
            fence=self._turn.fence,
            ending=ending,
            events=reports.read(self._kept),
            clock=self._clock,
        )

    def _keep(self, place: str, event: dict[str, object]) -> None:
        self._kept.append({"event_id": place, **event})

    def _say(self, place: str, text: str) -> None:
        self._keep(place, {"type": "assistant_message", "text": text})

    def _reply(self, place: str, rule: _Found, text: str) -> None:
        """Answer a teammate by a message; a person sees what is said."""
        receipt = rule.receipt
        if receipt.sender_task_id is None:
            self._say(place, text)
            return
        # What answers a reply closes the exchange: two scripts that answer everything come to rest.
        self._send(
            place,
            task_id=receipt.sender_task_id,
            message=text,
            in_reply_to=receipt.message_id,
        )

    def _send(self, place: str, **what: Any) -> None:
        """Send; a refusal is a note in the script's timeline and stops nothing else."""
        self._report()  # only what was taken in can be answered
        try:
            sending.send_agent_message(
                sender=self._task,
                by=self._by,
                message_id=f"script:{self._turn.id}:{place}",
                clock=self._clock,
                **what,
            )
        except Refusal as refusal:
            text = f"Not sent ({refusal.code}): {refusal.detail}"
            self._keep(place, {"type": "note", "level": "warning", "text": text})

    def _report(self) -> None:
        if self._kept:
            reporting.report(
                turn_id=self._turn.id,
                by=self._by,
                fence=self._turn.fence,
                events=reports.read(self._kept),
                clock=self._clock,
            )
            self._kept.clear()
