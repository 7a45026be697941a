"""How large a file may become (docs/architecture.md, Sizes and checks)."""

from pathlib import Path

import pytest

from tests.house.source import ROOT, Module, modules

MODULE_LIMIT = 400
TEMPLATE_LIMIT = 150
TEMPLATES = sorted(
    path
    for pattern in ("templates/**/*.html", "*/templates/**/*.html")
    for path in ROOT.glob(pattern)
    if not path.relative_to(ROOT).parts[0].startswith(".")
)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_module_is_read_in_one_go(module: Module) -> None:
    assert module.line_count <= MODULE_LIMIT, "split it by action"


def test_a_template_is_read_in_one_go() -> None:
    lengths = {str(path.relative_to(ROOT)): length(path) for path in TEMPLATES}

    assert {name: lines for name, lines in lengths.items() if lines > TEMPLATE_LIMIT} == {}


def length(path: Path) -> int:
    return len(path.read_text().splitlines())
