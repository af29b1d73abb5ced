"""The comparison of breakpoints can fail: it tells apart another place, another TTL, and a top-level
`cache_control`.
"""

import pytest
from clients_breakpoints import marked, placed, requests_of

from cachecost.strategies.placements import Automatic, LastMessage, LastTool, Placement, SystemBlock

TEXT = {"type": "text", "text": "Say it."}
BREAKPOINT = {"type": "ephemeral"}
SENT = (LastTool(), LastMessage())


def bodies() -> list[dict[str, object]]:
    """Two calls of a conversation; the last tool and the last block are marked."""
    tools = [{"name": "one", "input_schema": {}}, {"name": "two", "input_schema": {}, "cache_control": BREAKPOINT}]
    first = {"role": "user", "content": [TEXT]}
    said = {"role": "assistant", "content": "It."}
    last = {"role": "user", "content": [{**TEXT, "cache_control": BREAKPOINT}]}
    calls = ([last], [first, said, last])
    return [{"model": "claude-opus-5-5", "system": [TEXT], "tools": tools, "messages": call} for call in calls]


def test_breakpoints_that_were_sent_are_found_again() -> None:
    requests = requests_of(bodies())
    assert marked(requests) == [
        ([("tools", 0, 1, "5m"), ("messages", 1, 0, "5m")], None),
        ([("tools", 0, 1, "5m"), ("messages", 3, 0, "5m")], None),
    ]
    assert placed(requests, Placement(SENT)) == marked(requests)


@pytest.mark.parametrize(
    "other",
    [
        Placement(()),
        Placement((LastTool(),)),
        Placement((*SENT, SystemBlock("last"))),
        Placement((LastTool(ttl="1h"), LastMessage())),
        Placement((LastTool(), Automatic())),
        Placement((*SENT, Automatic())),
    ],
)
def test_another_placement_is_seen_to_differ(other: Placement) -> None:
    requests = requests_of(bodies())
    assert placed(requests, other) != marked(requests)
