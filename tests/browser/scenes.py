"""Scenes in the harbour, reached by real calls."""

from tests.browser.harbour import Harbour

TWO_STEPS = """Done in two steps, so each can be rolled back alone:

1. Create `receipt_p` with monthly partitions and write to both tables.
2. Backfill in chunks, compare counts per month, then switch reads.

```
python manage.py backfill_receipts --chunk 4096 --verify
2026-01  418,220 rows  agree
2026-02  397,014 rows  agree
```

The slowest chunk held row locks for 2.3 s. I would rather not run that at noon."""


def a_working_day(harbour: Harbour, follow_up: "FollowUp") -> None:
    """Most bots have said something; Anvil works, waits for Quill, and was written to."""
    for handle, said in {
        "beacon": "Eleven questions this week, nine answered, two need a maintainer.",
        "tally": "Three options, their cost and who carries it. My pick is the second.",
        "quill": "Draft of the upgrade note is ready: what changes, and how to roll back.",
        "warden": "Review paused at the token rotation step. I could not open the second file.",
    }.items():
        follow_up(handle, "How far is it?")
        harbour.agents[handle].answer(said)
    follow_up("ferry", "Build the image, please.")
    harbour.ferry.begin()
    harbour.ferry.take_in()
    harbour.ferry.say("The image build stopped at the wheel cache step. Nothing was published.")
    harbour.ferry.end("error", error="the wheel cache is full")
    follow_up(
        "anvil",
        "Take the partition migration from Meridian’s plan. Keep the old table readable until the "
        "backfill is verified, and tell Quill what changed.",
    )
    harbour.anvil.begin()
    harbour.anvil.take_in()
    harbour.anvil.say(TWO_STEPS)
    harbour.anvil.send("tally", "Which of the three switch windows carries least risk?")
    harbour.anvil.end()
    harbour.tally.begin()
    harbour.tally.take_in()
    harbour.tally.send("anvil", "The second window, Saturday 06:00.")
    harbour.tally.end()
    harbour.anvil.begin()
    harbour.anvil.take_in()
    harbour.anvil.end()
    harbour.meridian.send(
        "anvil",
        "Use 512-row chunks; the larger run held row locks for 2.3 s on the busiest table. "
        "The window is Saturday 06:00.",
    )
    harbour.anvil.begin()
    harbour.anvil.take_in()
    harbour.anvil.send(
        "quill", "Write the upgrade note: what changes, what stays, how to roll back."
    )
    follow_up(
        "anvil",
        "Please also log the slowest chunk per month, so the Saturday run has something to "
        "compare with.",
    )
    follow_up("beacon", "Ask Echo, and say when it can’t answer.")
    harbour.beacon.begin()
    harbour.beacon.take_in()
    harbour.beacon.send("loom", "Which pipeline feeds the weekly report?")
    harbour.beacon.say("I asked Loom.\n\n" + "The list of questions, one by one. " * 60)
    harbour.beacon.end()
    follow_up("beacon", "Now the second half, please.")
    harbour.beacon.begin()
    harbour.beacon.end("error", error="the context is full")
    follow_up("sextant", "Compare the three retry schedules on the recorded outage.")
    harbour.sextant.begin()


class FollowUp:
    """A person's *Send and start*, over the API."""

    def __init__(self, harbour: Harbour, http: object) -> None:
        self._harbour, self._http = harbour, http

    def __call__(self, handle: str, message: str, mode: str = "follow_up") -> None:
        task_id = self._harbour.agents[handle].task_id
        asked = {"message": message, "delivery_mode": mode}
        answer = self._http.post(f"/api/v1/tasks/{task_id}/follow_ups", json=asked)  # type: ignore[attr-defined]
        assert answer.status_code == 202, answer.text
