"""The OpenAPI document tells the truth about identity, people, teams and bots."""

import re

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from tests.messaging.test_api_bots import CALLS
from tests.provisioned import Caller

PATHS = {"TEAM": "{team_id}", "OPS": "{credential_id}"}


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def operation(document, call):
    """The description of a call such as `GET teams/TEAM`."""
    method, path = call.split(" ")
    path = re.sub(r"^bots/\w+", "bots/{handle}", path)
    path = re.sub(r"members/\w+", "members/{handle}", path)
    for name, parameter in PATHS.items():
        path = path.replace(name, parameter)
    return document["paths"][f"/api/v1/{path}"][method.lower()]


def answer_fits(document, schema, body):
    resolved = {**schema, "components": document["components"]}
    Draft202012Validator(resolved).validate(body)


@pytest.mark.parametrize("call", CALLS)
def test_answers_are_as_described(lab, document, call):
    allowed, body = CALLS[call]
    described = operation(document, call)
    ops = lab.workspace.credentials.get(label="ops").id
    method, path = call.replace("TEAM", lab.team_id).replace("OPS", str(ops)).split(" ")
    if path.endswith("restore"):
        lab.manager.delete(f"teams/{lab.team_id}/members/echo")

    answer = lab.called(allowed[-1]).call(method, path, None if method == "GET" else body)

    told = described["responses"][str(answer.status_code)]
    if answer.status_code == 204:
        assert "content" not in told
    else:
        answer_fits(document, told["content"]["application/json"]["schema"], answer.json())
    if body:
        taken = described["requestBody"]["content"]["application/json"]["schema"]
        answer_fits(document, taken, body)


@pytest.mark.parametrize("call", CALLS)
def test_refusals_are_as_described(lab, document, call):
    method, path = call.split(" ")

    answer = Caller().call(method, path.replace("TEAM", lab.team_id).replace("OPS", lab.team_id))

    told = operation(document, call)["responses"]["4XX"]["content"]
    assert answer.status_code == 401
    answer_fits(document, told["application/problem+json"]["schema"], answer.json())


def test_one_of_bearer_and_session_is_enough(document):
    assert operation(document, "GET me")["security"] == [{"bearer": []}, {"session": []}]
    assert set(document["components"]["securitySchemes"]) == {"bearer", "session"}


def test_the_document_and_its_page_are_served(client):
    assert client.get("/api/v1/schema").status_code == 200
    page = client.get("/api/docs")

    assert page.status_code == 200
    assert b"//cdn" not in page.content
