"""Hints that there are new events. Losing every one of them loses nothing (SPEC §14.4).

Next on the path of a message: `timeline/pump.py` reads the news, `timeline/consumers.py` sends it.
"""

from django.db import transaction

from timeline import commits


def tell() -> None:
    """Say after the commit that something was appended; who waits looks which streams have it."""
    transaction.on_commit(commits.tell, robust=True)
