"""Every code that a caller may meet stands in the error index."""

import re

from tests.house.source import DOCS, all_subclasses, import_everything
from timeline.refusals import Refusal

ENTRY = re.compile(r'<a id="(?P<code>[A-Z_]+)"></a>(?P<status>\d{3})?')


def refusals() -> list[type[Refusal]]:
    import_everything()
    return [Refusal, *all_subclasses(Refusal)]


def index() -> dict[str, str]:
    """The codes of the index, each with its HTTP status, empty for what stands on a receipt."""
    text = (DOCS / "errors.md").read_text()
    return {found["code"]: found["status"] or "" for found in ENTRY.finditer(text)}


def test_every_refusal_stands_in_the_index_with_its_status() -> None:
    known = index()

    missing = {
        (refusal.__name__, refusal.code, refusal.status)
        for refusal in refusals()
        if known.get(refusal.code) != str(refusal.status)
    }

    assert missing == set()


def test_every_refusal_has_a_sentence_of_its_own() -> None:
    assert [
        kind.__name__ for kind in refusals() if not (vars(kind).get("__doc__") or "").strip()
    ] == []


def test_every_code_is_one_of_the_specification() -> None:
    codes = (DOCS / "specification.md").read_text()

    assert {code for code in index() if f"`{code}`" not in codes} == set()
