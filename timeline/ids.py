"""Ids: UUIDv7, so that they sort by time of making."""

import uuid
from datetime import datetime

from uuid_utils.compat import uuid7


def new_id() -> uuid.UUID:
    made: uuid.UUID = uuid7()
    return made


def first_id_of(moment: datetime) -> uuid.UUID:
    """What the ids that were made at a moment or later are not below."""
    milliseconds = int(moment.timestamp() * 1000)
    return uuid.UUID(int=milliseconds << 80)
