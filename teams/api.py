"""The API of who is there: people, runtime profiles, teams, members, and the audit."""

from uuid import UUID

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from teams import founding, inviting, joining, repairing
from teams.models import Person, RuntimeProfile
from teams.permissions import May, require
from teams.wire import (
    AuditRow,
    MemberRow,
    PersonRow,
    RuntimeRow,
    TeamRow,
    principal_of,
    team_in_sight,
    team_rows,
)
from timeline.clock import system_clock
from timeline.models import AuditEntry
from timeline.schema import described, paged
from timeline.wire import (
    ApiView,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    given,
    page,
)


class People(ApiView):
    """Those who have a role in the workspace."""

    class Input(StrictSerializer):
        username = StrictCharField(max_length=150)
        password = StrictCharField(max_length=1024)
        role = serializers.ChoiceField(Person.Role.choices)

    @paged(PersonRow, summary="People with their roles (manager)")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.MANAGE)
        rows = Person.objects.filter(workspace_id=principal_of(request).workspace_id)
        return page(
            rows.select_related("user"),
            request,
            order=("created_at", "id"),
            render=lambda person: dict(PersonRow(person).data),
        )

    @described(summary="Invite a person (manager)", takes=Input, gives=PersonRow, status=201)
    def post(self, request: Request) -> Response:
        person = inviting.invite(
            **given(self.Input, request.data), by=principal_of(request), clock=system_clock
        )
        return Response(PersonRow(person).data, status=status.HTTP_201_CREATED)


class Runtimes(ApiView):
    """Runtime profiles. What a profile holds inside stays with those who make them."""

    class Input(StrictSerializer):
        name = StrictCharField(max_length=63)
        kind = StrictCharField(max_length=20)
        rules = serializers.ListField(child=serializers.JSONField(), required=False)
        spawnable = StrictBooleanField(default=False)

    @paged(RuntimeRow, summary="Runtime profiles")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.READ)
        return page(
            RuntimeProfile.objects.filter(workspace_id=principal_of(request).workspace_id),
            request,
            order=("name", "id"),
            render=lambda profile: dict(RuntimeRow(profile).data),
        )

    @described(
        summary="Make a runtime profile (manager)", takes=Input, gives=RuntimeRow, status=201
    )
    def post(self, request: Request) -> Response:
        asked = given(self.Input, request.data)
        profile = founding.make_runtime(
            name=asked["name"],
            kind=asked["kind"],
            config={"rules": asked["rules"]} if "rules" in asked else {},
            is_spawnable=asked["spawnable"],
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(RuntimeRow(profile).data, status=status.HTTP_201_CREATED)


class Teams(ApiView):
    class Input(StrictSerializer):
        name = StrictCharField(max_length=80)
        persistent = StrictBooleanField(default=True)
        active = StrictBooleanField(default=True)
        lead = StrictCharField(max_length=64)
        members = serializers.ListField(
            child=StrictCharField(max_length=64), max_length=500, default=list
        )

    @paged(TeamRow, summary="Teams")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.READ)
        return page(
            team_rows(principal_of(request)),
            request,
            order=("name", "id"),
            render=lambda team: dict(TeamRow(team).data),
        )

    @described(summary="Make a team (manager)", takes=Input, gives=TeamRow, status=201)
    def post(self, request: Request) -> Response:
        asked = given(self.Input, request.data)
        team = founding.make_team(
            name=asked["name"],
            lead=asked["lead"],
            handles=asked["members"],
            is_persistent=asked["persistent"],
            is_active=asked["active"],
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(TeamRow(team).data, status=status.HTTP_201_CREATED)


class Members(ApiView):
    class Input(StrictSerializer):
        bot = StrictCharField(max_length=64)
        guidance = StrictCharField(max_length=24_000, allow_blank=True, default="")

    @described(summary="Add a member (manager)", takes=Input, gives=MemberRow, status=201)
    def post(self, request: Request, team_id: UUID) -> Response:
        team_in_sight(principal_of(request), team_id)
        asked = given(self.Input, request.data)
        member = joining.join(
            team_id,
            handle=asked["bot"],
            guidance=asked["guidance"],
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(MemberRow(member).data, status=status.HTTP_201_CREATED)


class RestoreMember(ApiView):
    @described(summary="Restore a removed member (manager)", gives=MemberRow)
    def post(self, request: Request, team_id: UUID, handle: str) -> Response:
        team_in_sight(principal_of(request), team_id)
        given(StrictSerializer, request.data)
        member = repairing.restore(
            team_id, handle=handle, by=principal_of(request), clock=system_clock
        )
        return Response(MemberRow(member).data)


class Audit(ApiView):
    @paged(AuditRow, summary="Each use of a person's authority, newest first (manager)")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.MANAGE)
        return page(
            AuditEntry.objects.filter(workspace_id=principal_of(request).workspace_id),
            request,
            order=("-created_at", "-id"),
            render=lambda entry: dict(AuditRow(entry).data),
        )
