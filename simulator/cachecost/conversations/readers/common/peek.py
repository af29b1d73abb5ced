"""The beginning of a file, looked at before anybody knows what the file is."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]:]', re.DOTALL)
DEEPER = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def top_keys(head: bytes) -> Iterator[str]:
    """The keys of the JSON object that `head` begins with, as far as it goes: its end may be cut off."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return
    depth, last = 0, b""
    for found in TOKENS.finditer(text):
        token = found[0]
        depth += DEEPER.get(token, 0)
        if token == b":" and depth == 1:
            yield last[1:-1].decode("utf-8", "replace")
        if token == b'"' or depth < 1:  # a text that is cut off, or the end of the object
            return
        last = token
