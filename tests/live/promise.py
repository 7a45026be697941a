"""Promise marks: `python -m tests.live.promise WORD COUNT TARGETS GAP SLEEP`."""

import os
import sys
import time


def main(word: str, count: int, target_count: int, gap: float, sleep: float) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.live.settings")
    import django

    django.setup()

    from cowork import outbox
    from tests.live.marking.apps import Mark
    from timeline.clock import system_clock
    from timeline.ids import new_id
    from timeline.transactions import action

    @action
    def promise(number: int) -> None:
        mark = Mark(word=f"{word}-{number}", sleep=sleep, promised_at=time.time())
        outbox.enqueue(
            "mark",
            target=targets[number % target_count],
            workspace_id=targets[0],
            payload=mark,
            now=system_clock.now(),
        )

    targets = [new_id() for _target in range(target_count)]
    for number in range(count):
        promise(number)
        time.sleep(gap)


if __name__ == "__main__":
    word, count, target_count, gap, sleep = sys.argv[1:]
    main(word, int(count), int(target_count), float(gap), float(sleep))
