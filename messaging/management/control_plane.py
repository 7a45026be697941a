"""The server as a script sees it: where it is, and its calls over HTTP (SPEC §17)."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

DESCRIPTOR: Final = "control-plane-local.json"
URL, TOKEN = "COWORK_CONTROL_PLANE_URL", "COWORK_CONTROL_PLANE_TOKEN"
PAGE: Final = 200
PATIENCE: Final = 10.0  # for one answer


class NoServer(Exception):
    """It is not known where a server is, or how to call it."""


class OutOfReach(Exception):
    """The server does not answer, or says that it can't now; asking again may help."""


class Refused(Exception):
    """The server says no."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status, self.code, self.detail = status, code, detail
        super().__init__(f"{status} {code}: {detail}")


@dataclass(frozen=True, slots=True)
class Access:
    url: str
    token: str = field(repr=False)


def access(
    *, url: str | None, token: str | None, environment: Mapping[str, str], folder: Path
) -> Access:
    """Address and token: what is given, else the environment, else the descriptor of a server
    that runs over this data folder. Raises NoServer.
    """
    url = url or environment.get(URL)
    token = token or environment.get(TOKEN)
    described = descriptor(folder)
    if described is not None:
        # Its token is for that server alone: another address does not get it.
        if token is None and url in (None, described.url):
            token = described.token
        url = url or described.url
    if not url:
        raise NoServer(f"No server runs over {folder}. Start one with `up`, or name it: --url.")
    if not token:
        raise NoServer(f"There is no token for {url}: give --token or set {TOKEN}.")
    return Access(url.rstrip("/"), token)


def descriptor(folder: Path) -> Access | None:
    """What a running server wrote into its data folder; nothing when its process is dead."""
    try:
        told = json.loads((folder / DESCRIPTOR).read_text())
        url, token, pid = str(told["url"]), told["token"], int(told["pid"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return Access(url, str(token)) if token and is_alive(pid) else None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class ControlPlane:
    """Calls to one server with one token. Raises NoServer; every call Refused and OutOfReach."""

    def __init__(self, to: Access, *, transport: httpx.BaseTransport | None = None) -> None:
        try:
            self._http = httpx.Client(
                base_url=f"{to.url}/api/v1/",
                headers={"Authorization": f"Bearer {to.token}"},
                timeout=PATIENCE,
                trust_env=False,
                transport=transport,
            )
        except httpx.InvalidURL as error:
            raise NoServer(f"{to.url} is no address: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return self._call("GET", path, params=query)

    def post(self, path: str, **body: object) -> dict[str, Any]:
        return self._call("POST", path, json=body)

    def events(self, task_id: str, *, after: int) -> Iterator[dict[str, Any]]:
        """The events of a task after a number, oldest first."""
        while True:
            page = self.get(f"tasks/{task_id}/events", after=after, limit=PAGE)["results"]
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]["seq"]

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, **more)
        except httpx.TransportError as error:
            raise OutOfReach(f"{self._http.base_url} does not answer: {error}") from error
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise OutOfReach(f"{answer.url} answers {answer.status_code} without JSON: no CoWork?")
        if answer.is_success:
            return told
        code, detail = str(told.get("code", "")), str(told.get("detail", ""))
        if answer.status_code in (429, 503):
            raise OutOfReach(f"{answer.status_code} {code}: {detail}")
        raise Refused(answer.status_code, code, detail)
