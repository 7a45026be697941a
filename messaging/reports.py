"""What a turn reports, one typed report each (docs/wire.md, Reports)."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from timeline.refusals import InvalidRequest

MAX_REPORTS = 200
MAX_TEXT = 256 * 1024

EventId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
SessionRef = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Report(BaseModel):
    """One report; its id makes a repeat of it change nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    event_id: EventId


class Accepted(Report):
    """The runtime has the turn, and maybe names the context store in which it runs it."""

    type: Literal["accepted"]
    session_ref: SessionRef | None = None


class Incorporated(Report):
    """The runtime holds the inputs: all, or all up to one receipt."""

    type: Literal["incorporated"]
    through: UUID | None = None


class AssistantMessage(Report):
    """What the agent said; `own` is false for a subagent's words."""

    type: Literal["assistant_message"]
    text: Text
    own: Annotated[bool, Field(strict=True)] = True


class Note(Report):
    type: Literal["note"]
    level: Literal["info", "warning", "error"] = "info"
    text: Text


class ToolActivity(Report):
    type: Literal["tool_activity"]
    label: Label
    phase: Label


class Stopped(Report):
    """The runtime has stopped the turn: it ends as aborted, after the reports before this one."""

    type: Literal["stopped"]


KINDS: tuple[type[Report], ...] = (
    Accepted,
    Incorporated,
    AssistantMessage,
    Note,
    ToolActivity,
    Stopped,
)
AnyReport = Annotated[
    Accepted | Incorporated | AssistantMessage | Note | ToolActivity | Stopped,
    Field(discriminator="type"),
]
_REPORTS: TypeAdapter[list[AnyReport]] = TypeAdapter(
    Annotated[list[AnyReport], Field(max_length=MAX_REPORTS)]
)


def read(events: object) -> list[AnyReport]:
    """The reports of a request, all of them valid. Raises InvalidRequest naming what is not."""
    try:
        return _REPORTS.validate_python(events)
    except ValidationError as error:
        errors = [
            {
                "field": "events" + "".join(f"[{part}]" for part in row["loc"]),
                "message": row["msg"],
            }
            for row in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        told = "; ".join(f"{row['field']}: {row['message']}" for row in errors[:5])
        raise InvalidRequest(reason=f"A report is not valid: {told}", errors=errors) from error
