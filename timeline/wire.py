"""The wire of every entry point: JSON in, problem documents out, keyset pages (docs/wire.md)."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, ClassVar, NoReturn, TypeVar
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.db.models import Model, Q, QuerySet
from django.http import Http404
from rest_framework import exceptions, parsers, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from timeline import refusals, transactions

PROBLEM = "application/problem+json"
ERRORS_PAGE = "/docs/errors"
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MAX_BODY = 4 * 1024 * 1024

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")


class NotAuthenticated(refusals.Refusal):
    """Name a valid credential in the Authorization header, or sign in."""

    code = "NOT_AUTHENTICATED"
    status = 401


class StrictJSONParser(parsers.BaseParser):
    """JSON in UTF-8 without NaN, NUL or halves of characters."""

    media_type = "application/json"
    # Fields of the body in which NUL becomes U+FFFD instead of a refusal.
    mended_fields: ClassVar[frozenset[str]] = frozenset()

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        raw = stream.read(MAX_BODY + 1)
        if len(raw) > MAX_BODY:
            raise refusals.InvalidRequest(reason=f"The body is larger than {MAX_BODY} bytes.")
        try:
            parsed = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise refusals.InvalidRequest(reason="The body is no JSON in UTF-8.") from error
        if isinstance(parsed, dict):
            for name in self.mended_fields & parsed.keys():
                if isinstance(parsed[name], str):
                    parsed[name] = parsed[name].replace("\0", "\N{REPLACEMENT CHARACTER}")
        _check_strings(parsed)
        return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _check_strings(value: Any) -> None:
    """Refuse NUL and lone surrogates in every string, names of fields included (SPEC §2.6)."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            check_text(found)
        elif isinstance(found, dict):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list):
            waiting += found


def check_text(text: str) -> None:
    """Refuse a text that holds NUL or is no Unicode."""
    if "\0" in text:
        raise refusals.InvalidRequest(reason="A text holds a NUL character.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise refusals.InvalidRequest(reason="A text holds half of a character.") from error


class StrictCharField(serializers.CharField):
    """A string; no number or boolean is taken for one, and blanks are kept."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictIntegerField(serializers.IntegerField):
    """A JSON integer; no string, no boolean, no fraction."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictNumberField(serializers.FloatField):
    """A JSON number; no string and no boolean."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean and nothing that looks like one."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictUUIDField(serializers.UUIDField):
    """An id as text, in its usual form."""

    def to_internal_value(self, data: Any) -> UUID:
        found = as_uuid(data)
        if found is None:
            self.fail("invalid", value=data)
        return found


class StrictSerializer(serializers.Serializer[Any]):
    """An input; a field that it does not name is refused (SPEC §2.6)."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                raise exceptions.ValidationError(
                    {str(name): ["There is no such field."] for name in unknown}
                )
        found: dict[str, Any] = super().to_internal_value(data)
        return found


