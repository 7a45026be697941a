"""The audit: each use of a person's authority, written in the transaction of what was done."""

from datetime import datetime
from typing import Any
from uuid import UUID

from timeline.log import Actor
from timeline.models import AuditEntry
from timeline.transactions import require_transaction


def record(
    action: str,
    *,
    workspace_id: UUID,
    actor: Actor,
    target_kind: str,
    target_id: object,
    now: datetime,
    note: str = "",
    **detail: Any,
) -> None:
    """Write one line of the audit; `detail` holds ids, codes and counts, never texts."""
    require_transaction()
    AuditEntry.objects.create(
        workspace_id=workspace_id,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        action=action,
        target_kind=target_kind,
        target_id=str(target_id),
        note=note,
        detail=detail,
        created_at=now,
    )
