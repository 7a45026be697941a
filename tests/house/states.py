"""Draws docs/states.md from the tables of transitions: `make states`."""

import os
from typing import Any

from tests.house.source import DOCS, all_subclasses, import_everything

PAGE = DOCS / "states.md"
HEAD = """\
# States

Drawn from the tables of transitions in the code by `make states`; a test compares. A status changes
only along its table, by compare-and-set, with its event, in one transaction.
"""


def drawn() -> str:
    """The whole page."""
    from timeline.transitions import Stateful

    import_everything()
    rows = sorted(all_subclasses(Stateful), key=lambda row: row.__name__)
    return "\n".join([HEAD, *(_section(row) for row in rows)])


def status_field(row: Any) -> Any:
    """The field that the table of transitions speaks of."""
    return row._meta.get_field("status")


def _section(row: Any) -> str:
    table = row.TRANSITIONS
    field = status_field(row)
    steps = [f"    [*] --> {field.default}"]
    for before, after in table.items():
        steps += [f"    {before} --> {to}" for to in sorted(after)]
        if not after:
            steps.append(f"    {before} --> [*]")
    where = f"`{row.__module__.replace('.', '/')}.py`"
    sentence = (row.__doc__ or "").strip().splitlines()[0]
    diagram = "\n".join(["```mermaid", "stateDiagram-v2", *steps, "```"])
    return f"## {row.__name__}\n\n{sentence} Table: {where}.\n\n{diagram}\n"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    PAGE.write_text(drawn())
    print(f"drawn: {PAGE.name}")


if __name__ == "__main__":
    main()
