"""Channels as its tutorial has it: every socket is a member of a group."""

import time
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path


class Member(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """Gets what is sent to the group; what a client sends goes to all, with the time of sending."""

    async def connect(self) -> None:
        await self.channel_layer.group_add("everybody", self.channel_name)
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        told = {"type": "told", "text": f"{text_data} {time.time()!r}"}
        await self.channel_layer.group_send("everybody", told)

    async def told(self, event: dict[str, Any]) -> None:
        await self.send(event["text"])

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard("everybody", self.channel_name)


urlpatterns = [path("ws", Member.as_asgi())]
