"""The screen: an installation's own look at a message before it is handed over (SPEC §5.3)."""

import logging
from collections.abc import Callable

from django.conf import settings
from django.utils.module_loading import import_string

from messaging.models import Receipt

logger = logging.getLogger(__name__)

Screen = Callable[[str], str | None]


def doubt_about(receipt: Receipt) -> str | None:
    """Why the screen holds a message back; None when it does not, or nobody has set one.

    The callable named by COWORK_MESSAGE_SCREEN takes the text and returns a reason or None. What a
    person has released is not asked about again; a screen that fails lets nothing through.
    """
    if not settings.COWORK_MESSAGE_SCREEN or receipt.released_by:
        return None
    screen: Screen = import_string(settings.COWORK_MESSAGE_SCREEN)
    try:
        return screen(receipt.body.text or "")
    except Exception:
        logger.exception("the screen failed for %s", receipt)
        return "The screen of this installation failed."
