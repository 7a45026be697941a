"""Messages, tasks and turns over the API: what is answered, and that nothing odd gets further than
a clear refusal (SPEC §2.6, docs/wire.md)."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from cowork.models import OutboxEntry, Task, Turn
from messaging.models import Receipt
from tests.build import PASSWORD, events, fresh, text_of
from tests.provisioned import Caller, problem, signed_in
from timeline.ids import new_id
from timeline.models import Event

pytestmark = pytest.mark.usefixtures("in_time")

LONGEST = 256 * 1024


@dataclass
class Calls:
    """Those who call, and what they call about."""

    pilot: Caller
    cook: Caller
    ops: Caller
    otto: Caller
    tasks: dict[str, Task]
    turn: Turn
    receipt: Receipt
    made: dict[str, Any] = field(default_factory=dict)

    def path(self, written: str) -> str:
        names = {name: task.id for name, task in self.tasks.items()}
        return written.format(turn=self.turn.id, receipt=self.receipt.id, **names)


@pytest.fixture
def calls(build, pilot, cook, scout, otto):
    """Scout runs a turn with a message of pilot's; cook has one queued."""
    receipt = build.send(pilot, cook, message_id="m-1").receipt
    build.send(pilot, scout, message_id="m-1")
    turn = build.claimed(scout).turn
    _principal, secret = build.issued("service", label="ops")
    return Calls(
        pilot=Caller(build.secret_of(pilot)),
        cook=Caller(build.secret_of(cook)),
        ops=Caller(secret),
        otto=signed_in("otto", PASSWORD),
        tasks={"pilot": pilot, "cook": cook, "scout": scout},
        turn=turn,
        receipt=receipt,
    )


@pytest.fixture
def scout_key(build, calls, scout):
    return Caller(build.secret_of(scout))


def standing():
    """Everything that a refused call must leave as it was."""
    models = (Receipt, Turn, Task, Event, OutboxEntry)
    return [list(model.objects.order_by("pk").values()) for model in models]


# Every field with what it is not

NO_TEXT: list[Any] = [7, 1.5, True, [], ["x"], {}]
NO_UNICODE = ["\0", "before\0after", "\ud800"]
NO_ID: list[Any] = [7, True, [], {}, "x", "", "m-1", "0" * 36, "{" + "0" * 36 + "}"]
NO_MESSAGE_ID: list[Any] = [*NO_TEXT, *NO_UNICODE, "m 1", "ü", "a/b", "x" * 129, "m\n"]
NO_FLAG: list[Any] = [None, 0, 1, "true", "", [], {}]
NO_COUNT: list[Any] = [None, "7", True, 1.5, -1, [], {}, 2**63]
NO_CHOICE: list[Any] = [None, 7, True, [], {}, "", "unheard of", "\0"]
NO_LIST: list[Any] = [None, 7, "x", {}, True]

