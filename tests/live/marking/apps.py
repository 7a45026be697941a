"""The kind `mark`: its handler writes a line, so that a test sees when it ran and how often."""

import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from pydantic import BaseModel


class Mark(BaseModel):
    """A word, how long to take over it, and when it was promised."""

    word: str
    sleep: float = 0
    promised_at: float = 0


class MarkingConfig(AppConfig):
    name = "tests.live.marking"
    label = "marking"

    def ready(self) -> None:
        from cowork import kinds

        kinds.register(kinds.Kind(name="mark", payload=Mark, outside=outside, inside=inside))


def outside(entry: Any) -> None:
    """Write that it began, then take the time."""
    mark = Mark.model_validate(entry.payload)
    lag = time.time() - mark.promised_at
    path = Path(settings.COWORK_DATA_DIR) / "marks"
    with path.open("a") as file:
        file.write(f"{mark.word} {lag:.6f} {os.getpid()} {entry.sequence}\n")
    time.sleep(mark.sleep)


def inside(entry: Any, _result: Any, now: datetime) -> Any:
    """One row for each completed run: two of them would break its key."""
    from cowork import kinds
    from timeline.models import Body

    Body.objects.create(
        id=entry.id,
        workspace_id=entry.workspace_id,
        text=entry.payload["word"],
        sha256="",
        byte_count=0,
        created_at=now,
    )
    return kinds.DONE
