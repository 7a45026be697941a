"""Workspaces: made with the runtime profile that every one has (SPEC §13)."""

import re
from datetime import datetime
from typing import Final
from uuid import UUID

from teams import profiles
from teams.models import RuntimeProfile, Workspace
from teams.texts import one_line
from timeline.refusals import InvalidRequest
from timeline.transactions import require_transaction

_SLUG: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class SlugTaken(InvalidRequest):
    """There is a workspace {slug} already."""


def make(*, slug: str, name: str, now: datetime) -> Workspace:
    """Make a workspace and its profile `external`. Raises InvalidRequest and SlugTaken."""
    require_transaction()
    if not _SLUG.fullmatch(slug):
        raise InvalidRequest(reason="slug: 1 to 63 characters a-z, 0-9 and -, no - at the ends.")
    if Workspace.objects.filter(slug=slug).exists():
        raise SlugTaken(slug=slug)
    workspace = Workspace.objects.create(
        slug=slug, name=one_line(name, field="name"), created_at=now
    )
    profiles.make(
        workspace,
        name=RuntimeProfile.EXTERNAL_NAME,
        kind=RuntimeProfile.Kind.EXTERNAL,
        is_spawnable=True,
        now=now,
    )
    return workspace


def lock(workspace_id: UUID) -> Workspace:
    """Lock the row: names within a workspace are given one after the other.

    It comes before the locks of teams and tasks; no message needs it.
    """
    require_transaction()
    return Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
