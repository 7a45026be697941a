"""The view and its address."""

from typing import Any

from django.urls import path
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tests.bench.references.bare.models import Message


class Input(serializers.Serializer[Any]):
    bot = serializers.CharField(max_length=200)
    message = serializers.CharField()
    message_id = serializers.CharField(max_length=128)


class Send(APIView):
    """A serializer and one insert."""

    def post(self, request: Request) -> Response:
        asked = Input(data=request.data)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        row = Message.objects.create(  # type: ignore[attr-defined]  # not an installed app here
            recipient=given["bot"], message=given["message"], message_id=given["message_id"]
        )
        told = {"id": row.pk, "message_id": row.message_id, "created_at": row.created_at}
        return Response(told, status=status.HTTP_202_ACCEPTED)


urlpatterns = [path("send", Send.as_view())]
