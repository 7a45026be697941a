"""The path of one message, as the README tells it, leads through functions that exist."""

import importlib
import re

import pytest

from tests.house.source import ROOT

README = (ROOT / "README.md").read_text()
STOP = re.compile(r"`(?P<file>\w+/[\w/]+\.py)`(?: `(?P<name>[\w.]+)`)?")
# Stops that are still on their way; when all of them are there, this list goes.
AWAITED: frozenset[str] = frozenset()


def stops() -> list[str]:
    table = README.partition("## The path of one message")[2].partition("\n## ")[0]
    return [
        ":".join(part for part in found.groups() if part)
        for line in table.splitlines()
        if line.startswith("| ")
        for found in STOP.finditer(line)
    ]


def is_there(stop: str) -> bool:
    file, _, name = stop.partition(":")
    if not (ROOT / file).exists():
        return False
    found: object = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    for part in filter(None, name.split(".")):
        found = getattr(found, part, None)
    return found is not None


def test_the_table_has_its_eleven_steps() -> None:
    assert len(stops()) == 16


@pytest.mark.parametrize("stop", stops())
def test_every_stop_is_there(stop: str) -> None:
    assert is_there(stop) or stop in AWAITED


def test_nothing_is_awaited_that_is_there() -> None:
    assert not AWAITED or not all(is_there(stop) for stop in AWAITED)
