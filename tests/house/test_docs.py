"""The docs hold together, and the contract in them is the one that was ordered."""

import re
from pathlib import Path

import pytest

from tests.house.documents import COPIES, adapted
from tests.house.source import DOCS, ROOT

SOURCES = ROOT.parent / "shared"
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\((?!\w+:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
CODE = re.compile(r"`[^`\n]+`")


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources do not lie beside this checkout")
@pytest.mark.parametrize("source", COPIES)
def test_the_contract_is_the_one_that_was_ordered(source: str) -> None:
    copy, changes = COPIES[source]

    assert (DOCS / copy).read_text() == adapted((SOURCES / source).read_text(), changes)


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT))
)
def test_every_link_leads_somewhere(document: Path) -> None:
    broken = [
        found[0]
        for found in LINK.finditer(CODE.sub("", document.read_text()))
        if not leads_somewhere(document, found["path"], found["anchor"] or "")
    ]

    assert broken == []


def leads_somewhere(document: Path, path: str, anchor: str) -> bool:
    target = (document.parent / path).resolve() if path else document
    if not target.exists() or not anchor:
        return target.exists()
    text = target.read_text()
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    return anchor in headings or f'id="{anchor}"' in text


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()

    assert [document.name for document in DOCS.rglob("*.md") if document.name not in index] == [
        "index.md"
    ]
