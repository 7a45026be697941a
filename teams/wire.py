"""People, runtime profiles, teams and the audit as the wire shows them (docs/wire.md)."""

from uuid import UUID

from django.db.models import Prefetch, QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from teams.models import Member, Person, RuntimeProfile, Team
from teams.permissions import May, Principal, require
from timeline.models import AuditEntry
from timeline.refusals import NotFound


def principal_of(request: Request) -> Principal:
    """Who calls; only views that need a credential ask."""
    principal: Principal = request.user  # type: ignore[assignment]
    return principal


class PersonRow(serializers.Serializer[Person]):
    id = serializers.UUIDField()
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(Person.Role.choices)
    active = serializers.BooleanField(source="is_active")
    created_at = serializers.DateTimeField()


class RuntimeRow(serializers.Serializer[RuntimeProfile]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(RuntimeProfile.Kind.choices)
    spawnable = serializers.BooleanField(source="is_spawnable")
    active = serializers.BooleanField(source="is_active")
    created_at = serializers.DateTimeField()


class MemberRow(serializers.Serializer[Member]):
    bot = serializers.CharField(source="bot.handle")
    label = serializers.CharField(source="bot.display_name")  # type: ignore[assignment]
    status = serializers.ChoiceField(Member.Status.choices)
    guidance = serializers.CharField()
    joined_at = serializers.DateTimeField()
    left_at = serializers.DateTimeField(allow_null=True)


class TeamRow(serializers.Serializer[Team]):
    """The lead counts as a member, with or without a row of its own."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    persistent = serializers.BooleanField(source="is_persistent")
    active = serializers.BooleanField(source="is_active")
    lead = serializers.CharField(source="lead.handle")
    members = MemberRow(many=True, source="members.all")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


def team_rows(principal: Principal) -> QuerySet[Team]:
    """The teams of a workspace with lead and members."""
    members = Member.objects.select_related("bot").order_by("joined_at", "id")
    rows = Team.objects.select_related("lead").prefetch_related(Prefetch("members", members))
    return rows.filter(workspace_id=principal.workspace_id)


def team_in_sight(principal: Principal, team_id: UUID) -> Team:
    """A team of the caller's workspace. Raises NotFound, then Forbidden."""
    team: Team | None = team_rows(principal).filter(pk=team_id).first()
    if team is None:
        raise NotFound
    require(principal, May.READ)
    return team


class AuditActor(serializers.Serializer[AuditEntry]):
    kind = serializers.CharField(source="actor_kind")
    id = serializers.CharField(source="actor_id")
    label = serializers.CharField(source="actor_label")  # type: ignore[assignment]


class AuditTarget(serializers.Serializer[AuditEntry]):
    kind = serializers.CharField(source="target_kind")
    id = serializers.CharField(source="target_id")


class AuditRow(serializers.Serializer[AuditEntry]):
    id = serializers.UUIDField()
    action = serializers.CharField()
    actor = AuditActor(source="*")
    target = AuditTarget(source="*")
    note = serializers.CharField()
    detail = serializers.DictField()
    created_at = serializers.DateTimeField()
