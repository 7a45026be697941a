"""How the OpenAPI document tells of turns, timelines and what explains them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cowork.models import InteractionMode, RuntimeMode, Turn
from messaging import reports
from messaging.models import Receipt
from messaging.wire import ActorRow, OriginRow, ReceiptRow
from timeline.event_types import EventType


class EventsField(serializers.ListField):
    """Reports of a turn; messaging/reports reads them, and says what of them is not valid."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.JSONField(), max_length=reports.MAX_REPORTS, **options)


extend_schema_field(
    {
        "type": "array",
        "maxItems": reports.MAX_REPORTS,
        "items": {"oneOf": [kind.model_json_schema() for kind in reports.KINDS]},
    }
)(EventsField)


# Timelines


class EventRow(serializers.Serializer[Any]):
    """A line of a task's timeline; what `payload` holds is told by the type."""

    seq = serializers.IntegerField()
    id = serializers.UUIDField()
    type = serializers.ChoiceField(EventType.choices)
    actor = ActorRow()
    payload = serializers.DictField()
    created_at = serializers.DateTimeField()


class EventPage(serializers.Serializer[Any]):
    results = EventRow(many=True)
    last_seq = serializers.IntegerField()


class EventParty(serializers.Serializer[Any]):
    """Somebody, as an event names them."""

    kind = serializers.CharField()
    task_id = serializers.UUIDField(allow_null=True)
    bot = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]


class RowError(serializers.Serializer[Any]):
    code = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)


class TimelineRow(serializers.Serializer[Any]):
    """What a person reads of one message."""

    kind = serializers.CharField()
    seq = serializers.IntegerField()
    message_id = serializers.CharField()
    receipt_id = serializers.UUIDField()
    title = serializers.CharField()
    preview = serializers.CharField(allow_null=True)
    recipient = EventParty(allow_null=True)
    delivery_status = serializers.ChoiceField(Receipt.Status.choices)
    label = serializers.CharField()  # type: ignore[assignment]
    error = RowError(allow_null=True)
    open = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()


class TimelinePage(serializers.Serializer[Any]):
    results = TimelineRow(many=True)

    def get_fields(self) -> dict[str, Any]:
        """`next` is a function of Python."""
        return {**super().get_fields(), "next": serializers.CharField(allow_null=True)}


# Turns


class TurnCauseRow(OriginRow):
    kind = serializers.ChoiceField(Turn.Cause.choices)


class TurnRow(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task_id = serializers.UUIDField()
    number = serializers.IntegerField()
    status = serializers.ChoiceField(Turn.Status.choices)
    cause = TurnCauseRow()
    runtime_mode = serializers.ChoiceField(RuntimeMode.choices)
    interaction_mode = serializers.ChoiceField(InteractionMode.choices)
    lease_expires_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField()
    incorporated_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class InputSender(serializers.Serializer[Any]):
    task_id = serializers.UUIDField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]
    bot = serializers.CharField(allow_null=True)


class InputRow(serializers.Serializer[Any]):
    """One message that a turn takes."""

    receipt_id = serializers.UUIDField()
    message_id = serializers.CharField()
    source = serializers.ChoiceField(Receipt.Source.choices)  # type: ignore[assignment]
    sender = InputSender()
    message = serializers.CharField(allow_null=True)
    sent_at = serializers.DateTimeField()
    age_seconds = serializers.IntegerField()
    sequence = serializers.IntegerField()
    in_reply_to = serializers.CharField(allow_null=True)
    attempt = serializers.IntegerField()
    shown_before = serializers.BooleanField()


class ClaimedRow(serializers.Serializer[Any]):
    """A turn, with its fence, for the one that claimed it."""

    id = serializers.UUIDField()
    number = serializers.IntegerField()
    fence = serializers.IntegerField()
    lease_expires_at = serializers.DateTimeField()
    cause = TurnCauseRow()
    runtime_mode = serializers.ChoiceField(RuntimeMode.choices)
    interaction_mode = serializers.ChoiceField(InteractionMode.choices)
    instructions = serializers.CharField(allow_blank=True)
    prompt = serializers.CharField(allow_blank=True)
    inputs = InputRow(many=True)
    notices = serializers.ListField(child=serializers.DictField())
    notes = serializers.ListField(child=serializers.DictField())
    assignments = serializers.ListField(child=serializers.DictField())


