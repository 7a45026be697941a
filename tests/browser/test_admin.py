"""The admin in a browser: it looks as it should and keeps to its content security policy."""

import os
import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.harbour import CHECKOUT, Harbour
from tests.browser.scenes import FollowUp

SHOTS = os.environ.get("COWORK_TEST_SHOTS")
MAKE_STAFF = (
    "from django.contrib.auth.models import User;"
    "User.objects.filter(username='operator').update(is_staff=True, is_superuser=True)"
)


def make_owner(place: Harbour) -> None:
    """Make the operator of the harbour staff, as the owner of an installation is."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "COWORK_DATABASE_URL"},
        "DJANGO_SETTINGS_MODULE": "cowork.settings",
        "COWORK_DATA_DIR": str(place.folder),
    }
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-c", MAKE_STAFF],
        cwd=CHECKOUT,
        env=environment,
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_the_owner_looks_up_a_receipt(place: Harbour, visit: Visit, follow_up: FollowUp) -> None:
    make_owner(place)
    follow_up("anvil", "Count the rows.")
    follow_up("quill", "Write it down.")
    page = visit.sign_in()

    page.click("text=Admin")
    expect(page).to_have_title(re.compile("CoWork"))
    page.goto(f"{place.base}/admin/messaging/receipt/")
    row = page.locator("#result_list tbody tr, #changelist tbody tr").filter(has_text="@anvil")
    expect(row).to_have_count(1)
    _shoot(page, "admin-receipts")
    row.locator("th a").first.click()
    expect(page.locator("body")).to_contain_text("Count the rows.")
    _shoot(page, "admin-receipt")
    page.click("text=Open in CoWork")

    expect(page.locator("h1")).to_have_text("Anvil")


def _shoot(page: object, name: str) -> None:
    """Keep a picture where a person asked for pictures."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))  # type: ignore[attr-defined]
