"""The outbox over REST: what is owed, and what people do about dead letters (docs/wire.md)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cowork import unparking
from cowork.models import OutboxEntry
from teams.permissions import May, require
from teams.wire import principal_of
from timeline.clock import system_clock
from timeline.refusals import InvalidRequest
from timeline.schema import described, paged
from timeline.wire import ApiView, as_uuid, page


class OutboxRow(serializers.Serializer[OutboxEntry]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    target = serializers.UUIDField()
    lanes = serializers.ListField(child=serializers.UUIDField())
    state = serializers.ChoiceField(OutboxEntry.State.choices, source="status")
    attempts = serializers.IntegerField()
    crashes = serializers.IntegerField()
    not_before = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()
    created_at = serializers.DateTimeField()


def rendered(entry: OutboxEntry) -> dict[str, Any]:
    return dict(OutboxRow(entry).data)


class Outbox(ApiView):
    """GET outbox: oldest first."""

    @paged(
        OutboxRow,
        OpenApiParameter("state", str, enum=OutboxEntry.State.values),
        OpenApiParameter("target", UUID),
        summary="What is owed",
    )
    def get(self, request: Request) -> Response:
        caller = principal_of(request)
        require(caller, May.READ_OUTBOX)
        rows = OutboxEntry.objects.filter(workspace_id=caller.workspace_id)
        state = request.query_params.get("state")
        if state is not None:
            if state not in OutboxEntry.State.values:
                raise InvalidRequest(reason=f"state: one of {', '.join(OutboxEntry.State.values)}.")
            rows = rows.filter(status=state)
        target = request.query_params.get("target")
        if target is not None:
            target_id = as_uuid(target)
            if target_id is None:
                raise InvalidRequest(reason="target: an id.")
            rows = rows.filter(target=target_id)
        return page(rows, request, order=("sequence",), render=rendered)


class RetryEntry(ApiView):
    """POST outbox/{id}/retry."""

    @described(summary="Let a dead letter run again (operator)", gives=OutboxRow)
    def post(self, request: Request, entry_id: UUID) -> Response:
        entry = unparking.retry(entry_id, by=principal_of(request), clock=system_clock)
        return Response(rendered(entry))


class DiscardEntry(ApiView):
    """POST outbox/{id}/discard."""

    @described(summary="Delete a dead letter (operator)", gives=OutboxRow)
    def post(self, request: Request, entry_id: UUID) -> Response:
        entry = unparking.discard(entry_id, by=principal_of(request), clock=system_clock)
        return Response(rendered(entry))
