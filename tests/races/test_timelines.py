"""Lines appended at once: numbered without a gap, and read without one while they come."""

import threading
from functools import partial

from tests.races.together import at_once
from tests.timeline.streams import open_stream
from timeline import log
from timeline.clock import system_clock
from timeline.event_types import Note
from timeline.ids import new_id
from timeline.models import Stream
from timeline.transactions import action

WRITERS, LINES = 8, 10


@action
def _append(*streams: object) -> None:
    for stream in streams:
        log.append(stream, Note(level="info"), actor=log.SYSTEM, now=system_clock.now())  # type: ignore[arg-type]


def test_two_timelines_written_in_both_orders_have_no_gap(transactional_db: None) -> None:
    workspace_id = new_id()
    here, there = open_stream(workspace_id), open_stream(workspace_id)
    is_over = threading.Event()
    seen: list[int] = []

    def write(number: int) -> None:
        for _line in range(LINES):
            _append(*((here, there) if number % 2 else (there, here)))

    def write_all() -> None:
        try:
            at_once(*[partial(write, number) for number in range(WRITERS)])
        finally:
            is_over.set()

    def follow() -> None:
        """Read after the newest number that was read, as a subscriber does."""
        while True:
            is_last = is_over.is_set()
            seen.extend(event.seq for event in log.read(here, after=seen[-1] if seen else 0))
            if is_last:
                return

    at_once(write_all, follow)

    assert seen == list(range(1, WRITERS * LINES + 1))
    assert [stream.last_seq for stream in Stream.objects.all()] == [WRITERS * LINES] * 2
