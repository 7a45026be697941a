"""The addresses of the pages (DESIGN §2)."""

from django.urls import path

from messaging.views import bots, conversation, roster

urlpatterns = [
    path("", roster.home, name="home"),
    path("bots/", roster.Roster.as_view(), name="bots"),
    path("bots/new/", bots.CreateBot.as_view(), name="bot-new"),
    path("bots/<slug:handle>/", conversation.OpenBot.as_view(), name="bot"),
    path("bots/<slug:handle>/edit/", bots.EditBot.as_view(), name="bot-edit"),
    path("bots/<slug:handle>/delete/", bots.DeleteBot.as_view(), name="bot-delete"),
    path("bots/<slug:handle>/back/", bots.BringBack.as_view(), name="bot-back"),
    path("bots/<slug:handle>/history/", conversation.History.as_view(), name="bot-history"),
    path(
        "bots/<slug:handle>/conversations/",
        conversation.NewConversation.as_view(),
        name="conversation-new",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/",
        conversation.Conversation.as_view(),
        name="conversation",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/live/",
        conversation.Changes.as_view(),
        name="conversation-live",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/details/",
        conversation.Details.as_view(),
        name="conversation-details",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/text/<str:key>/",
        conversation.Text.as_view(),
        name="conversation-text",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/edit/",
        conversation.Rename.as_view(),
        name="conversation-edit",
    ),
    path(
        "bots/<slug:handle>/c/<uuid:task_id>/archive/",
        conversation.Archive.as_view(),
        name="conversation-archive",
    ),
    path("receipts/<uuid:receipt_id>/retry/", conversation.Retry.as_view(), name="receipt-retry"),
]
