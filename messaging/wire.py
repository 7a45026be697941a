"""How the OpenAPI document tells of tasks and receipts; `messaging/output` renders them."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from cowork.models import InteractionMode, RuntimeMode, Task
from messaging.models import Receipt


class RunningTurn(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.IntegerField()
    started_at = serializers.DateTimeField()


class Requested(serializers.Serializer[Any]):
    action = serializers.ChoiceField(["pause", "stop"])
    at = serializers.DateTimeField()


class BlockedOn(serializers.Serializer[Any]):
    text = serializers.CharField()
    task_id = serializers.UUIDField()
    message_id = serializers.CharField()


class Outcome(serializers.Serializer[Any]):
    outcome = serializers.CharField()
    summary = serializers.CharField()


class TaskRow(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    workspace = serializers.CharField()
    kind = serializers.ChoiceField(Task.Kind.choices)
    title = serializers.CharField()
    status = serializers.ChoiceField(Task.Status.choices)
    runtime_mode = serializers.ChoiceField(RuntimeMode.choices)
    mode_ceiling = serializers.ChoiceField(RuntimeMode.choices, allow_null=True)
    interaction_mode = serializers.ChoiceField(InteractionMode.choices)
    runtime = serializers.CharField()
    bot = serializers.CharField(allow_null=True)
    team = serializers.UUIDField(allow_null=True)
    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]
    root = serializers.UUIDField()  # type: ignore[assignment]
    depth = serializers.IntegerField()
    branch_from = serializers.UUIDField(allow_null=True)
    session = serializers.UUIDField(allow_null=True)
    archived = serializers.BooleanField()
    batch_inputs = serializers.BooleanField()
    running_turn = RunningTurn(allow_null=True)
    requested = Requested(allow_null=True)
    queued = serializers.IntegerField()
    last_seq = serializers.IntegerField()
    blocked_on = BlockedOn(allow_null=True)
    result = Outcome(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


def choice(name: str, values: list[str], description: str = "") -> OpenApiParameter:
    """A filter that takes one of some words."""
    return OpenApiParameter(name, str, enum=values, description=description)


# Receipts


class PartyRow(serializers.Serializer[Any]):
    """A recipient."""

    task_id = serializers.UUIDField()
    bot = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]
    status = serializers.ChoiceField(Task.Status.choices)


class SenderRow(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(Receipt.Source.choices)
    task_id = serializers.UUIDField(allow_null=True)
    bot = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]


class Times(serializers.Serializer[Any]):
    accepted_at = serializers.DateTimeField()
    queued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    quarantined_at = serializers.DateTimeField(allow_null=True)
    failure_code = serializers.CharField(allow_null=True)
    failure_reason = serializers.CharField(allow_null=True)
    reply_status = serializers.ChoiceField(Receipt.ReplyStatus.choices, allow_null=True)


class SentRow(Times):
    """The answer to a send; never the text."""

    success = serializers.BooleanField()
    duplicate = serializers.BooleanField()
    queued = serializers.BooleanField()
    receipt_id = serializers.UUIDField()
    message_id = serializers.CharField()
    delivery_mode = serializers.ChoiceField(Receipt.Mode.choices)
    delivery_status = serializers.ChoiceField(Receipt.Status.choices)
    attempt = serializers.IntegerField()
    ahead = serializers.IntegerField()
    sequence = serializers.IntegerField()
    sender_task_id = serializers.UUIDField(allow_null=True)
    target_task_id = serializers.UUIDField()
    recipient = PartyRow()
    summary = serializers.CharField()


class OriginRow(serializers.Serializer[Any]):
    id = serializers.CharField(allow_null=True)
    chain = serializers.UUIDField()
    hop = serializers.IntegerField()


class CauseRow(OriginRow):
    kind = serializers.CharField()


class ReceiptRow(Times):
    """A message to one recipient and its fate."""

    id = serializers.UUIDField()
    message_id = serializers.CharField()
    delivery_mode = serializers.ChoiceField(Receipt.Mode.choices)
    source = serializers.ChoiceField(Receipt.Source.choices)  # type: ignore[assignment]
    delivery_status = serializers.ChoiceField(Receipt.Status.choices)
    attempt = serializers.IntegerField()
    sequence = serializers.IntegerField()
    wakes = serializers.BooleanField()
    sender = SenderRow()
    recipient = PartyRow()
    message_hash = serializers.CharField()
    in_reply_to = serializers.CharField(allow_null=True)
    in_reply_to_task_id = serializers.UUIDField(allow_null=True)
    handoff = serializers.BooleanField()
    closing = serializers.BooleanField()
    automatic = serializers.BooleanField()
    reply_message_id = serializers.CharField(allow_null=True)
    reply_task_id = serializers.UUIDField(allow_null=True)
    replied_at = serializers.DateTimeField(allow_null=True)
    reply_deadline_at = serializers.DateTimeField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    released_by = serializers.CharField(allow_null=True)
    cause = CauseRow()


class ActorRow(serializers.Serializer[Any]):
    kind = serializers.CharField()
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]


class TransitionRow(serializers.Serializer[Any]):
    to = serializers.ChoiceField(Receipt.Status.choices)
    attempt = serializers.IntegerField()
    code = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    actor = ActorRow()
    at = serializers.DateTimeField()

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python."""
        before = serializers.ChoiceField(Receipt.Status.choices, allow_null=True)
        return {"from": before, **super().get_fields()}


class ReceiptInFull(ReceiptRow):
    """With its text, null once that is erased, and its history."""

    message = serializers.CharField(allow_null=True)
    transitions = TransitionRow(many=True)


class FollowUpRow(ReceiptRow, SentRow):
    """A receipt and the answer to its send in one."""