# Call: who, how, where, what is taken, and for each field what is refused.
CALLS: dict[str, tuple[str, str, str, dict[str, Any], dict[str, list[Any]]]] = {
    "send": (
        "pilot",
        "POST",
        "send_agent_message",
        {"bot": "cook", "message": "hello", "message_id": "m-2"},
        {
            "task_id": NO_ID,
            "bot": [*NO_TEXT, *NO_UNICODE, "x" * 201],
            "message": [None, *NO_TEXT, *NO_UNICODE],
            "message_id": [None, *NO_MESSAGE_ID],
            "in_reply_to": NO_MESSAGE_ID,
            "reply_timeout_seconds": [*NO_COUNT[1:], 4, 86_401],
            "sender_task_id": NO_ID,
            "sender": ["pilot"],
            "recipient": ["cook"],
        },
    ),
    "follow up": (
        "otto",
        "POST",
        "tasks/{cook}/follow_ups",
        {"message": "hello", "message_id": "m-2", "delivery_mode": "message", "expected_turn": 0},
        {
            "message": [None, *NO_TEXT, *NO_UNICODE],
            "message_id": [None, *NO_MESSAGE_ID],
            "delivery_mode": NO_CHOICE,
            "expected_turn": NO_COUNT[1:],
            "wakes": [True],
        },
    ),
    "make a task": (
        "otto",
        "POST",
        "tasks",
        {"kind": "root", "title": "Root", "prompt": "hello"},
        {
            "kind": [*NO_CHOICE, "child"],
            "title": [None, *NO_TEXT, *NO_UNICODE, "", "x" * 201],
            "bot": [*NO_TEXT, *NO_UNICODE, "nobody"],
            "team": [*NO_ID, str(new_id())],
            "prompt": [None, *NO_TEXT, *NO_UNICODE],
            "runtime_mode": NO_CHOICE,
            "interaction_mode": NO_CHOICE,
            "runtime": [*NO_TEXT, *NO_UNICODE, "unheard of"],
            "batch_inputs": NO_FLAG[1:],
            "status": ["completed"],
        },
    ),
    "change a task": (
        "otto",
        "PATCH",
        "tasks/{cook}",
        {"title": "Another"},
        {
            "title": [None, *NO_TEXT, *NO_UNICODE, "", "x" * 201],
            "archived": NO_FLAG,
            "runtime_mode": NO_CHOICE,
            "interaction_mode": NO_CHOICE,
            "batch_inputs": NO_FLAG,
            "status": ["completed"],
            "team": [None],
        },
    ),
    "complete": (
        "otto",
        "POST",
        "tasks/{cook}/complete",
        {"outcome": "completed", "summary": "done"},
        {
            "outcome": [*NO_CHOICE, "idle"],
            "summary": [None, *NO_TEXT, *NO_UNICODE, "x" * 12_001],
            "more": [1],
        },
    ),
    "stop": (
        "otto",
        "POST",
        "tasks/{cook}/stop",
        {"reason": "enough"},
        {"reason": [None, *NO_TEXT, *NO_UNICODE, "x" * 1001], "more": [1]},
    ),
    "pause": ("otto", "POST", "tasks/{cook}/pause", {}, {"more": [1]}),
    "reopen": (
        "otto",
        "POST",
        "tasks/{cook}/reopen",
        {"repair_membership": False},
        {"repair_membership": NO_FLAG, "more": [1]},
    ),
    "claim": (
        "cook",
        "POST",
        "tasks/{cook}/turns",
        {"wait_seconds": 0, "claim_id": "c-1", "lease_seconds": 60, "start": False},
        {
            "wait_seconds": [None, "0", True, -1, 31, [], {}],
            "claim_id": [None, *NO_MESSAGE_ID],
            "lease_seconds": [*NO_COUNT[1:], 0, 29, 3601],
            "start": NO_FLAG,
            "fence": [1],
        },
    ),
    "report": (
        "scout_key",
        "POST",
        "turns/{turn}/events",
        {"fence": 1, "events": [{"type": "incorporated", "event_id": "e-1"}]},
        {
            "fence": NO_COUNT,
            "events": [
                *NO_LIST,
                [7],
                [{"type": "incorporated"}],
                [{"type": "incorporated", "event_id": "\0"}],
                [{"type": "assistant_message", "event_id": "e", "text": "\ud800"}],
                [{"type": "assistant_message", "event_id": "e", "text": "a\0b"}],
                [{"type": "accepted", "event_id": "e"}] * 201,
            ],
            "more": [1],
        },
    ),
    "heartbeat": (
        "scout_key",
        "POST",
        "turns/{turn}/heartbeat",
        {"fence": 1},
        {"fence": NO_COUNT, "more": [1]},
    ),
    "end": (
        "scout_key",
        "POST",
        "turns/{turn}/end",
        {"fence": 1, "status": "done", "text": "all is well"},
        {
            "fence": NO_COUNT,
            "status": [*NO_CHOICE, "running", "lost"],
            "events": [*NO_LIST, [7], [{"type": "note", "event_id": "e", "text": "\0"}]],
            "text": [*NO_TEXT, "\ud800", "x" * (LONGEST + 1)],
            "error": [*NO_TEXT, *NO_UNICODE, "x" * (LONGEST + 1)],
            "limit": [
                7,
                "usage",
                [],
                {},
                {"kind": "hunger"},
                {"kind": "usage", "resets_at": "soon"},
                {"kind": "usage", "resets_at": 7},
                {"kind": "usage", "resets_at": "0001-01-01T00:00:00+14:00"},
                {"kind": "usage", "will_retry": "yes"},
                {"kind": "usage", "more": 1},
            ],
            "more": [1],
        },
    ),
    "withdraw": ("pilot", "POST", "receipts/{receipt}/withdraw", {}, {"note": ["x"]}),
    "bulk": (
        "otto",
        "POST",
        "receipts/bulk",
        {"action": "discard", "filter": {"delivery_status": "failed"}, "note": "", "dry_run": True},
        {
            "action": NO_CHOICE,
            "ids": [*NO_LIST, [], ["x"], [7], [[]]],
            "filter": [None, 7, "x", [], {}, {"unheard": "of"}, {"sender": 7}, {"sender": "\0"}],
            "note": [None, *NO_TEXT, *NO_UNICODE, "x" * 1001],
            "dry_run": NO_FLAG,
            "more": [1],
        },
    ),
    "quarantine": (
        "otto",
        "POST",
        "receipts/{receipt}/quarantine",
        {"note": "odd"},
        {"note": [None, *NO_TEXT, *NO_UNICODE, "x" * 1001], "more": [1]},
    ),
}


