"""The catalogue of events is whole and published."""

import pytest

from tests.house.source import DOCS
from timeline.event_types import CATALOGUE, EventBody, EventType


@pytest.mark.parametrize("kind", EventType.values)
def test_every_type_of_event_has_a_body(kind: str) -> None:
    assert issubclass(CATALOGUE[kind], EventBody)
    assert CATALOGUE[kind].type == kind


def test_every_body_is_of_a_type_of_its_own() -> None:
    assert len(EventBody.__subclasses__()) == len(CATALOGUE) == len(EventType.values)


@pytest.mark.parametrize("kind", EventType.values)
def test_every_payload_is_published(kind: str) -> None:
    payloads = (DOCS / "wire.md").read_text().partition("## Payloads of events")[2]

    # Two of a pair stand together: `request_opened`, `_settled`.
    assert f"`{kind}" in payloads or f"`_{kind.rpartition('_')[2]}" in payloads
