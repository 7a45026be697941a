"""Every setting is published where people look for it."""

import ast
import re

from tests.house.source import DOCS, modules

SETTING = re.compile(r"COWORK_[A-Z_]+")
# `COWORK_LLM_BASE_URL`, `_API_KEY`: the second shares its beginning with the first.
SHORT_FORMS = re.compile(r"`(COWORK_[A-Z_]+)`((?:, `_[A-Z_]+`)+)")


def published() -> set[str]:
    pages = ("wire.md", "specification.md", "settings.md")
    text = "\n".join((DOCS / page).read_text() for page in pages)
    names = set(SETTING.findall(text))
    for first, others in SHORT_FORMS.findall(text):
        parts = first.split("_")
        beginnings = ["_".join(parts[:count]) for count in range(2, len(parts))]
        endings = re.findall(r"`(_[A-Z_]+)`", others)
        names |= {beginning + ending for beginning in beginnings for ending in endings}
    return names


def test_every_setting_is_published() -> None:
    read = {
        node.value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and SETTING.fullmatch(node.value)
    }

    assert "COWORK_DATA_DIR" in read
    assert read - published() == set()
