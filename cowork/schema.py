"""How the OpenAPI document tells of authentication; importing this registers it."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class BearerOrSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A bearer secret, or the cookie of a session."""

    target_class = "cowork.authentication.BearerOrSession"
    match_subclasses = True
    name = ["bearer", "session"]  # noqa: RUF012

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "cookie", "name": "sessionid"},
        ]

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[str]]]:
        """One of them is enough."""
        return [{name: []} for name in self.name]
