"""The catalogue of events: one typed body per type (docs/wire.md, Payloads of events).

A body holds ids, hashes and codes. Where an event tells a text, the text stands in a Body row
that the event refers to; `text_as` names the field of the payload in which readers get it, null
once it is erased.
"""

from datetime import datetime
from typing import ClassVar, Literal
from uuid import UUID

from django.db import models
from pydantic import BaseModel, ConfigDict, Field


class EventType(models.TextChoices):
    TASK_CREATED = "task_created"
    TASK_CHANGED = "task_changed"
    TASK_STATUS = "task_status"
    USER_MESSAGE = "user_message"
    AGENT_MESSAGE = "agent_message"
    MESSAGE_STATUS = "message_status"
    ASSISTANT_MESSAGE = "assistant_message"
    AGENT_FOLLOW_UP_SCHEDULED = "agent_follow_up_scheduled"
    AGENT_FOLLOW_UP_STARTED = "agent_follow_up_started"
    AGENT_INTERRUPT_REQUESTED = "agent_interrupt_requested"
    AGENT_INTERRUPT_CONFIRMED = "agent_interrupt_confirmed"
    TURN_STARTED = "turn_started"
    TURN_ENDED = "turn_ended"
    TOOL_ACTIVITY = "tool_activity"
    NOTE = "note"
    ERROR = "error"
    MEMBERSHIP_REPAIRED = "membership_repaired"
    WAKE_SKIPPED = "wake_skipped"
    WORKSPACE_BOUNDARY_RECOVERY = "workspace_boundary_recovery"


class EventBody(BaseModel):
    """What one type of event tells."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    type: ClassVar[EventType]
    text_as: ClassVar[str | None] = None


class Party(BaseModel):
    """A sender or a recipient, as far as an event names it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["agent", "person", "service"]
    task_id: UUID | None = None
    bot: str | None = None
    label: str


class Change(BaseModel):
    """One field of a task that was changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    field: Literal["title", "archived", "runtime_mode", "interaction_mode", "batch_inputs"]
    before: str | bool = Field(alias="from")
    to: str | bool


class TaskCreated(EventBody):
    type = EventType.TASK_CREATED

    kind: str
    title: str
    bot: str | None
    parent: UUID | None = None
    branch_from: UUID | None = None


class TaskChanged(EventBody):
    type = EventType.TASK_CHANGED

    changes: list[Change]


class TaskStatus(EventBody):
    type = EventType.TASK_STATUS

    before: str = Field(alias="from")
    to: str
    reason: str | None = None


class UserMessage(EventBody):
    type = EventType.USER_MESSAGE
    text_as = "text"

    message_id: str
    receipt_id: UUID
    source: Literal["agent", "person", "service"]
    sender: Party
    sequence: int
    in_reply_to: str | None
    attempt: int


class AgentMessage(EventBody):
    type = EventType.AGENT_MESSAGE
    text_as = "preview"

    message_id: str
    receipt_id: UUID
    recipient: Party
    in_reply_to: str | None
    handoff: bool
    automatic: bool


class MessageStatus(EventBody):
    type = EventType.MESSAGE_STATUS

    message_id: str
    receipt_id: UUID
    side: Literal["sender", "recipient"]
    before: str | None = Field(alias="from")
    to: str
    attempt: int
    code: str | None
    reason: str | None
    reply_status: str | None
    reply_message_id: str | None


class AssistantMessage(EventBody):
    type = EventType.ASSISTANT_MESSAGE
    text_as = "text"

    turn_id: UUID
    own: bool


class AgentFollowUpScheduled(EventBody):
    type = EventType.AGENT_FOLLOW_UP_SCHEDULED

    message_id: str
    receipt_id: UUID
    source: Literal["agent", "person", "service"]
    sender: Party
    delivery_mode: Literal["message", "follow_up"]


class AgentFollowUpStarted(EventBody):
    type = EventType.AGENT_FOLLOW_UP_STARTED

    message_id: str
    receipt_id: UUID
    turn_id: UUID
    attempt: int


class AgentInterruptRequested(EventBody):
    type = EventType.AGENT_INTERRUPT_REQUESTED

    request_id: UUID
    reason: str | None
    requested_at: datetime


class AgentInterruptConfirmed(EventBody):
    type = EventType.AGENT_INTERRUPT_CONFIRMED

    request_id: UUID
    reason: str | None
    requested_at: datetime


class TurnCause(BaseModel):
    """Why a turn runs (SPEC §6.1): the first of several reasons, and the chain it belongs to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["follow_up", "schedule", "message", "runtime"]
    id: str | None
    chain: UUID
    hop: int


class TurnLimit(BaseModel):
    """A limit of the runtime's provider that a turn met."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["usage", "overload"]
    resets_at: datetime | None = None
    will_retry: bool = False


class TurnStarted(EventBody):
    type = EventType.TURN_STARTED

    turn_id: UUID
    number: int
    cause: TurnCause
    receipt_ids: list[UUID]
    assignment_ids: list[UUID] = []


class TurnEnded(EventBody):
    type = EventType.TURN_ENDED
    text_as = "error"

    turn_id: UUID
    number: int
    status: Literal["done", "aborted", "error", "lost"]
    limit: TurnLimit | None


class ToolActivity(EventBody):
    type = EventType.TOOL_ACTIVITY

    label: str
    phase: str


class Note(EventBody):
    type = EventType.NOTE
    text_as = "text"

    level: Literal["info", "warning", "error"]
    key: str | None = None


class Error(EventBody):
    type = EventType.ERROR
    text_as = "text"

    code: str
    receipt_id: UUID | None = None


class MembershipRepaired(EventBody):
    type = EventType.MEMBERSHIP_REPAIRED

    bot: str
    team: UUID


class WakeSkipped(EventBody):
    type = EventType.WAKE_SKIPPED

    why: str
    receipt_id: UUID | None = None


class WorkspaceBoundaryRecovery(EventBody):
    type = EventType.WORKSPACE_BOUNDARY_RECOVERY

    old_session: UUID
    new_session: UUID
    code: str


CATALOGUE: dict[str, type[EventBody]] = {body.type: body for body in EventBody.__subclasses__()}
