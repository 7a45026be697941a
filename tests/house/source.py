"""The product's own source, as the house rules look at it."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ("messaging", "cowork", "teams", "timeline")
DOCS = ROOT / "docs"

# The layers by file name (docs/architecture.md, Layers); `api_tasks` is a part of an API.
ENTRY_POINT_FILES = frozenset(
    {"api", "views", "admin", "consumers", "jobs", "mcp", "longpoll", "health"}
)
ENTRY_POINT_FOLDERS = frozenset({"agents", "worker", "management", "api", "views", "admin"})


@dataclass(frozen=True)
class Module:
    """One Python file of an app."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def stem(self) -> str:
        return self.path.stem

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)

    @property
    def line_count(self) -> int:
        return len(self.text.splitlines())

    @property
    def is_action(self) -> bool:
        """Named for what is done: `sending`, `following_up`."""
        verb = self.stem.partition("_")[0]
        return verb.endswith("ing") and not self.is_entry_point

    @property
    def is_entry_point(self) -> bool:
        folders = self.path.relative_to(ROOT).parts[1:-1]
        is_named_so = self.stem.partition("_")[0] in ENTRY_POINT_FILES
        return is_named_so or bool(ENTRY_POINT_FOLDERS & set(folders))

    def imports(self) -> Iterator[tuple[int, str]]:
        """The line and the full name of everything that it imports."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node.lineno, alias.name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield node.lineno, f"{node.module}.{alias.name}"

    def uses(self) -> Iterator[tuple[int, str]]:
        """The line and the dotted name of everything that it names."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name):
                yield node.lineno, dotted(node)

    def calls(self) -> Iterator[tuple[int, str]]:
        """The line and the dotted name of everything that it calls."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node.lineno, dotted(node.func)


def dotted(node: ast.expr) -> str:
    """`a.b.c` of an expression; what is no name in it is left out: `f().now` is `.now`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def modules() -> list[Module]:
    """Every Python file of the four apps but the migrations."""
    paths = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return [Module(path) for path in paths if "migrations" not in path.parts]


def import_everything() -> None:
    """Load all modules, so that every subclass of ours is known.

    First the addresses, as the server does: Django REST framework loads our authentication while
    its own views are loaded.
    """
    importlib.import_module("cowork.urls")
    for app in APPS:
        package = importlib.import_module(app)
        for found in pkgutil.walk_packages(package.__path__, f"{app}."):
            if ".migrations" not in found.name and found.name != "cowork.settings":
                importlib.import_module(found.name)


def all_subclasses(of: type) -> list[type]:
    """Every subclass, however deep, that stands in the four apps."""
    found: dict[type, None] = {}
    subclasses: list[type] = of.__subclasses__()
    for below in subclasses:
        found[below] = None
        found.update(dict.fromkeys(all_subclasses(below)))
    return [kind for kind in found if kind.__module__.partition(".")[0] in APPS]
