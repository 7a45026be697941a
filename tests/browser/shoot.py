"""Take pictures of the pages into `shots/`, to be held beside the mock's.

python -m tests.browser.shoot
"""

import shutil
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright

from tests.browser import harbour, scenes

FOLDER = Path(__file__).resolve().parents[2] / "shots"
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
MORE_SIZES = {"middle": (1100, 800), "narrow": (820, 1100), "small": (360, 740)}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def signed_in(base: str) -> httpx.Client:
    """A person's session over the API."""
    client = httpx.Client(base_url=base, timeout=20)
    answer = client.post(
        "/api/v1/session", json={"username": "operator", "password": harbour.PASSWORD}
    )
    assert answer.status_code == 200, answer.text
    client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
    return client


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        harbour.running(Path(folder)) as place,
        sync_playwright() as driver,
    ):
        scenes.a_working_day(place, scenes.FollowUp(place, signed_in(place.base)))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                _tour(page, place, f"{size}-{theme}")
                page.close()
        for size, (width, height) in MORE_SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            _tour(page, place, f"{size}-light")
            page.close()
        browser.close()


def _tour(page: Page, place: harbour.Harbour, name: str) -> None:
    def take(what: str) -> None:
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / f"{what}-{name}.png")

    page.goto(f"{place.base}/bots/")
    page.wait_for_load_state("networkidle")
    take("sign-in")
    page.fill("#u", "operator")
    page.fill("#p", harbour.PASSWORD)
    page.click("button[type=submit]")
    take("bots")
    page.goto(place.address("beacon"))
    take("attention")
    page.goto(place.address("anvil"))
    take("conversation")
    page.evaluate("document.querySelector('.collab-d').open = true")
    page.evaluate("document.querySelectorAll('.trace').forEach(t => t.open = true)")
    take("conversation-open")
    page.goto(f"{place.base}/bots/anvil/edit/")
    take("edit")
    page.goto(f"{place.base}/bots/loom/")
    take("empty")


if __name__ == "__main__":
    main()
