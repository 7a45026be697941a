"""What operators and their machines watch: `/healthz`, `/readyz`, `/metrics` (SPEC §16.3).

Details go to callers on this machine and to services only.
"""

import ipaddress
import secrets

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from cowork import credentials, metrics, vitals
from timeline.clock import system_clock

SERVICE_UNAVAILABLE = 503


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Everything that a send needs works: 200, else 503."""
    checks = {**vitals.checks(system_clock), "channel_layer": channel_layer()}
    is_ready = all(answer == vitals.OK for answer in checks.values())
    told = {"checks": checks} if may_see_details(request) else {}
    return JsonResponse(
        {"status": "ok" if is_ready else "not ready", **told},
        status=200 if is_ready else SERVICE_UNAVAILABLE,
    )


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Counts and ages, as Prometheus reads them."""
    if not may_see_details(request):
        return HttpResponse("Ask from this machine, or as a service.\n", status=403)
    return HttpResponse(metrics.exposition(system_clock.now()), content_type=CONTENT_TYPE_LATEST)


def channel_layer() -> str:
    """Whether what is sent into the layer comes out of it."""
    layer = get_channel_layer()
    if layer is None:
        return "there is none"
    name, word = f"health-{secrets.token_hex(8)}", secrets.token_hex(8)

    async def there_and_back() -> bool:
        await layer.send(name, {"type": "health", "word": word})
        heard = await layer.receive(name)
        return bool(heard["word"] == word)

    return vitals.OK if async_to_sync(there_and_back)() else "it loses what is sent"


def may_see_details(request: HttpRequest) -> bool:
    """Whether the caller is on this machine, not behind a proxy here, or a service."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        principal = credentials.authenticate_bearer(secret.strip())
        return principal is not None and principal.kind == "service"
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
