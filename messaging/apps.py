"""The app messaging."""

from django.apps import AppConfig


class MessagingConfig(AppConfig):
    name = "messaging"
    verbose_name = "What tasks say to each other"
