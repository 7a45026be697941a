"""What a model may not do (docs/architecture.md, rule 9)."""

import ast
from collections.abc import Iterator

import pytest

from tests.house.source import Module, modules

MODELS = [module for module in modules() if "models" in module.path.with_suffix("").parts]
HIDDEN_WRITES = frozenset({"save", "delete", "save_base", "full_clean"})
HIDDEN_CALLS = ("django.db.models.signals", "django.dispatch", "django.core.signals")
GENERIC_KEYS = "django.contrib.contenttypes"

EVERY_MODULE = pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)


def classes(module: Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


@EVERY_MODULE
def test_no_signals_and_no_generic_foreign_keys(module: Module) -> None:
    refused = [
        name for _line, name in module.imports() if name.startswith((*HIDDEN_CALLS, GENERIC_KEYS))
    ]

    assert refused == []


@pytest.mark.parametrize("module", MODELS, ids=lambda module: module.name)
def test_a_query_says_its_order_and_a_row_is_written_where_it_is_seen(module: Module) -> None:
    refused = [
        f"{kind.name}.{name}"
        for kind in classes(module)
        for node in kind.body
        for name in names_of(node)
        if name in HIDDEN_WRITES or (kind.name == "Meta" and name == "ordering")
    ]

    assert refused == []


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


@pytest.mark.parametrize("module", MODELS, ids=lambda module: module.name)
def test_a_row_says_which_it_is(module: Module) -> None:
    silent = [
        kind.name
        for kind in classes(module)
        if any(
            "Model" in ast.unparse(base) or "Stateful" in ast.unparse(base) for base in kind.bases
        )
        and not is_abstract(kind)
        and not any(
            isinstance(node, ast.FunctionDef) and node.name == "__str__" for node in kind.body
        )
    ]

    assert silent == [], "`__str__` is what a log line shows"


def is_abstract(kind: ast.ClassDef) -> bool:
    return "abstract = True" in ast.unparse(kind)