def asked(request, name):
    """Whoever makes a call, and how it is made with a body."""
    who, method, path, body, _wrong = CALLS[name]
    calls = request.getfixturevalue("calls")
    caller = request.getfixturevalue(who) if who == "scout_key" else getattr(calls, who)
    return lambda given=body: caller.call(method, calls.path(path), given), calls


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_taken_as_it_is_meant(request, name):
    """Or the refusals below would prove nothing."""
    call, _calls = asked(request, name)

    assert call().status_code in (200, 201, 202)


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name in CALLS for wrong in CALLS[name][4]]
)
def test_every_field_refuses_what_it_is_not(request, name, wrong):
    call, _calls = asked(request, name)
    body, values = CALLS[name][3], CALLS[name][4][wrong]
    before = standing()

    for value in values:
        answer = call({**body, wrong: value})
        assert problem(answer) == (400, "INVALID_REQUEST"), (value, answer.content)
        told = answer.json()["detail"]
        assert wrong in told or "text" in told.lower(), told
    assert standing() == before


BROKEN = {
    "nothing that is JSON": b"hello",
    "half of an object": b'{"message": ',
    "not UTF-8": b'{"message": "\xff"}',
    "UTF-16": '{"message": "x"}'.encode("utf-16"),
    "no number": b'{"message": NaN}',
    "endless": b'{"fence": 1e999}',
    "an array": b"[]",
    "null": b"null",
    "a text": b'"x"',
    "a number": b"7",
    "deep": b"[" * 100_000,
    "a deep object": b'{"message":' * 50_000 + b"1" + b"}" * 50_000,
    "a long number": b'{"fence": ' + b"9" * 10_000 + b"}",
    "a name with NUL": b'{"mess\\u0000age": "x"}',
    "huge": b'{"message": "' + b"x" * (5 * 1024 * 1024) + b'"}',
}


@pytest.mark.parametrize("name", CALLS)
def test_a_body_that_is_none_is_refused(request, name):
    who, method, path, _body, _wrong = CALLS[name]
    calls = request.getfixturevalue("calls")
    caller = request.getfixturevalue(who) if who == "scout_key" else getattr(calls, who)
    headers = dict(caller.headers)
    if caller.secret is not None:
        headers["Authorization"] = f"Bearer {caller.secret}"
    before = standing()

    for what, body in BROKEN.items():
        answer = caller.client.generic(
            method,
            f"/api/v1/{calls.path(path)}",
            data=body,
            content_type="application/json",
            headers=headers,
        )
        assert 400 <= answer.status_code < 500, (what, answer.content)
        assert problem(answer)[1] in ("INVALID_REQUEST", "MESSAGE_TOO_LARGE"), what
    assert standing() == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/xml"]
)
def test_another_kind_of_body_is_refused(calls, kind):
    answer = calls.pilot.client.generic(
        "POST",
        "/api/v1/send_agent_message",
        data=json.dumps({"bot": "cook", "message": "x"}),
        content_type=kind,
        headers={"Authorization": f"Bearer {calls.pilot.secret}"},
    )

    assert problem(answer) == (415, "INVALID_REQUEST")


