"""Credentials: who calls without a session, and by which secrets (SPEC §2.1)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from rest_framework_api_key.models import AbstractAPIKey

from cowork.models.tasks import Task
from teams.models import Bot, Person, Workspace
from timeline.ids import new_id


class Credential(models.Model):
    """The identity of somebody who calls without a session (SPEC §2.1).

    Its secrets are rows of their own, so that rotation keeps the identity.
    """

    class Kind(models.TextChoices):
        BOT = "bot"
        TASK = "task"
        SERVICE = "service"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="credentials")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    label = models.CharField(max_length=80)
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, null=True, related_name="credentials")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, null=True, related_name="credentials")
    made_by = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "label"],
                condition=Q(revoked_at__isnull=True),
                name="cowork_credential_label",
            ),
            models.CheckConstraint(
                condition=Q(kind="bot", bot__isnull=False, task__isnull=True)
                | Q(kind="task", bot__isnull=True, task__isnull=False)
                | Q(kind="service", bot__isnull=True, task__isnull=True),
                name="cowork_credential_names_whom_it_acts_as",
            ),
        ]

    def __str__(self) -> str:
        return f"credential {self.label}"


class Secret(AbstractAPIKey):
    """One secret of a credential: its prefix, its hash, and until when it is taken."""

    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, related_name="secrets")

    class Meta(AbstractAPIKey.Meta):
        constraints: ClassVar = []
