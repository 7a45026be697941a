"""What tasks say to each other: the receipt, the one record of a message and its fate."""

from collections.abc import Mapping
from typing import ClassVar, Self

from django.db import models
from django.db.models import Q

from cowork.models import Task, Turn
from teams.models import Bot, Person, Team, Workspace
from timeline.ids import new_id
from timeline.models import Body
from timeline.transitions import Stateful


class ReceiptQuerySet(models.QuerySet["Receipt"]):
    def queued(self) -> Self:
        """Those in a queue, in no particular order."""
        return self.filter(status=Receipt.Status.QUEUED)

    def in_order(self) -> Self:
        """By place in the queue, never by time (SPEC §5.2)."""
        return self.order_by("recipient_id", "sequence")


class Receipt(Stateful):
    """One message to one recipient task: the single source of truth of its delivery (SPEC §5)."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        STARTED = "started"
        DELIVERED = "delivered"
        FAILED = "failed"
        QUARANTINED = "quarantined"

    TRANSITIONS: ClassVar[Mapping[str, frozenset[str]]] = {
        Status.QUEUED: frozenset({Status.STARTED, Status.FAILED, Status.QUARANTINED}),
        Status.STARTED: frozenset(
            {Status.QUEUED, Status.DELIVERED, Status.FAILED, Status.QUARANTINED}
        ),
        Status.DELIVERED: frozenset(),
        Status.FAILED: frozenset({Status.QUEUED}),
        Status.QUARANTINED: frozenset({Status.QUEUED}),
    }
    STATUS_NAME = "delivery_status"

    class Mode(models.TextChoices):
        MESSAGE = "message"
        FOLLOW_UP = "follow_up"

    class Source(models.TextChoices):
        AGENT = "agent"
        PERSON = "person"
        SERVICE = "service"

    class ReplyStatus(models.TextChoices):
        PENDING = "pending"
        RECEIVED = "received"
        TIMED_OUT = "timed_out"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="receipts")

    # The idempotency key (SPEC §4.4, §6.10). `sender_key` names the task, person or service that
    # sends; `recipient_key` the bot, or the task where it is no bot conversation's.
    sender_key = models.CharField(max_length=60)
    recipient_key = models.CharField(max_length=60)
    delivery_mode = models.CharField(max_length=10, choices=Mode.choices)
    message_id = models.CharField(max_length=128)
    body = models.ForeignKey(Body, on_delete=models.PROTECT, related_name="+")
    message_hash = models.CharField(max_length=64)

    source = models.CharField(max_length=10, choices=Source.choices)
    sender_task = models.ForeignKey(Task, on_delete=models.PROTECT, null=True, related_name="sent")
    sender_bot = models.ForeignKey(Bot, on_delete=models.PROTECT, null=True, related_name="+")
    sender_person = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    sender_label = models.CharField(max_length=200)
    # The newest turn of the sender when it sent (SPEC §7.4), and whether the message is inside it.
    sender_turn = models.PositiveIntegerField(default=0)
    recipient = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="inbox")
    # The team whose membership lets sender and recipient exchange it (SPEC §2.4).
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="+")

    status = models.CharField(max_length=12, choices=Status.choices, default=Status.QUEUED)
    sequence = models.PositiveBigIntegerField()
    attempt = models.PositiveIntegerField(default=1)
    wakes = models.BooleanField()
    # A queued receipt that came back is not taken before this.
    due_at = models.DateTimeField()
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, null=True, related_name="inputs")
    # Ends in a row before incorporation, and how many of them were losses (SPEC §6.5).
    end_count = models.PositiveSmallIntegerField(default=0)
    loss_count = models.PositiveSmallIntegerField(default=0)
    # Turns in a row that met a limit: the next look comes later each time.
    limit_count = models.PositiveSmallIntegerField(default=0)
    was_shown = models.BooleanField(default=False)

    in_reply_to = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="answers"
    )
    is_handoff = models.BooleanField(default=False)
    is_closing = models.BooleanField(default=False)
    is_automatic = models.BooleanField(default=False)
    # Stored and not woken: its chain of messages has gone on for too long (SPEC §7.6).
    is_held = models.BooleanField(default=False)
    reply_status = models.CharField(max_length=10, choices=ReplyStatus.choices, null=True)
    reply = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    replied_at = models.DateTimeField(null=True)
    # How long its sender waits at the most, from the start of the turn that holds it, and when the
    # wait ends as things stand (SPEC §7.3).
    reply_timeout = models.DurationField(null=True)
    reply_deadline_at = models.DateTimeField(null=True)

    cause_kind = models.CharField(max_length=10)
    cause_id = models.CharField(max_length=64, blank=True)
    chain = models.UUIDField()
    hop = models.PositiveIntegerField()

    accepted_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    failure_code = models.CharField(max_length=60, blank=True)
    failure_reason = models.TextField(blank=True)
    released_by = models.CharField(max_length=200, blank=True)

    objects = ReceiptQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["sender_key", "recipient_key", "delivery_mode", "message_id"],
                name="messaging_receipt_idempotency",
            ),
            models.UniqueConstraint(
                fields=["recipient", "sequence"], name="messaging_receipt_place"
            ),
            # One reply answers one handoff (SPEC §7.1).
            models.UniqueConstraint(
                fields=["reply"],
                condition=Q(reply__isnull=False),
                name="messaging_receipt_one_answer",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "started", "delivered", "failed", "quarantined"]),
                name="messaging_receipt_status",
            ),
            models.CheckConstraint(
                condition=Q(status="delivered") ^ Q(delivered_at__isnull=True),
                name="messaging_receipt_delivered_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status="failed") ^ Q(failed_at__isnull=True),
                name="messaging_receipt_failed_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status="quarantined") ^ Q(quarantined_at__isnull=True),
                name="messaging_receipt_quarantined_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True) | Q(status__in=["failed", "quarantined"]),
                name="messaging_receipt_closed_is_at_rest",
            ),
            models.CheckConstraint(
                condition=~Q(status="started") | Q(turn__isnull=False, started_at__isnull=False),
                name="messaging_receipt_started_has_a_turn",
            ),
            models.CheckConstraint(
                condition=Q(reply_status__isnull=True) | Q(is_handoff=True),
                name="messaging_receipt_only_handoffs_wait",
            ),
            models.CheckConstraint(
                condition=Q(reply_status="received") ^ Q(reply__isnull=True),
                name="messaging_receipt_received_names_its_reply",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["workspace", "status"],
                condition=Q(status__in=["failed", "quarantined"], closed_at__isnull=True),
                name="messaging_receipt_attention",
            ),
            models.Index(
                fields=["recipient", "sequence"],
                condition=Q(status="queued"),
                name="messaging_receipt_queue",
            ),
            models.Index(fields=["workspace", "-accepted_at", "-id"], name="messaging_newest"),
            models.Index(fields=["sender_task", "-accepted_at"], name="messaging_sent"),
            models.Index(
                fields=["sender_task", "reply_status"],
                condition=Q(reply_status__isnull=False),
                name="messaging_receipt_waits",
            ),
            models.Index(
                fields=["recipient"],
                condition=Q(status="delivered", reply_status="pending"),
                name="messaging_receipt_owed",
            ),
        ]

    def __str__(self) -> str:
        return f"receipt {self.id}"
