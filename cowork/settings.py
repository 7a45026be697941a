"""All settings, read once from the environment and `.env` (docs/wire.md, Commands and settings)."""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from environs import Env

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()
env.read_env(str(BASE_DIR / ".env"), recurse=False)


def _data_dir() -> Path:
    """The data folder, made with mode 0700 (SPEC §16.2)."""
    folder = Path(env.str("COWORK_DATA_DIR", str(BASE_DIR / "data"))).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _secret_key(folder: Path) -> str:
    """The given key, or one that is made once and kept in the data folder."""
    given: str = env.str("COWORK_SECRET_KEY", "")
    if given:
        return given
    path = folder / "secret-key"
    try:
        with path.open("x") as made:
            path.chmod(0o600)
            made.write(secrets.token_urlsafe(64))
    except FileExistsError:
        pass
    return path.read_text().strip()


def _seconds(name: str, default: float) -> timedelta:
    return timedelta(seconds=env.float(name, default))


def _database(folder: Path) -> dict[str, Any]:
    url = env.str("COWORK_DATABASE_URL", "") or f"sqlite:///{folder / 'cowork.sqlite3'}"
    database: dict[str, Any] = env.dj_db_url("COWORK_DATABASE_URL", url)
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = {
            "timeout": 5,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        }
    else:
        database["CONN_HEALTH_CHECKS"] = True
    # Views run in a fixed pool of threads; each keeps its connection for a while.
    database["CONN_MAX_AGE"] = 60
    return database


