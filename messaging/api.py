"""Messages over REST: sends and receipts. 202 means durable, not delivered.

The first stop on the path of a message; next: `messaging/sending.py`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from messaging import (
    attention,
    authority,
    explain,
    output,
    quarantining,
    receipts,
    releasing,
    remedies,
    retrying,
    sending,
    withdrawing,
)
from messaging.models import Receipt
from messaging.releasing import Outcome
from messaging.schema import AttentionRow, BulkRow, ExplainRow
from messaging.wire import ReceiptInFull, ReceiptRow, SentRow, choice
from teams.permissions import May, Principal, require
from teams.wire import principal_of
from timeline import shutdown
from timeline.clock import system_clock
from timeline.refusals import InvalidRequest, NotFound
from timeline.schema import described, paged
from timeline.wire import (
    ApiView,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUUIDField,
    as_uuid,
    given,
    page,
    page_of,
)

MAX_IDS = 1000
MESSAGE_ID = r"\A[A-Za-z0-9._:-]*\Z"


class MessageIdField(StrictCharField):
    """1-128 of `A-Z a-z 0-9 . _ : -`; blank counts as absent (SPEC §4.3)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_length=128, allow_blank=True, validators=[RegexValidator(MESSAGE_ID)], **options
        )


class SendAgentMessage(ApiView):
    """POST send_agent_message. 202 means durable, not delivered."""

    class Input(StrictSerializer):
        task_id = StrictUUIDField(required=False, allow_null=True, default=None)
        bot = StrictCharField(
            max_length=200, required=False, allow_blank=True, allow_null=True, default=None
        )
        message = StrictCharField(allow_blank=True)  # empty: refused later, after the recipient
        message_id = MessageIdField(required=False, default="")
        in_reply_to = MessageIdField(required=False, allow_null=True, default=None)
        reply_timeout_seconds = StrictIntegerField(
            min_value=5, max_value=86_400, required=False, allow_null=True, default=None
        )
        sender_task_id = StrictUUIDField(required=False, allow_null=True, default=None)

    @described(
        summary="Send a message to a teammate; 200 is a duplicate (agent)",
        takes=Input,
        gives=SentRow,
        status=202,
        also={200: SentRow},
    )
    def post(self, request: Request) -> Response:
        shutdown.refuse_when_stopping()
        asked = given(self.Input, request.data)
        asked["in_reply_to"] = asked["in_reply_to"] or None
        sender = authority.acting_task(principal_of(request), asked.pop("sender_task_id"))
        sent = sending.send_agent_message(
            sender=sender, by=principal_of(request), **asked, clock=system_clock
        )
        code = status.HTTP_200_OK if sent.is_duplicate else status.HTTP_202_ACCEPTED
        return Response(output.sent(sent), status=code)


class Receipts(ApiView):
    """GET receipts: those the caller may see, newest first."""

    @paged(
        ReceiptRow,
        OpenApiParameter("recipient", UUID, description="A task."),
        OpenApiParameter("sender", UUID, description="A task."),
        OpenApiParameter("message_id", str),
        choice("delivery_status", Receipt.Status.values),
        choice("delivery_mode", Receipt.Mode.values),
        summary="Receipts that the caller may see, newest first",
    )
    def get(self, request: Request) -> Response:
        asked = {
            name: value
            for name, value in request.query_params.dict().items()
            if name not in ("limit", "cursor")
        }
        rows = _filtered(authority.visible_receipts(principal_of(request)), asked)
        rows = receipts.in_full(rows)
        return page(rows, request, order=("-accepted_at", "-id"), render=output.receipt)


def _filtered(rows: QuerySet[Receipt], asked: Mapping[str, str]) -> QuerySet[Receipt]:
    fields = {
        "recipient": "recipient_id",
        "sender": "sender_task_id",
        "delivery_status": "status",
        "message_id": "message_id",
        "delivery_mode": "delivery_mode",
    }
    choices = {"delivery_status": Receipt.Status.values, "delivery_mode": Receipt.Mode.values}
    for name, value in asked.items():
        if name not in fields:
            raise InvalidRequest(reason=f"{name}: there is no such filter.")
        if name in ("recipient", "sender") and as_uuid(value) is None:
            raise InvalidRequest(reason=f"{name}: a task's id is wanted.")
        if name in choices and value not in choices[name]:
            raise InvalidRequest(reason=f"{name}: one of {', '.join(choices[name])}.")
        rows = rows.filter(**{fields[name]: value})
    return rows


class ReceiptDetail(ApiView):
    """GET receipts/{id}: one receipt with its text and its history."""

    @described(summary="A receipt, its text and its history", gives=ReceiptInFull)
    def get(self, request: Request, receipt_id: UUID) -> Response:
        row = authority.visible_receipt(principal_of(request), receipt_id)
        return Response(output.receipt_in_full(row))


class Explain(ApiView):
    """GET receipts/{id}/explain: what blocks it, since when, what follows, what helps."""

    @described(summary="Why a message is where it is, and what helps", gives=ExplainRow)
    def get(self, request: Request, receipt_id: UUID) -> Response:
        by = principal_of(request)
        row = authority.visible_receipt(by, receipt_id)
        return Response(explain.explain(row, by=by, now=system_clock.now()))


