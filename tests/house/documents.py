"""The contract as the docs tell it: `python -m tests.house.documents FOLDER` copies it anew.

The texts that the project was ordered by name files that lie beside them. In the docs they name
those of the docs; nothing else is changed.
"""

import sys
from pathlib import Path

from tests.house.source import DOCS

Changes = list[tuple[str, str]]

SPECIFICATION: Changes = [
    (
        """\
This is the contract. [API.md](API.md) fixes names and shapes on the wire, [ARCHITECTURE.md](ARCHITECTURE.md) where things live,
[design/DESIGN.md](design/DESIGN.md) what people see, [CASES.md](CASES.md) cases to satisfy, [BENCH.md](BENCH.md) how fast. The two texts under
[seeds/](seeds/) are the user's own sources. Where texts disagree: SPEC, then API, then ARCHITECTURE, then the rest.
""",
        """\
This is the contract. [wire.md](wire.md) fixes names and shapes on the wire, [architecture.md](architecture.md) where things live.
Where texts disagree: this one, then wire.md, then architecture.md, then the rest.
""",
    ),
    (" (The second seed calls this a chat.)", ""),
    (" (The second seed calls this a task.)", ""),
    (" (DEPENDENCIES.md §2)", ""),
    (", as DESIGN.md says", ""),
]
WIRE: Changes = []
ARCHITECTURE: Changes = [
    ("`@transaction.atomic(durable=True)`", "`@transactions.action`"),
    (
        "SPEC and API stand in the repository as `docs/specification.md` and `docs/wire.md` (a test compares them with `../shared` where that exists); docstrings cite those.",
        "The contract is `docs/specification.md` and `docs/wire.md`; docstrings cite them as SPEC and API.",
    ),
    (
        "This table goes into the README; a test checks that every function in it exists.",
        "This table stands in the README too; a test checks that every function in it exists.",
    ),
]
COPIES = {
    "SPEC.md": ("specification.md", SPECIFICATION),
    "API.md": ("wire.md", WIRE),
    "ARCHITECTURE.md": ("architecture.md", ARCHITECTURE),
}


def adapted(text: str, changes: Changes) -> str:
    """The text with these changes; each has to be possible."""
    for before, after in changes:
        if before not in text:
            raise ValueError(f"the source does not say: {before}")
        text = text.replace(before, after)
    return text


def main(folder: Path) -> None:
    for source, (copy, changes) in COPIES.items():
        (DOCS / copy).write_text(adapted((folder / source).read_text(), changes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
