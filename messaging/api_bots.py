"""The API of bots, and of what takes authority from bots and teams (SPEC §2.4, §3)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from cowork import opening
from cowork.models import Task
from messaging import leaving, output, roster
from messaging.wire import TaskRow
from teams import bots, founding
from teams.models import Bot, RuntimeProfile
from teams.permissions import May, Principal, require
from teams.wire import TeamRow, principal_of, team_in_sight, team_rows
from timeline.clock import system_clock
from timeline.refusals import InvalidRequest
from timeline.schema import described, paged
from timeline.wire import (
    ApiView,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    StrictUUIDField,
    given,
    page,
)

# A text may come with CRLF for each line; it is measured once that is folded.
LONGEST_TEXT = 24_000


class ConversationOfBot(serializers.Serializer[Any]):
    task_id = serializers.UUIDField(source="conversation.id")
    preview = serializers.CharField(source="latest.text", default=None, allow_null=True)
    queued = serializers.IntegerField()


class BotRow(serializers.Serializer[Any]):
    """A bot, and where its conversation stands."""

    id = serializers.UUIDField(source="bot.id")
    handle = serializers.CharField(source="bot.handle")
    display_name = serializers.CharField(source="bot.display_name")
    description = serializers.CharField(source="bot.description")
    instructions = serializers.CharField(source="bot.instructions")
    icon = serializers.CharField(source="bot.icon")
    colour = serializers.ChoiceField(Bot.Colour.choices, source="bot.colour")
    runtime = serializers.CharField(source="bot.runtime.name")
    system = serializers.BooleanField(source="bot.is_system")
    active = serializers.BooleanField(source="bot.is_active")
    created_at = serializers.DateTimeField(source="bot.created_at")
    updated_at = serializers.DateTimeField(source="bot.updated_at")
    readiness = serializers.ChoiceField(roster.Readiness.choices)
    last_result = serializers.ChoiceField(roster.Result.choices, source="result")
    conversation = serializers.SerializerMethodField()

    @extend_schema_field(ConversationOfBot(allow_null=True))
    def get_conversation(self, row: roster.Row) -> dict[str, Any] | None:
        return dict(ConversationOfBot(row).data) if row.conversation is not None else None


def bot_row(bot: Bot) -> dict[str, Any]:
    return dict(BotRow(roster.row_of(bot)).data)


class Looks(StrictSerializer):
    description = StrictCharField(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    instructions = StrictCharField(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    icon = StrictCharField(max_length=40, required=False)
    colour = serializers.ChoiceField(Bot.Colour.choices, required=False)


class NewBot(Looks):
    handle = StrictCharField(max_length=64)
    display_name = StrictCharField(max_length=80)
    runtime = StrictCharField(max_length=63, default=RuntimeProfile.EXTERNAL_NAME)


class BotChanges(Looks):
    display_name = StrictCharField(max_length=80, required=False)
    runtime = StrictCharField(max_length=63, required=False)
    active = StrictBooleanField(required=False, help_text="`true` brings a deactivated bot back.")


class Bots(ApiView):
    @paged(BotRow, summary="Bots, deactivated ones too")
    def get(self, request: Request) -> Response:
        require(principal_of(request), May.READ)
        found = Bot.objects.filter(workspace_id=principal_of(request).workspace_id)
        response = page(found, request, order=("handle", "id"), render=lambda bot: {"id": bot.id})
        ids = [row["id"] for row in response.data["results"]]
        rows = {row.bot.id: row for row in roster.rows(found.filter(pk__in=ids))}
        response.data["results"] = [BotRow(rows[bot_id]).data for bot_id in ids]
        return response

    @described(summary="Make a bot (manager)", takes=NewBot, gives=BotRow, status=201)
    def post(self, request: Request) -> Response:
        bot = founding.make_bot(
            **given(NewBot, request.data), by=principal_of(request), clock=system_clock
        )
        return Response(bot_row(bot), status=status.HTTP_201_CREATED)


class OneBot(ApiView):
    @described(summary="A bot", gives=BotRow)
    def get(self, request: Request, handle: str) -> Response:
        return Response(bot_row(bot_in_sight(principal_of(request), handle)))

    @described(
        summary="Change a bot, from its next turn on (manager)", takes=BotChanges, gives=BotRow
    )
    def patch(self, request: Request, handle: str) -> Response:
        bot_in_sight(principal_of(request), handle)
        changes = given(BotChanges, request.data)
        is_back = changes.pop("active", None)
        if is_back is False:
            raise InvalidRequest(reason="active: to deactivate a bot, DELETE it.")
        bot = founding.edit_bot(
            handle,
            is_back=bool(is_back),
            by=principal_of(request),
            clock=system_clock,
            **changes,
        )
        return Response(bot_row(bot))

    @described(summary="Deactivate a bot; its history stays (manager)", status=204)
    def delete(self, request: Request, handle: str) -> Response:
        bot_in_sight(principal_of(request), handle)
        leaving.deactivate_bot(handle, by=principal_of(request), clock=system_clock)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Conversations(ApiView):
    """The conversations of a bot."""

    class Input(StrictSerializer):
        title = StrictCharField(max_length=200, required=False, default="")
        team = StrictUUIDField(required=False)

    @paged(TaskRow, summary="The conversations of a bot, newest first")
    def get(self, request: Request, handle: str) -> Response:
        bot = bot_in_sight(principal_of(request), handle)
        found = Task.objects.filter(bot=bot, kind=Task.Kind.BOT_CONVERSATION)
        return page(
            found.select_related("workspace", "runtime", "bot", "team"),
            request,
            order=("-created_at", "-id"),
            render=output.task,
        )

    @described(summary="Open a conversation; it is dormant", takes=Input, gives=TaskRow, status=201)
    def post(self, request: Request, handle: str) -> Response:
        bot = bot_in_sight(principal_of(request), handle)
        asked = given(self.Input, request.data)
        team_id = asked.get("team")
        task = opening.open_conversation(
            bot,
            team=team_in_sight(principal_of(request), team_id) if team_id else None,
            title=asked["title"],
            by=principal_of(request),
            clock=system_clock,
        )
        return Response(output.task(task), status=status.HTTP_201_CREATED)


class OneTeam(ApiView):
    class Input(StrictSerializer):
        name = StrictCharField(max_length=80, required=False)
        persistent = StrictBooleanField(required=False)
        active = StrictBooleanField(required=False)
        lead = StrictCharField(max_length=64, required=False)

    @described(summary="A team and its members", gives=TeamRow)
    def get(self, request: Request, team_id: UUID) -> Response:
        return Response(TeamRow(team_in_sight(principal_of(request), team_id)).data)

    @described(summary="Change a team (manager)", takes=Input, gives=TeamRow)
    def patch(self, request: Request, team_id: UUID) -> Response:
        team_in_sight(principal_of(request), team_id)
        asked = given(self.Input, request.data)
        named = {"persistent": "is_persistent", "active": "is_active"}
        changes = {named.get(name, name): value for name, value in asked.items()}
        leaving.change_team(team_id, by=principal_of(request), clock=system_clock, **changes)
        return Response(TeamRow(team_rows(principal_of(request)).get(pk=team_id)).data)


class OneMember(ApiView):
    @described(summary="Remove a member (manager)", status=204)
    def delete(self, request: Request, team_id: UUID, handle: str) -> Response:
        team_in_sight(principal_of(request), team_id)
        leaving.remove_member(team_id, handle=handle, by=principal_of(request), clock=system_clock)
        return Response(status=status.HTTP_204_NO_CONTENT)


def bot_in_sight(principal: Principal, handle: str) -> Bot:
    """A bot of the caller's workspace. Raises NotFound, then Forbidden."""
    bot = bots.with_handle(principal.workspace_id, handle)
    require(principal, May.READ)
    return bot
