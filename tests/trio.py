"""Three teammates with a conversation each, and who looks after them."""

from typing import Any

from cowork import draining, sweeps
from cowork.models import Task
from messaging.models import Receipt
from teams.models import Bot
from teams.permissions import Principal
from tests import records
from tests.build import Build, fresh
from timeline.clock import ManualClock


class Trio(Build):
    """Atlas leads team Core with forge and echo; `founder` may do everything."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        bots = {handle: self.a_bot(handle) for handle in ("atlas", "forge", "echo")}
        self.team = self.a_team(bots["atlas"], bots["forge"], bots["echo"])
        self.atlas, self.forge, self.echo = (self.a_conversation(bot) for bot in bots.values())
        self.operator: Principal = self.principal(self.a_person("olga"))
        for bot in bots.values():
            self.key_of(bot)  # issued before anything runs at once

    def bot(self, task: Task) -> Bot:
        assert task.bot is not None
        return task.bot

    def a_failed_message(self, **more: Any) -> Receipt:
        """Atlas' message to forge, which has failed and can be retried."""
        return self.a_receipt("failed", sender=self.atlas, recipient=self.forge, **more)

    def drain(self, owner: str = "test:0") -> int:
        """Do all that is owed now."""
        return draining.drain(owner=owner, clock=self.clock)

    def recover(self) -> None:
        """What every start does, and every sweep."""
        for repair in [*sweeps.AT_START, *sweeps.SWEEPS]:
            repair(clock=self.clock)

    def settle(self) -> None:
        """Recover, do what is owed, and look whether the records agree."""
        draining.void_leases("", clock=self.clock)
        self.recover()
        self.drain()
        self.check()

    def check(self) -> None:
        records.check(now=self.clock.now())

    def take_everything(self) -> None:
        """Whole turns of everybody until nobody has anything to read."""
        while any(self.take_all(task) for task in (self.atlas, self.forge, self.echo)):
            pass

    def take_all(self, task: Task) -> list[list[str]]:
        """Whole turns until nothing waits: the message ids that each has taken in."""
        taken: list[list[str]] = []
        while True:
            waiting = Receipt.objects.queued().filter(recipient=task).order_by("sequence").first()
            if waiting is not None:
                self.clock.move_to(max(self.clock.now(), waiting.due_at))
            claimed = self.claim(fresh(task))
            if claimed is None:
                return taken
            self.incorporate(claimed.turn)
            self.end(claimed.turn)
            taken.append([receipt.message_id for receipt in claimed.inputs])