class AnswerRow(serializers.Serializer[Any]):
    request_id = serializers.CharField()
    answer = serializers.JSONField()


class AliveRow(serializers.Serializer[Any]):
    """Until when a turn lives, and what is asked of it."""

    lease_expires_at = serializers.DateTimeField()
    stop_requested = serializers.BooleanField()
    pause_requested = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True)
    answers = AnswerRow(many=True)


class EndedRow(serializers.Serializer[Any]):
    """Whether the next turn may be claimed at once."""

    def get_fields(self) -> dict[str, Any]:
        """`next` is a function of Python."""
        return {"next": serializers.BooleanField()}


# What explains, and who is there


class RemedyRow(serializers.Serializer[Any]):
    """A call that helps, and that this caller may make."""

    action = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    method = serializers.CharField()
    url = serializers.CharField()


class ExplainRow(serializers.Serializer[Any]):
    """What blocks a receipt, since when, what follows, what helps."""

    delivery_status = serializers.ChoiceField(Receipt.Status.choices)
    blocker = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    remedies = RemedyRow(many=True)

    def get_fields(self) -> dict[str, Any]:
        """`next` is a function of Python."""
        return {**super().get_fields(), "next": serializers.CharField()}


class AttentionRow(serializers.Serializer[Any]):
    """Something that a person should look at."""

    id = serializers.CharField()
    code = serializers.CharField()
    task_id = serializers.UUIDField(allow_null=True)
    receipt_id = serializers.UUIDField(allow_null=True)
    assignment_id = serializers.UUIDField(allow_null=True)
    request_id = serializers.UUIDField(allow_null=True)
    outbox_id = serializers.UUIDField(allow_null=True)
    bot = serializers.CharField(allow_null=True)
    text = serializers.CharField()
    since = serializers.DateTimeField()
    remedies = RemedyRow(many=True)


class TeammateRow(serializers.Serializer[Any]):
    """A member of the team, and whether it can be written to."""

    bot = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    task_id = serializers.UUIDField(allow_null=True)
    availability = serializers.CharField()
    reason = serializers.CharField(allow_null=True)
    recovery = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """`self` is a word of Python, nearly."""
        return {**super().get_fields(), "self": serializers.BooleanField()}


class ToolRow(serializers.Serializer[Any]):
    """A coordination tool, and whether the task may use it now."""

    name = serializers.CharField()
    allowed = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True)


class HandoffRow(serializers.Serializer[Any]):
    """A message to or from a teammate."""

    direction = serializers.ChoiceField(["sent", "received"])
    teammate = EventParty()
    preview = serializers.CharField()
    receipt_id = serializers.UUIDField()
    message_id = serializers.CharField()
    delivery_status = serializers.ChoiceField(Receipt.Status.choices)
    reply_status = serializers.ChoiceField(Receipt.ReplyStatus.choices, allow_null=True)
    at = serializers.DateTimeField()


class HeaderRow(serializers.Serializer[Any]):
    """Who of the team is on it; empty for a task that never dealt with a teammate."""

    state = serializers.CharField(allow_null=True)
    text = serializers.CharField(allow_blank=True)
    teammates = EventParty(many=True)
    handoffs = HandoffRow(many=True)
    latest = serializers.CharField(allow_null=True)
    attention = HandoffRow(many=True)


class BulkItem(serializers.Serializer[Any]):
    """What became of one of many messages."""

    id = serializers.UUIDField()
    ok = serializers.BooleanField()
    receipt = ReceiptRow(allow_null=True)
    code = serializers.CharField(allow_null=True)
    detail = serializers.CharField(allow_null=True)


class BulkRow(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    results = BulkItem(many=True)