@pytest.mark.parametrize("path", [path for _, _, path, _, _ in CALLS.values()])
def test_another_method_is_refused(calls, path):
    for method in ("PUT", "TRACE") if path == "tasks" else ("DELETE", "PUT"):
        assert problem(calls.otto.call(method, calls.path(path))) == (405, "INVALID_REQUEST")


# A send


def test_a_send_answers_with_ids_and_states_and_no_text(calls, pilot, cook):
    """CW-10 C142"""
    answer = calls.pilot.post("send_agent_message", bot="cook", message="the words", message_id="x")

    body = answer.json()
    assert answer.status_code == 202
    assert "the words" not in answer.content.decode()
    assert body == {
        "success": True,
        "duplicate": False,
        "queued": True,
        "receipt_id": str(Receipt.objects.get(message_id="x").id),
        "message_id": "x",
        "delivery_mode": "message",
        "delivery_status": "queued",
        "attempt": 1,
        "ahead": 1,
        "sequence": 2,
        "sender_task_id": str(pilot.id),
        "target_task_id": str(cook.id),
        "recipient": {
            "task_id": str(cook.id),
            "bot": "cook",
            "label": "Cook",
            "status": "idle",
        },
        "accepted_at": "2026-03-01T12:00:00.000000Z",
        "queued_at": "2026-03-01T12:00:00.000000Z",
        "started_at": None,
        "delivered_at": None,
        "failed_at": None,
        "quarantined_at": None,
        "failure_code": None,
        "failure_reason": None,
        "reply_status": "pending",
        "summary": "Queued for Cook's next turn.",
    }


def test_a_repeat_is_answered_with_200(calls):
    again = calls.pilot.post("send_agent_message", bot="cook", message="hello", message_id="m-1")

    assert (again.status_code, again.json()["duplicate"]) == (200, True)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"message": "x"}, 400, "TASK_ID_REQUIRED"),
        ({"message": "x", "bot": ""}, 400, "TASK_ID_REQUIRED"),
        ({"message": "x", "bot": None, "task_id": None}, 400, "TASK_ID_REQUIRED"),
        ({"message": " ", "bot": "cook"}, 400, "MESSAGE_REQUIRED"),
        ({"message": "x" * 65_537, "bot": "cook"}, 413, "MESSAGE_TOO_LARGE"),
        ({"message": "x", "bot": "nobody"}, 404, "BOT_NOT_FOUND"),
        ({"message": "x", "task_id": str(new_id())}, 404, "TASK_NOT_FOUND"),
        ({"message": "x", "bot": "cook", "sender_task_id": str(new_id())}, 404, "TASK_NOT_FOUND"),
        ({"message": "y", "bot": "cook", "message_id": "m-1"}, 409, "MESSAGE_ID_CONFLICT"),
        ({"message": "x", "bot": "cook", "in_reply_to": "m-0"}, 409, "IN_REPLY_TO_INVALID"),
        ({"message": "x", "bot": "cook", "message_id": "cowork:1"}, 400, "INVALID_REQUEST"),
        ({"bot": "cook"}, 400, "INVALID_REQUEST"),
    ],
)
def test_a_refused_send_leaves_nothing(calls, body, status, code):
    before = standing()

    assert problem(calls.pilot.post("send_agent_message", **body)) == (status, code)
    assert standing() == before


def test_the_sender_is_named_where_there_are_several(build, calls, pilot, pilot_bot, cook, team):
    other = build.a_conversation(pilot_bot)

    unnamed = calls.pilot.post("send_agent_message", bot="cook", message="x")
    named = calls.pilot.post(
        "send_agent_message", bot="cook", message="x", sender_task_id=str(other.id)
    )
    foreign = calls.pilot.post(
        "send_agent_message", bot="cook", message="x", sender_task_id=str(cook.id)
    )

    assert problem(unnamed) == (400, "TASK_ID_REQUIRED")
    assert named.json()["sender_task_id"] == str(other.id)
    assert problem(foreign) == (403, "FORBIDDEN")


