"""After a restart: what waits runs once, and what the dead had taken is free again (SPEC §8.4)."""

from django.db import transaction

from cowork import outbox, runs, slots
from timeline import commits
from timeline.clock import Clock
from timeline.transactions import action


@action
def let_waiting_run(*, clock: Clock) -> int:
    """Let every entry that waits run once; how many there are."""
    return outbox.look_again(now=clock.now())


@action
def bury(owner_prefix: str, *, clock: Clock) -> int:
    """End the leases and slots of owners that are dead; how many entries they had taken."""
    now = clock.now()
    transaction.on_commit(commits.tell, robust=True)
    slots.forget(owner_prefix)
    return runs.void(owner_prefix, now=now)
