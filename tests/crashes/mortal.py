"""A process that is killed with SIGKILL at a commit, right before it or right after it.

It is forked from the test's own and kills itself, so nothing is tidied up: no `finally`, no
rollback that was asked for, no connection that is closed. Nothing of the product is replaced. Where
a death is to come before the commit, the connection's driver tells of it: SQLite's trace of
statements, or the commit of psycopg's connection. A death after it is a hook of that commit.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Literal

from django.db import connection, connections

from timeline import commits, transactions

Moment = Literal["before", "after"]
ALIVE: Final = 3


def die(act: Callable[[], Any], *, moment: Moment, commit: int = 1) -> str:
    """Let a process act and die at one of its commits; the full name of the action it was of."""
    commits.stop()
    connections.close_all()  # a connection belongs to one process
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        _act_and_die(act, moment, commit, told)
    os.close(told)
    _, status = os.waitpid(child, 0)
    with os.fdopen(heard) as pipe:
        action = pipe.read()
    assert os.WIFSIGNALED(status), f"it has come through, with status {status}, and not died"
    assert os.WTERMSIG(status) == signal.SIGKILL
    return action


def _act_and_die(act: Callable[[], Any], moment: Moment, commit: int, told: int) -> None:
    status = 1
    try:
        _arrange_death(_Death(told, commit), moment)
        act()
        status = ALIVE
    except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on as the test
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


class _Death:
    """Counts commits, and comes at one of them."""

    def __init__(self, told: int, commit: int) -> None:
        self._told = told
        self._left = commit

    def at_commit(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._told, _committing_action(sys._getframe()).encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _arrange_death(death: _Death, moment: Moment) -> None:
    connection.ensure_connection()
    if moment == "after":

        def with_hook(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            hooks = [registered[1] for registered in connection.run_on_commit]
            if connection.in_atomic_block and death.at_commit not in hooks:
                connection.on_commit(death.at_commit)
            return execute(sql, params, many, context)

        connection.execute_wrappers.append(with_hook)
        return
    driver: Any = connection.connection
    if connection.vendor == "sqlite":

        def hear(statement: str) -> None:
            if statement == "COMMIT":
                death.at_commit()

        driver.set_trace_callback(hear)
        return
    commit = driver.commit

    def die_or_commit() -> None:
        death.at_commit()
        commit()

    driver.commit = die_or_commit


def _committing_action(frame: FrameType | None) -> str:
    """The action whose transaction commits, as the stack tells."""
    while frame is not None:
        is_around = frame.f_code.co_filename == transactions.__file__
        function = frame.f_locals.get("function") if is_around else None
        if function is not None:
            return f"{function.__module__}.{function.__qualname__}"
        frame = frame.f_back
    return "no action"
