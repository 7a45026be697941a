"""Figures: medians over rounds, percentiles, and what was wanted of them."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


def percentiles(seconds: Sequence[float]) -> str:
    """p50, p95 and p99 in milliseconds."""
    shares = (percentile(seconds, share) * 1000 for share in (0.5, 0.95, 0.99))
    return " / ".join(f"{value:.1f}" for value in shares) + " ms"


@dataclass(frozen=True, slots=True)
class Round:
    """One measured round of one side: so many units in so many seconds and CPU seconds."""

    units: int
    seconds: float
    cpu: float
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.units / self.seconds

    @property
    def cpu_ms(self) -> float:
        return self.cpu * 1000 / self.units


class Side:
    """What was measured of one side, round by round."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rounds: list[Round] = []

    @property
    def latencies(self) -> list[float]:
        return [value for one in self.rounds for value in one.latencies]

    @property
    def told(self) -> str:
        rate = statistics.median(one.rate for one in self.rounds)
        cpu = statistics.median(one.cpu_ms for one in self.rounds)
        told = f"{self.name}: {rate:,.0f}/s, {cpu:.2f} CPU ms each"
        return f"{told}, {percentiles(self.latencies)}" if self.latencies else told


def ratio_of_rates(ours: Side, reference: Side) -> float:
    """The median of what each round's rates say; the rounds ran right after each other."""
    return ratio(
        [one.rate for one in ours.rounds],
        [one.rate for one in reference.rounds],
    )


def ratio_of_cpu(ours: Side, reference: Side) -> float:
    return ratio(
        [one.cpu_ms for one in ours.rounds],
        [one.cpu_ms for one in reference.rounds],
    )


def ratio(ours: Iterable[float], reference: Iterable[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(
        mine / theirs for mine, theirs in zip(ours, reference, strict=True) if theirs
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, and what is wanted of it: at least, at most, or nothing."""

    what: str
    value: float
    unit: str = "×"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g} {self.unit}"
        return f"≤ {self.at_most:g} {self.unit}" if self.at_most is not None else ""

    @property
    def verdict(self) -> str:
        if self.at_least is not None:
            return "met" if self.value >= self.at_least else "missed"
        if self.at_most is not None:
            return "met" if self.value <= self.at_most else "missed"
        return ""


@dataclass(slots=True)
class Report:
    """What one benchmark found."""

    number: str
    title: str
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[str]:
        """Its part of the table, in Markdown."""
        rows = [
            f"| {self.number} | {line.what} | {line.value:.2f} {line.unit} | {line.goal} "
            f"| {line.verdict} |"
            for line in self.lines
        ]
        return rows + [f"| | {note} | | | |" for note in self.notes]
