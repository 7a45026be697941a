"""What daphne serves: pages and the API through a fixed pool of threads, sockets beside them."""

import os
from typing import Any

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")
views = get_wsgi_application()  # loads the apps, which the imports below need

from messaging.longpoll import LongPoll  # noqa: E402
from messaging.routing import websocket_urlpatterns as sockets_of_agents  # noqa: E402
from timeline.bridge import Bridge  # noqa: E402
from timeline.routing import nowhere  # noqa: E402
from timeline.routing import websocket_urlpatterns as streams  # noqa: E402

# a2wsgi's types are narrower than what Django and this file hand over.
threads: Any = WSGIMiddleware(views, workers=8)  # type: ignore[arg-type]
application = ProtocolTypeRouter(
    {
        "http": LongPoll(Bridge(threads)),
        "websocket": URLRouter([*streams, *sockets_of_agents, *nowhere]),
    }
)
