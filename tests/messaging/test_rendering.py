"""Texts on pages."""

import pytest

from messaging import rendering


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](http://example.org/x.png)",
        "[x](javascript:alert(1))",
        "<b onclick=alert(1)>b</b>",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
    ],
)
def test_nothing_runs_and_nothing_is_loaded(text):
    shown = rendering.prose(text)

    for tag in ("<script", "<img", "<b ", 'href="javascript', 'href="data'):
        assert tag not in shown


def test_links_carry_nothing_along():
    assert 'rel="noopener nofollow"' in rendering.prose("[x](https://example.org)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("**Done** in `two` steps:\n\n1. one\n2. two", "Done in two steps: one two"),
        ("# Title\n> quoted", "Title quoted"),
        ("see [the guide](https://example.org/a)", "see the guide"),
        ("a\x00b\x1b[31mc\td", "ab[31mc d"),
        ("", ""),
    ],
)
def test_a_preview_is_plain_and_on_one_line(text, line):
    assert rendering.preview(text) == line


def test_a_preview_is_cut_at_200_characters():
    assert rendering.preview("x" * 500) == "x" * 199 + "…"
