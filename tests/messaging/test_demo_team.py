"""The demo team is made once, and its scripts leave nothing that people write unanswered."""

import re
from io import StringIO

import pytest
from django.core.management import call_command

from cowork.models import Task
from messaging.management import demo_team
from teams import profiles
from teams.models import Bot, Person, Team

EVERY_BOT = pytest.mark.parametrize("bot", demo_team.BOTS, ids=lambda bot: bot.handle)


def demo() -> str:
    said = StringIO()
    call_command("demo", stdout=said)
    return said.getvalue()


@pytest.mark.django_db
def test_it_stands_after_one_command_on_an_empty_database() -> None:
    said = demo()

    assert "Made the demo team" in said
    assert Person.objects.get().role == Person.Role.MANAGER
    bots = Bot.objects.select_related("runtime")
    assert {bot.runtime.kind for bot in bots} == {"script"}
    assert len({(bot.icon, bot.colour) for bot in bots}) == len(demo_team.BOTS) == 5
    assert Task.objects.filter(is_current=True, team=Team.objects.get()).count() == 5


@pytest.mark.django_db
def test_a_second_run_leaves_what_people_have_changed() -> None:
    demo()
    Bot.objects.filter(handle="quill").update(display_name="Feather")
    Task.objects.filter(bot__handle="tally").update(title="Risks")

    said = demo()

    assert "is there" in said
    assert Bot.objects.get(handle="quill").display_name == "Feather"
    assert Task.objects.count() == 5


@EVERY_BOT
@pytest.mark.parametrize(
    "text", ["Hello", "?", "two\nlines", "x" * 65_536, "show me a failure", "fail this message"]
)
def test_whatever_a_person_writes_is_answered_and_handed_on(
    bot: demo_team.DemoBot, text: str
) -> None:
    rules = [profiles.Rule.model_validate(rule) for rule in demo_team.rules(bot)]

    steps = next(rule.do for rule in rules if re.search(rule.when, text))

    assert any(isinstance(step, profiles.Say | profiles.Reply) for step in steps)
    sent = [step.send.bot for step in steps if isinstance(step, profiles.Send)]
    assert sent
    assert set(sent) < {other.handle for other in demo_team.BOTS} - {bot.handle}


@EVERY_BOT
def test_an_answer_leads_to_no_message(bot: demo_team.DemoBot) -> None:
    rules = [profiles.Rule.model_validate(rule) for rule in demo_team.rules(bot)]

    for text in (f"{demo_team.ANSWER} {bot.answer}", "BLOCKED: its turn was lost."):
        steps = next(rule.do for rule in rules if re.search(rule.when, text))
        assert [type(step) for step in steps] == [profiles.Say]
