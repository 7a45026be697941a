"""Addresses of the live streams."""

from timeline.consumers import StreamSocket, WorkspaceSocket
from timeline.sockets import NowhereSocket, address

websocket_urlpatterns = [
    address(r"^ws/tasks/(?P<task>[^/]+)/?$", StreamSocket),
    address(r"^ws/workspaces/(?P<slug>[^/]+)/?$", WorkspaceSocket),
]
# Comes last: an address that there is not is accepted, then closed as unknown.
nowhere = [address(r"", NowhereSocket)]
