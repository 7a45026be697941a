"""Who may act for a task, see a task or a receipt, and whether a message may still be delivered.

Asked at admission and again at the claim, under the team's lock (SPEC §2.4).
"""

from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from cowork.models import Task
from cowork.tasks import TaskNotFound
from messaging.models import Receipt
from teams import authority
from teams.models import Member, Person, Team
from teams.permissions import May, Principal, may, require
from timeline.refusals import Forbidden, NotFound, Refusal
from timeline.single import one_or_none


class TaskIdRequired(Refusal):
    """{reason}"""

    code = "TASK_ID_REQUIRED"
    status = 400


def covers(principal: Principal, task: Task) -> bool:
    """Whether an agent's credential acts as this task (SPEC §2.1)."""
    if not may(principal, May.ACT_AS_AGENT) or task.workspace_id != principal.workspace_id:
        return False
    if principal.task_id is not None:
        return task.id == principal.task_id
    return principal.bot_id is not None and task.bot_id == principal.bot_id


def is_sender(principal: Principal, receipt: Receipt) -> bool:
    """Whether the principal has sent a message, as the agent of its task or in its own name."""
    if receipt.sender_task is not None:
        return covers(principal, receipt.sender_task)
    return receipt.sender_key == f"{principal.kind}:{principal.id}"


def require_cover(principal: Principal, task: Task) -> None:
    """Raise TaskNotFound across workspaces, Forbidden within, unless the credential covers it."""
    if task.workspace_id != principal.workspace_id:
        raise TaskNotFound
    if not covers(principal, task):
        raise Forbidden


def acting_task(principal: Principal, sender_task_id: UUID | None) -> Task:
    """The task that an agent acts as: the named one, or the only one it can be.

    Raises TaskIdRequired when it could be several, TaskNotFound, Forbidden.
    """
    if sender_task_id is None:
        sender_task_id = principal.task_id or _only_conversation(principal)
    task = find_task(principal, sender_task_id)
    require_cover(principal, task)
    return task


def _only_conversation(principal: Principal) -> UUID:
    if principal.bot_id is None:
        raise Forbidden
    usable = Task.objects.filter(bot_id=principal.bot_id, kind=Task.Kind.BOT_CONVERSATION).usable()
    found = list(usable.values_list("pk", flat=True)[:2])
    if len(found) != 1:
        raise TaskIdRequired(
            reason="Name your own task in sender_task_id: your bot has not exactly one usable "
            "conversation."
        )
    return found[0]


def find_task(principal: Principal, task_id: UUID) -> Task:
    """A task of the principal's workspace. Raises TaskNotFound for all others alike."""
    rows = Task.objects.select_related("bot", "team", "runtime", "workspace")
    task = one_or_none(rows.filter(pk=task_id, workspace_id=principal.workspace_id))
    if task is None:
        raise TaskNotFound
    return task


def visible_task(principal: Principal, task_id: UUID) -> Task:
    """A task that the principal may look at. Raises TaskNotFound, Forbidden."""
    task = find_task(principal, task_id)
    if not may_see_task(principal, task):
        raise Forbidden
    return task


def may_see_task(principal: Principal, task: Task) -> bool:
    """Its own tasks and its teammates' conversations for an agent; all of them for people."""
    if task.workspace_id != principal.workspace_id:
        return False
    if may(principal, May.READ):
        return True
    return covers(principal, task) or visible_tasks(principal).filter(pk=task.pk).exists()


def visible_tasks(principal: Principal) -> QuerySet[Task]:
    """The tasks that the principal may look at."""
    rows = Task.objects.filter(workspace_id=principal.workspace_id)
    if may(principal, May.READ):
        return rows
    if principal.task_id is not None:
        own = Q(pk=principal.task_id)
    elif principal.bot_id is not None:
        own = Q(bot_id=principal.bot_id)
    else:
        return rows.none()
    if principal.bot_id is None:
        return rows.filter(own)
    teams = teams_of(principal.bot_id)
    bots = Member.objects.active().filter(team__in=teams).values("bot_id")
    mates = Q(team__in=teams) & (Q(bot_id__in=bots) | Q(bot_id__in=teams.values("lead_id")))
    return rows.filter(own | mates)


