"""The texts that people write about bots, teams and members, and how long they may be."""

from typing import Final

from timeline.refusals import InvalidRequest

NAME_LENGTH: Final = 80
TEXT_LENGTH: Final = 12_000


def one_line(text: str, *, field: str) -> str:
    """A name: trimmed, 1 to 80 characters on one line. Refuses with InvalidRequest."""
    name = text.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        _refuse(field, f"1 to {NAME_LENGTH} printable characters on one line")
    return name


def many_lines(text: str, *, field: str) -> str:
    """A text with CRLF folded to LF, at most 12,000 characters. Refuses with InvalidRequest."""
    folded = text.replace("\r\n", "\n")
    if len(folded) > TEXT_LENGTH:
        _refuse(field, f"at most {TEXT_LENGTH} characters")
    if "\0" in folded:
        _refuse(field, "no NUL character")
    return folded


def _refuse(field: str, rule: str) -> None:
    raise InvalidRequest(
        reason=f"{field}: {rule}.", errors=[{"field": field, "message": f"{rule}"}]
    )
