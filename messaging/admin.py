"""The admin of what tasks say to each other: receipts; and of the teams that hold them."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from cowork.admin import address_of, name_of
from messaging.models import Receipt
from teams.admin import TeamRows, how_many
from teams.models import Team
from timeline.admin import ReadOnly, Recent, badge, open_in_cowork


@admin.register(Receipt)
class Receipts(ReadOnly):
    """One message each and its fate; the text is shown in the detail only."""

    list_display = (
        "message_id",
        "sender_label",
        "addressee",
        "state",
        "attempt",
        "failure_code",
        "accepted_at",
        "started_at",
        "delivered_at",
        "in_cowork",
    )
    list_filter = (
        Recent,
        "status",
        ("closed_at", admin.EmptyFieldListFilter),
        "workspace",
        "team",
    )
    list_select_related = ("recipient__bot",)
    searched_ids = ("id", "sender_task", "recipient", "turn", "chain")
    searched_names = ("message_id", "sender_bot__handle", "recipient__bot__handle", "sender_label")
    fields = (
        "id",
        "message_id",
        "in_cowork",
        "text",
        "workspace",
        "source",
        "sender_label",
        "sender_task",
        "sender_bot",
        "sender_person",
        "recipient",
        "team",
        "delivery_mode",
        "status",
        "sequence",
        "attempt",
        "wakes",
        "is_held",
        "due_at",
        "turn",
        "end_count",
        "loss_count",
        "limit_count",
        "in_reply_to",
        "is_handoff",
        "is_closing",
        "is_automatic",
        "reply_status",
        "reply",
        "replied_at",
        "reply_deadline_at",
        "cause_kind",
        "cause_id",
        "chain",
        "hop",
        "accepted_at",
        "queued_at",
        "started_at",
        "delivered_at",
        "failed_at",
        "quarantined_at",
        "closed_at",
        "failure_code",
        "failure_reason",
        "released_by",
    )

    @admin.display(description="to")
    def addressee(self, receipt: Receipt) -> str:
        return name_of(receipt.recipient)

    @badge("state")
    def state(self, receipt: Receipt) -> str:
        return receipt.status

    @admin.display(description="text")
    def text(self, receipt: Receipt) -> str:
        return receipt.body.text if receipt.body.text is not None else "(erased)"

    @admin.display(description="page")
    def in_cowork(self, receipt: Receipt) -> SafeString | str:
        address = address_of(receipt.recipient)
        return open_in_cowork(None if address is None else f"{address}#msg_{receipt.id}")


@admin.register(Team)
class Teams(TeamRows):
    list_display = (*TeamRows.list_display, "held")
    fields = (*TeamRows.fields, "held")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Asked by workspace first: the index of what needs a person begins with it.
        held = Receipt.objects.filter(
            workspace=OuterRef("workspace"),
            team=OuterRef("pk"),
            status=Receipt.Status.QUARANTINED,
            closed_at__isnull=True,
        )
        found: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = found.annotate(held=how_many(held, per="team"))
        return counted

    @admin.display(description="held messages")
    def held(self, team: Any) -> int:
        return int(team.held)