def own_tasks(principal: Principal) -> QuerySet[Task]:
    """The tasks that an agent's credential acts as."""
    rows = Task.objects.filter(workspace_id=principal.workspace_id)
    if principal.task_id is not None:
        return rows.filter(pk=principal.task_id)
    return rows.filter(bot_id=principal.bot_id) if principal.bot_id else rows.none()


def teams_of(bot_id: UUID) -> QuerySet[Team]:
    """The active persistent teams that a bot is in."""
    joined = Member.objects.active().filter(bot_id=bot_id).values("team_id")
    rows = Team.objects.filter(is_active=True, is_persistent=True)
    return rows.filter(Q(pk__in=joined) | Q(lead_id=bot_id))


def visible_receipts(principal: Principal) -> QuerySet[Receipt]:
    """Receipts it sent or got for an agent; all of the workspace for people and services."""
    rows = Receipt.objects.filter(workspace_id=principal.workspace_id)
    if may(principal, May.READ):
        return rows
    if principal.task_id is not None:
        return rows.filter(Q(sender_task_id=principal.task_id) | Q(recipient_id=principal.task_id))
    if principal.bot_id is not None:
        return rows.filter(
            Q(sender_task__bot_id=principal.bot_id) | Q(recipient__bot_id=principal.bot_id)
        )
    return rows.none()


def visible_receipt(principal: Principal, receipt_id: UUID) -> Receipt:
    """One receipt. Raises NotFound across workspaces, Forbidden within."""
    rows = Receipt.objects.select_related("body", "recipient__bot", "sender_task", "sender_bot")
    receipt = rows.filter(pk=receipt_id, workspace_id=principal.workspace_id).first()
    if receipt is None:
        raise NotFound
    if not visible_receipts(principal).filter(pk=receipt.pk).exists():
        raise Forbidden
    return receipt


def why_not(receipt: Receipt) -> str | None:
    """Why a message may not be delivered any more; None when it may (SPEC §2.4)."""
    if receipt.source == Receipt.Source.PERSON:
        sender = Person.objects.filter(pk__in=[receipt.sender_person_id]).first()
        return None if sender and may_still_write(sender) else "Its sender may not write here now."
    if receipt.source == Receipt.Source.SERVICE:
        return None  # revoking a credential stops calls, not what was accepted
    if receipt.sender_bot is None or receipt.recipient.bot is None:
        return "It was not sent from one bot to another."
    return authority.may_exchange(receipt.team, receipt.sender_bot, receipt.recipient.bot)


def deliverable(rows: QuerySet[Receipt]) -> QuerySet[Receipt]:
    """Of messages from bot to bot those that may still be delivered: `why_not` as one query."""
    for bot_id, is_active in (
        ("sender_bot_id", "sender_bot__is_active"),
        ("recipient__bot_id", "recipient__bot__is_active"),
    ):
        members = Member.objects.active().filter(team=OuterRef("team"), bot=OuterRef(bot_id))
        rows = rows.filter(Exists(members) | Q(team__lead=F(bot_id)), **{is_active: True})
    return rows.filter(
        team__is_active=True, team__is_persistent=True, team__workspace=F("workspace")
    )


def may_still_write(person: Person) -> bool:
    """Whether a person is active and still at least operator."""
    roles = (Person.Role.OPERATOR, Person.Role.MANAGER)
    return person.is_active and person.user.is_active and person.role in roles


def require_reader(principal: Principal) -> None:
    """Raise Forbidden unless the principal may read the whole workspace."""
    require(principal, May.READ)
