"""Runtime profiles: what runs turns, and what each kind of it needs (SPEC §13).

A script is a list of rules; the first whose `when` matches the input runs its steps
(docs/wire.md, Script rules).
"""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from teams.models import RuntimeProfile, Workspace
from timeline.refusals import InvalidRequest
from timeline.transactions import require_transaction

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class ProfileNameTaken(InvalidRequest):
    """There is a runtime profile called {name} already."""


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return pattern


def _has_no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


Text = Annotated[str, Field(max_length=65_536), AfterValidator(_has_no_nul)]
Pattern = Annotated[Text, Field(max_length=4_000), AfterValidator(_compiles)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Say(Part):
    """Say something as one's own answer."""

    say: Text


class Reply(Part):
    """Answer the sender of the input."""

    reply: Text


class Message(Part):
    bot: Text
    message: Text


class Send(Part):
    """Write to a teammate."""

    send: Message


class Sleep(Part):
    """Take some time."""

    sleep_ms: int = Field(ge=0, le=600_000)


class Fail(Part):
    """End in an error before or after incorporation, the first so many times."""

    fail: Literal["before", "after"]
    times: int = Field(default=1, ge=1, le=1_000_000)


class Exit(Part):
    """Leave as a process would, without a word about the end."""

    exit: int = Field(ge=0, le=255)


STEPS: Final[dict[str, type[Part]]] = {
    "say": Say,
    "reply": Reply,
    "send": Send,
    "sleep_ms": Sleep,
    "fail": Fail,
    "exit": Exit,
}


def _step_kind(step: Any) -> str | None:
    """Which step it is, by the one name that says so."""
    if isinstance(step, Part):
        return next(name for name, kind in STEPS.items() if isinstance(step, kind))
    named = [name for name in STEPS if name in step] if isinstance(step, dict) else []
    return named[0] if len(named) == 1 else None


Step = Annotated[
    Annotated[Say, Tag("say")]
    | Annotated[Reply, Tag("reply")]
    | Annotated[Send, Tag("send")]
    | Annotated[Sleep, Tag("sleep_ms")]
    | Annotated[Fail, Tag("fail")]
    | Annotated[Exit, Tag("exit")],
    Discriminator(
        _step_kind,
        custom_error_type="unknown_step",
        custom_error_message="there is no such step; a step is one of " + ", ".join(STEPS),
    ),
]


class Rule(Part):
    """When the input matches, do this."""

    when: Pattern
    do: list[Step] = Field(max_length=100)


class ExternalConfig(Part):
    """The agent claims its turns itself: nothing to say about it."""


class ScriptConfig(Part):
    rules: list[Rule] = Field(max_length=1_000)


CONFIGS: Final[dict[str, type[Part]]] = {
    RuntimeProfile.Kind.EXTERNAL: ExternalConfig,
    RuntimeProfile.Kind.SCRIPT: ScriptConfig,
}


def checked(kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """The config of a profile of this kind as it is stored; refuses with InvalidRequest."""
    if kind not in CONFIGS:
        raise InvalidRequest(reason=f"kind: one of {', '.join(CONFIGS)}.")
    try:
        parsed = CONFIGS[kind].model_validate(config)
    except ValidationError as error:
        errors = [
            {"field": _path(row["loc"]), "message": row["msg"]}
            for row in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        told = "; ".join(f"{row['field']}: {row['message']}" for row in errors[:5])
        raise InvalidRequest(reason=f"The profile is not valid: {told}", errors=errors) from error
    return parsed.model_dump(mode="json")


def _path(location: tuple[int | str, ...]) -> str:
    """`rules[0].do[1].say`; the tag of a step is named by the step itself."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.lstrip(".") or "config"


def rules_of(profile: RuntimeProfile) -> list[Rule]:
    """The rules of a script."""
    return ScriptConfig.model_validate(profile.config).rules


def make(
    workspace: Workspace,
    *,
    name: str,
    kind: str,
    config: dict[str, Any] | None = None,
    is_spawnable: bool = False,
    now: datetime,
) -> RuntimeProfile:
    """Make a profile. Raises InvalidRequest and ProfileNameTaken; the workspace is locked."""
    require_transaction()
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            reason="name: 1 to 63 characters of a-z 0-9 . _ -, the first a letter or a digit.",
            errors=[{"field": "name", "message": "not a name"}],
        )
    stored = checked(kind, config or {})
    if RuntimeProfile.objects.filter(workspace=workspace, name=name).exists():
        raise ProfileNameTaken(name=name)
    return RuntimeProfile.objects.create(
        workspace=workspace,
        name=name,
        kind=kind,
        config=stored,
        is_spawnable=is_spawnable,
        created_at=now,
    )


def named(workspace_id: UUID, name: str) -> RuntimeProfile:
    """The active profile of this name. Raises InvalidRequest (SPEC §13)."""
    found = RuntimeProfile.objects.filter(
        workspace_id=workspace_id, name=name, is_active=True
    ).first()
    if found is None:
        raise InvalidRequest(
            reason="runtime: there is no such profile.",
            errors=[{"field": "runtime", "message": "no such profile"}],
        )
    return found
