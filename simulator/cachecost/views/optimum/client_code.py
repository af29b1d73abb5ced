"""A rule as Python for a client: functions without dependencies, as short as the rule allows."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from cachecost.analysis.optimum.online_rule import OnlineRule
from cachecost.base.version import __version__
from cachecost.strategies.placements import (
    FirstN,
    Hint,
    Lag,
    LastMessage,
    LastTool,
    Primitive,
    SystemBlock,
    TurnBoundary,
)

WIDTH = 100
HEAD = '''"""{what}

Written by `cachecost optimize --emit` (cachecost {version}). It uses nothing but the request itself.
"""

import json
from itertools import chain


def place_breakpoints(body):
    """Return a copy of a Messages API body with these breakpoints instead of its own."""
    body = {{key: value for key, value in json.loads(json.dumps(body)).items() if key != "cache_control"}}
    tools, system = _bare(body, "tools"), _bare(body, "system")
    messages = [_bare(message, "content") for message in body["messages"]]
{wanted}
    for block, ttl in wanted:
        if block is not None:
            block.setdefault("cache_control", {{"type": "ephemeral", "ttl": ttl}})
    return body


def _bare(holder, key):
    """Blocks as a list, without breakpoints."""
    blocks = holder.get(key)
    if blocks and isinstance(blocks, str):
        blocks = holder[key] = [{{"type": "text", "text": blocks}}]
    for block in blocks or []:
        nested = block.get("content"), (block.get("source") or {{}}).get("content")
        for one in [block, *chain(*(inner for inner in nested if isinstance(inner, list)))]:
            one.pop("cache_control", None)
    return blocks or []


def _last(blocks):
    """The last of these blocks that may have a breakpoint; thinking and empty text may not."""
    fitting = [one for one in blocks if "thinking" not in str(one.get("type")) and one.get("text") != ""]
    return fitting[-1] if fitting else None
'''
KEEP_ALIVE = '''

KEEP_ALIVE_S, KEEP_ALIVES = {every_s:g}, {times}  # seconds between them in a pause, and how many at most after a call


def keep_alive_body(body):
    """Return `body`, which has its breakpoints, as a request without output that keeps its cache alive."""
    thinking, choice = body.get("thinking") or {{}}, body.get("tool_choice") or {{}}
    schema = (body.get("output_config") or {{}}).get("format") or body.get("output_format")
    needs_output = thinking.get("type") == "enabled" or choice.get("type") in ("any", "tool") or schema
    least = 1 + thinking.get("budget_tokens", 0) if needs_output else 0  # else the API refuses it
    return {{**{{key: value for key, value in body.items() if key != "stream"}}, "max_tokens": least}}
'''
OWN_TOOLS = """    served = ("web_search_", "web_fetch_")  # rendered elsewhere: a breakpoint there writes nothing
    tools = [one for one in tools if not one.get("defer_loading") and not str(one.get("type")).startswith(served)]"""
LAST_HUMAN = """    kinds = [{block["type"] for block in blocks} - {"tool_result"} for blocks in messages]
    human = max((n for n, one in enumerate(body["messages"]) if one["role"] == "user" and kinds[n]), default=0)"""


def client_code(rule: OnlineRule) -> str:
    """The text of the module: `place_breakpoints(body)`, and `keep_alive_body(body)` where the rule has keep-alives."""
    what = fill(f"Cache breakpoints: {rule_words(rule)}.", WIDTH)
    text = HEAD.format(what=what, version=__version__, wanted="\n".join(_wanted(rule)))
    if rule.keep_alive is not None:
        text += KEEP_ALIVE.format(every_s=rule.keep_alive.every_s, times=rule.keep_alive.times)
    return text


def rule_words(rule: OnlineRule) -> str:
    """Where the breakpoints are, in words."""
    placement = rule.placement
    parts = [f"{_words(one)} ({placement.ttl_of(one)})" for one in placement.primitives]
    return ", ".join(parts) or "none, as none pays off"


def _wanted(rule: OnlineRule) -> Iterator[str]:
    """The lines that list the blocks to mark, in order of priority."""
    placement = rule.placement
    kinds = {type(primitive) for primitive in placement.primitives}
    if LastTool in kinds:
        yield OWN_TOOLS
    if TurnBoundary in kinds:
        yield LAST_HUMAN
    yield "    wanted = ["
    for one in placement.primitives:
        yield f'        ({_block_of(one)}, "{placement.ttl_of(one)}"),'
    yield "    ]"


def _block_of(primitive: Primitive) -> str:
    """A Python expression for the block that a primitive chooses. Raises ValueError where there is none."""
    match primitive:
        case LastTool():
            return "_last(tools)"
        case SystemBlock(which="first"):
            return "_last(system[::-1])"
        case SystemBlock(which="last"):
            return "_last(system)"
        case FirstN(role="any", n=1, block="last"):
            return "_last(chain(*messages[:1]))"
        case LastMessage(block="last"):
            return "_last(chain(*messages))"
        case TurnBoundary(n=1, role="human"):
            return "_last(chain(*messages[:human]))"
        case Hint(offset=offset):
            return f"_last(chain(*messages[:-{offset}]))"
        case Lag(blocks=blocks):
            return f"_last([*chain(*messages)][:-{blocks}])"
    raise ValueError(f"no client code for {primitive!r}")


def _words(primitive: Primitive) -> str:
    match primitive:
        case LastTool():
            return "the last tool"
        case SystemBlock(which=which):
            return f"the {which} system block"
        case FirstN():
            return "the end of the first message"
        case LastMessage():
            return "the end of the last message"
        case TurnBoundary():
            return "what comes before the last human message"
        case Hint(offset=offset):
            return f"the end of the message {offset} before the last"
        case Lag(blocks=blocks):
            return f"{blocks} blocks before the end"
    raise ValueError(f"no words for {primitive!r}")
