"""Chromium, a server over the harbour, and a page that must not complain."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.browser import harbour
from tests.browser.scenes import FollowUp
from tests.browser.shoot import FLAGS, signed_in

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
expect.set_options(timeout=15_000)  # a busy machine is slow, and not wrong


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": shutil.which("chromium"), "args": FLAGS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harbour.Harbour]:
    """A server of its own for each file of tests."""
    folder: Path = tmp_path_factory.mktemp("harbour")
    with harbour.running(folder) as running:
        yield running


@pytest.fixture
def person(place: harbour.Harbour) -> Iterator[httpx.Client]:
    """The operator over the API."""
    client = signed_in(place.base)
    yield client
    client.close()


@pytest.fixture
def follow_up(place: harbour.Harbour, person: httpx.Client) -> FollowUp:
    return FollowUp(place, person)


class Visit:
    """A page in a browser, and all that its console complained about."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.base = base
        self.complaints: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def sign_in(self, username: str = "operator") -> Page:
        self.page.goto(f"{self.base}/sign-in/")
        self.page.fill("#u", username)
        self.page.fill("#p", harbour.PASSWORD)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(f"{self.base}/bots/")
        return self.page


@pytest.fixture
def visit(browser: Browser, place: harbour.Harbour) -> Iterator[Visit]:
    """Somebody with scripts; at the end nothing may have been complained about."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    made = Visit(context, place.base)
    yield made
    context.close()
    assert made.complaints == []


@pytest.fixture
def visit_without_scripts(browser: Browser, place: harbour.Harbour) -> Iterator[Visit]:
    context = browser.new_context(java_script_enabled=False)
    made = Visit(context, place.base)
    yield made
    context.close()
    assert made.complaints == []