def test_a_tasks_own_credential_needs_no_name(build, pilot, pilot_bot, cook, team):
    build.a_conversation(pilot_bot)
    _principal, secret = build.issued("task", label="own", task_id=pilot.id)

    sent = Caller(secret).post("send_agent_message", bot="cook", message="x")

    assert sent.json()["sender_task_id"] == str(pilot.id)


def test_people_and_services_send_nothing_as_agents(calls):
    for caller in (calls.otto, calls.ops):
        answer = caller.post("send_agent_message", bot="cook", message="x")
        assert problem(answer) == (403, "FORBIDDEN")


# Receipts


def test_a_receipt_in_full_tells_its_history(build, clock, calls, scout):
    build.end(calls.turn, "error", error="It broke.")
    receipt = Receipt.objects.get(recipient=scout)

    told = calls.ops.get(f"receipts/{receipt.id}").json()

    assert told["message"] == "hello"
    assert [(row["from"], row["to"], row["attempt"]) for row in told["transitions"]] == [
        (None, "queued", 1),
        ("queued", "started", 1),
        ("started", "queued", 2),
    ]
    assert {row["actor"]["kind"] for row in told["transitions"]} == {"agent", "system"}


def test_receipts_are_filtered_and_paged(calls, build, pilot, cook, scout):
    listed = calls.ops.get(f"receipts?recipient={cook.id}&limit=1").json()
    assert [row["id"] for row in listed["results"]] == [str(calls.receipt.id)]
    assert listed["next"] is None
    both = calls.ops.get(f"receipts?sender={pilot.id}&limit=1").json()
    rest = calls.ops.get(f"receipts?sender={pilot.id}&limit=1&cursor={both['next']}").json()
    assert len({both["results"][0]["id"], rest["results"][0]["id"]}) == 2
    assert calls.ops.get("receipts?delivery_status=failed").json()["results"] == []


@pytest.mark.parametrize(
    "query",
    [
        "recipient=x",
        "sender=",
        "delivery_status=gone",
        "delivery_mode=loud",
        "unheard=of",
        "limit=0",
        "limit=201",
        "limit=x",
        "cursor=x",
        "message_id=%00",
        "token=secret",
    ],
)
def test_a_list_refuses_what_it_does_not_know(calls, query):
    assert problem(calls.ops.get(f"receipts?{query}")) == (400, "INVALID_REQUEST")


def test_agents_see_what_they_sent_and_got(calls, build, scout_key, cook):
    seen = {row["recipient"]["bot"] for row in calls.cook.get("receipts").json()["results"]}

    assert seen == {"cook"}
    assert problem(scout_key.get(f"receipts/{calls.receipt.id}")) == (403, "FORBIDDEN")
    assert problem(scout_key.get(f"receipts/{new_id()}")) == (404, "NOT_FOUND")


def test_another_workspace_is_not_there(clock, calls, cook):
    """CW-128"""
    from tests.build import Build

    there = Build(clock, "other")
    _principal, secret = there.issued("service", label="ops")
    stranger = Caller(secret)
    unknown = new_id()

    for path in ("receipts/{}", "tasks/{}", "tasks/{}/events", "turns/{}"):
        known = {"receipts": calls.receipt.id, "tasks": cook.id, "turns": calls.turn.id}
        foreign = stranger.get(path.format(known[path.partition("/")[0]]))
        nowhere = stranger.get(path.format(unknown))
        assert foreign.status_code == 404
        assert foreign.content == nowhere.content


# Tasks


def test_a_prompt_is_the_first_follow_up(calls, cook_bot):
    made = calls.otto.post("tasks", kind="root", title="Root", bot="cook", prompt="please")

    assert (made.status_code, made.json()["queued"]) == (201, 1)
    receipt = Receipt.objects.get(recipient=made.json()["id"])
    assert (receipt.delivery_mode, receipt.source, receipt.wakes) == ("follow_up", "person", True)