COWORK_DATA_DIR = _data_dir()
SECRET_KEY = _secret_key(COWORK_DATA_DIR)
DEBUG = env.bool("COWORK_DEBUG", False)
DATABASES = {"default": _database(COWORK_DATA_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Addresses

COWORK_PUBLIC_URL = env.str("COWORK_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
_public = urlsplit(COWORK_PUBLIC_URL)
_is_https = _public.scheme == "https"
ALLOWED_HOSTS = [
    *env.list("COWORK_ALLOWED_HOSTS", []),
    *([_public.hostname] if _public.hostname else []),
    *([] if _is_https else ["localhost", "127.0.0.1", "[::1]"]),
]
CSRF_TRUSTED_ORIGINS = [COWORK_PUBLIC_URL]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _is_https
SECURE_SSL_REDIRECT = _is_https
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]  # asked from inside, by http
SECURE_HSTS_SECONDS = 31_536_000 if _is_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _is_https
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _is_https else None
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"

# The applications, from the top floor down

INSTALLED_APPS = [
    # Before ours, which take their rows out of the admin or show them in another way.
    "rest_framework_api_key",
    "django_q",
    "django.contrib.auth",
    "messaging",
    "cowork",
    "teams",
    "timeline",
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "timeline.policy.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "cowork.slashes.SlashIsNoMatter",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "timeline.preferences.TimesOfTheReader",
]
ROOT_URLCONF = "cowork.urls"
ASGI_APPLICATION = "cowork.asgi.application"
# Each web process hears of commits by itself, so its layer need not reach beyond it (SPEC §14.4).
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "timeline.preferences.theme",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
# Argon2id with the parameters that OWASP recommends: as strong as Django's default at a fraction of
# its time, so that signing in and provisioning stay quick.
PASSWORD_HASHERS = [
    "cowork.hashers.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "/sign-in/"
LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = COWORK_DATA_DIR / "static"
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["cowork.authentication.BearerOrSession"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "timeline.schema.WireSchema",
    "EXCEPTION_HANDLER": "timeline.wire.problem",
    "UNAUTHENTICATED_USER": None,
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "CoWork",
    "DESCRIPTION": "A durable coordination server for AI agents.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVE_INCLUDE_SCHEMA": False,
    # Whether the document is complete is no matter of deployment; `spectacular --validate` tells.
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "ENUM_NAME_OVERRIDES": {
        "TaskKind": "cowork.models.Task.Kind",
        "TaskStatus": "cowork.models.Task.Status",
        "RuntimeMode": "cowork.models.RuntimeMode",
        "InteractionMode": "cowork.models.InteractionMode",
        "CredentialKind": "cowork.models.Credential.Kind",
        "MemberStatus": "teams.models.Member.Status",
        "ProfileKind": "teams.models.RuntimeProfile.Kind",
        "Role": "teams.models.Person.Role",
        "PrincipalKind": ["bot", "task", "service", "person"],
        "DeliveryStatus": "messaging.models.Receipt.Status",
        "DeliveryMode": "messaging.models.Receipt.Mode",
        "MessageSource": "messaging.models.Receipt.Source",
        "ReplyStatus": "messaging.models.Receipt.ReplyStatus",
        "TurnStatus": "cowork.models.Turn.Status",
        "TurnCause": "cowork.models.Turn.Cause",
        "LimitKind": ["usage", "overload"],
        "TaskOutcome": ["completed", "failed"],
        "TurnEnding": ["done", "aborted", "error"],
    },
    # The UI's files are served from here, not from somewhere else.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# The admin: its look is django-unfold's.

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "CoWork",
    "SITE_HEADER": "CoWork",
    "SITE_SYMBOL": "hub",
    "SITE_URL": "/",
    "SITE_FAVICONS": [
        {"rel": "icon", "href": f"{STATIC_URL}timeline/icon.svg", "type": "image/svg+xml"}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_HISTORY": False,
    "SIDEBAR": {"show_search": True},
}

# What the product publishes (SPEC §16, docs/wire.md). Periods are timedeltas.

COWORK_REDIS_URL = env.str("COWORK_REDIS_URL", "")
CACHES: dict[str, Any] = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": COWORK_REDIS_URL}
        if COWORK_REDIS_URL
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    )
}
COWORK_TURN_LEASE = _seconds("COWORK_TURN_LEASE_SECONDS", 60)
COWORK_REPLY_TIMEOUT = _seconds("COWORK_REPLY_TIMEOUT_SECONDS", 120)
COWORK_RETRY_DELAYS = [
    timedelta(seconds=float(part)) for part in env.list("COWORK_RETRY_SECONDS", ["1", "5", "30"])
]
COWORK_OUTBOX_LEASE = _seconds("COWORK_OUTBOX_LEASE_SECONDS", 30)
COWORK_HANDLER_LIMIT = _seconds("COWORK_HANDLER_LIMIT_SECONDS", 30)
COWORK_Q_TIMEOUT = env.int("COWORK_Q_TIMEOUT", 60)
COWORK_Q_RETRY = env.int("COWORK_Q_RETRY", 90)
COWORK_DRAIN_LIFE = _seconds("COWORK_DRAIN_LIFE_SECONDS", 20)
COWORK_SWEEP = _seconds("COWORK_SWEEP_SECONDS", 15)
COWORK_STALE_QUEUE = _seconds("COWORK_STALE_QUEUE_SECONDS", 300)
# How long texts are kept that are done with; 0 keeps them for ever.
COWORK_RETENTION = timedelta(days=env.int("COWORK_RETENTION_DAYS", 90))
COWORK_MAX_HOPS = env.int("COWORK_MAX_HOPS", 8)
COWORK_MAX_CHAIN_TURNS = env.int("COWORK_MAX_CHAIN_TURNS", 32)
COWORK_MESSAGE_MAX_BYTES = env.int("COWORK_MESSAGE_MAX_BYTES", 65_536)
COWORK_MESSAGE_SCREEN = env.str("COWORK_MESSAGE_SCREEN", "")
COWORK_QUEUE_MAX = env.int("COWORK_QUEUE_MAX", 5000)
# The dotted path of a callable that is asked about each message before it is read.
COWORK_MESSAGE_SCREEN = env.str("COWORK_MESSAGE_SCREEN", "")
COWORK_CRASH_AT = env.str("COWORK_CRASH_AT", "") if DEBUG else ""

# The worker: django-q2 as it is. The outbox table is the queue, a job is a hint (SPEC §8.8).

Q_CLUSTER: dict[str, Any] = {
    "name": "cowork",
    "orm": "default",
    # The number of workers and the name of its queue are given by `up` (cowork/worker/cluster.py).
    "poll": 1,
    "guard_cycle": 1,
    "timeout": COWORK_Q_TIMEOUT,
    "retry": COWORK_Q_RETRY,
    "ack_failures": True,
    "max_attempts": 1,
    "save_limit": -1,
    "catch_up": False,
    "scheduler": False,
    "recycle": 1_000_000,  # a worker that ends is taken for a crash
    "log_level": "WARNING",
    "ALT_CLUSTERS": {},
}
