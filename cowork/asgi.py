"""What daphne serves: pages and the API through a fixed pool of threads, sockets beside them."""

import os

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")

application = ProtocolTypeRouter({"http": WSGIMiddleware(get_wsgi_application(), workers=8)})
