"""The screen: what an installation holds back before an agent reads it (SPEC §5.3).

`COWORK_MESSAGE_SCREEN` names a callable by its dotted path. It gets the text of a message at the
claim, in the claim's transaction, and answers why it is unsafe, or None. There is none by default.
"""

from collections.abc import Callable

from django.conf import settings
from django.utils.module_loading import import_string

from messaging.models import Receipt

Screen = Callable[[str], str | None]


def why_unsafe(receipt: Receipt) -> str | None:
    """Why a message is held back; None when it is not. One that a person released is not asked
    about again."""
    if not settings.COWORK_MESSAGE_SCREEN or receipt.released_by:
        return None
    screen: Screen = import_string(settings.COWORK_MESSAGE_SCREEN)
    return screen(receipt.body.text or "")
