"""A workspace's streams without the tasks they tell of, and sockets to watch them."""

from uuid import UUID

import pytest

from tests.sockets import Connect, connector
from tests.timeline.streams import open_stream
from timeline import access
from timeline.access import Seen
from timeline.ids import new_id
from timeline.routing import nowhere, websocket_urlpatterns


@pytest.fixture
def workspace_id() -> UUID:
    return new_id()


@pytest.fixture
def stream(transactional_db: None, workspace_id: UUID) -> UUID:
    return open_stream(workspace_id)


class Door:
    """A port that lets in whoever the test says."""

    def __init__(self, workspace_id: UUID) -> None:
        self.known: object | None = "olga"
        self.seen: Seen = "yes"
        self._workspace_id = workspace_id

    def who(self, scope: access.Scope) -> object | None:
        return self.known

    def may_see_stream(self, visitor: object, stream: UUID) -> Seen:
        return self.seen

    def may_see_workspace(self, visitor: object, slug: str) -> Seen:
        return self.seen

    def workspace_id(self, slug: str) -> UUID:
        return self._workspace_id


@pytest.fixture
def door(workspace_id: UUID, monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door(workspace_id)
    monkeypatch.setattr(access, "_filled", [door])
    return door


@pytest.fixture
def connect(door: Door) -> Connect:
    return connector([*websocket_urlpatterns, *nowhere])
