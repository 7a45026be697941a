"""Leaves out the conformance tests that stand in later.txt: a pytest plugin, `-p later`.

It compares whole names, where `--deselect` would also leave out every test whose name begins like
one that is listed. In a run of
the whole suite, a line that names no test ends the run.
"""

import re
from pathlib import Path

import pytest

LATER = Path(__file__).with_name("later.txt")
LINE = re.compile(r"(?P<test>\S+\.py::\S.*?)\s+# issue (?P<issue>\d+)")


def listed() -> dict[str, int]:
    """The tests in the list, each with the number of its issue."""
    found: dict[str, int] = {}
    for number, line in enumerate(LATER.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = LINE.fullmatch(line)
        if parts is None:
            raise pytest.UsageError(f"{LATER.name}:{number} is not `file.py::test  # issue N`")
        if parts["test"] in found:
            raise pytest.UsageError(f"{LATER.name}:{number} is there twice")
        found[parts["test"]] = int(parts["issue"])
    return found


def names_of(item: pytest.Item) -> set[str]:
    """What a line may call it: with its parameters or without."""
    path, _, test = item.nodeid.partition("::")
    name = f"{Path(path).name}::{test}"
    return {name, name.partition("[")[0]}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    later = listed()
    kept = [item for item in items if not names_of(item) & later.keys()]
    left_out = [item for item in items if names_of(item) & later.keys()]
    is_whole = all(Path(argument).is_dir() for argument in config.args)
    if is_whole and not (config.option.keyword or config.option.markexpr):
        unknown = later.keys() - {name for item in items for name in names_of(item)}
        if unknown:
            raise pytest.UsageError(f"{LATER.name} names no test: {', '.join(sorted(unknown))}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_report_header() -> str:
    later = listed()
    counts = {issue: list(later.values()).count(issue) for issue in sorted(set(later.values()))}
    told = ", ".join(f"{count} for issue {issue}" for issue, count in counts.items())
    return f"left out by {LATER.name}: {told or 'nothing'}"
