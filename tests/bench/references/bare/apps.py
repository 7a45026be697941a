"""The one app of the reference; without migrations, `migrate --run-syncdb` makes its table."""

from django.apps import AppConfig


class Bare(AppConfig):
    name = "tests.bench.references.bare"
    default_auto_field = "django.db.models.BigAutoField"
