"""Addresses of the sockets of agents."""

from messaging.consumers import AgentSocket
from timeline.sockets import address

websocket_urlpatterns = [address(r"^ws/agent/?$", AgentSocket)]
