"""What a benchmark does inside the product, in a process of its own (`… inside COMMAND …`).

fill HOW RECIPIENTS EACH    queue messages for scripts: `agents`, `batch` or `follow_ups`
append TASK COUNT GAP       append lines to a timeline; when each was committed
latencies SINCE             from acceptance to start, in seconds, of what was accepted since
counts                      how often each accepted message was delivered, and in a transcript
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")

import django

django.setup()

from django.db import connections  # noqa: E402

from cowork.models import Credential, Task  # noqa: E402
from messaging import following_up, sending  # noqa: E402
from messaging.models import Receipt  # noqa: E402
from teams.permissions import Principal  # noqa: E402
from timeline import log  # noqa: E402
from timeline.clock import system_clock  # noqa: E402
from timeline.event_types import EventType, ToolActivity  # noqa: E402
from timeline.log import SYSTEM  # noqa: E402
from timeline.models import Event, Stream  # noqa: E402
from timeline.transactions import action  # noqa: E402

THREADS = 8
TEXT = "Please have a look at this when you can."


def fill(how: str, recipient_count: int, each: int) -> None:
    """Each recipient gets its messages from one sender, in order."""
    names = [f"r{number}" for number in range(recipient_count)]
    rows = Task.objects.select_related("bot", "team", "runtime", "workspace")
    tasks = {task.title: task for task in rows}
    Task.objects.update(batch_inputs=how == "batch")
    senders = [task for title, task in sorted(tasks.items()) if title.startswith("s")]
    ops = Credential.objects.select_related("workspace").get(label="ops")
    person = Principal("service", ops.id, "ops", ops.workspace_id, ops.workspace.slug)
    run = str(time.time_ns())

    def of_one(number: int) -> None:
        sender = senders[number % len(senders)]
        for count in range(each):
            if how == "follow_ups":
                following_up.follow_up(
                    recipient=tasks[names[number]],
                    by=person,
                    message=TEXT,
                    message_id=f"{run}.{count}",
                    clock=system_clock,
                )
                continue
            sending.send_agent_message(
                sender=sender,
                by=_bot_of(sender),
                bot=names[number],
                message=TEXT,
                message_id=f"{run}.{count}",
                clock=system_clock,
            )

    with ThreadPoolExecutor(THREADS, initializer=connections.close_all) as pool:
        list(pool.map(of_one, range(recipient_count)))


def _bot_of(task: Task) -> Principal:
    assert task.bot is not None
    return Principal(
        kind="bot",
        id=task.bot.id,
        label=task.bot.display_name,
        workspace_id=task.workspace_id,
        workspace_slug=task.workspace.slug,
        bot_id=task.bot.id,
        bot_handle=task.bot.handle,
    )


@action
def _append(task: UUID) -> None:
    now = system_clock.now()
    log.append(task, ToolActivity(label="bench", phase="finished"), actor=SYSTEM, now=now)


def append(task: UUID, count: int, gap: float) -> None:
    at: list[tuple[int, float]] = []
    for _number in range(count):
        time.sleep(gap)
        _append(task)
        at.append((log.last_seq(task), time.time()))
    print(json.dumps(at))


def latencies(since: float) -> None:
    moment = datetime.fromtimestamp(since).astimezone()
    rows = Receipt.objects.filter(accepted_at__gte=moment, started_at__isnull=False)
    rows = rows.filter(sender_bot__handle__startswith="s")
    found = rows.values_list("accepted_at", "started_at")
    print(json.dumps([(to - at).total_seconds() for at, to in found if to is not None]))


def counts() -> None:
    """Of the messages to scripts: accepted, delivered, in the transcript, and gaps in timelines."""
    rows = Receipt.objects.filter(recipient__title__startswith="r")
    events = Event.objects.filter(type=EventType.USER_MESSAGE, stream__in=Stream.objects.all())
    shown = Counter(str(subject) for subject in events.values_list("subject", flat=True))
    ids = [(str(row.id), row.status) for row in rows]
    numbers = dict(Stream.objects.values_list("key", "last_seq"))
    kept = Counter(Event.objects.values_list("stream_id", flat=True))
    print(
        json.dumps(
            {
                "accepted": len(ids),
                "delivered": sum(status == Receipt.Status.DELIVERED for _, status in ids),
                "lost": sum(shown[id] == 0 for id, _ in ids),
                "twice": sum(shown[id] > 1 for id, _ in ids),
                "gaps": sum(kept[key] != last for key, last in numbers.items()),
            }
        )
    )


COMMANDS: dict[str, Callable[..., None]] = {
    "fill": lambda how, recipients, each: fill(how, int(recipients), int(each)),
    "append": lambda task, count, gap: append(UUID(task), int(count), float(gap)),
    "latencies": lambda since: latencies(float(since)),
    "counts": counts,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
