"""What is measured: a port that the apps fill. Everything is read from the tables when asked for.

So every process that serves `/metrics` tells the same, and none has to be asked of all.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from django.db.models import Avg, Count, Min
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from cowork import runs
from cowork.models import OutboxEntry, Slot, Task, Turn

Measure = Callable[[datetime], Iterable[Metric]]

MEASURES: list[Measure] = []


def register(measure: Measure) -> None:
    """Have what the function yields told as well; called by the `apps.py` of an upper app."""
    if measure not in MEASURES:
        MEASURES.append(measure)


def exposition(now: datetime) -> bytes:
    """Everything that is measured, as Prometheus reads it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Tables(now))
    return generate_latest(registry)


def counted(name: str, text: str, label: str, counts: Iterable[tuple[str, int]]) -> Metric:
    """One gauge with a number for each value of a label."""
    gauge = GaugeMetricFamily(name, text, labels=[label])
    for value, count in counts:
        gauge.add_metric([value], count)
    return gauge


class _Tables:
    """A collector that asks every measure."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterable[Metric]:
        for measure in (of_outbox, of_turns, *MEASURES):
            yield from measure(self._now)


def of_outbox(now: datetime) -> Iterable[Metric]:
    """How much is owed, how late the oldest is, what was given up."""
    entries = OutboxEntry.objects
    counts = dict(entries.values_list("status").annotate(count=Count("id")).order_by("status"))
    states = [(str(state), counts.get(state, 0)) for state in OutboxEntry.State]
    yield counted("cowork_outbox_entries", "Entries by their state.", "state", states)
    oldest = runs.oldest_due(now=now)
    yield GaugeMetricFamily(
        "cowork_outbox_oldest_due_seconds",
        "For how long the oldest entry that could run has been due.",
        value=0 if oldest is None else (now - oldest).total_seconds(),
    )
    failures = entries.aggregate(mean=Avg("attempts"))["mean"]
    yield GaugeMetricFamily(
        "cowork_outbox_attempts_mean", "Failed runs for each entry.", value=failures or 0
    )
    beat = Slot.objects.filter(name__startswith="drain:").aggregate(at=Min("beat_at"))["at"]
    if beat is not None:
        yield GaugeMetricFamily(
            "cowork_drain_beat_age_seconds",
            "For how long the latest drain has not renewed its slot.",
            value=max(0.0, (now - beat).total_seconds()),
        )


def of_turns(_now: datetime) -> Iterable[Metric]:
    """Turns and tasks by their status."""
    turns = Turn.objects.values_list("status").annotate(count=Count("id")).order_by("status")
    yield counted("cowork_turns", "Turns by their status.", "status", turns)
    tasks = Task.objects.values_list("status").annotate(count=Count("id")).order_by("status")
    yield counted("cowork_tasks", "Tasks by their status.", "status", tasks)
