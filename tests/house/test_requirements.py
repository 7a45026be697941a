"""What is installed is what is imported, and the other way round."""

import ast
import re
import sys
from pathlib import Path

from tests.house.source import APPS, ROOT, Module, modules

# Where the name to import is another than the package's.
IMPORTED_AS = {
    "django": "django",
    "djangorestframework": "rest_framework",
    "djangorestframework-api-key": "rest_framework_api_key",
    "django-q2": "django_q",
    "django-unfold": "unfold",
    "markdown-it-py": "markdown_it",
    "pyyaml": "yaml",
}
# Used by name or by another package, without an import of ours, and why.
NAMED = {
    "argon2-cffi": "Django's password hasher",
    "psycopg": "Django's PostgreSQL backend",
    "redis": "Django's cache backend",
    "whitenoise": "in MIDDLEWARE",
    "django-htmx": "in MIDDLEWARE and templates",
    "drf-spectacular": "in REST_FRAMEWORK",
    "drf-spectacular-sidecar": "in INSTALLED_APPS",
    "daphne": "in INSTALLED_APPS and on the command line",
    "setproctitle": "django-q2 names its processes with it",
}
NAMED_IN_TESTS = {
    "pytest-django": "a plugin",
    "pytest-xdist": "a plugin",
    "pytest-timeout": "a plugin",
    "pytest-asyncio": "a plugin",
    "pytest-playwright": "a plugin",
    "ruff": "a command",
    "mypy": "a command",
    "import-linter": "a command",
    "django-stubs": "types",
    "djangorestframework-stubs": "types",
    "types-pyyaml": "types",
    "types-psutil": "types",
    "types-jsonschema": "types",
}
# Named already, imported soon; when all of them are imported, this list goes.
AWAITED = frozenset({"hypothesis", "psutil", "websockets"})
# Theirs, and imported: what comes with a package that is required.
COMES_WITH = {"asgiref": "Django", "twisted": "daphne", "jsonschema": "drf-spectacular"}
OURS = {*APPS, "tests", "manage"}


def required(file: str) -> dict[str, str]:
    """The packages of a requirements file, each with the name that it is imported by."""
    lines = (ROOT / file).read_text().splitlines()
    names = [
        re.split(r"[\[<>=~!]", line)[0].strip().lower()
        for line in lines
        if line.strip() and not line.startswith(("#", "-r"))
    ]
    return {name: IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def imported(files: list[Module]) -> set[str]:
    names: set[str] = set()
    for module in files:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - OURS


PRODUCT = imported(modules())
TESTS = imported([Module(path) for path in sorted(Path(ROOT / "tests").rglob("*.py"))])


def test_every_import_of_the_product_is_required() -> None:
    assert PRODUCT - set(required("requirements.txt").values()) - set(COMES_WITH) == set()


def test_every_import_of_the_tests_is_required() -> None:
    every = {**required("requirements.txt"), **required("requirements-dev.txt")}

    assert TESTS - set(every.values()) - set(COMES_WITH) == set()


def test_every_requirement_is_used() -> None:
    unused = {
        package
        for package, name in required("requirements.txt").items()
        if name not in PRODUCT and package not in NAMED
    }

    assert unused - AWAITED == set()


def test_every_requirement_of_the_tests_is_used() -> None:
    unused = {
        package
        for package, name in required("requirements-dev.txt").items()
        if name not in TESTS and package not in NAMED_IN_TESTS
    }

    assert unused - AWAITED == set()


def test_every_requirement_has_a_range() -> None:
    lines = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    packages = [line for line in lines.splitlines() if line and not line.startswith(("#", "-r"))]

    assert [line for line in packages if not re.search(r"(>=.+,)?<\d", line)] == []


def test_nothing_is_awaited_that_is_there() -> None:
    every = {**required("requirements.txt"), **required("requirements-dev.txt")}

    assert {every[package] for package in AWAITED} - PRODUCT - TESTS
