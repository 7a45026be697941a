"""Hints that a stream has news. Losing every one of them loses nothing (SPEC §14.4)."""

import functools
from uuid import UUID

from django.db import transaction


def tell(stream: UUID, seq: int) -> None:
    """Say after the commit that a stream has news up to a number."""
    transaction.on_commit(functools.partial(_hint, stream, seq), robust=True)


def _hint(stream: UUID, seq: int) -> None:
    """Wake whoever waits in this process, and tell the other processes."""
