"""Addresses: which app answers where."""

from collections.abc import Callable

from django.contrib import admin
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils.module_loading import import_string


def at(route: str, view: str) -> URLPattern:
    """Let the class of this name answer at a route."""
    answers: Callable[..., HttpResponseBase] = import_string(view).as_view()
    return path(route, answers)


# Who calls, who is there (cowork/api, teams/api, messaging/api_bots)
identity_patterns: list[URLPattern | URLResolver] = [
    at("session", "cowork.api.Session"),
    at("me", "cowork.api.Me"),
    at("limits", "cowork.api.Limits"),
    at("workspaces", "cowork.api.Workspaces"),
    at("credentials", "cowork.api.Credentials"),
    at("credentials/<uuid:credential_id>/revoke", "cowork.api.RevokeCredential"),
    at("credentials/<uuid:credential_id>/rotate", "cowork.api.RotateCredential"),
    at("people", "teams.api.People"),
    at("runtimes", "teams.api.Runtimes"),
    at("audit", "teams.api.Audit"),
    at("teams", "teams.api.Teams"),
    at("teams/<uuid:team_id>", "messaging.api_bots.OneTeam"),
    at("teams/<uuid:team_id>/members", "teams.api.Members"),
    at("teams/<uuid:team_id>/members/<str:handle>", "messaging.api_bots.OneMember"),
    at("teams/<uuid:team_id>/members/<str:handle>/restore", "teams.api.RestoreMember"),
    at("bots", "messaging.api_bots.Bots"),
    at("bots/<str:handle>", "messaging.api_bots.OneBot"),
    at("bots/<str:handle>/conversations", "messaging.api_bots.Conversations"),
]

# What tasks say to each other (messaging/api, api_tasks, api_turns)
message_patterns: list[URLPattern | URLResolver] = [
    at("send_agent_message", "messaging.api.SendAgentMessage"),
    at("receipts", "messaging.api.Receipts"),
    at("receipts/bulk", "messaging.api.Bulk"),
    at("receipts/<uuid:receipt_id>", "messaging.api.ReceiptDetail"),
    at("receipts/<uuid:receipt_id>/retry", "messaging.api.Retry"),
    at("receipts/<uuid:receipt_id>/withdraw", "messaging.api.Withdraw"),
    at("receipts/<uuid:receipt_id>/release", "messaging.api.Release"),
    at("receipts/<uuid:receipt_id>/let_go", "messaging.api.LetGo"),
    at("receipts/<uuid:receipt_id>/explain", "messaging.api.Explain"),
    at("receipts/<uuid:receipt_id>/discard", "messaging.api.Discard"),
    at("receipts/<uuid:receipt_id>/quarantine", "messaging.api.Quarantine"),
    at("attention", "messaging.api.Attention"),
    at("tasks", "messaging.api_tasks.Tasks"),
    at("tasks/<uuid:task_id>", "messaging.api_tasks.TaskDetail"),
    at("tasks/<uuid:task_id>/follow_ups", "messaging.api_tasks.FollowUps"),
    at("tasks/<uuid:task_id>/complete", "messaging.api_tasks.Complete"),
    at("tasks/<uuid:task_id>/pause", "messaging.api_tasks.Pause"),
    at("tasks/<uuid:task_id>/resume", "messaging.api_tasks.Resume"),
    at("tasks/<uuid:task_id>/stop", "messaging.api_tasks.Stop"),
    at("tasks/<uuid:task_id>/reopen", "messaging.api_tasks.Reopen"),
    at("tasks/<uuid:task_id>/teammates", "messaging.api_tasks.Teammates"),
    at("tasks/<uuid:task_id>/header", "messaging.api_tasks.Header"),
    at("tasks/<uuid:task_id>/tools", "messaging.api_tasks.Tools"),
    at("tasks/<uuid:task_id>/events", "messaging.api_tasks.Events"),
    at("tasks/<uuid:task_id>/timeline", "messaging.api_tasks.Timeline"),
    at("tasks/<uuid:task_id>/turns", "messaging.api_turns.Claim"),
    at("turns/<uuid:turn_id>", "messaging.api_turns.TurnDetail"),
    at("turns/<uuid:turn_id>/events", "messaging.api_turns.Reports"),
    at("turns/<uuid:turn_id>/heartbeat", "messaging.api_turns.Heartbeat"),
    at("turns/<uuid:turn_id>/end", "messaging.api_turns.End"),
]

# What is owed (cowork/api_outbox)
outbox_patterns: list[URLPattern | URLResolver] = [
    at("outbox", "cowork.api_outbox.Outbox"),
    at("outbox/<uuid:entry_id>/retry", "cowork.api_outbox.RetryEntry"),
    at("outbox/<uuid:entry_id>/discard", "cowork.api_outbox.DiscardEntry"),
]

api_patterns: list[URLPattern | URLResolver] = [
    *identity_patterns,
    *message_patterns,
    *outbox_patterns,
    at("schema", "drf_spectacular.views.SpectacularAPIView"),
    re_path(r"^.*$", import_string("cowork.api.Unknown").as_view()),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", import_string("cowork.health.healthz")),
    path("readyz", import_string("cowork.health.readyz")),
    path("metrics", import_string("cowork.health.metrics_page")),
    path("api/v1/", include(api_patterns)),
    at("api/v1", "cowork.api.Unknown"),
    path(
        "api/docs",
        import_string("drf_spectacular.views.SpectacularSwaggerView").as_view(url="/api/v1/schema"),
    ),
    path("sign-in/", import_string("cowork.views.SignIn").as_view(), name="sign-in"),
    path(
        "sign-in/link/<str:token>/",
        import_string("cowork.views.SignInByLink").as_view(),
        name="sign-in-link",
    ),
    path("sign-out/", import_string("cowork.views.SignOut").as_view(), name="sign-out"),
    # Staff come in and leave as everybody does: failed attempts are counted there.
    at("admin/login/", "cowork.views.StaffSignIn"),
    at("admin/logout/", "cowork.views.SignOut"),
    path("admin/", admin.site.urls),
    path("", include("messaging.urls")),
]
