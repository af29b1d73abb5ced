"""Where e-mail addresses stand in a text. Those of nobody are left out (`NOBODY`, `RESERVED`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

AT = re.compile("@|%40")
MOST_LOCAL = 64
LOCAL = re.compile(rf"[\w.%+'-]{{1,{MOST_LOCAL}}}\Z")
DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.)+(?:xn--[a-z0-9-]+|[^\W\d_]{2,24})(?![^\W_])")
ESCAPE = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
RESERVED = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)|.*\.(?:png|jpe?g|webp|gif|svg|js|tgz)"
)
"""Domains that are nobody's, and names of files that look like one (icon@2x.png)."""
NOBODY = frozenset({"git", "noreply", "no-reply", "donotreply", "do-not-reply"})
"""Local parts that reach nobody. Every other commit names a `noreply@…`, every other remote a `git@…`."""


class Mail(NamedTuple):
    """An address in a text: where it begins, where its local part ends, where it ends."""

    start: int
    at: int
    end: int


def e_mails_in(text: str) -> Iterator[Mail]:
    """E-mail addresses, in order, also where the @ is written %40."""
    for at in AT.finditer(text):
        local = LOCAL.search(text, max(0, at.start() - MOST_LOCAL), at.start())
        domain = DOMAIN.match(text, at.end()) if local else None
        if local is None or domain is None or RESERVED.fullmatch(domain[0].lower()):
            continue
        start = _start(text, local.start(), at.start())
        if start < at.start() and text[start : at.start()].lower() not in NOBODY:
            yield Mail(start, at.start(), domain.end())


def _start(text: str, start: int, end: int) -> int:
    """Where a local part begins: after an escape (\\n, \\u003c, %3C), dots and quotes."""
    if start and text[start - 1] == "\\" and (escape := ESCAPE.match(text, start, end)):
        start = escape.end()
    for percent in PERCENT.finditer(text, start, end):
        start = percent.end()
    while start < end and text[start] in ".'-":
        start += 1
    return start
