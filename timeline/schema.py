"""How the OpenAPI document tells of what all views share (docs/wire.md)."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers

from timeline import wire

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": wire.MAX_LIMIT, "default": wire.DEFAULT_LIMIT},
)
PAGED = [OpenApiParameter("cursor", str, description="`next` of the page before."), LIMIT]


class FieldError(serializers.Serializer[Any]):
    field = serializers.CharField()
    message = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """RFC 9457; `code` is stable, and some codes come with further fields."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    errors = FieldError(many=True, required=False)  # type: ignore[assignment]


class WireSchema(AutoSchema):
    """What all operations have in common: how they are named, and how they are refused.

    The input of a view is its inner class `Input`, unless it is described otherwise.
    """

    def get_operation_id(self) -> str:
        view = type(self.view).__name__
        return f"{self.method.lower()}_{_CAPITAL.sub('_', view).lower()}"

    def get_request_serializer(self) -> Any:
        return getattr(self.view, "Input", None)

    def _get_serializer_name(
        self,
        serializer: Any,
        direction: Any,
        bypass_extensions: Any = False,  # noqa: FBT002 - as its base class has it
    ) -> str:
        """Inner classes are named with the class around them: `People.Input`, `PeopleInput`."""
        kind = serializer if isinstance(serializer, type) else type(serializer)
        parts = kind.__qualname__.split(".")
        if len(parts) > 1 and "<locals>" not in parts:
            return "".join(parts)
        name: str = super()._get_serializer_name(serializer, direction, bypass_extensions)
        return name

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        if direction == "response":
            told = self._get_response_for_code(  # type: ignore[no-untyped-call]
                Problem, "4XX", media_types=[wire.PROBLEM]
            )
            bodies["4XX"] = {**told, "description": "Refused; `code` says why."}
            bodies["503"] = {**told, "description": "Nothing was changed; repeat it later."}
        return bodies


def paged(
    row: type[serializers.Serializer[Any]], *more: OpenApiParameter, summary: str
) -> Callable[[Any], Any]:
    """Describe a GET that answers one page of a list."""
    page = _page(row)
    return extend_schema(summary=summary, parameters=[*PAGED, *more], responses={200: page})


@cache
def _page(row: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    return inline_serializer(
        f"{row.__name__}Page",
        {
            "results": row(many=True),
            "next": serializers.CharField(
                allow_null=True, help_text="The `cursor` of the next page; null at the end."
            ),
        },
    )


def listed(row: type[serializers.Serializer[Any]], *, summary: str) -> Callable[[Any], Any]:
    """Describe a GET that answers a whole, short list."""
    rows = inline_serializer(f"{row.__name__}List", {"results": row(many=True)})
    return extend_schema(summary=summary, responses={200: rows})


def described(
    *,
    summary: str,
    takes: Any = None,
    gives: Any = None,
    status: int = 200,
    also: Mapping[int, Any] | None = None,
    asks: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    """Describe a call: what it takes, and what it gives when it succeeds.

    `also` are further answers that are no refusals, `asks` the parameters of its address.
    """
    return extend_schema(
        summary=summary,
        request=takes,
        responses={status: gives, **(also or {})},
        parameters=list(asks),
    )
