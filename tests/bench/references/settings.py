"""The smallest settings under which each reference runs, over the product's database settings."""

import os
from typing import Any

from cowork.settings import DATABASES, SECRET_KEY, USE_TZ

__all__ = ["DATABASES", "SECRET_KEY", "USE_TZ"]

INSTALLED_APPS = ["channels", "django_q", "rest_framework", "tests.bench.references.bare"]
ALLOWED_HOSTS = ["127.0.0.1"]
# Gives answers their length, without which each is sent in pieces.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "tests.bench.references.bare.urls"
ASGI_APPLICATION = "tests.bench.references.asgi.application"
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
}
# django-q2 as it comes, but for the number of its workers; or as fast as its settings make it.
Q_CLUSTER: dict[str, Any] = {"orm": "default", "workers": 2}
if os.environ.get("BENCH_Q") == "tuned":
    Q_CLUSTER |= {"bulk": 50, "queue_limit": 100, "poll": 0.05, "save_limit": -1}
Q_CLUSTER |= {"timeout": 60, "retry": 120, "log_level": "WARNING"}
