"""Ids: UUIDv7, so that they sort by time of making."""

import uuid

from uuid_utils.compat import uuid7


def new_id() -> uuid.UUID:
    made: uuid.UUID = uuid7()
    return made
