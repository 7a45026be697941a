"""`python -m tests.bench [B1 B2 …] [--quick]`: measure, and print a table with the goals."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import (
    acceptance,
    databases,
    floor,
    idling,
    killing,
    latency,
    processes,
    sockets,
    turns,
)
from tests.bench.figures import Report

BUDGET, QUICK_BUDGET = 540, 150  # seconds after which no benchmark is begun
Benchmark = Callable[..., list[Report]]
BENCHMARKS: dict[str, Benchmark] = {
    "B1": acceptance.b1,  # and B3
    "B2": acceptance.b2,
    "B4": turns.b4,
    "B6": latency.b6,
    "B7": sockets.b7,
    "B9": killing.b9,
    "B10": idling.b10,
}


def main() -> int:
    options = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    options.add_argument("numbers", nargs="*", metavar="B1", help=", ".join(BENCHMARKS))
    options.add_argument("--quick", action="store_true", help="small sizes, within three minutes")
    asked = options.parse_args()
    if unknown := set(asked.numbers) - set(BENCHMARKS):
        options.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    chosen = [name for name in BENCHMARKS if name in asked.numbers or not asked.numbers]
    size = "small sizes" if asked.quick else "full sizes"
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {size}", flush=True)
    print("\n| no | what | found | goal | |\n|---|---|---|---|---|", flush=True)
    # Asked to end, it ends what it has started first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
    began = time.monotonic()
    with databases.server() as server_url, TemporaryDirectory(prefix="cowork-bench-") as folder:
        with databases.database(server_url) as url:
            show([floor.measure(Path(folder), url)], 0)
        for name in chosen:
            start = time.monotonic()
            if start - began > (QUICK_BUDGET if asked.quick else BUDGET):
                print(f"| **{name}** | not run: the time is over | | | |", flush=True)
                continue
            show(BENCHMARKS[name](server_url, quick=asked.quick), time.monotonic() - start)
    print(f"\n{time.monotonic() - began:.0f} s in all", flush=True)
    return 0


def show(reports: list[Report], seconds: float) -> None:
    for report in reports:
        print(f"| **{report.number}** | **{report.title}** | | | |")
        print("\n".join(report.rows))
    print(f"| | took {seconds:.0f} s, load average {processes.load()} | | | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