def test_a_prompt_that_is_too_large_makes_no_task(calls):
    before = standing()

    answer = calls.otto.post("tasks", kind="root", title="Root", prompt="x" * 65_537)

    assert problem(answer) == (413, "MESSAGE_TOO_LARGE")
    assert standing() == before


def test_a_wider_mode_is_a_managers_to_give(calls):
    answer = calls.otto.post("tasks", kind="root", title="Root", runtime_mode="auto")

    assert problem(answer) == (403, "FORBIDDEN")


def test_a_task_is_shown_with_its_turn_and_its_queue(calls, build, pilot, scout):
    build.send(pilot, scout)

    told = calls.ops.get(f"tasks/{scout.id}").json()

    assert told["running_turn"]["id"] == str(calls.turn.id)
    assert (told["status"], told["queued"], told["bot"]) == ("running", 1, "scout")
    assert told["last_seq"] == events(scout)[-1].seq


def test_events_are_read_on_from_a_number(calls, cook):
    all_of_them = calls.ops.get(f"tasks/{cook.id}/events").json()
    rest = calls.ops.get(f"tasks/{cook.id}/events?after=1&limit=1").json()

    assert [row["seq"] for row in all_of_them["results"]] == [1, 2, 3]
    assert rest["results"] == all_of_them["results"][1:2]
    assert rest["last_seq"] == 3
    for after in ("x", "-1", "1.5", "9" * 30, "%00"):
        answer = calls.ops.get(f"tasks/{cook.id}/events?after={after}")
        assert problem(answer) == (400, "INVALID_REQUEST")


# Turns


def test_a_claim_over_the_wire(calls, clock, cook):
    clock.advance(5)

    answer = calls.cook.post(f"tasks/{cook.id}/turns", claim_id="c-1", lease_seconds=30)

    told = answer.json()
    assert answer.status_code == 201
    assert told["lease_expires_at"] == "2026-03-01T12:00:35.000000Z"
    assert told["cause"]["kind"] == "message"
    [row] = told["inputs"]
    assert (row["message"], row["age_seconds"], row["attempt"], row["shown_before"]) == (
        "hello",
        5,
        1,
        False,
    )
    assert (told["runtime_mode"], told["interaction_mode"]) == ("supervised", "execute")
    again = calls.cook.post(f"tasks/{cook.id}/turns", claim_id="c-1")
    assert (again.status_code, again.json()["fence"]) == (200, told["fence"])


def test_nothing_to_claim_is_204(calls, pilot):
    answer = calls.pilot.post(f"tasks/{pilot.id}/turns")

    assert (answer.status_code, answer.content) == (204, b"")


def test_the_fence_is_the_claimers_alone(calls):
    assert "fence" not in calls.ops.get(f"turns/{calls.turn.id}").json()


def test_a_stale_report_says_what_comes_again(build, calls, scout_key, scout):
    build.end(calls.turn, "error")

    answer = scout_key.post(f"turns/{calls.turn.id}/events", fence=calls.turn.fence, events=[])

    assert problem(answer) == (409, "STALE_TURN")
    assert answer.json()["requeued"] == [str(Receipt.objects.get(recipient=scout).id)]


def test_last_words_with_a_nul_are_kept_and_mended(calls, scout_key, scout):
    answer = scout_key.post(
        f"turns/{calls.turn.id}/end", fence=calls.turn.fence, status="done", text="a\0b"
    )

    assert answer.status_code == 200
    [said] = events(scout, "assistant_message")
    assert text_of(said) == "a\N{REPLACEMENT CHARACTER}b"


def test_a_turn_that_is_over_stays_over(build, calls, scout_key):
    build.end(calls.turn)

    assert fresh(calls.turn).status == "done"
    calls_of_it: dict[str, dict[str, Any]] = {"events": {"events": []}, "heartbeat": {}}
    for path, more in calls_of_it.items():
        answer = scout_key.post(f"turns/{calls.turn.id}/{path}", fence=calls.turn.fence, **more)
        assert problem(answer) == (409, "STALE_TURN")
