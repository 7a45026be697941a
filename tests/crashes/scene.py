"""What a crash needs: the teammates, work for the outbox, and the cases that are registered."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Model

from cowork import draining, kinds
from cowork.models import OutboxEntry
from tests.cowork.kind_of_work import Work
from tests.trio import Trio
from timeline.clock import ManualClock
from timeline.refusals import Refusal

APPS = ("messaging", "cowork", "teams", "timeline")


class Scene(Trio):
    """The three teammates, and a kind of outbox work of which the case says what it does."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.work = Work(clock)
        self.work.register()

    def owe(self, target: UUID) -> OutboxEntry:
        return self.work.owe(target=target, workspace_id=self.workspace.id)

    def drain_one(self) -> bool:
        return draining.drain_one(owner="mortal:1", clock=self.clock)


@contextmanager
def a_scene(clock: ManualClock) -> Iterator[Scene]:
    before = dict(kinds.KINDS)
    yield Scene(clock)
    kinds.KINDS.clear()
    kinds.KINDS.update(before)


@dataclass(frozen=True)
class Case:
    """What somebody does, and what holds in the end.

    The caller does it again after the recovery, as nobody has told it that it was done: either
    it is answered, or refused with one of `refused`. Then `holds` has to be true, whenever the
    process died.
    """

    act: Callable[[], Any]
    holds: Callable[[], object]
    refused: frozenset[str] = field(default_factory=frozenset)

    def repeat(self) -> None:
        met = "nothing"
        try:
            self.act()
        except Refusal as refusal:
            met = refusal.code
        assert met in (self.refused or {"nothing"})


Maker = Callable[[Scene], Case]


@dataclass(frozen=True)
class Registered:
    """A case of an action: of the commits that it makes on its way, the `commit`th is its own."""

    action: str
    make: Maker
    commit: int


CASES: list[Registered] = []


def crash_of(action: str, *, commit: int = 1) -> Callable[[Maker], Maker]:
    """Register a case of an action, named in full."""

    def register(make: Maker) -> Maker:
        CASES.append(Registered(action, make, commit))
        return make

    return register


def answered(act: Callable[[], Any], holds: Callable[[], object]) -> Case:
    """A case whose repeat is answered."""
    return Case(act, holds)


def refused(act: Callable[[], Any], holds: Callable[[], object], *codes: str) -> Case:
    """A case whose repeat is refused, as what it asks for has been done."""
    return Case(act, holds, frozenset(codes))


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of the product."""
    models: list[type[Model]] = [
        model for app in APPS for model in apps.get_app_config(app).get_models()
    ]
    return {
        model.__name__: list(model._default_manager.order_by("pk").values()) for model in models
    }
