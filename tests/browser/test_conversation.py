"""A person and a conversation: written to, followed live, found again (SPEC §17, §18)."""

import re

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.harbour import Harbour
from tests.browser.scenes import FollowUp


def test_send_and_start_advances_live_to_delivered(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in()
    page.click("a.bot-link:has-text('Anvil')")
    expect(page.locator("#conn")).to_have_text("Live")

    page.fill("#c-main", "Please count the rows.")
    page.click("[data-send=start]")
    mine = page.locator("#log > .msg", has_text="Please count the rows.")
    expect(mine.locator(".rcpt-label")).to_have_text("Queued")
    place.anvil.begin()
    expect(mine.locator(".rcpt-label")).to_have_text("Started")
    expect(page.locator("#readiness")).to_contain_text("Working on latest message")
    place.anvil.take_in()
    expect(mine.locator(".rcpt-label")).to_have_text("Delivered")
    place.anvil.say("There are **397,014** of them.")
    place.anvil.end()

    said = page.locator("#log > .msg[data-from=bot]", has_text="397,014")
    expect(said).to_have_count(1)
    expect(said.locator("strong")).to_have_text("397,014")
    expect(page.locator("#readiness")).to_contain_text("Ready for another message")
    expect(mine).to_have_count(1)


def test_the_four_visual_points(place: Harbour, visit: Visit, follow_up: FollowUp) -> None:
    """Compact state, the incoming message exactly once, no JSON, the transcript kept."""
    page = visit.sign_in()
    page.goto(place.address("quill"))
    expect(page.locator("#conn")).to_have_text("Live")
    follow_up("meridian", "Ask Quill.")
    place.meridian.begin()
    place.meridian.take_in()
    sent = place.meridian.send("quill", "MARKER-4711: write the note", message_id="m-4711")
    place.meridian.send("quill", "MARKER-4711: write the note", message_id="m-4711")
    place.meridian.end()

    place.quill.begin()
    place.quill.act("send_agent_message")
    place.quill.note("thinking aloud")
    place.quill.take_in()
    place.quill.say(f'{{"receipt_id": "{sent["receipt_id"]}", "delivery_status": "queued"}}')
    place.quill.say("The note is written.")
    place.quill.end()
    incoming = page.locator("#log > .msg[data-mid=m-4711]")
    expect(incoming).to_have_count(1)
    expect(incoming.locator(".rcpt-label")).to_have_text("Delivered")
    expect(incoming.locator(".prov")).to_have_text("Teammate")
    expect(page.locator("#log")).to_contain_text("The note is written.")
    # It answered nobody by itself, so the server did.
    expect(page.locator("#log > .hop", has_text="Replied to")).to_have_count(1)
    before = page.locator("#log > li").all_inner_texts()
    _is_free_of_protocol(page.locator("#log").inner_text())
    page.goto(f"{place.base}/bots/")
    page.goto(place.address("quill"))

    expect(page.locator("#log > .msg[data-mid=m-4711]")).to_have_count(1)
    after = page.locator("#log > li").all_inner_texts()
    assert [_text(line) for line in after] == [_text(line) for line in before]


def _text(line: str) -> str:
    return re.sub(r"\s+", " ", line)


def _is_free_of_protocol(text: str) -> None:
    for word in ("{", "receipt_id", "delivery_status", "send_agent_message", "thinking aloud"):
        assert word not in text, text


def test_a_handoff_is_one_line_at_its_sender_and_the_header_waits(
    place: Harbour, visit: Visit, follow_up: FollowUp
) -> None:
    page = visit.sign_in()
    page.goto(place.address("tally"))
    expect(page.locator("#conn")).to_have_text("Live")
    follow_up("tally", "Find out which window is best.")
    place.tally.begin()
    place.tally.take_in()
    place.tally.send("sextant", "Which window is best?")
    place.tally.end()
    hop = page.locator("#log > .hop", has_text="Which window is best?")
    expect(hop).to_have_count(1)
    expect(page.locator("#collab-head")).to_contain_text("Waiting on a teammate")

    place.sextant.begin()
    place.sextant.take_in()
    place.sextant.send("tally", "The second one.")
    place.sextant.end()
    place.tally.begin()
    place.tally.take_in()
    place.tally.end()

    expect(hop.locator(".rcpt-label")).to_have_text("Delivered")
    expect(page.locator("#collab-head")).to_contain_text("Finished")
    assert "Latest outcome" not in page.content()  # not in the page until it is opened
    page.click(".collab-d > summary")
    expect(page.locator("#collab-details")).to_contain_text("Reply received")


def test_a_bot_that_runs_by_itself_answers_and_hands_work_on(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in()
    page.goto(place.address("echo"))
    expect(page.locator("#conn")).to_have_text("Live")

    page.fill("#c-main", "ask parrot")
    page.click("[data-send=start]")

    mine = page.locator("#log > .msg[data-own]")
    expect(mine.locator(".rcpt-label")).to_have_text("Delivered")
    hop = page.locator("#log > .hop", has_text="Please look at it.")
    expect(hop.locator(".rcpt-label")).to_have_text("Delivered")
    answer = page.locator("#log > .msg[data-from=teammate]", has_text="heard: Please look at it.")
    expect(answer).to_have_count(1)
    expect(answer.locator(".rcpt-label")).to_have_text("Delivered")
    expect(page.locator("#collab-head")).to_contain_text("Finished")


def test_after_a_drop_it_catches_up_and_shows_each_message_once(
    place: Harbour, visit: Visit, follow_up: FollowUp
) -> None:
    page = visit.sign_in()
    page.goto(place.address("meridian"))
    expect(page.locator("#conn")).to_have_text("Live")
    page.fill("#c-main", "a draft that stays")
    page.context.set_offline(True)
    page.evaluate("window.CoWork.drop()")
    expect(page.locator("#conn")).to_contain_text("Offline since")
    expect(page.locator("[data-send=start]")).to_be_disabled()
    expect(page.locator("[data-send=start]")).to_contain_text("Connect to send")
    expect(page.locator(".banner")).to_contain_text("Connection lost.")

    follow_up("meridian", "said while you were away")
    page.context.set_offline(False)
    page.click("[data-again]")

    expect(page.locator("#conn")).to_have_text("Live")
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator("#log > .msg", has_text="said while you were away")).to_have_count(1)
    expect(page.locator("#c-main")).to_have_value("a draft that stays")
    expect(page.locator("[data-send=start]")).to_be_enabled()
    visit.complaints = [line for line in visit.complaints if "INTERNET_DISCONNECTED" not in line]


def test_a_person_s_message_that_fails_is_retried_by_one_click(
    place: Harbour, visit: Visit, follow_up: FollowUp
) -> None:
    page = visit.sign_in()
    page.goto(place.address("ferry"))
    expect(page.locator("#conn")).to_have_text("Live")
    follow_up("ferry", "Build the image.")
    place.ferry.begin()
    place.ferry.end("error", error="the wheel cache is full")
    mine = page.locator("#log > .msg", has_text="Build the image.")
    expect(mine.locator(".rcpt-label")).to_have_text("Failed")
    expect(mine.locator(".stuck")).to_contain_text("RUNTIME_ERROR")
    expect(page.locator("#readiness")).to_contain_text("Ready to retry")

    mine.locator("text=Retry same message").click()

    expect(mine.locator(".rcpt-label")).to_have_text("Queued")
    expect(mine.locator(".rcpt-extra")).to_have_text("attempt 2")
    place.ferry.answer("Built.")
    expect(mine.locator(".rcpt-label")).to_have_text("Delivered")


def test_a_draft_outlives_a_reload_and_belongs_to_one_recipient(
    place: Harbour, visit: Visit
) -> None:
    page = visit.sign_in()
    page.goto(place.address("beacon"))
    page.fill("#c-main", "not yet")

    page.goto(place.address("ferry"))
    expect(page.locator("#c-main")).to_have_value("")
    page.goto(place.address("beacon"))

    expect(page.locator("#c-main")).to_have_value("not yet")
    page.click("[data-send=queue]")
    expect(page.locator("#c-main")).to_have_value("")
    page.reload()
    expect(page.locator("#c-main")).to_have_value("")
    expect(page.locator("#log > .msg", has_text="not yet")).to_have_count(1)


def test_the_first_message_to_a_bot_leaves_no_draft(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in()
    page.goto(f"{place.base}/bots/loom/")

    page.fill("#c-main", "Is anybody there?")
    page.click("[data-send=queue]")

    expect(page.locator("#log > .msg")).to_have_count(1)
    drafts = "Object.keys(localStorage).filter(key => key.startsWith('draft:'))"
    assert page.evaluate(drafts) == []


def test_what_is_refused_keeps_its_text(place: Harbour, visit: Visit) -> None:
    page = visit.sign_in()
    page.goto(place.address("warden"))
    taken = page.locator("input[name=message_id]").input_value()
    page.fill("#c-main", "the first text")
    page.click("[data-send=queue]")
    expect(page.locator("#log > .msg")).to_have_count(1)
    page.evaluate("id => document.querySelector('input[name=message_id]').value = id", taken)

    page.fill("#c-main", "another text")
    page.click("[data-send=queue]")

    expect(page.locator("[data-refused]")).to_contain_text("this id belongs to another message")
    expect(page.locator("#c-main")).to_have_value("another text")
    page.click("text=Send with a new id")
    expect(page.locator("#log > .msg", has_text="another text")).to_have_count(1)
    expect(page.locator("#c-main")).to_have_value("")
    # Chromium writes every answer of 400 and above to the console.
    visit.complaints = [line for line in visit.complaints if "409" not in line]


def test_everything_works_without_scripts(
    place: Harbour, visit_without_scripts: Visit, person: httpx.Client
) -> None:
    page = visit_without_scripts.sign_in()
    page.click("a.bot-link:has-text('Sextant')")
    expect(page.locator("#conn")).to_have_text("Not live: reload to update")

    page.fill("#c-main", "A plain message.")
    page.click("[data-send=start]")

    mine = page.locator("#log > .msg", has_text="A plain message.")
    expect(mine.locator(".rcpt-label")).to_have_text("Queued")
    page.click(".collab-d > summary")
    page.click("text=Show recent handoffs")
    expect(page.locator("#collab-details")).to_contain_text("Latest outcome")
    page.click("text=New conversation")
    expect(page.locator("#log > .msg")).to_have_count(0)
    page.click("button:has-text('Sign out')")
    expect(page.locator("h1")).to_have_text("Sign in")
