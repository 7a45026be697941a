"""The demo team: five bots that follow scripts and hand each other work (SPEC §16.6).

A script sees nothing but the text of an input, so the bots mark what they write to each other: a
handoff begins with one sign, an answer with another. Whatever bears no mark is a person's word, and
each person's word is answered and handed on. An answer is only told, and a handoff is answered at
once, so every chain of messages ends after a few steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from teams.installing import MAIN

TEAM: Final = "Demo"
TITLE: Final = "First conversation"
HANDOFF, HANDED_ON, ANSWER = "↪", "⤷", "↩"
# So long that a person can see a message being worked on.
WORK_MS: Final = 300
PRACTICE: Final = "This is a drill: fail {word} times, then take it in."
DRILLS: Final = {"two": 2, "four": 4}

# The first line of what a person wrote, whole or as far as it is quoted; ANY fits everything.
SHORT, ANY = r"\A(.{1,160})\Z", r"\A(.{0,160})"

Step = dict[str, Any]
Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a bot wants of a teammate."""

    teammate: str
    work: str


@dataclass(frozen=True, slots=True)
class DemoBot:
    name: str
    icon: str
    colour: str
    description: str
    answer: str  # to a teammate's handoff
    asks: tuple[Ask, ...]  # what a person's word leads to; the first teammate does the drills
    hands_on: Ask | None = None  # what a teammate's handoff leads to

    @property
    def handle(self) -> str:
        return self.name.lower()


BOTS: Final = (
    DemoBot(
        "Meridian",
        "compass",
        "iris",
        "Coordination and delegation",
        "It is on the plan, after what is under way.",
        asks=(
            Ask("sextant", "Please estimate what this takes"),
            Ask("anvil", "Please try this out and say what breaks"),
        ),
    ),
    DemoBot(
        "Sextant",
        "telescope",
        "lake",
        "Research and estimates",
        "Two days with what is known, four if the numbers are off.",
        asks=(Ask("tally", "Please weigh the risks of this"),),
    ),
    DemoBot(
        "Anvil",
        "hammer",
        "rust",
        "Implementation and tests",
        "A first version runs, and its tests pass.",
        asks=(Ask("quill", "Please write down how this is used"),),
        hands_on=Ask("quill", "Please note what has changed here"),
    ),
    DemoBot(
        "Quill",
        "feather",
        "ochre",
        "Documentation and release notes",
        "A draft is written: what changes, what stays, how to go back.",
        asks=(Ask("sextant", "Please check the figures in this"),),
    ),
    DemoBot(
        "Tally",
        "scale",
        "plum",
        "Decisions and risks",
        "Three ways, their cost and who carries it. The second is the safest.",
        asks=(Ask("anvil", "Please try the safest way for this"),),
    ),
)
_NAMES: Final = {bot.handle: bot.name for bot in BOTS}


def plan() -> dict[str, Any]:
    """What `provision` is told."""
    return {
        "workspaces": [
            {
                "slug": MAIN,
                "name": "Main",
                "runtimes": [
                    {"name": _runtime(bot), "kind": "script", "rules": list(rules(bot))}
                    for bot in BOTS
                ],
                "bots": [
                    {
                        "handle": bot.handle,
                        "display_name": bot.name,
                        "description": bot.description,
                        "instructions": f"You follow the rules of the script {_runtime(bot)}.",
                        "icon": bot.icon,
                        "colour": bot.colour,
                        "runtime": _runtime(bot),
                    }
                    for bot in BOTS
                ],
                "teams": [
                    {
                        "name": TEAM,
                        "lead": BOTS[0].handle,
                        "members": [bot.handle for bot in BOTS],
                    }
                ],
                "conversations": [
                    {"bot": bot.handle, "title": TITLE, "team": TEAM} for bot in BOTS
                ],
            }
        ]
    }


def _runtime(bot: DemoBot) -> str:
    return f"demo-{bot.handle}"


def rules(bot: DemoBot) -> Iterator[Rule]:
    """The script of a bot: its teammates' words first, then the check's, then a person's."""
    yield from _from_teammates(bot)
    yield from _of_the_smoke()
    yield from _drills(bot)
    yield from _from_people(bot, anything=ANY)


