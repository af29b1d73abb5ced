"""Converts requests and outputs of OpenAI's Responses API to the Messages API.

Items become blocks: messages and reasoning, calls of tools and what they returned. An item of another kind (searches
and runs of OpenAI's own tools, compaction) is a block as it stands, said by the assistant. What a
`previous_response_id` or a `conversation` brings in is on OpenAI's side, and not in the body. How many of the system
blocks are `instructions` is a parameter, as some models do not cache those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, require_object
from cachecost.conversations.readers.openai.chat import (
    SHORT,
    Body,
    Turns,
    copy_breakpoint,
    implicit_breakpoint,
    model_with_mode,
    parameters,
    parts,
    role_of,
    tool_result,
    tool_settings,
    tool_use,
    ttl_parameter,
    verbosity,
)
from cachecost.prompts.request import NotAMessage

ROLES = ("assistant", "developer", "system", "user")
LIMITS = ("max_output_tokens", "max_tokens")


def from_responses(body: Mapping[str, Any]) -> Body:
    """A Responses request as a Messages body. Raises NotAMessage with the path in `body`."""
    breakpoint, turns = ttl_parameter(body), Turns()
    instructions = body.get("instructions")
    if isinstance(instructions, list):
        _add_all(turns, instructions, "instructions", breakpoint)
    elif instructions is not None:
        turns.add("system", parts(instructions, "instructions", breakpoint))
    told = {"instruction_blocks": len(turns.system)} if turns.system else {}
    given = body.get("input")
    if isinstance(given, str):
        turns.add("user", parts(given, "input", breakpoint))
    elif given is not None or body.get("prompt") is None:
        _add_all(turns, given, "input", breakpoint)
    own = implicit_breakpoint(body, given, breakpoint)
    reasoning, text = object_or_empty(body.get("reasoning")), object_or_empty(body.get("text"))
    return {
        "model": model_with_mode(body),
        **told,
        **own,
        **parameters(body, LIMITS, reasoning.get("effort"), text.get("format")),
        **verbosity(text.get("verbosity")),
        **tool_settings(body.get("tools"), body.get("tool_choice"), body.get("parallel_tool_calls"), breakpoint),
        **turns.body(),
    }


def from_responses_output(output: list[Any]) -> list[Body]:
    """The blocks of an `output`. Raises NotAMessage."""
    turns = Turns()
    _add_all(turns, output, "output", SHORT)
    return [block for message in ({"content": turns.system}, *turns.messages) for block in message["content"]]


def _add_all(turns: Turns, items: Any, path: str, breakpoint: Body) -> None:
    expected = "a text or an array of items" if path == "input" else "an array of items"
    for number, item in enumerate(array_at(items, path, expected)):
        place = f"{path}.{number}"
        _add(turns, require_object(item, place, "an item object"), place, breakpoint)


def _add(turns: Turns, item: Mapping[str, Any], path: str, breakpoint: Body) -> None:
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        role = role_of(item, path, ROLES)
        blocks = parts(item.get("content"), f"{path}.content", breakpoint)
        turns.add("system" if role == "developer" else role, blocks, joins=role == "assistant")
    elif str(kind).endswith("_output"):
        result = copy_breakpoint(
            tool_result(item.get("call_id"), _tool_output(item, path, breakpoint)), item, breakpoint
        )
        turns.add("user", [result], result=True)
    elif isinstance(kind, str) and kind in ITEMS:
        turns.add("assistant", ITEMS[kind](item), joins=True)
    elif isinstance(kind, str) or "id" in item:
        turns.add("assistant", [{"type": "item_reference", **item}], joins=True)
    else:
        raise NotAMessage(f"{path}.type", "the item's type", kind)


def _tool_output(item: Mapping[str, Any], path: str, breakpoint: Body) -> list[Body]:
    """What a tool returned: a text, parts, or an object of its own kind."""
    told = item.get("output")
    if isinstance(told, Mapping) or (
        isinstance(told, list)
        and not all((isinstance(one, Mapping) and str(one.get("type")).startswith("input_")) for one in told)
    ):
        return [{"type": "text", "text": json.dumps(told)}]
    return parts(told, f"{path}.output", breakpoint)


def _function(item: Mapping[str, Any]) -> list[Body]:
    return [tool_use(item.get("call_id"), str(item.get("name")), item.get("arguments"))]


def _custom(item: Mapping[str, Any]) -> list[Body]:
    return [tool_use(item.get("call_id"), str(item.get("name")), item.get("input"))]


def _reasoning(item: Mapping[str, Any]) -> list[Body]:
    """A thinking block: the summary is what is shown, the encrypted content what is sent."""
    told = [item[name] for name in ("summary", "content") if isinstance(item.get(name), list)]
    pieces = [piece for one in told for piece in one if isinstance(piece, Mapping)]
    sealed = {"signature": item["encrypted_content"]} if item.get("encrypted_content") else {}
    return [{"type": "thinking", "thinking": "\n\n".join(str(piece.get("text") or "") for piece in pieces), **sealed}]


ITEMS: dict[Any, Callable[[Mapping[str, Any]], list[Body]]] = {
    "function_call": _function,
    "custom_tool_call": _custom,
    "reasoning": _reasoning,
}
