"""The admin of what happened, and what the admins of all floors share: rows that are looked at."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from timeline.clock import system_clock
from timeline.ids import first_id_of
from timeline.models import AuditEntry, Event

# Colour is for what is under way and for what a person has to look at (DESIGN §9, §10).
TONES: dict[str, str] = {
    "queued": "info",
    "started": "info",
    "running": "info",
    "due": "info",
    "retry": "warning",
    "lost": "warning",
    "quarantined": "warning",
    "failed": "danger",
    "error": "danger",
    "parked": "danger",
    "poison": "danger",
}


Column = TypeVar("Column", bound=Callable[..., object])


def badge(description: str) -> Callable[[Column], Column]:
    """A column that shows a status as a badge in its tone."""
    decorated: Callable[[Column], Column] = display(description=description, label=TONES)
    return decorated


class ReadOnly(ModelAdmin):
    """Rows to look at: whoever is staff and has the `view_*` permission, and nobody changes any.

    An admin names its `fields` one by one, so that a new column is shown by decision only.
    """

    # Each walks along an index: the newest first by the key, which sorts by time of making.
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable_by: ClassVar[tuple[str, ...]] = ()
    # Tables that grow are never counted: neither for pages nor for filters.
    paginator = InfinitePaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    actions = None

    # What the search compares with: ids with a term that is one, names with every term.
    searched_ids: ClassVar[tuple[str, ...]] = ("id",)
    searched_names: ClassVar[tuple[str, ...]] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Django lets in who may change, too; that permission means nothing here.
        return request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self.searched_ids, *self.searched_names)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The rows that a whole term names: an id, a handle with or without its @, a label."""
        term = search_term.strip().removeprefix("@")
        if not term:
            return queryset, False
        if "\0" in term:  # no database has such a name
            return queryset.none(), False
        asked = Q()
        for name in self.names_searched(term):
            asked |= name
        return queryset.filter(asked), False

    def names_searched(self, term: str) -> Iterable[Q]:
        """The ways in which a row can be meant by a term."""
        found = as_id(term)
        ids = [] if found is None else [Q(**{field: found}) for field in self.searched_ids]
        # Where ids alone are searched, a term that is none names nothing.
        return [*ids, *[Q(**{field: term}) for field in self.searched_names]] or [Q(pk__in=[])]


class Recent(admin.SimpleListFilter):
    """Made within a while. Asks the key, which sorts by time of making."""

    title = "made within"
    parameter_name = "within"
    HOURS: ClassVar = {"hour": 1, "day": 24, "week": 7 * 24}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("hour", "the past hour"), ("day", "24 hours"), ("week", "seven days")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        hours = self.HOURS.get(self.value() or "")
        if hours is None:
            return queryset
        return queryset.filter(pk__gte=first_id_of(system_clock.now() - timedelta(hours=hours)))


def as_id(term: str) -> UUID | None:
    """The id that a term is, if it is one."""
    try:
        return UUID(term)
    except ValueError:
        return None


def open_in_cowork(address: str | None) -> SafeString | str:
    """A link to the page of a row, where it has one."""
    if address is None:
        return "–"
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">Open in CoWork</a>', address
    )


def shortened(text: str, *, length: int = 80) -> str:
    """The beginning of a text, for a list."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


@admin.register(Event)
class Events(ReadOnly):
    """The lines of all timelines, without the texts that they refer to."""

    list_display = ("type", "stream_key", "seq", "actor", "subject", "created_at")
    list_filter = (Recent,)
    searched_ids = ("id", "stream", "subject")
    fields = (
        "id",
        "type",
        "stream_key",
        "seq",
        "workspace_id",
        "actor",
        "actor_id",
        "subject",
        "payload",
        "version",
        "created_at",
    )

    @admin.display(description="timeline of")
    def stream_key(self, event: Event) -> str:
        return str(event.stream_id)

    @admin.display(description="actor")
    def actor(self, event: Event) -> str:
        return f"{event.actor_kind} {event.actor_label}"


@admin.register(AuditEntry)
class AuditEntries(ReadOnly):
    """Where a person's authority was used."""

    list_display = ("action", "target", "actor", "note_begins", "created_at")
    list_filter = (Recent,)
    searched_ids = ("id", "workspace_id")
    searched_names = ("action", "target_id", "actor_id", "actor_label")
    fields = (
        "id",
        "workspace_id",
        "action",
        "target_kind",
        "target_id",
        "actor",
        "actor_id",
        "note",
        "detail",
        "created_at",
    )

    @admin.display(description="target")
    def target(self, entry: AuditEntry) -> str:
        return f"{entry.target_kind} {entry.target_id}"

    @admin.display(description="actor")
    def actor(self, entry: AuditEntry) -> str:
        return f"{entry.actor_kind} {entry.actor_label}"

    @admin.display(description="note")
    def note_begins(self, entry: AuditEntry) -> str:
        return shortened(entry.note)
