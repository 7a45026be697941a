"""Tasks over REST: made, listed, edited, completed, followed up, and their events."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cowork import editing, interrupting, opening, reopening
from cowork.models import InteractionMode, RuntimeMode, Task
from messaging import (
    authority,
    finishing,
    following_up,
    output,
    sending,
    teammates,
    windows,
)
from messaging.api import MessageIdField
from messaging.models import Receipt
from messaging.schema import EventPage, HeaderRow, TeammateRow, TimelinePage, ToolRow
from messaging.wire import FollowUpRow, TaskRow, choice
from teams.models import Bot, RuntimeProfile, Team
from teams.permissions import May, Principal, require
from teams.wire import principal_of
from timeline import log, projection, shutdown
from timeline.clock import system_clock
from timeline.refusals import InvalidRequest
from timeline.schema import LIMIT, described, listed, paged
from timeline.wire import (
    ApiView,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUUIDField,
    given,
    limit_of,
    page,
)

MAX_SEQ = 2**63 - 1
_WITH = ("bot", "team", "runtime", "workspace")


class Tasks(ApiView):
    """GET tasks: those the caller may see, newest first. POST tasks: make a dormant one."""

    class Input(StrictSerializer):
        kind = serializers.ChoiceField(choices=["root", "bot_conversation"])
        title = StrictCharField(max_length=200)
        bot = StrictCharField(max_length=64, required=False, allow_null=True, default=None)
        team = StrictUUIDField(required=False, allow_null=True, default=None)
        prompt = StrictCharField(required=False, allow_blank=True, default="")
        runtime_mode = serializers.ChoiceField(
            choices=RuntimeMode.choices, required=False, default=RuntimeMode.SUPERVISED
        )
        interaction_mode = serializers.ChoiceField(
            choices=InteractionMode.choices, required=False, default=InteractionMode.EXECUTE
        )
        runtime = StrictCharField(max_length=63, required=False, allow_null=True, default=None)
        batch_inputs = StrictBooleanField(required=False, allow_null=True, default=None)

    @paged(
        TaskRow,
        choice("kind", Task.Kind.values),
        choice("status", Task.Status.values),
        choice("archived", ["true", "false"]),
        OpenApiParameter("bot", str, description="A handle."),
        summary="Tasks that the caller may see, newest first",
    )
    def get(self, request: Request) -> Response:
        rows = _filtered(authority.visible_tasks(principal_of(request)), request)
        rows = rows.select_related(*_WITH)
        return page(rows, request, order=("-created_at", "-id"), render=output.task)

    @described(
        summary="Make a dormant task; a prompt is its first follow-up",
        takes=Input,
        gives=TaskRow,
        status=201,
    )
    def post(self, request: Request) -> Response:
        require(principal_of(request), May.OPEN_TASKS)
        asked = given(self.Input, request.data)
        sending.check_message(asked["prompt"].strip(), None)  # before anything is made
        task = _opened(principal_of(request), asked)
        if asked["prompt"].strip():
            following_up.follow_up(
                recipient=task,
                by=principal_of(request),
                message=asked["prompt"],
                clock=system_clock,
            )
        fresh = authority.find_task(principal_of(request), task.id)
        return Response(output.task(fresh), status=status.HTTP_201_CREATED)


def _opened(by: Principal, asked: dict[str, Any]) -> Task:
    bot = _named_bot(by, asked["bot"])
    runtime = _named_runtime(by, asked["runtime"], bot)
    modes = {
        name: asked[name]
        for name in ("runtime_mode", "interaction_mode", "batch_inputs")
        if asked[name] is not None
    }
    if asked["kind"] == Task.Kind.BOT_CONVERSATION:
        if bot is None:
            raise InvalidRequest(reason="bot: a conversation is a bot's.")
        team = _named_team(by, asked["team"])
        return opening.open_conversation(
            bot, team=team, title=asked["title"], by=by, clock=system_clock, **modes
        )
    if asked["team"] is not None:
        raise InvalidRequest(reason="team: only a bot's conversation has one.")
    return opening.open_root(
        title=asked["title"], runtime=runtime, bot=bot, by=by, clock=system_clock, **modes
    )


def _named_bot(by: Principal, handle: str | None) -> Bot | None:
    if handle is None:
        return None
    rows = Bot.objects.active().select_related("runtime")
    bot = rows.filter(workspace_id=by.workspace_id, handle=handle).first()
    if bot is None:
        raise InvalidRequest(reason="bot: there is no active bot of this handle.")
    return bot


def _named_runtime(by: Principal, name: str | None, bot: Bot | None) -> RuntimeProfile:
    if name is None and bot is not None:
        return bot.runtime
    wanted = name or RuntimeProfile.EXTERNAL_NAME
    rows = RuntimeProfile.objects.filter(workspace_id=by.workspace_id, is_active=True)
    runtime = rows.filter(name=wanted).first()
    if runtime is None:
        raise InvalidRequest(reason="runtime: there is no such profile.")
    return runtime


def _named_team(by: Principal, team_id: UUID | None) -> Team | None:
    if team_id is None:
        return None
    team = Team.objects.filter(pk=team_id, workspace_id=by.workspace_id).first()
    if team is None:
        raise InvalidRequest(reason="team: there is no such team.")
    return team


def _filtered(rows: QuerySet[Task], request: Request) -> QuerySet[Task]:
    for name, value in request.query_params.items():
        if name in ("limit", "cursor"):
            continue
        if name == "bot":
            rows = rows.filter(bot__handle=value)
        elif name == "kind" and value in Task.Kind.values:
            rows = rows.filter(kind=value)
        elif name == "status" and value in Task.Status.values:
            rows = rows.filter(status=value)
        elif name == "archived" and value in ("true", "false"):
            rows = rows.filter(archived_at__isnull=value == "false")
        else:
            raise InvalidRequest(reason=f"{name}: there is no such filter, or no such value.")
    return rows


class TaskDetail(ApiView):
    """GET and PATCH tasks/{id}."""

    class Input(StrictSerializer):
        title = StrictCharField(max_length=200, required=False)
        archived = StrictBooleanField(required=False)
        runtime_mode = serializers.ChoiceField(choices=RuntimeMode.choices, required=False)
        interaction_mode = serializers.ChoiceField(choices=InteractionMode.choices, required=False)
        batch_inputs = StrictBooleanField(required=False)

    @described(summary="A task", gives=TaskRow)
    def get(self, request: Request, task_id: UUID) -> Response:
        return Response(output.task(authority.visible_task(principal_of(request), task_id)))

    @described(summary="Change a task (operator)", takes=Input, gives=TaskRow)
    def patch(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        require(principal_of(request), May.EDIT_TASKS)
        changes = given(self.Input, request.data)
        edited = editing.edit(task, by=principal_of(request), clock=system_clock, **changes)
        return Response(output.task(edited))


class FollowUps(ApiView):
    """POST tasks/{id}/follow_ups: a person's or a service's input."""

    class Input(StrictSerializer):
        message = StrictCharField(allow_blank=True)
        message_id = MessageIdField(required=False, default="")
        delivery_mode = serializers.ChoiceField(
            choices=Receipt.Mode.choices, required=False, default=Receipt.Mode.FOLLOW_UP
        )
        expected_turn = StrictIntegerField(
            min_value=0, max_value=2**31 - 1, required=False, allow_null=True, default=None
        )

    @described(
        summary="Give a task input; 200 is a duplicate (operator, service)",
        takes=Input,
        gives=FollowUpRow,
        status=202,
        also={200: FollowUpRow},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        shutdown.refuse_when_stopping()
        task = authority.visible_task(principal_of(request), task_id)
        require(principal_of(request), May.FOLLOW_UP)
        asked = given(self.Input, request.data)
        sent = following_up.follow_up(
            recipient=task, by=principal_of(request), **asked, clock=system_clock
        )
        body = {**output.sent(sent), **output.receipt(sent.receipt)}
        code = status.HTTP_200_OK if sent.is_duplicate else status.HTTP_202_ACCEPTED
        return Response(body, status=code)


class Complete(ApiView):
    """POST tasks/{id}/complete: the work is done, or has failed."""

    class Input(StrictSerializer):
        outcome = serializers.ChoiceField(choices=[Task.Status.COMPLETED, Task.Status.FAILED])
        summary = StrictCharField(max_length=12_000, allow_blank=True)

    @described(
        summary="Say that the work is done or has failed (its agent, operator)",
        takes=Input,
        gives=TaskRow,
        status=202,
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        if not authority.covers(principal_of(request), task):
            require(principal_of(request), May.COMPLETE)
        asked = given(self.Input, request.data)
        done = finishing.complete(task, by=principal_of(request), **asked, clock=system_clock)
        return Response(output.task(done), status=status.HTTP_202_ACCEPTED)


class _Interruption(ApiView):
    """What a person wants of a task that may be at work."""

    class Input(StrictSerializer):
        reason = StrictCharField(max_length=1000, allow_blank=True, required=False, default="")

    step: Callable[..., Task]

    @extend_schema(responses={202: TaskRow})
    def post(self, request: Request, task_id: UUID) -> Response:
        by = principal_of(request)
        task = authority.visible_task(by, task_id)
        require(by, May.INTERRUPT)
        asked = given(self.Input, request.data)
        moved = type(self).step(task, by=by, **asked, clock=system_clock)
        return Response(output.task(moved), status=status.HTTP_202_ACCEPTED)


@extend_schema_view(post=extend_schema(summary="Pause a task: no new turn (operator, service)"))
class Pause(_Interruption):
    """POST tasks/{id}/pause: no new turn; confirmed when none runs."""

    step = staticmethod(interrupting.pause)


@extend_schema_view(post=extend_schema(summary="Resume a paused task (operator, service)"))
class Resume(_Interruption):
    """POST tasks/{id}/resume of a paused task."""

    step = staticmethod(interrupting.resume)


@extend_schema_view(post=extend_schema(summary="Stop a task and its turn (operator, service)"))
class Stop(_Interruption):
    """POST tasks/{id}/stop: requested at once, confirmed when the runtime has stopped."""

    step = staticmethod(interrupting.stop)


class Reopen(ApiView):
    """POST tasks/{id}/reopen: a new dormant conversation, linked to this one."""

    class Input(StrictSerializer):
        repair_membership = StrictBooleanField(required=False, default=False)

    @described(
        summary="Make a new dormant conversation after this one (operator)",
        takes=Input,
        gives=TaskRow,
        status=201,
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        by = principal_of(request)
        task = authority.visible_task(by, task_id)
        require(by, May.EDIT_TASKS)
        asked = given(self.Input, request.data)
        made = reopening.reopen(task, by=by, **asked, clock=system_clock)
        fresh = authority.find_task(by, made.id)
        return Response(output.task(fresh), status=status.HTTP_201_CREATED)


class Teammates(ApiView):
    """GET tasks/{id}/teammates: who can be written to, and the way back."""

    @listed(TeammateRow, summary="Who of the team can be written to, and the way back")
    def get(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        return Response({"results": teammates.rows(task), "next": None})


class Header(ApiView):
    """GET tasks/{id}/header: who of the team is on it, and what needs a person."""

    @described(summary="Who of the team is on it, and what needs a person", gives=HeaderRow)
    def get(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        own_name = task.bot.display_name if task.bot else task.title
        return Response(output.header(windows.header(task, own_name=own_name)))


class Tools(ApiView):
    """GET tasks/{id}/tools: the coordination tools, and whether the task may use them now."""

    @listed(ToolRow, summary="The coordination tools that a task may use now")
    def get(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        return Response({"results": teammates.tools(task), "next": None})


class Events(ApiView):
    """GET tasks/{id}/events?after=SEQ&limit=: oldest first."""

    @described(
        summary="The timeline of a task, oldest first",
        gives=EventPage,
        asks=[
            OpenApiParameter(
                "after",
                {"type": "integer", "minimum": 0, "default": 0},
                description="The number of the last event that is known.",
            ),
            LIMIT,
        ],
    )
    def get(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdigit() and int(after[:20]) <= MAX_SEQ):
            raise InvalidRequest(reason="after: a number of an event is wanted.")
        events = log.read(task.stream, after=int(after), limit=limit_of(request))
        return Response(
            {
                "results": [log.as_json(event) for event in events],
                "last_seq": log.last_seq(task.stream),
            }
        )


class Timeline(ApiView):
    """GET tasks/{id}/timeline: the rows that a person reads, one per message."""

    @described(summary="The timeline of a task as a person reads it", gives=TimelinePage)
    def get(self, request: Request, task_id: UUID) -> Response:
        task = authority.visible_task(principal_of(request), task_id)
        return Response({"results": projection.rows_of(task.stream), "next": None})
