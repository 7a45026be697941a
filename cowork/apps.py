"""The app cowork."""

from django.apps import AppConfig


class CoworkConfig(AppConfig):
    name = "cowork"
    verbose_name = "The work between tasks"