def _from_teammates(bot: DemoBot) -> Iterator[Rule]:
    yield _rule(rf"\A{ANSWER} ([\s\S]*)", _say("@$sender answers: $1"))
    # What the server answers for a teammate whose turn ended without a word of its own.
    yield _rule(r"\ABLOCKED: ([\s\S]*)", _say("@$sender has not answered: $1"))
    for word, times in DRILLS.items():
        yield _rule(
            rf"\A{HANDOFF} {PRACTICE.format(word=word)}",
            {"fail": "before", "times": times},
            _reply(f"{ANSWER} Taken in at last, after I had failed {word} times."),
        )
    work: list[Step] = [{"sleep_ms": WORK_MS}, _reply(f"{ANSWER} {bot.answer}")]
    if bot.hands_on is not None:
        name = _NAMES[bot.hands_on.teammate]
        handed_on = _send(bot.hands_on.teammate, f"{HANDED_ON} {bot.hands_on.work}: $1")
        yield _rule(
            rf"\A{HANDOFF} [^:]*: ([\s\S]*)",
            *work,
            _say(f"Done, and {name} has the rest."),
            handed_on,
        )
    yield _rule(rf"\A[{HANDOFF}{HANDED_ON}] ", *work)


def _of_the_smoke() -> Iterator[Rule]:
    """Both sides of `smoke_bots` (SPEC §17)."""
    yield _rule(r"\AMARKER: (\S+)\s+ACK: (\S+)", _reply(f"{ANSWER} $2"), _say("Acknowledged: $2"))
    yield _rule(
        r"^TO: @(\S+)\s*\nMARKER: (\S+)\s*\nACK: (\S+)",
        _say("I ask @$1 to acknowledge."),
        _send("$1", "MARKER: $2\nACK: $3\nPlease answer with the text after ACK."),
        flags="m",
    )


def _drills(bot: DemoBot) -> Iterator[Rule]:
    """What shows people a failure, and its way out."""
    teammate = bot.asks[0].teammate
    name = _NAMES[teammate]
    yield _rule(
        "show me a lasting failure",
        _say(
            f"I ask {name} to fail until my message is given up: four times, over about 40 "
            "seconds. Then it is *Failed*, and **Retry same message** beside it brings it through."
        ),
        _send(teammate, f"{HANDOFF} {PRACTICE.format(word='four')}"),
        flags="i",
    )
    yield _rule(
        "show me a failure",
        _say(
            f"I ask {name} to fail twice before it takes my message in. Its receipt goes back to "
            "*Queued* with attempt 2 after a second and with attempt 3 after some more; then it "
            "is *Delivered*, once."
        ),
        _send(teammate, f"{HANDOFF} {PRACTICE.format(word='two')}"),
        flags="i",
    )
    for rule in _from_people(bot, anything=r"\A(?=.*fail this message)(.{0,160})", flags="is"):
        # A person's word is not tried again by itself: it fails at once, with Retry beside it.
        yield {**rule, "do": [{"fail": "before", "times": 1}, *rule["do"]]}


def _from_people(bot: DemoBot, *, anything: str, flags: str = "") -> Iterator[Rule]:
    """Whatever is said is answered and handed on; a long text is quoted in part."""
    names = " and ".join(_NAMES[ask.teammate] for ask in bot.asks)
    texts = {anything: "“$1…”"} if anything != ANY else {SHORT: "“$1”", ANY: "“$1…”"}
    for pattern, quoted in texts.items():
        yield _rule(
            pattern,
            _reply(f"On it: {quoted} I hand this to {names} and tell you what they answer."),
            *(_send(ask.teammate, f"{HANDOFF} {ask.work}: {quoted}") for ask in bot.asks),
            flags=flags,
        )


def _rule(when: str, *steps: Step, flags: str = "") -> Rule:
    return {"when": f"(?{flags}){when}" if flags else when, "do": list(steps)}


def _say(text: str) -> Step:
    return {"say": text}


def _reply(text: str) -> Step:
    return {"reply": text}


def _send(bot: str, message: str) -> Step:
    return {"send": {"bot": bot, "message": message}}
