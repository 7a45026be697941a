"""Whether the parts of an installation work: what `/readyz` asks (SPEC §16.3)."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection

from cowork import runs
from cowork.models import Slot
from timeline.clock import Clock

OK = "ok"
# Between two drains of a number a moment passes.
HEARTBEAT_SLACK = timedelta(seconds=10)


def checks(clock: Clock) -> dict[str, str]:
    """Each part with `ok`, or with what is wrong."""
    asked: dict[str, Callable[[datetime], str]] = {
        "broker": broker,
        "worker": worker,
        "outbox": outbox,
    }
    try:
        now = clock.now()
        answers = {"database": database()}
        answers |= {name: ask(now) for name, ask in asked.items()}
    except DatabaseError as error:
        return {"database": type(error).__name__} | dict.fromkeys(asked, "unknown")
    return answers


def database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def broker(_now: datetime) -> str:
    """django-q2's queue is a table of the same database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM django_q_ormq LIMIT 1")
    return OK


def worker(now: datetime) -> str:
    """Whether a drain has its slot, here or on another machine."""
    since = now - settings.COWORK_DRAIN_LIFE - HEARTBEAT_SLACK
    beating = Slot.objects.filter(name__startswith="drain:", beat_at__gte=since)
    return OK if beating.exists() else "no worker beats"


def outbox(now: datetime) -> str:
    """Whether what is due is run."""
    oldest = runs.oldest_due(now=now)
    if oldest is None or now - oldest <= 2 * settings.COWORK_HANDLER_LIMIT:
        return OK
    return f"an entry has been due for {(now - oldest).total_seconds():.0f} s"
