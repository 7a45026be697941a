"""One row."""

from django.db import models


class Message(models.Model):
    recipient = models.CharField(max_length=200)
    message = models.TextField()
    message_id = models.CharField(max_length=128, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.message_id
