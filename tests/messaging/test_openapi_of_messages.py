"""The OpenAPI document tells the truth about messages, tasks and turns."""

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from tests.messaging.test_api import CALLS, asked, calls, scout_key

__all__ = ["calls", "scout_key"]

pytestmark = pytest.mark.usefixtures("in_time")


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def described(document, method, path):
    """The description of a call such as `POST tasks/{cook}/turns`."""
    for name, parameter in {
        "{cook}": "{task_id}",
        "{scout}": "{task_id}",
        "{turn}": "{turn_id}",
        "{receipt}": "{receipt_id}",
    }.items():
        path = path.replace(name, parameter)
    return document["paths"][f"/api/v1/{path}"][method.lower()]


def fits(document, content, body):
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    Draft202012Validator(schema).validate(body)


@pytest.mark.parametrize("name", CALLS)
def test_calls_and_answers_are_as_described(request, document, name):
    _who, method, path, body, _wrong = CALLS[name]
    call, _calls = asked(request, name)
    told = described(document, method, path)

    answer = call()

    fits(document, told["responses"][str(answer.status_code)]["content"], answer.json())
    assert told["summary"]
    if body:
        fits(document, told["requestBody"]["content"], body)


READS = [
    "receipts",
    "receipts/{receipt}",
    "tasks",
    "tasks/{scout}",
    "tasks/{scout}/events",
    "tasks/{scout}/timeline",
    "tasks/{scout}/header",
    "tasks/{scout}/teammates",
    "tasks/{scout}/tools",
    "receipts/{receipt}/explain",
    "attention",
    "turns/{turn}",
]


@pytest.mark.parametrize("path", READS)
def test_what_is_read_is_as_described(request, build, document, path, scout, pilot):
    calls = request.getfixturevalue("calls")
    build.incorporate(calls.turn)
    build.end(calls.turn, "error", error="It broke.")
    build.a_turn(scout)

    answer = calls.ops.get(calls.path(path))

    assert answer.status_code == 200
    told = described(document, "GET", path)
    fits(document, told["responses"]["200"]["content"], answer.json())


def test_a_repeat_is_as_described(request, document, calls):
    for name in ("send", "follow up", "claim"):
        _who, method, path, _body, _wrong = CALLS[name]
        call, _calls = asked(request, name)
        call()
        answer = call()

        assert answer.status_code == 200
        told = described(document, method, path)
        fits(document, told["responses"]["200"]["content"], answer.json())


def test_nothing_to_claim_is_described(document):
    told = described(document, "POST", "tasks/{cook}/turns")

    assert "content" not in told["responses"]["204"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "unheard_of", "event_id": "e"},
        {"type": "incorporated"},
        {"type": "note", "event_id": "e", "text": "x", "level": "loud"},
        {"type": "accepted", "event_id": "e", "more": 1},
    ],
)
def test_what_is_no_report_does_not_fit(document, event):
    told = described(document, "POST", "turns/{turn}/events")

    with pytest.raises(ValidationError):
        fits(document, told["requestBody"]["content"], {"fence": 1, "events": [event]})


@pytest.mark.parametrize("path", READS)
def test_refusals_are_as_described(document, client, path):
    """Whoever has no credential."""
    told = described(document, "GET", path)["responses"]["4XX"]["content"]
    zero = "00000000-0000-7000-8000-000000000000"
    answer = client.get("/api/v1/" + path.format(receipt=zero, scout=zero, turn=zero))

    assert answer.status_code == 401
    fits(document, {"application/json": told["application/problem+json"]}, answer.json())
