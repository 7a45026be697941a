"""What races need: kinds of outbox work, and threads that begin at the same time."""

from tests.cowork.conftest import target, work

__all__ = ["target", "work"]