def given(serializer: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """The validated input. Raises a validation error that becomes 400 INVALID_REQUEST."""
    asked = serializer(data=data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


class ApiView(APIView):
    """A view of the API: knows HTTP, makes one call down."""

    parser_classes = (StrictJSONParser,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        asked = request.query_params
        check_text(request.path)
        for name in asked:
            for value in (name, *asked.getlist(name)):
                check_text(value)
        if "token" in request.query_params:
            raise refusals.InvalidRequest(
                reason="A secret has no place in an address; send it in the Authorization header."
            )
        super().initial(request, *args, **kwargs)


def as_uuid(value: Any) -> UUID | None:
    """The id that a text spells in its usual form; None for everything else."""
    if not isinstance(value, str) or len(value) != 36:
        return None
    try:
        return UUID(value)
    except ValueError:
        return None


# Problem documents


def problem(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn what a view raised into a problem document; None (500) for a bug."""
    refusal = as_refusal(error)
    return None if refusal is None else problem_response(refusal)


def as_refusal(error: Exception) -> refusals.Refusal | None:
    """The refusal that an exception means; None for a bug."""
    if isinstance(error, refusals.Refusal):
        return error
    if isinstance(error, exceptions.ValidationError):
        errors = list(_field_errors(error.detail))
        told = "; ".join(f"{row['field']}: {row['message']}" for row in errors)
        return refusals.InvalidRequest(reason=f"The request is not valid: {told}", errors=errors)
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return NotAuthenticated()
    if isinstance(error, exceptions.PermissionDenied):
        return refusals.Forbidden()
    if isinstance(error, Http404 | exceptions.NotFound):
        return refusals.NotFound()
    if isinstance(error, exceptions.APIException) and error.status_code < 500:
        refusal = refusals.InvalidRequest(reason=str(error.detail))
        refusal.status = error.status_code  # type: ignore[misc]  # 405, 406, 415 of one code
        return refusal
    if isinstance(error, OperationalError) and transactions.is_contention(error):
        return refusals.DatabaseBusy()
    return None


def problem_document(refusal: refusals.Refusal) -> dict[str, Any]:
    """`{type, title, status, detail, code, …}` (RFC 9457)."""
    return {
        "type": f"{settings.COWORK_PUBLIC_URL}{ERRORS_PAGE}#{refusal.code}",
        "title": refusal.code.replace("_", " ").capitalize(),
        "status": refusal.status,
        "detail": refusal.detail,
        "code": refusal.code,
        **refusal.extra,
    }


def problem_response(refusal: refusals.Refusal) -> Response:
    response = Response(problem_document(refusal), status=refusal.status, content_type=PROBLEM)
    if refusal.status == status.HTTP_401_UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after is not None:
        response["Retry-After"] = str(refusal.retry_after)
    return response


def _field_errors(detail: Any, path: str = "") -> list[dict[str, str]]:
    if isinstance(detail, Mapping):
        rows: list[dict[str, str]] = []
        for name, inner in detail.items():
            is_whole = name == "non_field_errors"
            rows += _field_errors(inner, path if is_whole else f"{path}.{name}".lstrip("."))
        return rows
    if isinstance(detail, list):
        rows = []
        for index, inner in enumerate(detail):
            is_leaf = not isinstance(inner, Mapping | list)
            rows += _field_errors(inner, path if is_leaf else f"{path}[{index}]")
        return rows
    return [{"field": path or "body", "message": str(detail)}]


# Lists


def limit_of(request: Request) -> int:
    """The asked page size, 50 when none is asked."""
    asked = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= MAX_LIMIT):
        raise refusals.InvalidRequest(reason=f"limit: a whole number from 1 to {MAX_LIMIT}.")
    return int(asked)


def page(
    rows: QuerySet[Row],
    request: Request,
    *,
    order: tuple[str, ...],
    render: Callable[[Row], dict[str, Any]],
) -> Response:
    """One page of a list, `{results, next}`, by keyset on `order` (the last field is unique)."""
    limit = limit_of(request)
    cursor = request.query_params.get("cursor")
    if cursor:
        rows = rows.filter(_after(order, _read_cursor(rows.model, order, cursor)))
    found = list(rows.order_by(*order)[: limit + 1])
    shown = found[:limit]
    more = len(found) > limit
    return Response(
        {
            "results": [render(row) for row in shown],
            "next": _write_cursor(shown[-1], order) if more else None,
        }
    )


def page_of(
    rows: Sequence[Item],
    request: Request,
    *,
    key: Callable[[Item], str],
    render: Callable[[Item], dict[str, Any]],
) -> Response:
    """One page of a computed list; the cursor names the last row of the page before."""
    limit = limit_of(request)
    cursor = request.query_params.get("cursor")
    start = 0
    if cursor:
        keys = [key(row) for row in rows]
        if cursor not in keys:
            raise refusals.InvalidRequest(reason="cursor: this is none of this list (any more).")
        start = keys.index(cursor) + 1
    shown = rows[start : start + limit]
    more = len(rows) > start + limit
    return Response(
        {"results": [render(row) for row in shown], "next": key(shown[-1]) if more else None}
    )


def _after(order: tuple[str, ...], values: list[Any]) -> Q:
    condition = Q()
    equal: dict[str, Any] = {}
    for name, value in zip(order, values, strict=True):
        field = name.lstrip("-")
        step = "lt" if name.startswith("-") else "gt"
        condition |= Q(**equal, **{f"{field}__{step}": value})
        equal[field] = value
    return condition


def _write_cursor(row: Model, order: tuple[str, ...]) -> str:
    values = [getattr(row, name.lstrip("-")) for name in order]
    texts = [value.isoformat() if isinstance(value, datetime) else str(value) for value in values]
    return base64.urlsafe_b64encode(json.dumps(texts).encode()).decode().rstrip("=")


def _read_cursor(model: type[Model], order: tuple[str, ...], cursor: str) -> list[Any]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        texts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(texts, list) or len(texts) != len(order):
            raise ValueError("another list's cursor")
        fields = [model._meta.get_field(name.lstrip("-")) for name in order]
        return [
            datetime.fromisoformat(text)
            if field.get_internal_type() == "DateTimeField"
            else field.to_python(text)  # type: ignore[union-attr]
            for field, text in zip(fields, texts, strict=True)
        ]
    except (ValueError, TypeError, binascii.Error, ValidationError) as error:
        raise refusals.InvalidRequest(reason="cursor: this is none of this list.") from error
