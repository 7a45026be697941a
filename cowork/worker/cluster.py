"""The cluster: django-q2's `qcluster`, forked by the supervisor into a session of its own."""

import os

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django_q.conf import Conf
from django_q.models import OrmQ

from cowork import boot, jobs, restarting
from cowork.worker import process, stop
from timeline.clock import system_clock

# Whoever else writes must not make django-q2's processes fail: they end then, and all with them.
BUSY_TIMEOUT = 60


def run(started: boot.Boot) -> None:
    """Free what clusters before this one had taken, enqueue the drains, run."""
    os.setsid()
    process.children_die_too()
    stop.listen()
    boot.current = started
    # Each cluster has a queue of its own, so that it runs its own drains and nobody else's.
    Conf.CLUSTER_NAME = started.name
    # One worker more than there are drains: it takes the next drain over, and the sweeps.
    Conf.WORKERS = Conf.QUEUE_LIMIT = Conf.BULK = started.drains + 1
    if connections["default"].vendor == "sqlite":
        settings.DATABASES["default"]["OPTIONS"]["timeout"] = BUSY_TIMEOUT
    restarting.bury(f"{started.instance}.", clock=system_clock)
    OrmQ.objects.filter(key__startswith=f"{started.instance}.").delete()
    for number in range(started.drains):
        jobs.enqueue_drain(number)
    connections.close_all()
    call_command("qcluster")
