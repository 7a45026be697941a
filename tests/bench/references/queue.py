"""Tasks of django-q2's database queue: `… queue fill COUNT` or `… queue ask COUNT GAP FILE`."""

import os
import sys
import time
from pathlib import Path


def nothing() -> None:
    """The task of a full queue."""


def note(asked_at: float, file: str) -> None:
    """Write down how long it took from enqueueing to here."""
    with Path(file).open("a") as out:
        out.write(f"{time.time() - asked_at!r}\n")


def main(command: str, count: int, *more: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.references.settings")
    import django

    django.setup()
    from django_q.tasks import async_task

    for _number in range(count):
        if command == "fill":
            async_task("tests.bench.references.queue.nothing")
        else:
            gap, file = more
            time.sleep(float(gap))
            async_task("tests.bench.references.queue.note", time.time(), file)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
