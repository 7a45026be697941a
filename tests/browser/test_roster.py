"""The roster: found, filtered, followed live."""

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.harbour import Harbour
from tests.browser.scenes import FollowUp


def test_a_row_follows_its_conversation(place: Harbour, visit: Visit, follow_up: FollowUp) -> None:
    page = visit.sign_in()
    expect(page.locator("#conn")).to_have_text("Live")
    row = page.locator(".bot[data-bot=anvil]")
    expect(row.locator(".bot-prev")).to_have_text("No messages yet")

    follow_up("anvil", "Count the **rows**.")
    expect(row.locator(".bot-prev")).to_contain_text("Count the rows.")
    place.anvil.begin()

    expect(row.locator(".bot-ready")).to_contain_text("Working on latest message")
    place.anvil.take_in()
    place.anvil.say("Counted.")
    place.anvil.end()
    expect(row.locator(".bot-prev")).to_contain_text("Counted.")
    expect(row.locator(".bot-last")).to_contain_text("Completed")


def test_search_and_filters(place: Harbour, visit: Visit, follow_up: FollowUp) -> None:
    follow_up("ferry", "Start the build.")
    place.ferry.begin()
    page = visit.sign_in()

    page.fill("#q", "documentation")
    expect(page.locator(".bot")).to_have_count(1)
    expect(page.locator(".bot-link")).to_have_text("Quill")
    page.fill("#q", "no such thing")
    expect(page.locator(".empty")).to_contain_text("Nothing matches")
    page.fill("#q", "")
    page.click(".chip:has-text('Working')")

    expect(page.locator(".bot-link")).to_have_text("Ferry")
    place.ferry.take_in()
    place.ferry.end()


def test_a_manager_makes_edits_and_deletes_a_bot(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in()

    page.click("text=Create bot")
    page.fill("dialog[open] #f-name", "Pilot Boat")
    page.click("dialog[open] button[type=submit]")
    expect(page.locator("h1")).to_have_text("Pilot Boat")
    assert page.url.endswith("/bots/pilot-boat/")
    page.goto(f"{place.base}/bots/pilot-boat/edit/")
    page.fill("#f-desc", "Leads ships in")
    page.click("text=Save changes")
    expect(page.locator(".rail-id")).to_contain_text("Leads ships in")
    page.goto(f"{place.base}/bots/pilot-boat/edit/")
    page.click("text=Delete bot")

    page.click("text=1 deactivated bot")
    expect(page.locator(".bot-link")).to_have_text("Pilot Boat")
    expect(page.locator(".bot-ready")).to_contain_text("Deactivated")


def test_a_viewer_reads_and_has_no_buttons(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in("guest")
    expect(page.locator("text=Create bot")).to_have_count(0)

    page.goto(place.address("quill"))

    expect(page.locator("#composer")).to_have_count(0)
    expect(page.locator("text=New conversation")).to_have_count(0)
