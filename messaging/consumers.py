"""The socket of agents: which of their tasks have input to claim (docs/wire.md, WebSocket)."""

from functools import partial
from typing import cast
from uuid import UUID

from messaging import readers
from teams.permissions import Principal
from timeline import desk, pump
from timeline.access import Seen
from timeline.clock import system_clock
from timeline.news import frame
from timeline.sockets import Socket

REMEMBERED = 2000  # tasks of which a socket remembers whether they are the agent's


class AgentSocket(Socket):
    """`/ws/agent/`: `input_waiting` for each task once it has input that no turn has taken."""

    def may_stay(self) -> Seen:
        return "yes" if self._agent() is not None else "forbidden"

    def _agent(self) -> Principal | None:
        visitor = self.visitor()
        is_agent = isinstance(visitor, Principal) and visitor.kind in ("bot", "task")
        return cast(Principal, visitor) if is_agent else None

    async def tell(self) -> None:
        agent = cast(Principal, await desk.SOCKETS.look(self._agent))
        async with pump.here().workspace(agent.workspace_id) as watch:
            await self.accept()
            own: dict[UUID, bool] = {}
            told: dict[UUID, int] = {}
            while True:
                waiting = await desk.SOCKETS.look(partial(_waiting_for, agent))
                for task, turn in waiting.turns.items():
                    if told.get(task) != turn:  # not yet, or a turn has run since
                        await self.send(frame(type="input_waiting", task_id=str(task)))
                told = waiting.turns
                await self._until_news(agent, watch, own, waiting.due_in)

    async def _until_news(
        self, agent: Principal, watch: pump.Watch, own: dict[UUID, bool], due_in: float | None
    ) -> None:
        """Wait until one of the agent's own tasks has news, or something of it comes due."""
        while True:
            is_in_time = await watch.wait(due_in)
            changed = watch.take_changed().keys()
            if len(own) > REMEMBERED:
                own.clear()
            if new := changed - own.keys():
                mine = await desk.SOCKETS.look(partial(readers.own_of, agent, new))
                own.update({task: task in mine for task in new})
            if not is_in_time or any(own.get(task) for task in changed):
                return


def _waiting_for(agent: Principal) -> readers.Waiting:
    return readers.waiting_for(agent, now=system_clock.now())
