"""Who is there: workspaces, people, bots, teams and their members, runtime profiles."""

from collections.abc import Mapping
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from timeline.ids import new_id
from timeline.transitions import Stateful


class Workspace(models.Model):
    """The tenant boundary: everything belongs to exactly one, for good (SPEC §1)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.slug


class Person(models.Model):
    """A Django user with a role in a workspace."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        OPERATOR = "operator"
        MANAGER = "manager"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="people")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="roles"
    )
    role = models.CharField(max_length=10, choices=Role.choices)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "people"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="teams_person_one_role"),
            models.CheckConstraint(
                condition=Q(role__in=["viewer", "operator", "manager"]), name="teams_person_role"
            ),
        ]

    def __str__(self) -> str:
        return f"person {self.id}"


class RuntimeProfile(models.Model):
    """A named description of what runs turns, made by a manager (SPEC §13)."""

    class Kind(models.TextChoices):
        EXTERNAL = "external"
        SCRIPT = "script"

    EXTERNAL_NAME: ClassVar = "external"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="runtimes")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    # What the kind needs, validated by teams/profiles: rules of a script.
    config = models.JSONField(default=dict)
    is_spawnable = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="teams_runtime_name"),
            models.CheckConstraint(
                condition=Q(kind__in=["external", "script"]), name="teams_runtime_kind"
            ),
        ]

    def __str__(self) -> str:
        return f"runtime profile {self.name}"


class BotQuerySet(models.QuerySet["Bot"]):
    def active(self) -> Self:
        return self.filter(is_active=True)


class Bot(models.Model):
    """A durable, named identity (SPEC §3.1)."""

    class Colour(models.TextChoices):
        """The eight hues of tiles and lanes (`hue-*` in tokens.css)."""

        IRIS = "iris"
        LAKE = "lake"
        MOSS = "moss"
        OCHRE = "ochre"
        PLUM = "plum"
        ROSE = "rose"
        RUST = "rust"
        SLATE = "slate"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="bots")
    handle = models.CharField(max_length=64)
    # The handle with look-alike characters folded into one (teams/handles): two handles that a
    # reader could confuse have the same.
    skeleton = models.CharField(max_length=64)
    display_name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    instructions = models.TextField(blank=True)
    icon = models.CharField(max_length=40, default="bot")
    colour = models.CharField(max_length=10, choices=Colour.choices, default=Colour.IRIS)
    runtime = models.ForeignKey(RuntimeProfile, on_delete=models.PROTECT, related_name="bots")
    is_system = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deactivated_at = models.DateTimeField(null=True)

    objects = BotQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "handle"], name="teams_bot_handle"),
            models.UniqueConstraint(fields=["workspace", "skeleton"], name="teams_bot_look_alike"),
            models.CheckConstraint(
                condition=Q(is_active=True) ^ Q(deactivated_at__isnull=False),
                name="teams_bot_deactivated_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"bot {self.handle}"


class Team(models.Model):
    """A collaboration group of bots; messaging needs it persistent and active (SPEC §1)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="teams")
    name = models.CharField(max_length=80)
    is_persistent = models.BooleanField(default=True)
    is_active = models.BooleanField(default=True)
    lead = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="leads")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="teams_team_name"),
        ]

    def __str__(self) -> str:
        return f"team {self.name}"


class MemberQuerySet(models.QuerySet["Member"]):
    def active(self) -> Self:
        return self.filter(status=Member.Status.ACTIVE)


class Member(Stateful):
    """A bot's place in a team; the lead has one too, or counts as one without (SPEC §3.2)."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        REMOVED = "removed"

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]] = {
        Status.ACTIVE: frozenset({Status.REMOVED}),
        Status.REMOVED: frozenset({Status.ACTIVE}),
    }

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="members")
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="memberships")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    guidance = models.TextField(blank=True)
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True)

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "bot"], name="teams_member_once"),
            models.CheckConstraint(
                condition=Q(status="active") ^ Q(left_at__isnull=False),
                name="teams_member_left_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["active", "removed"]), name="teams_member_status"
            ),
        ]

    def __str__(self) -> str:
        return f"member {self.id}"
