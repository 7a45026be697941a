"""Handles: the names that bots are called by, and finding a bot by one (SPEC §3.1, §3.3).

Two handles look alike when a reader could take one for the other. That is decided by their
*skeletons*, which are unique within a workspace: hyphens are dropped, except between two digits,
where they keep numbers apart; then `rn` counts as `m`, `vv` as `w`, `0` as `o`, and `1` and `i`
as `l`. So `at1as`, `at-las` and `atlas` are one name, while `bot-1-11` and `bot-11-1` are two.
Handles are lower-case ASCII, hence letters of other scripts need no rule here.
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final
from uuid import UUID

from django.db.models import Q

from teams.models import Bot
from timeline.refusals import InvalidRequest

MAX_LENGTH: Final = 64
NEAREST_COUNT: Final = 3
RESERVED: Final = frozenset({"human", "system", "person", "overseer", "admin", "everyone", "here"})

_RULE = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HYPHEN = re.compile(r"(?<![0-9])-|-(?![0-9])")
_PAIRS = (("rn", "m"), ("vv", "w"))
_LETTERS = str.maketrans({"0": "o", "1": "l", "i": "l"})


class HandleTaken(InvalidRequest):
    """The handle {handle} is taken, or looks like another one. Choose a different handle."""


def skeleton(handle: str) -> str:
    """The handle with all that looks alike folded into one (see the module)."""
    folded = _HYPHEN.sub("", handle)
    for pair, letter in _PAIRS:
        folded = folded.replace(pair, letter)
    return folded.translate(_LETTERS)


_RESERVED_SKELETONS = frozenset(skeleton(name) for name in RESERVED)


def checked(handle: str) -> str:
    """The handle, if it follows the rule and is not reserved; refuses with InvalidRequest."""
    if not _RULE.fullmatch(handle):
        raise InvalidRequest(
            reason="A handle has 1 to 64 characters a-z, 0-9 and -, and no - at either end.",
            errors=[{"field": "handle", "message": "not a handle"}],
        )
    if skeleton(handle) in _RESERVED_SKELETONS:
        raise InvalidRequest(
            reason=f"The handle {handle} is reserved, or looks like one that is.",
            errors=[{"field": "handle", "message": "reserved"}],
        )
    return handle


def fold(name: str) -> str:
    """A name as it is compared: NFC, without regard to case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def asked(name: str) -> str:
    """What somebody wrote to call a bot, as it is compared: trimmed, without `@`, folded."""
    return fold(name.strip().removeprefix("@").strip())


def exactly(name: str) -> list[Q]:
    """The conditions on a bot that a database can answer: its stable id, then its handle."""
    wanted = asked(name)
    by_id = [Q(pk=UUID(wanted))] if _ID.fullmatch(wanted) else []
    return [*by_id, Q(handle=wanted)]


def find(name: str, bots: Iterable[Bot]) -> list[Bot]:
    """The bots that the name may mean: by stable id, else by handle, else by display name."""
    wanted = asked(name)
    among = list(bots)
    for bot in among:
        if str(bot.id) == wanted:
            return [bot]
    for bot in among:
        if bot.handle == wanted:
            return [bot]
    return [bot for bot in among if fold(bot.display_name.strip()) == wanted]


def nearest(name: str, bots: Iterable[Bot]) -> list[str]:
    """The handles closest to the name, the best first."""
    wanted = asked(name)

    def closeness(bot: Bot) -> float:
        return max(
            SequenceMatcher(None, wanted, spelling, autojunk=False).ratio()
            for spelling in (bot.handle, fold(bot.display_name))
        )

    ranked = sorted(bots, key=lambda bot: (-closeness(bot), bot.handle))
    return [bot.handle for bot in ranked[:NEAREST_COUNT]]
