"""The web server: daphne, over a socket that the supervisor has opened."""

import signal

from timeline import shutdown

NO_MORE_SENDS = signal.SIGUSR1


def run(fd: int) -> None:
    """Serve until SIGTERM comes."""
    # daphne installs its reactor, so it comes before everything that uses one.
    from daphne.endpoints import build_endpoint_description_strings
    from daphne.server import Server
    from django.conf import settings
    from django.utils.module_loading import import_string
    from twisted.internet import reactor

    # A terminal's Ctrl-C comes to every process of it; the supervisor decides what ends when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shutdown.listen(NO_MORE_SENDS)

    server = Server(
        application=import_string(settings.ASGI_APPLICATION),
        endpoints=build_endpoint_description_strings(file_descriptor=fd),
        signal_handlers=False,
        server_name="cowork",
        application_close_timeout=1,
        verbosity=0,
    )
    signal.signal(
        signal.SIGTERM,
        lambda _signal, _frame: reactor.callFromThread(server.stop),
    )
    server.run()
