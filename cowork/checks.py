"""Settings that would lose or double work refuse to start (SPEC §8.8)."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage


def worker_settings(app_configs: Sequence[Any] | None = None, **_more: Any) -> list[CheckMessage]:
    """A drain has to end by itself before django-q2 ends it, and that before it is doubled."""
    life = settings.COWORK_DRAIN_LIFE.total_seconds()
    timeout, retry = settings.COWORK_Q_TIMEOUT, settings.COWORK_Q_RETRY
    found: list[CheckMessage] = []
    if retry <= timeout:
        found.append(
            checks.Error(
                f"COWORK_Q_RETRY ({retry}) has to be longer than COWORK_Q_TIMEOUT ({timeout}).",
                hint="django-q2 would start a job a second time while the first one runs.",
                id="cowork.E001",
            )
        )
    if timeout <= life:
        found.append(
            checks.Error(
                f"COWORK_Q_TIMEOUT ({timeout}) has to be longer than COWORK_DRAIN_LIFE_SECONDS "
                f"({life:g}).",
                hint="django-q2 would end every drain before its time.",
                id="cowork.E002",
            )
        )
    longest = life + settings.COWORK_HANDLER_LIMIT.total_seconds()
    if life < timeout < longest:
        found.append(
            checks.Warning(
                f"COWORK_Q_TIMEOUT ({timeout}) is shorter than a drain with a handler at its limit "
                f"({longest:g}).",
                hint="Such a handler counts as crashed instead of failed.",
                id="cowork.W001",
            )
        )
    return found
