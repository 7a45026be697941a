"""What daphne serves: pages and the API through a fixed pool of threads, sockets beside them."""

import os

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")

# a2wsgi's type of a WSGI application is narrower than what Django's declares.
pages_and_api = WSGIMiddleware(get_wsgi_application(), workers=8)  # type: ignore[arg-type]
application = ProtocolTypeRouter({"http": pages_and_api})
