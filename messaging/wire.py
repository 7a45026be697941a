"""How the OpenAPI document tells of tasks; `messaging/output` renders them."""

from typing import Any

from rest_framework import serializers

from cowork.models import InteractionMode, RuntimeMode, Task


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
