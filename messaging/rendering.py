"""Texts for pages: Markdown through an allow-list, and plain previews (DESIGN §7)."""

import re
import unicodedata
from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

PREVIEW_LENGTH = 200
_LONGEST = 16 * 1024  # characters shown at once; the rest is on a page of its own
_CLIP_LENGTH, _CLIP_LINES = 1200, 12

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    .disable("image")
)
_MARKS = re.compile(r"(^|\s)(?:#{1,6}|>|[-*+]|\d+[.)])\s+|[*_~`]{1,3}|!?\[([^\]]*)\]\([^)]*\)")


@lru_cache(maxsize=2048)
def prose(text: str) -> SafeString:
    """Markdown as HTML: no raw HTML, no images, links that carry nothing of us along."""
    made = nh3.clean(
        _MARKDOWN.render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener nofollow",
    )
    # A wide block of code scrolls, so the keyboard must reach it.
    return mark_safe(made.replace("<pre>", '<pre tabindex="0" dir="ltr">'))  # noqa: S308 - nh3 cleaned it


def preview(text: str) -> str:
    """The beginning of a text on one line, without Markdown and control characters."""
    start = text[: PREVIEW_LENGTH * 4]
    plain = _MARKS.sub(lambda found: found.group(2) or found.group(1) or "", start)
    shown = "".join(
        " " if sign in "\r\n\t" else sign
        for sign in plain
        if sign in "\r\n\t" or unicodedata.category(sign) != "Cc"
    )
    line = " ".join(shown.split())
    return line if len(line) <= PREVIEW_LENGTH else line[: PREVIEW_LENGTH - 1] + "…"


def is_cut(text: str) -> bool:
    """Whether a text is too long to be shown whole among others."""
    return len(text) > _LONGEST


def beginning(text: str) -> str:
    """What of a text is shown among others."""
    return text[:_LONGEST]


def is_long(text: str) -> bool:
    """Whether a text is clipped until somebody asks for all of it."""
    return len(text) > _CLIP_LENGTH or text.count("\n") >= _CLIP_LINES
