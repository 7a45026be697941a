"""The API of who calls: sign-in, one's own identity, limits, credentials."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework import serializers, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

import cowork.schema  # noqa: F401  # tells the OpenAPI document how to sign in
from cowork import attempts, credentials, issuing, turns
from cowork.authentication import named_workspace
from cowork.models import Credential
from teams import handles, texts
from teams.models import Person, Workspace
from teams.permissions import May, Principal, require
from teams.wire import principal_of
from timeline import wire
from timeline.clock import system_clock
from timeline.refusals import Forbidden, NotFound
from timeline.schema import described, listed, paged
from timeline.wire import (
    ApiView,
    NotAuthenticated,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUUIDField,
    given,
    page,
)


class Identity(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["bot", "task", "service", "person"])
    id = serializers.UUIDField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]


class MeRow(serializers.Serializer[Any]):
    principal = Identity()
    workspace = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(Person.Role.choices, allow_null=True)
    bot = serializers.CharField(allow_null=True)
    task = serializers.UUIDField(allow_null=True)


def me_row(principal: Principal) -> dict[str, Any]:
    """Who calls, and from where."""
    return {
        "principal": {
            "kind": principal.kind,
            "id": str(principal.id),
            "label": principal.label,
        },
        "workspace": principal.workspace_slug,
        "role": principal.role,
        "bot": principal.bot_handle,
        "task": str(principal.task_id) if principal.task_id else None,
    }


class WrongNameOrPassword(NotAuthenticated):
    """This name and this password do not belong together."""


class Session(ApiView):
    """A person's sign-in."""

    class Input(StrictSerializer):
        username = StrictCharField(max_length=150)
        password = StrictCharField(max_length=1024)

    needs_workspace = False

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [] if self._signs_in() else super().get_authenticators()

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny()] if self._signs_in() else super().get_permissions()  # type: ignore[return-value]

    @described(
        summary="Sign in; sets the cookies `sessionid` and `csrftoken`", takes=Input, gives=MeRow
    )
    @method_decorator(sensitive_variables("asked", "password"))
    def post(self, request: Request) -> Response:
        asked = given(self.Input, request.data)
        username, address = asked["username"], request.META.get("REMOTE_ADDR", "")
        attempts.refuse_if_too_many(username, address, now=system_clock.now())
        # Takes equally long for a name that nobody bears.
        user = authenticate(request._request, username=username, password=asked["password"])
        people = credentials.roles_of(user) if user is not None else []
        if user is None or not people:
            attempts.note_failure(username, address, now=system_clock.now())
            raise WrongNameOrPassword
        attempts.note_success(username, address)
        named = named_workspace(request)
        answer = _answer(people, named)
        login(request._request, user)
        return Response(answer)

    @described(summary="Sign out", status=204)
    def delete(self, request: Request) -> Response:
        if principal_of(request).kind != "person":
            raise Forbidden
        logout(request._request)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _signs_in(self) -> bool:
        request = getattr(self, "request", None)
        return request is not None and request.method == "POST"


def _answer(people: list[Person], named: str | None) -> dict[str, Any]:
    """Who is signed in; without a workspace while there are several and none is named."""
    chosen = [person for person in people if named in (None, person.workspace.slug)]
    if not chosen:
        raise NotFound
    row = me_row(credentials.principal_of_person(chosen[0]))
    if len(chosen) > 1:
        row["principal"]["id"] = row["workspace"] = row["role"] = None
    return row


class Me(ApiView):
    @described(summary="Who calls", gives=MeRow)
    def get(self, request: Request) -> Response:
        return Response(me_row(principal_of(request)))


class LimitsRow(serializers.Serializer[Any]):
    body_bytes = serializers.IntegerField()
    message_bytes = serializers.IntegerField()
    message_id_length = serializers.IntegerField()
    queue_max = serializers.IntegerField()
    handle_length = serializers.IntegerField()
    display_name_length = serializers.IntegerField()
    description_length = serializers.IntegerField()
    instructions_length = serializers.IntegerField()
    title_length = serializers.IntegerField()
    page_limit = serializers.IntegerField()
    wait_seconds_max = serializers.IntegerField()
    lease_seconds = serializers.FloatField()
    lease_seconds_min = serializers.IntegerField()
    lease_seconds_max = serializers.IntegerField()
    reply_timeout_seconds = serializers.FloatField()


