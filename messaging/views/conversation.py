"""A bot's conversation: read, written to, followed live."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from cowork import editing, opening
from cowork.models import Task
from messaging import following_up, retrying, roster, windows
from messaging.models import Receipt
from messaging.views.page import Page, field, is_fragment
from messaging.views.panels import Composer, Panels, Refused
from messaging.views.roster import ids_in
from teams.models import Bot
from teams.permissions import May
from timeline.clock import system_clock
from timeline.refusals import InvalidRequest, NotFound, Refusal


class ConversationPage(Page):
    """What the addresses under /bots/<handle>/ share: the bot, and a conversation of its."""

    def bot(self, handle: str) -> Bot:
        rows = Bot.objects.select_related("runtime", "workspace")
        return get_object_or_404(rows, workspace=self.workspace, handle=handle)

    def task(self, handle: str, task_id: UUID) -> Task:
        rows = Task.objects.select_related("bot", "team", "workspace", "runtime").filter(
            workspace=self.workspace, bot__handle=handle, kind=Task.Kind.BOT_CONVERSATION
        )
        return get_object_or_404(rows, pk=task_id)

    def panels(self, request: HttpRequest, bot: Bot, task: Task | None) -> Panels:
        return Panels(bot=bot, task=task, me=self.me, now=system_clock.now())


class OpenBot(ConversationPage):
    """GET /bots/<handle>/: its latest conversation, or an empty one. Nothing is made or started."""

    def get(self, request: HttpRequest, handle: str) -> HttpResponse:
        bot = self.bot(handle)
        task = roster.conversation_of(bot)
        if task is not None:
            return redirect("conversation", handle, task.id)
        panels = self.panels(request, bot, None)
        return self.show(request, "messaging/conversation.html", **panels.page())

    def post(self, request: HttpRequest, handle: str) -> HttpResponseBase:
        """The first message to a bot without a conversation: one is made for it."""
        bot = self.bot(handle)
        task = roster.conversation_of(bot) or opening.open_conversation(
            bot, team=None, title="", by=self.me.principal, clock=system_clock
        )
        return Conversation.as_view()(request, handle=handle, task_id=task.id)


class Conversation(ConversationPage):
    """GET shows a conversation, POST sends a message to it."""

    def get(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        assert task.bot is not None  # a conversation has a bot, says the database
        before = number(request.GET.get("before"))
        window = windows.read(task, before=before)
        panels = self.panels(request, task.bot, task)
        if is_fragment(request):
            return self.show(request, "messaging/_older.html", **panels.older(window))
        is_open = "details" in request.GET
        page = panels.page(window, before=before, with_details=is_open)
        return self.show(request, "messaging/conversation.html", **page)

    def post(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        text = field(request, "message")
        mode = field(request, "delivery_mode")
        if mode not in Receipt.Mode.values:
            raise InvalidRequest(reason="delivery_mode: one of message, follow_up.")
        try:
            sent = following_up.follow_up(
                recipient=task,
                by=self.me.principal,
                message=text,
                message_id=field(request, "message_id"),
                delivery_mode=mode,
                clock=system_clock,
            )
        except Refusal as refusal:
            return self._not_accepted(request, task, refusal, text=text, mode=mode)
        if is_fragment(request):
            return self._live(request, self.task(handle, task_id), [sent.receipt.id])
        address = reverse("conversation", args=[handle, task.id])
        return redirect(f"{address}#msg_{sent.receipt.id}")

    def _not_accepted(
        self, request: HttpRequest, task: Task, refusal: Refusal, *, text: str, mode: str
    ) -> HttpResponse:
        assert task.bot is not None
        refused = Refused(refusal, mode)
        panels = self.panels(request, task.bot, task)
        if is_fragment(request):
            answer = {"refused": refused, "composer": Composer.fresh()}
            return self.show(request, "messaging/_refused.html", status=refusal.status, **answer)
        page = panels.page(windows.read(task), composer=Composer.fresh(text), refused=refused)
        return self.show(request, "messaging/conversation.html", status=refusal.status, **page)

    def _live(self, request: HttpRequest, task: Task, receipts: list[UUID]) -> HttpResponse:
        assert task.bot is not None
        panels = self.panels(request, task.bot, task)
        changed = panels.changes(None, windows.read_some(task, receipts))
        return self.show(request, "messaging/_changes.html", **changed, composer=Composer.fresh())


class Changes(ConversationPage):
    """GET …/live/?after=&receipts=: what an open page does not show yet, as its own fragments."""

    def get(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        assert task.bot is not None
        window = windows.read_after(task, number(request.GET.get("after")) or 0)
        touched = windows.read_some(task, ids_in(request.GET.get("receipts", "")))
        panels = self.panels(request, task.bot, task)
        context = panels.changes(window, touched)
        return self.show(request, "messaging/_changes.html", **context)


class Details(ConversationPage):
    """GET …/details/: recent handoffs and the latest outcome, when somebody opens them."""

    def get(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        if not is_fragment(request):
            return redirect(f"{reverse('conversation', args=[handle, task_id])}?details=1")
        assert task.bot is not None
        panels = self.panels(request, task.bot, task)
        return self.show(request, "messaging/_collab_details.html", collab=panels.collab())


class Text(ConversationPage):
    """GET …/text/<key>/: one message in full length."""

    def get(self, request: HttpRequest, handle: str, task_id: UUID, key: str) -> HttpResponse:
        task = self.task(handle, task_id)
        assert task.bot is not None
        found = windows.read_one(task, key)
        if found is None:
            raise NotFound
        panels = self.panels(request, task.bot, task)
        line = panels.line(found, in_full=True)
        return self.show(request, "messaging/text.html", line=line, bot=task.bot, task=task)


class NewConversation(ConversationPage):
    """POST /bots/<handle>/conversations/: a dormant conversation; runs nothing."""

    permission = May.OPEN_TASKS

    def post(self, request: HttpRequest, handle: str) -> HttpResponse:
        made = opening.open_conversation(
            self.bot(handle), team=None, title="", by=self.me.principal, clock=system_clock
        )
        return redirect("conversation", handle, made.id)


class Rename(ConversationPage):
    """GET and POST …/edit/: the title of a conversation."""

    permission = May.EDIT_TASKS

    def get(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        return self.show(request, "messaging/rename.html", task=self.task(handle, task_id))

    def post(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        title = field(request, "title").strip()
        if not 1 <= len(title) <= MAX_TITLE:
            error = _("A title has 1 to %d characters.") % MAX_TITLE
            context = {"task": task, "title": title, "error": error}
            return self.show(request, "messaging/rename.html", status=400, **context)
        editing.edit(task, by=self.me.principal, clock=system_clock, title=title)
        return redirect("conversation", handle, task_id)


MAX_TITLE = 200


class Archive(ConversationPage):
    """POST …/archive/: put a conversation away, or take it out again."""

    permission = May.EDIT_TASKS

    def post(self, request: HttpRequest, handle: str, task_id: UUID) -> HttpResponse:
        task = self.task(handle, task_id)
        archived = field(request, "archived") == "yes"
        try:
            editing.edit(task, by=self.me.principal, clock=system_clock, archived=archived)
        except Refusal as refusal:
            messages.error(request, str(refusal))
        return redirect("conversation", handle, task_id)


class Retry(ConversationPage):
    """POST /receipts/<id>/retry/: the same message again, with the next attempt."""

    permission = May.HANDLE_RECEIPTS

    def post(self, request: HttpRequest, receipt_id: UUID) -> HttpResponse:
        rows = Receipt.objects.select_related("sender_task__bot", "recipient__bot").filter(
            workspace=self.workspace
        )
        receipt = get_object_or_404(rows, pk=receipt_id)
        try:
            retrying.retry(receipt, by=self.me.principal, clock=system_clock)
        except Refusal as refusal:
            messages.error(request, str(refusal))
        shown_in = str(receipt.sender_task_id or receipt.recipient_id)
        named = field(request, "task")
        if named in (str(receipt.sender_task_id), str(receipt.recipient_id)):
            shown_in = named
        task = receipt.recipient if shown_in == str(receipt.recipient_id) else receipt.sender_task
        if task is None or task.bot is None:
            return redirect("bots")
        address = reverse("conversation", args=[task.bot.handle, task.id])
        return redirect(f"{address}#msg_{receipt.id}")


class History(ConversationPage):
    """GET /bots/<handle>/history/: all conversations of a bot."""

    def get(self, request: HttpRequest, handle: str) -> HttpResponse:
        bot = self.bot(handle)
        panels = self.panels(request, bot, None)
        return self.show(request, "messaging/history.html", **panels.rail())


def number(given: str | None) -> int | None:
    """The number of an event that an address names."""
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise InvalidRequest(reason="This is no number of an event.")
    return int(given)
