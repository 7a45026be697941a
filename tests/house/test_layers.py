"""The name of a file tells its layer, and the layer what it may do (docs/architecture.md)."""

import re

import pytest

from tests.house.source import Module, modules

OPENERS = ("transaction.atomic", "transactions.action", "transactions.one_transaction")
OPENING_NAMES = frozenset({"atomic", "action", "one_transaction"})
# These make the transaction that actions open.
TRANSACTION_MAKERS = frozenset({"timeline/transactions.py"})
# Rules that read the clock, and why.
CLOCK_READERS = {
    "timeline/clock.py": "it is the clock",
    "cowork/authentication.py": "a secret has an end; it is an entry point of every call",
    "messaging/repeats.py": "it takes the locks of its action, and reads the clock after them",
    "cowork/vitals.py": "whether the clock answers is a part of the question",
    "timeline/pump.py": "it runs by itself: nobody calls it who could hand it the time",
}
REAL_CLOCKS = re.compile(
    r"(^|\.)(datetime\.(now|utcnow|today)|date\.today|timezone\.now|time\.time)$"
)
HTTP = ("django.http", "django.shortcuts", "django.views", "django.urls", "rest_framework.")
# What the entry points of an app share: its part of the wire and of the schema, its addresses.
HTTP_FILES = frozenset({"wire", "schema", "urls", "routing"})
# Who speaks HTTP although it is no entry point, and why.
HTTP_SPEAKERS = {
    "cowork/authentication.py": "who calls",
    "cowork/slashes.py": "middleware",
    "timeline/policy.py": "middleware",
    "timeline/preferences.py": "middleware",
    "timeline/sockets.py": "what all sockets share of the wire",
    "messaging/visitors.py": "the headers of a socket say who opened it",
}
FORBIDDEN_NAMES = re.compile(
    r"(utils?|helpers?|commons?|services?|managers?|handlers?|misc|part_?\d)"
)

EVERY_MODULE = pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)


@EVERY_MODULE
def test_only_actions_open_a_transaction(module: Module) -> None:
    if module.is_action or module.name in TRANSACTION_MAKERS:
        return

    opened = [
        f"{module.name}:{line} {name}"
        for line, name in [*module.uses(), *module.imports()]
        if name.endswith(OPENERS)
        or (name in OPENING_NAMES and f"transactions.{name}" in names_imported(module))
    ]

    assert opened == [], "a file that opens a transaction ends in -ing"


def names_imported(module: Module) -> str:
    return " ".join(name for _line, name in module.imports())


@EVERY_MODULE
def test_rules_do_not_read_the_clock(module: Module) -> None:
    if module.is_action or module.is_entry_point or module.name in CLOCK_READERS:
        return

    read = [
        f"{module.name}:{line} {name}" for line, name in module.calls() if name.endswith(".now")
    ]

    assert read == [], "time is an argument: the action reads the clock and passes `now`"


@EVERY_MODULE
def test_nobody_asks_the_machine_for_the_time(module: Module) -> None:
    if module.name == "timeline/clock.py":
        return

    asked = [
        f"{module.name}:{line} {name}"
        for line, name in [*module.calls(), *module.imports()]
        if REAL_CLOCKS.search(name)
    ]

    assert asked == [], "the clock is timeline.clock"


@EVERY_MODULE
def test_only_entry_points_speak_http(module: Module) -> None:
    if module.is_entry_point or module.stem in HTTP_FILES or module.name in HTTP_SPEAKERS:
        return

    spoken = [
        f"{module.name}:{line} {name}" for line, name in module.imports() if name.startswith(HTTP)
    ]

    assert spoken == [], "rules and actions know nothing of requests and responses"


@EVERY_MODULE
def test_a_file_is_named_for_what_it_does_or_for_a_thing(module: Module) -> None:
    stems = (module.stem, module.stem.rpartition("_")[2], module.stem.partition("_")[0])

    assert not any(FORBIDDEN_NAMES.fullmatch(stem) for stem in stems), module.name


@EVERY_MODULE
def test_a_module_says_in_its_first_line_what_it_is_for(module: Module) -> None:
    first_line = module.text.partition("\n")[0]

    assert module.text == "" or first_line.startswith('"""'), module.name