class Limits(ApiView):
    @described(summary="Every published limit", gives=LimitsRow)
    def get(self, request: Request) -> Response:
        return Response(
            {
                "body_bytes": wire.MAX_BODY,
                "message_bytes": settings.COWORK_MESSAGE_MAX_BYTES,
                "message_id_length": 128,
                "queue_max": settings.COWORK_QUEUE_MAX,
                "handle_length": handles.MAX_LENGTH,
                "display_name_length": texts.NAME_LENGTH,
                "description_length": texts.TEXT_LENGTH,
                "instructions_length": texts.TEXT_LENGTH,
                "title_length": 200,
                "page_limit": wire.MAX_LIMIT,
                "wait_seconds_max": 30,
                "lease_seconds": settings.COWORK_TURN_LEASE.total_seconds(),
                "lease_seconds_min": turns.MIN_LEASE,
                "lease_seconds_max": turns.MAX_LEASE,
                "reply_timeout_seconds": settings.COWORK_REPLY_TIMEOUT.total_seconds(),
            }
        )


class WorkspaceRow(serializers.Serializer[Workspace]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(Person.Role.choices, allow_null=True)


class Workspaces(ApiView):
    """What is asked before a workspace is chosen."""

    needs_workspace = False

    @listed(WorkspaceRow, summary="The workspaces that the caller belongs to")
    def get(self, request: Request) -> Response:
        principal = principal_of(request)
        found: list[tuple[Workspace, str | None]]
        if principal.kind == "person":
            found = [
                (person.workspace, person.role)
                for person in credentials.roles_of_person(principal.id)
            ]
        else:
            found = [(Workspace.objects.get(pk=principal.workspace_id), None)]
        rows = [
            {"id": str(row.id), "slug": row.slug, "name": row.name, "role": role}
            for row, role in found
        ]
        return Response({"results": rows})


class CredentialRow(serializers.Serializer[Credential]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Credential.Kind.choices)
    label = serializers.CharField()  # type: ignore[assignment]
    bot = serializers.CharField(source="bot.handle", default=None, allow_null=True)
    task = serializers.UUIDField(source="task_id", allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class IssuedRow(CredentialRow):
    """The secret is shown this once."""

    secret = serializers.CharField()


def _issued(issued: issuing.Issued) -> dict[str, Any]:
    return {**CredentialRow(issued.credential).data, "secret": issued.secret}


class Credentials(ApiView):
    class Input(StrictSerializer):
        kind = serializers.ChoiceField(Credential.Kind.choices)
        label = StrictCharField(max_length=80)  # type: ignore[assignment]
        bot = StrictCharField(max_length=64, required=False)
        task = StrictUUIDField(required=False)
        expires_in_days = StrictIntegerField(min_value=1, max_value=3650, required=False)

    @paged(CredentialRow, summary="Credentials, revoked ones too; never their secrets (manager)")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.MANAGE)
        rows = Credential.objects.filter(workspace_id=principal_of(request).workspace_id)
        return page(
            rows.select_related("bot"),
            request,
            order=("-created_at", "-id"),
            render=lambda credential: dict(CredentialRow(credential).data),
        )

    @described(summary="Issue a credential (manager)", takes=Input, gives=IssuedRow, status=201)
    def post(self, request: Request) -> Response:
        asked = given(self.Input, request.data)
        days = asked.get("expires_in_days")
        issued = issuing.issue(
            kind=asked["kind"],
            label=asked["label"],
            bot=asked.get("bot"),
            task_id=asked.get("task"),
            expires_in=timedelta(days=days) if days is not None else None,
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(_issued(issued), status=status.HTTP_201_CREATED)


class RevokeCredential(ApiView):
    @described(summary="Revoke a credential (manager)", gives=CredentialRow)
    def post(self, request: Request, credential_id: UUID) -> Response:
        given(StrictSerializer, request.data)
        revoked = issuing.revoke(credential_id, by=principal_of(request), clock=system_clock)
        return Response(CredentialRow(revoked).data)


class RotateCredential(ApiView):
    class Input(StrictSerializer):
        grace_seconds = StrictIntegerField(min_value=0, max_value=30 * 24 * 3600, default=0)

    @described(
        summary="Give a credential a new secret; the old one is taken until the grace is over "
        "(manager)",
        takes=Input,
        gives=IssuedRow,
    )
    def post(self, request: Request, credential_id: UUID) -> Response:
        asked = given(self.Input, request.data)
        issued = issuing.rotate(
            credential_id,
            grace=timedelta(seconds=asked["grace_seconds"]),
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(_issued(issued))


class Unknown(ApiView):
    """Every other path under the API: 401 without a credential, then 404."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound
