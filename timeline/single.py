"""A query on something unique has one row: nothing is left to sort."""

from typing import TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


def one_or_none(rows: QuerySet[Row]) -> Row | None:
    """The one row of a query on a unique field; None when there is none.

    `first()` would sort by key, and to say so over a row with all that it refers to takes Django
    several times as long as the rest of such a query.
    """
    return next(iter(rows.order_by()[:1]), None)
