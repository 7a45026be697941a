"""Work sessions: the context stores of runtimes (SPEC §3.7)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from teams.models import RuntimeProfile, Workspace
from timeline.ids import new_id


class WorkSession(models.Model):
    """A context store that a runtime has named; what is in it is the runtime's alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    runtime = models.ForeignKey(RuntimeProfile, on_delete=models.PROTECT, related_name="+")
    ref = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    # It was found bound across the edge of its workspace: kept for audit, bound to nothing again.
    detached_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            # A detached one may stand beside the fresh one that took its ref over.
            models.UniqueConstraint(
                fields=["runtime", "ref"],
                condition=Q(detached_at__isnull=True),
                name="cowork_session_ref_of_a_profile",
            ),
        ]

    def __str__(self) -> str:
        return f"session {self.id}"
