"""Texts, each in one row of its own, so that erasing one never touches an event (SPEC §5.6)."""

import hashlib
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from timeline.models import Body
from timeline.transactions import require_transaction


def fingerprint(text: str) -> str:
    """The SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep(text: str, *, workspace_id: UUID, now: datetime) -> Body:
    """Store a text and return its row."""
    require_transaction()
    return Body.objects.create(
        workspace_id=workspace_id,
        text=text,
        sha256=fingerprint(text),
        byte_count=len(text.encode()),
        created_at=now,
    )


def erase(body_ids: Collection[UUID], *, now: datetime) -> int:
    """Forget texts; their hashes, their sizes and all that refers to them stay. How many were
    still there."""
    require_transaction()
    kept = Body.objects.filter(pk__in=body_ids, erased_at__isnull=True)
    return kept.update(text=None, erased_at=now)
