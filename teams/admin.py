"""The admin of who is there, and of the users who may look."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from teams.models import Member, Person, RuntimeProfile, Workspace
from timeline.admin import ReadOnly, badge


def how_many(rows: QuerySet[Any], *, per: str) -> Coalesce:
    """A column that counts the rows of each listed one; `rows` are already those of the outer."""
    counted = rows.order_by().values(per).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


@admin.register(Workspace)
class Workspaces(ReadOnly):
    list_display = ("slug", "name", "created_at")
    searched_names = ("slug", "name__icontains")
    ordering = ("slug",)
    fields = ("id", "slug", "name", "created_at")


@admin.register(Person)
class People(ReadOnly):
    list_display = ("username", "role", "is_active", "workspace", "created_at")
    list_filter = ("role", "is_active", "workspace")
    list_select_related = ("user", "workspace")
    searched_names = ("user__username",)
    fields = ("id", "user", "workspace", "role", "is_active", "created_at")

    @admin.display(description="username")
    def username(self, person: Person) -> str:
        return person.user.get_username()


@admin.register(RuntimeProfile)
class RuntimeProfiles(ReadOnly):
    list_display = ("name", "kind", "is_active", "is_spawnable", "workspace")
    list_filter = ("kind", "is_active", "workspace")
    list_select_related = ("workspace",)
    searched_names = ("name",)
    # What a profile holds inside stays with those who make it, as it does in the API.
    fields = ("id", "workspace", "name", "kind", "is_spawnable", "is_active", "created_at")


class BotRows(ReadOnly):
    """Bots as far as this floor knows them; cowork/admin adds what they do, and registers them."""

    list_display: ClassVar[tuple[str, ...]] = ("display_name", "handle", "is_active")
    list_filter = ("is_active", "is_system", "workspace")
    list_select_related: ClassVar = ("workspace", "runtime")
    searched_names = ("handle", "display_name__icontains")
    ordering = ("workspace", "handle")
    fields = (
        "id",
        "workspace",
        "handle",
        "display_name",
        "description",
        "instructions",
        "icon",
        "colour",
        "runtime",
        "is_system",
        "is_active",
        "deactivated_at",
        "created_at",
        "updated_at",
    )


class TeamRows(ReadOnly):
    """Teams as far as this floor knows them; messaging/admin adds what is held for them."""

    list_display: ClassVar[tuple[str, ...]] = ("name", "workspace", "state", "lead_handle", "size")
    list_filter = ("is_active", "is_persistent", "workspace")
    list_select_related: ClassVar = ("workspace", "lead")
    searched_names = ("name__icontains", "lead__handle", "members__bot__handle")
    ordering = ("workspace", "name")
    fields: ClassVar[tuple[str, ...]] = (
        "id",
        "workspace",
        "name",
        "is_active",
        "is_persistent",
        "lead",
        "size",
        "created_at",
        "updated_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        members = Member.objects.active().filter(team=OuterRef("pk"))
        found: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = found.annotate(size=how_many(members, per="team"))
        return counted

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, _ = super().get_search_results(request, queryset, search_term)
        return found, True  # a team has many members: it is found once

    @admin.display(description="state")
    def state(self, team: Any) -> str:
        kind = "persistent" if team.is_persistent else "not persistent"
        return f"{'active' if team.is_active else 'inactive'}, {kind}"

    @admin.display(description="lead")
    def lead_handle(self, team: Any) -> str:
        return f"@{team.lead.handle}"

    @admin.display(description="members")
    def size(self, team: Any) -> int:
        return int(team.size)


@admin.register(Member)
class Members(ReadOnly):
    list_display = ("handle", "team_name", "position", "state", "joined_at", "left_at", "workspace")
    list_filter = ("status", "team__workspace")
    list_select_related = ("bot", "team__workspace")
    searched_names = ("bot__handle", "team__name__icontains")
    fields = ("id", "team", "bot", "position", "status", "guidance", "joined_at", "left_at")

    @admin.display(description="bot")
    def handle(self, member: Member) -> str:
        return f"@{member.bot.handle}"

    @admin.display(description="team")
    def team_name(self, member: Member) -> str:
        return member.team.name

    @admin.display(description="position")
    def position(self, member: Member) -> str:
        return "lead" if member.team.lead_id == member.bot_id else "member"

    @badge("state")
    def state(self, member: Member) -> str:
        return member.status

    @admin.display(description="workspace")
    def workspace(self, member: Member) -> str:
        return str(member.team.workspace)


class OfSuperusers(ModelAdmin):
    """Rows that superusers change: who may change users or groups can give anybody anything."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class Users(OfSuperusers, DjangoUserAdmin):  # type: ignore[type-arg]
    """Django's own, without the part of the hash that it shows."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    readonly_fields = ("password_is", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password_is")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "May",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )

    @admin.display(description="password")
    def password_is(self, user: User) -> str:
        word = "set" if user.has_usable_password() else "none"
        return format_html('{}. <a href="../password/">Set another one</a>', word)


@admin.register(Group)
class Groups(OfSuperusers, DjangoGroupAdmin):
    pass
