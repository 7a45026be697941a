"""Turns over REST: the claim, reports, heartbeats and the end."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cowork import turns
from cowork.models import Turn
from cowork.turns import MAX_LEASE, MIN_LEASE
from messaging import authority, finishing, output, reporting, reports, taking
from messaging.api import MessageIdField
from messaging.schema import AliveRow, ClaimedRow, EndedRow, EventsField, TurnRow
from teams.wire import principal_of
from timeline.clock import system_clock
from timeline.event_types import TurnLimit
from timeline.log import wire_time
from timeline.refusals import Forbidden
from timeline.schema import described
from timeline.wire import (
    ApiView,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictJSONParser,
    StrictNumberField,
    StrictSerializer,
    given,
)

_MAX_FENCE = 2**63 - 1


class FenceField(StrictIntegerField):
    """The fencing number of a turn."""

    def __init__(self) -> None:
        super().__init__(min_value=0, max_value=_MAX_FENCE)


class Claim(ApiView):
    """POST tasks/{id}/turns: the next turn, or 204 when nothing starts one.

    The wait of `wait_seconds` is not here but before this view (`messaging/longpoll.py`): nothing
    is held while nobody has anything to do.
    """

    class Input(StrictSerializer):
        wait_seconds = StrictNumberField(min_value=0, max_value=30, required=False, default=0)
        claim_id = MessageIdField(required=False, default="")
        lease_seconds = StrictIntegerField(
            min_value=MIN_LEASE,
            max_value=MAX_LEASE,
            required=False,
            allow_null=True,
            default=None,
        )
        start = StrictBooleanField(required=False, default=False)

    @described(
        summary="Claim the next turn; 200 for a known claim_id, 204 for none (agent)",
        takes=Input,
        gives=ClaimedRow,
        status=201,
        also={200: ClaimedRow, 204: None},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        task = authority.find_task(principal_of(request), task_id)
        authority.require_cover(principal_of(request), task)
        asked = given(self.Input, request.data)
        seconds = asked["lease_seconds"]
        claimed = taking.claim(
            task=task,
            by=principal_of(request),
            claim_id=asked["claim_id"],
            lease=timedelta(seconds=seconds) if seconds else None,
            start=asked["start"],
            clock=system_clock,
        )
        if claimed is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        code = status.HTTP_200_OK if claimed.is_known else status.HTTP_201_CREATED
        return Response(output.claimed(claimed, now=system_clock.now()), status=code)


class TurnDetail(ApiView):
    """GET turns/{id}."""

    @described(summary="A turn", gives=TurnRow)
    def get(self, request: Request, turn_id: UUID) -> Response:
        turn = reporting.find_turn(turn_id, by=principal_of(request))
        if not authority.may_see_task(principal_of(request), turn.task):
            raise Forbidden
        return Response(output.turn(turn))


class Reports(ApiView):
    """POST turns/{id}/events: reports, in order, all or nothing."""

    class Input(StrictSerializer):
        fence = FenceField()
        events = EventsField()

    @described(
        summary="Reports of a turn, in order, all or none (its claimer)",
        takes=Input,
        gives=AliveRow,
    )
    def post(self, request: Request, turn_id: UUID) -> Response:
        reporting.own_turn(turn_id, by=principal_of(request))
        asked = given(self.Input, request.data)
        by, events = principal_of(request), reports.read(asked["events"])
        if any(isinstance(event, reports.Stopped) for event in events):
            finishing.end_turn(
                turn_id=turn_id,
                by=by,
                fence=asked["fence"],
                ending=finishing.Ending(Turn.Status.ABORTED),
                events=events,
                clock=system_clock,
            )
            return Response(_alive(reporting.find_turn(turn_id, by=by)))
        turn = reporting.report(
            turn_id=turn_id, by=by, fence=asked["fence"], events=events, clock=system_clock
        )
        return Response(_alive(turn))


class Heartbeat(ApiView):
    """POST turns/{id}/heartbeat: the turn lives; its lease begins anew."""

    class Input(StrictSerializer):
        fence = FenceField()

    @described(summary="Keep a turn alive (its claimer)", takes=Input, gives=AliveRow)
    def post(self, request: Request, turn_id: UUID) -> Response:
        asked = given(self.Input, request.data)
        turn = reporting.heartbeat(
            turn_id=turn_id, by=principal_of(request), fence=asked["fence"], clock=system_clock
        )
        return Response(_alive(turn))


def _alive(turn: Turn) -> dict[str, Any]:
    """How long the turn is safe, and what a person wants of it."""
    task = turn.task
    return {
        "lease_expires_at": wire_time(turn.lease_expires_at),
        "stop_requested": task.requested_action == turns.STOP,
        "pause_requested": task.requested_action == turns.PAUSE,
        "reason": task.requested_reason or None,
        "answers": [],
    }


class LastWordsParser(StrictJSONParser):
    """An agent's last text is kept even where it holds NUL (SPEC §2.6)."""

    mended_fields = frozenset({"text"})


class End(ApiView):
    """POST turns/{id}/end: the last reports, then the end, in one transaction."""

    parser_classes = (LastWordsParser,)

    class Input(StrictSerializer):
        class Limit(StrictSerializer):
            kind = serializers.ChoiceField(choices=["usage", "overload"])
            resets_at = serializers.DateTimeField(required=False, allow_null=True)
            will_retry = StrictBooleanField(required=False, default=False)

        fence = FenceField()
        status = serializers.ChoiceField(choices=finishing.ENDINGS)
        events = EventsField(required=False, default=list)
        text = StrictCharField(
            allow_blank=True,
            allow_null=True,
            required=False,
            default=None,
            max_length=reports.MAX_TEXT,
        )
        error = StrictCharField(
            allow_blank=True,
            allow_null=True,
            required=False,
            default=None,
            max_length=reports.MAX_TEXT,
        )
        limit = Limit(required=False, allow_null=True, default=None)

    @described(
        summary="End a turn after its last reports (its claimer)", takes=Input, gives=EndedRow
    )
    def post(self, request: Request, turn_id: UUID) -> Response:
        reporting.own_turn(turn_id, by=principal_of(request))
        asked = given(self.Input, request.data)
        ending = finishing.Ending(
            status=asked["status"],
            text=asked["text"],
            error=asked["error"] or "",
            limit=TurnLimit(**asked["limit"]) if asked["limit"] else None,
        )
        may_go_on = finishing.end_turn(
            turn_id=turn_id,
            by=principal_of(request),
            fence=asked["fence"],
            ending=ending,
            events=reports.read(asked["events"]),
            clock=system_clock,
        )
        return Response({"next": may_go_on})
