"""The app messaging, and the ports of the floors below that it fills."""

from functools import partial

from django.apps import AppConfig


class MessagingConfig(AppConfig):
    name = "messaging"
    verbose_name = "What tasks say to each other"

    def ready(self) -> None:
        from cowork import kinds, runtimes, sweeps, tasks
        from messaging import deadlines, purging, quarantining, receipts, recovering, wakes
        from messaging.agents.script import ScriptRuntime
        from messaging.visitors import Visitors
        from teams.models import RuntimeProfile
        from timeline import access

        kinds.register(wakes.KIND)
        kinds.register(quarantining.KIND)
        kinds.register(deadlines.KIND)
        runtimes.register(RuntimeProfile.Kind.SCRIPT, ScriptRuntime())
        access.fill(Visitors())
        tasks.on_end(receipts.close_queue)
        tasks.on_end(deadlines.recipient_ended)
        tasks.on_free(wakes.enqueue_what_waits)
        sweeps.register(recovering.recover)
        sweeps.register_daily(purging.retain)
        sweeps.register(partial(recovering.recover, is_start=True), at_start=True)
        sweeps.register(recovering.complete_timelines, at_start=True)
