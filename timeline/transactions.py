"""The one transaction of an action.

`@action` opens it; rules ask for it with `require_transaction()`. What has to be written last in
it (events: their streams are locked last, in key order) is collected in a room of the transaction
and written just before the commit.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, Protocol, TypeVar, cast

from django.db import OperationalError, connection, transaction

from timeline import writers
from timeline.refusals import DatabaseBusy

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

TRIES = 3
# PostgreSQL's codes for "somebody else was in the way, try again": serialization and deadlock.
CONTENTION = frozenset({"40001", "40P01"})


class Room(Protocol):
    """Something that a transaction collects and writes before it commits."""

    def write(self) -> None: ...


RoomType = TypeVar("RoomType", bound=Room)


class Transaction:
    """The transaction of the action that runs."""

    def __init__(self) -> None:
        self._rooms: dict[type[Room], Room] = {}

    def room(self, kind: type[RoomType]) -> RoomType:
        """The one room of this kind; it is made on first use."""
        if kind not in self._rooms:
            self._rooms[kind] = kind()
        return cast(RoomType, self._rooms[kind])

    def write_rooms(self) -> None:
        for room in self._rooms.values():
            room.write()


_current: ContextVar[Transaction | None] = ContextVar("transaction", default=None)


def require_transaction() -> Transaction:
    """The running transaction. A rule called without one is a bug."""
    current = _current.get()
    if current is None or not connection.in_atomic_block:
        raise RuntimeError("a rule was called outside an action")
    return current


@contextmanager
def one_transaction() -> Iterator[Transaction]:
    """Open the transaction of an action; actions do not nest."""
    if _current.get() is not None:
        raise RuntimeError("an action was called inside another action")
    with writers.turn(), transaction.atomic(durable=True):
        opened = Transaction()
        token = _current.set(opened)
        try:
            yield opened
            opened.write_rooms()
        finally:
            _current.reset(token)


def action(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run the function in one durable transaction, again when others were in its way.

    Raises DatabaseBusy when the database does not let it through in time.
    """

    @functools.wraps(function)
    def in_one_transaction(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for tried in range(1, TRIES + 1):
            try:
                with one_transaction():
                    return function(*args, **kwargs)
            except OperationalError as error:
                if not is_contention(error):
                    raise
                if tried == TRIES or not _may_pass_soon(error):
                    raise DatabaseBusy from error
        raise AssertionError("never reached")

    return in_one_transaction


def is_contention(error: OperationalError) -> bool:
    """Whether others were in the way, rather than the database being broken."""
    return _may_pass_soon(error) or "locked" in str(error)


def _may_pass_soon(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in CONTENTION
