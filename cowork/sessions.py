"""Work sessions: bound to the tasks whose runtimes name them, never across workspaces (SPEC §3.7).

Checked when a runtime names one and again at each claim. The rows hold ids and a name; no text of
a transcript is kept in them, and none follows a binding that moves.
"""

from datetime import datetime

from cowork.models import Task, WorkSession
from timeline import log
from timeline.event_types import WorkspaceBoundaryRecovery
from timeline.log import SYSTEM
from timeline.transactions import require_transaction

WORKSPACE_CONFLICT = "WORKSPACE_CONFLICT"


def bind(task: Task, ref: str, *, now: datetime) -> None:
    """Bind the task to the session that its runtime names; it is made when it is new.

    One that belongs to another workspace is detached, and a fresh one takes its place. The task
    is locked.
    """
    session = _attached(task, ref, now=now)
    if session.workspace_id == task.workspace_id:
        _set(task, session)
    else:
        _recover(task, session, now=now)


def check(task: Task, *, now: datetime) -> None:
    """Let no turn begin in a session of another workspace. The task is locked."""
    require_transaction()
    if task.session_id is None:
        return
    session = WorkSession.objects.get(pk=task.session_id)
    if session.workspace_id != task.workspace_id:
        _recover(task, session, now=now)


def _recover(task: Task, foreign: WorkSession, *, now: datetime) -> None:
    rows = WorkSession.objects.filter(pk=foreign.pk, detached_at__isnull=True)
    rows.update(detached_at=now)
    fresh = _attached(task, foreign.ref, now=now)
    _set(task, fresh)
    told = WorkspaceBoundaryRecovery(
        old_session=foreign.id, new_session=fresh.id, code=WORKSPACE_CONFLICT
    )
    log.append(task.stream, told, actor=SYSTEM, now=now)


def _attached(task: Task, ref: str, *, now: datetime) -> WorkSession:
    """The session of this name at the task's profile; of two that make it at once, one does."""
    require_transaction()
    found, _is_new = WorkSession.objects.get_or_create(
        runtime_id=task.runtime_id,
        ref=ref,
        detached_at=None,
        defaults={"workspace_id": task.workspace_id, "created_at": now},
    )
    return found


def _set(task: Task, session: WorkSession) -> None:
    if task.session_id != session.id:
        Task.objects.filter(pk=task.pk).update(session=session)
        task.session = session
