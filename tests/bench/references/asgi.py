"""The same server stack as the product's: views through a bridge, sockets beside them."""

import os
from typing import Any

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.references.settings")
views = get_wsgi_application()

from tests.bench.references.group import urlpatterns  # noqa: E402

threads: Any = WSGIMiddleware(views, workers=8)  # type: ignore[arg-type]
application = ProtocolTypeRouter({"http": threads, "websocket": URLRouter(urlpatterns)})