class Attention(ApiView):
    """GET attention: what a person should look at, newest first."""

    @paged(AttentionRow, summary="What a person should look at, newest first")
    def get(self, request: Request) -> Response:
        by = principal_of(request)
        authority.require_reader(by)
        now = system_clock.now()
        found = attention.items(by.workspace_id, now=now)
        return page_of(found, request, key=lambda item: item.id, render=_shown(by, now))


def _shown(by: Principal, now: datetime) -> Callable[[attention.Item], dict[str, Any]]:
    return lambda item: attention.shown(item, by=by, now=now)


class _ReceiptStep(ApiView):
    """One step that a caller asks of one receipt."""

    class Input(StrictSerializer):
        """No fields."""

    step: Callable[..., Receipt]

    @extend_schema(responses={200: ReceiptRow})
    def post(self, request: Request, receipt_id: UUID) -> Response:
        row = authority.visible_receipt(principal_of(request), receipt_id)
        asked = given(self.Input, request.data)
        moved = type(self).step(row, by=principal_of(request), **asked, clock=system_clock)
        return Response(output.receipt(moved))


@extend_schema_view(post=extend_schema(summary="Take back a queued message (its sender)"))
class Withdraw(_ReceiptStep):
    """POST receipts/{id}/withdraw: its sender takes a queued message back."""

    step = staticmethod(withdrawing.withdraw)


class _NotedStep(_ReceiptStep):
    class Input(StrictSerializer):
        note = StrictCharField(max_length=1000, required=False, allow_blank=True, default="")


@extend_schema_view(
    post=extend_schema(summary="Queue a failed message again (its sender, operator)")
)
class Retry(_NotedStep):
    """POST receipts/{id}/retry: a failed message is queued again, by its sender or an operator."""

    step = staticmethod(retrying.retry)


@extend_schema_view(post=extend_schema(summary="Release a quarantined message (operator)"))
class Release(_NotedStep):
    """POST receipts/{id}/release: an operator lets a quarantined message be queued again."""

    step = staticmethod(releasing.release)


@extend_schema_view(post=extend_schema(summary="Let a held message wake (operator)"))
class LetGo(_NotedStep):
    """POST receipts/{id}/let_go: an operator lets a message wake that the loop guard held."""

    step = staticmethod(releasing.let_go)


@extend_schema_view(post=extend_schema(summary="Close a failed or quarantined message (operator)"))
class Discard(_NotedStep):
    """POST receipts/{id}/discard: an operator closes a failed or quarantined message."""

    step = staticmethod(releasing.discard)


@extend_schema_view(post=extend_schema(summary="Set a queued message aside (operator)"))
class Quarantine(_NotedStep):
    """POST receipts/{id}/quarantine: an operator sets a queued message aside."""

    step = staticmethod(quarantining.quarantine)


class Bulk(ApiView):
    """POST receipts/bulk: one remedy for many messages, by an operator.

    `ids` are taken as they are named; a `filter` (the fields of `GET receipts`) finds those of
    the workspace that the remedy is for.
    """

    class Input(StrictSerializer):
        action = serializers.ChoiceField(choices=list(remedies.REMEDIES))
        ids = serializers.ListField(
            child=StrictUUIDField(), required=False, allow_empty=False, max_length=MAX_IDS
        )
        filter = serializers.DictField(child=StrictCharField(), required=False, allow_empty=False)
        note = StrictCharField(max_length=1000, required=False, allow_blank=True, default="")
        dry_run = StrictBooleanField(required=False, default=False)

    @described(summary="One remedy for many messages (operator)", takes=Input, gives=BulkRow)
    def post(self, request: Request) -> Response:
        by = principal_of(request)
        require(by, May.HANDLE_RECEIPTS)
        asked = given(self.Input, request.data)
        if ("ids" in asked) == ("filter" in asked):
            raise InvalidRequest(reason="Name either ids or a filter.")
        chosen = authority.visible_receipts(by)
        if "ids" in asked:
            chosen = chosen.filter(pk__in=asked["ids"])
        else:
            chosen = _filtered(chosen, asked["filter"]).filter(remedies.CURABLE[asked["action"]])
        found = releasing.bulk(
            chosen,
            remedy=asked["action"],
            by=by,
            note=asked["note"],
            is_dry_run=asked["dry_run"],
            clock=system_clock,
        )
        missing = set(asked.get("ids", ())) - {outcome.receipt_id for outcome in found}
        found += [Outcome(receipt_id, refusal=NotFound()) for receipt_id in sorted(missing)]
        return Response({"dry_run": asked["dry_run"], "results": [_outcome(row) for row in found]})


def _outcome(row: Outcome) -> dict[str, Any]:
    """What became of one of many messages."""
    return {
        "id": str(row.receipt_id),
        "ok": row.refusal is None,
        "receipt": output.receipt(row.receipt) if row.receipt is not None else None,
        "code": row.refusal.code if row.refusal is not None else None,
        "detail": row.refusal.detail if row.refusal is not None else None,
    }
