"""The floor: what a durable write costs here at least."""

import os
import time
from pathlib import Path

import psycopg

from tests.bench.figures import Report, percentiles

TIMES = 200


def fdatasync(folder: Path) -> list[float]:
    """Write 8 KiB and wait until it is on the disk."""
    taken = []
    block = os.urandom(8192)
    handle = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT)
    for _time in range(TIMES):
        began = time.perf_counter()
        os.pwrite(handle, block, 0)
        os.fdatasync(handle)
        taken.append(time.perf_counter() - began)
    os.close(handle)
    return taken


def commits(database_url: str) -> list[float]:
    """Insert one row and commit, with psycopg alone."""
    taken = []
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE floor (number int)")
        connection.commit()
        for number in range(TIMES):
            began = time.perf_counter()
            connection.execute("INSERT INTO floor VALUES (%s)", [number])
            connection.commit()
            taken.append(time.perf_counter() - began)
    return taken


def measure(folder: Path, database_url: str) -> Report:
    report = Report("floor", "one durable write")
    report.notes.append(f"one 8 KiB fdatasync: {percentiles(fdatasync(folder))}")
    report.notes.append(f"one bare psycopg commit: {percentiles(commits(database_url))}")
    return report
