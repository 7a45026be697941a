"""Announcing a running server to this user's other programs: a service credential for its life."""

from cowork import credentials
from cowork.models import Credential
from teams.models import Workspace
from timeline.clock import Clock
from timeline.transactions import action


@action
def issue(*, workspace: str, label: str, clock: Clock) -> str | None:
    """A secret for whoever reads the descriptor; None when there is no such workspace.

    The credential of a server that was killed ends with this.
    """
    now = clock.now()
    _revoke(label, clock=clock)
    found = Workspace.objects.filter(slug=workspace).first()
    if found is None:
        return None
    _, secret = credentials.make(
        workspace=found, kind=Credential.Kind.SERVICE, label=label, now=now
    )
    return secret


@action
def revoke(*, label: str, clock: Clock) -> None:
    """End the credential: the server stops."""
    _revoke(label, clock=clock)


def _revoke(label: str, *, clock: Clock) -> None:
    live = Credential.objects.filter(
        label=label, kind=Credential.Kind.SERVICE, revoked_at__isnull=True
    )
    for credential in live:
        credentials.revoke(credential, now=clock.now())
