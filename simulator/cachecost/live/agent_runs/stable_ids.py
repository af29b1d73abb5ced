"""Ids of the simulated API's answers, renamed by their order.

The API derives an id from what was asked, so that a change of one message would change the ids in all that follow. In a
recording that is compared with another, only what was changed is to differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

ID_KEYS = ("id", "call_id", "tool_use_id")
SHORTEST = 12
TOKEN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % SHORTEST)


def with_stable_ids(lines: Sequence[bytes], order: Sequence[int]) -> list[bytes]:
    """The lines of a request log with each id of an answer, wherever it is sent back, replaced by one of the same
    length: its prefix and its number among those with this prefix, counted in this `order` of the lines.
    """
    names: dict[bytes, bytes] = {}
    numbers: Counter[bytes] = Counter()
    for place in order:
        for found in _ids_in(json.loads(lines[place]).get("response")):
            if found not in names:
                prefix, mark, rest = found.rpartition(b"_")
                numbers[prefix] += 1
                names[found] = prefix + mark + b"%0*d" % (len(rest), numbers[prefix])
    return [TOKEN.sub(lambda match: names.get(match[0], match[0]), line) for line in lines]


def _ids_in(value: Any) -> Iterator[bytes]:
    """The ids in an answer, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ID_KEYS and isinstance(inner, str) and TOKEN.fullmatch(inner.encode()):
                yield inner.encode()
            else:
                yield from _ids_in(inner)
