"""What a rule says when it says no: a stable code, a status, a sentence (SPEC §15)."""

from typing import Any, ClassVar


class Refusal(Exception):
    """The request can't be done.

    Subclasses give `code`, `status` and, as docstring, the sentence that the caller reads, with
    `{names}` filled from the keyword arguments. Other keyword arguments named in `shown` become
    fields of the problem document.
    """

    code: ClassVar[str] = "INVALID_REQUEST"
    status: ClassVar[int] = 400
    shown: ClassVar[tuple[str, ...]] = ()
    retry_after: ClassVar[int | None] = None

    def __init__(self, **facts: Any) -> None:
        sentence = " ".join((type(self).__doc__ or "").split())
        self.facts = facts
        self.detail = sentence.format(**facts)
        super().__init__(self.detail)

    @property
    def extra(self) -> dict[str, Any]:
        """Further fields of the problem document."""
        return {name: self.facts[name] for name in self.shown if name in self.facts}


class InvalidRequest(Refusal):
    """{reason}"""

    code = "INVALID_REQUEST"
    status = 400
    shown = ("errors",)


class Forbidden(Refusal):
    """This is not yours to do."""

    code = "FORBIDDEN"
    status = 403


class NotFound(Refusal):
    """There is nothing here that you may see."""

    code = "NOT_FOUND"
    status = 404


class DatabaseBusy(Refusal):
    """The database is busy. Nothing was changed; the same request with the same id is safe to
    repeat."""

    code = "DATABASE_BUSY"
    status = 503
    retry_after = 1


class ShuttingDown(Refusal):
    """The server is shutting down. Nothing was changed; the same request with the same id is safe
    to repeat."""

    code = "SHUTTING_DOWN"
    status = 503
    retry_after = 2
