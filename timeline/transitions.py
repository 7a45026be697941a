"""How a status changes: along its table, by compare-and-set (ARCHITECTURE, rule 1)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models

from timeline.refusals import Refusal
from timeline.transactions import require_transaction


class InvalidTransition(Refusal):
    """This can't be done any more: the {what} is {present}."""

    code = "INVALID_TRANSITION"
    status = 409
    shown = ("status", "delivery_status")


class Stateful(models.Model):
    """A row with a status and the table of the steps that it may take."""

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]]
    # The name under which the wire shows the status.
    STATUS_NAME: ClassVar[str] = "status"

    status: Any

    class Meta:
        abstract = True


def transition(row: Stateful, to: str, **changes: Any) -> None:
    """Move the row to a status and set the given fields, if it still has the status that was read.

    Raises InvalidTransition, with the present status, for a step that is not on the table and for
    a row that somebody else has moved meanwhile.
    """
    require_transaction()
    before = str(row.status)
    if to not in type(row).TRANSITIONS[before]:
        raise invalid(row, before)
    rows: models.Manager[Any] = type(row)._default_manager
    if not rows.filter(pk=row.pk, status=before).update(status=to, **changes):
        raise invalid(row, rows.values_list("status", flat=True).get(pk=row.pk))
    row.status = to
    for name, value in changes.items():
        setattr(row, name, value)


def invalid(row: Stateful, present: str) -> InvalidTransition:
    """The refusal that tells the present status."""
    what = str(row._meta.verbose_name)
    return InvalidTransition(what=what, present=present, **{row.STATUS_NAME: present})
