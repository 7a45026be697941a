"""What a file for `provision` may say (docs/wire.md, Commands and settings)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from teams.models import RuntimeProfile
from timeline.refusals import InvalidRequest


def _has_no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


Text = Annotated[str, AfterValidator(_has_no_nul)]
Label = Annotated[Text, Field(min_length=1, max_length=80)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PersonPlan(Part):
    username: Text
    role: Literal["viewer", "operator", "manager"]
    password: Text | None = None
    password_env: Text | None = None

    def password_in(self, environment: Mapping[str, str]) -> str | None:
        """The password that is given or named. Refuses a name that stands for nothing."""
        if self.password_env is None:
            return self.password
        if not environment.get(self.password_env):
            raise InvalidRequest(reason=f"The environment has no {self.password_env}.")
        return environment[self.password_env]


class RuntimePlan(Part):
    name: Text
    kind: Text
    spawnable: bool = False
    rules: list[Any] | None = None

    @property
    def config(self) -> dict[str, Any]:
        return {} if self.rules is None else {"rules": self.rules}


class BotPlan(Part):
    handle: Text
    display_name: Text
    description: Text = ""
    instructions: Text = ""
    icon: Text | None = None
    colour: Text | None = None
    runtime: Text = RuntimeProfile.EXTERNAL_NAME

    @property
    def looks(self) -> dict[str, Any]:
        given = {"icon": self.icon, "colour": self.colour}
        named = {name: value for name, value in given.items() if value is not None}
        return {"description": self.description, "instructions": self.instructions, **named}


class TeamPlan(Part):
    name: Text
    lead: Text
    members: list[Text] = []
    persistent: bool = True
    active: bool = True


class ConversationPlan(Part):
    bot: Text
    title: Annotated[Text, Field(min_length=1, max_length=200)]
    team: Text | None = None


class CredentialPlan(Part):
    label: Label
    kind: Literal["bot", "service"]
    bot: Text | None = None


class WorkspacePlan(Part):
    slug: Text
    name: Text
    people: list[PersonPlan] = []
    runtimes: list[RuntimePlan] = []
    bots: list[BotPlan] = []
    teams: list[TeamPlan] = []
    conversations: list[ConversationPlan] = []
    credentials: list[CredentialPlan] = []


class Blueprint(Part):
    workspaces: list[WorkspacePlan]


def read(written: object) -> Blueprint:
    """The plan that a parsed file holds. Refuses with InvalidRequest and tells where it is off."""
    try:
        return Blueprint.model_validate(written)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_input=False, include_context=False)
        told = "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows[:10])
        raise InvalidRequest(reason=f"The file is not valid: {told}") from error
