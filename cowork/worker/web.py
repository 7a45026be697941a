"""The web server: daphne, over a socket that the supervisor has opened.

python -m cowork.worker.web FD
"""

import os
import signal
import sys


def main(fd: str) -> None:
    """Serve until SIGTERM comes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")

    # daphne installs its reactor, so it comes before everything that uses one.
    from daphne.endpoints import build_endpoint_description_strings
    from daphne.server import Server

    import django

    django.setup()

    from django.conf import settings
    from django.utils.module_loading import import_string
    from twisted.internet import reactor

    from cowork.worker.supervisor import NO_MORE_SENDS
    from timeline import shutdown

    # A terminal's Ctrl-C comes to every process of it; the supervisor decides what ends when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shutdown.listen(NO_MORE_SENDS)

    server = Server(
        application=import_string(settings.ASGI_APPLICATION),
        endpoints=build_endpoint_description_strings(file_descriptor=int(fd)),
        signal_handlers=False,
        server_name="cowork",
        application_close_timeout=1,
        verbosity=0,
    )
    signal.signal(
        signal.SIGTERM,
        lambda _signal, _frame: reactor.callFromThread(server.stop),  # type: ignore[attr-defined]
    )
    server.run()


if __name__ == "__main__":
    main(sys.argv[1])
