"""External agents: they ask for their turns themselves, over REST (SPEC §13)."""

from cowork.models import OutboxEntry, Task


class External:
    """Nothing to tell: whoever listens learns of the commit by itself, and claims."""

    def wake(self, task: Task, entry: OutboxEntry) -> None:
        return None
