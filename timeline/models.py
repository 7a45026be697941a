"""What happened: streams of events, the texts they refer to, and the audit.

A stream is named by the id of what it tells of and has no foreign key to it: the log is the ground
that everybody writes to, so it knows nobody.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from timeline.event_types import EventType
from timeline.ids import new_id


class Stream(models.Model):
    """The timeline of one task: its newest number and when that was given."""

    key = models.UUIDField(primary_key=True, editable=False)
    workspace_id = models.UUIDField()
    last_seq = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["workspace_id", "last_at"], name="timeline_stream_news"),
        ]

    def __str__(self) -> str:
        return f"stream {self.key} at {self.last_seq}"


class Body(models.Model):
    """One text and its hash. Erasing empties the text and leaves everything that refers to it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace_id = models.UUIDField(db_index=True)
    text = models.TextField(null=True)
    sha256 = models.CharField(max_length=64)
    byte_count = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "bodies"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(text__isnull=False) ^ Q(erased_at__isnull=False),
                name="timeline_body_has_text_or_erasure",
            ),
        ]

    def __str__(self) -> str:
        return f"body {self.id}"


class Event(models.Model):
    """One immutable line of a stream (SPEC §14.1)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, db_index=False)
    workspace_id = models.UUIDField()
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40, choices=EventType.choices)
    version = models.PositiveSmallIntegerField(default=1)
    payload = models.JSONField(default=dict)
    body = models.ForeignKey(Body, on_delete=models.PROTECT, null=True)
    # What the event tells of: a receipt, a turn, an assignment.
    subject = models.UUIDField(null=True)
    actor_kind = models.CharField(max_length=20)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            # The numbers of a stream have no repeat; that they have no gap is log.append's work.
            models.UniqueConstraint(fields=["stream", "seq"], name="timeline_event_seq"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["subject", "stream", "seq"],
                name="timeline_event_subject",
                condition=Q(subject__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.stream_id}#{self.seq}"


class AuditEntry(models.Model):
    """Who did what to whom where a person's authority was used; ids and codes, never texts."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace_id = models.UUIDField()
    actor_kind = models.CharField(max_length=20)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=200)
    action = models.CharField(max_length=60)
    target_kind = models.CharField(max_length=40)
    target_id = models.CharField(max_length=64)
    note = models.CharField(max_length=1000, blank=True)
    detail = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "audit entries"
        indexes: ClassVar = [
            models.Index(fields=["workspace_id", "-created_at"], name="timeline_audit_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_kind} {self.target_id}"
