"""Which cluster this process belongs to; set once, by the process that the others fork from."""

from dataclasses import dataclass


@dataclass(slots=True)
class Boot:
    """`name` begins with the installation's lasting name, and every start has a new one."""

    name: str = ""
    drains: int = 0
    beat_fd: int = -1  # where its drains beat for the supervisor

    @property
    def instance(self) -> str:
        return self.name.partition(".")[0]


current = Boot()
