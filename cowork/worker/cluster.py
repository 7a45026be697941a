"""The cluster: django-q2's `qcluster`, started by the supervisor in a session of its own.

python -m cowork.worker.cluster
"""

import os

from cowork.worker import process, stop


def main() -> None:
    """Free what clusters before this one had taken, enqueue the drains, run."""
    process.children_die_too()
    stop.listen()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cowork.settings")

    import django

    django.setup()

    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections
    from django_q.models import OrmQ

    from cowork import checks, jobs, restarting
    from timeline.clock import system_clock

    for message in checks.worker_settings():
        if message.is_serious():
            raise SystemExit(str(message))
    instance, _, _number = settings.COWORK_BOOT.partition(".")
    restarting.bury(f"{instance}.", clock=system_clock)
    OrmQ.objects.filter(key__startswith=f"{instance}.").delete()
    for number in range(settings.COWORK_DRAINS):
        jobs.enqueue_drain(number)
    connections.close_all()
    call_command("qcluster")


if __name__ == "__main__":
    main()
