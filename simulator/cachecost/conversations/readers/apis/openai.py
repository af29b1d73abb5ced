"""Converts requests and answers of OpenAI's Chat Completions and Responses APIs to the Messages API.

Read from the types of OpenAI's SDKs and its API reference (November 2026), and from what gateways add to them:
`cache_control` on parts, messages and tools (LiteLLM, OpenRouter), `thinking_blocks` (LiteLLM), `reasoning_content`
(DeepSeek and others). `prompt_cache_breakpoint` becomes a breakpoint; its 30 minutes become our 5m TTL. The model of a
request in explicit mode becomes the one that caches so (`gpt-6.1-sol-explicit`).

Instructions at the start (role system or developer) are the system prompt; later ones stay in place.
Results of tools that follow each other are one user message. Parameters that do not affect the prompt are dropped.

Items of Responses become blocks: messages and reasoning, calls of tools and what they returned. An item of another kind
(searches and runs of OpenAI's own tools, compaction) is an unchanged block of the assistant. What a
`previous_response_id` or a `conversation` brings in is on OpenAI's side, and not in the body. How many of the system
blocks are `instructions` is a parameter, as some models do not cache those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachecost.base.errors import nearest
from cachecost.base.limits import json_value
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, objects_in, require_object
from cachecost.prompts.intake import PARAMETERS
from cachecost.prompts.request import BREAKPOINT, NotAMessage
from cachecost.providers.hosts import model_at

Body = dict[str, Any]
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,(.*)", re.DOTALL)
OPENAI_BREAKPOINT = "prompt_cache_breakpoint"
BREAKPOINTS = (BREAKPOINT, OPENAI_BREAKPOINT)
TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
IMAGES = ("image_url", "input_image", "computer_screenshot")
SHORT: Body = {"type": "ephemeral"}
EXPLICIT = "explicit"
CHOICES = {"auto": "auto", "none": "none", "required": "any", "any": "any"}


def ttl_parameter(body: Mapping[str, Any]) -> Body:
    """The `cache_control` of each breakpoint of a request, implicit ones too, that has no TTL of its own."""
    return _breakpoint(object_or_empty(body.get("prompt_cache_options")).get("ttl"))


def _breakpoint(ttl: Any) -> Body:
    return {**SHORT, "ttl": "1h"} if ttl in ("1h", "12h", "24h") else SHORT


def cache_parameters(body: Mapping[str, Any], pieces: Any, breakpoint: Body) -> Body:
    """The model of a request, and the breakpoint that OpenAI places itself.

    The model has the mode of its cache where that is explicit, and how long entries are kept where that is asked
    for: the id of those rules. A gateway sends other makers' models the same parameters: they have no such mode. The
    breakpoint stands only where `pieces` (messages or items) or their parts have some of the client's too, or where it
    has another TTL than the host's default: without it, breakpoints alone would mean that the host places none. In
    explicit mode it does not.
    """
    model = body.get("model")
    options = object_or_empty(body.get("prompt_cache_options"))
    for way in (body.get("prompt_cache_retention"), options.get("ttl")):
        if isinstance(model, str) and isinstance(way, str):
            model = model_at(model, way.replace("_", "-"))
    if options.get("mode") == EXPLICIT:
        if isinstance(model, str) and "gpt-" in model:
            model = f"{model.removesuffix(f'-{EXPLICIT}')}-{EXPLICIT}"
        return {"model": model}
    outer = objects_in(pieces)
    inner = [part for piece in outer for name in ("content", "output") for part in objects_in(piece.get(name))]
    has_own = any(one.get(OPENAI_BREAKPOINT) for one in (*outer, *inner))
    is_long = breakpoint is not SHORT and "gpt-" in str(model)
    return {"model": model, **({BREAKPOINT: breakpoint} if has_own or is_long else {})}


def copy_breakpoint(block: Body, raw: Mapping[str, Any], breakpoint: Body) -> Body:
    """`block` with the breakpoint of `raw`: a `cache_control` (gateways accept it), or OpenAI's own. Its TTL wins over
    the request's."""
    theirs = raw.get(OPENAI_BREAKPOINT)
    if isinstance(theirs, Mapping) and theirs.get("ttl") is not None:
        breakpoint = _breakpoint(theirs["ttl"])
    own = raw.get(BREAKPOINT) or (breakpoint if theirs else None)
    return {**block, BREAKPOINT: own} if own else block


def parts(content: Any, path: str, breakpoint: Body) -> list[Body]:
    """The blocks of a `content`: a text, parts, or nothing. Raises NotAMessage."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = array_at(content, path, "a text or an array of parts")
    return [part(one, f"{path}.{number}", breakpoint) for number, one in enumerate(items)]


def part(raw: Any, path: str, breakpoint: Body) -> Body:
    """The block of one content part; an unknown kind stays unchanged."""
    kind = require_object(raw, path, "a content part object").get("type")
    if not isinstance(kind, str):
        raise NotAMessage(f"{path}.type", "the part's type", kind)
    if kind in TEXTS or kind == "refusal":
        name = "refusal" if kind == "refusal" else "text"
        if not isinstance(raw.get(name), str):
            raise NotAMessage(f"{path}.{name}", "a text", raw.get(name))
        block = {"type": "text", "text": raw[name]}
    elif kind in IMAGES:
        image = raw.get("image_url")
        inner = image if isinstance(image, Mapping) else raw
        url = inner.get("url") if isinstance(image, Mapping) else image
        if url is None and raw.get("file_id") is None:
            raise NotAMessage(f"{path}.image_url", "an image's URL", None)
        detail = inner.get("detail") or "auto"  # it decides the tokens
        block = {"type": "image", "source": _source(url, raw), **({} if detail == "auto" else {"detail": detail})}
    elif kind in ("file", "input_file"):
        inner = raw["file"] if isinstance(raw.get("file"), Mapping) else raw
        title = {"title": inner["filename"]} if inner.get("filename") else {}
        block = {"type": "document", "source": _source(inner.get("file_data") or inner.get("file_url"), inner), **title}
    else:
        block = {name: value for name, value in raw.items() if name not in BREAKPOINTS}
    return copy_breakpoint(block, raw, breakpoint)


def _source(url: Any, file: Mapping[str, Any]) -> Body:
    data = DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if data:
        return {"type": "base64", "media_type": data[1], "data": data[2]}
    return {"type": "file", "file_id": file.get("file_id")} if url is None else {"type": "url", "url": url}


def parse_json(text: Any) -> Any:
    """The value of a text that is JSON; any other text, and what is none, as it is."""
    try:
        return json_value(text) if isinstance(text, str) else text
    except ValueError:
        return text


def tool_use(called: Any, name: str, arguments: Any) -> Body:
    """A call of a tool. Arguments that are no JSON object stay the text that the model wrote."""
    given = {} if arguments is None else arguments
    value = parse_json("{}" if given == "" else given)
    return {"type": "tool_use", "id": called, "name": name, "input": value if isinstance(value, dict) else given}


def tool_result(called: Any, blocks: list[Body]) -> Body:
    """The tool_result block; a single text is written as a string."""
    alone = blocks[0] if len(blocks) == 1 else {}
    plain = alone.get("type") == "text" and BREAKPOINT not in alone
    return {"type": "tool_result", "tool_use_id": called, "content": alone["text"] if plain else blocks}


def tools(raw: Any, path: str, breakpoint: Body) -> list[Body]:
    """The definitions. A function's stands in Chat under "function", in Responses on the tool itself."""
    found = []
    for number, item in enumerate(array_at(raw, path, "an array of tools")):
        stated = require_object(item, f"{path}.{number}", "a tool object")
        kind = stated.get("type")
        inner = stated.get(str(kind))
        tool = inner if isinstance(inner, Mapping) else stated
        if kind == "function" or (kind is None and "parameters" in stated):
            names = {"name": "name", "description": "description", "parameters": "input_schema"}
            more = {name: tool[name] for name in ("strict", "defer_loading") if tool.get(name)}
            block = {ours: tool[theirs] for theirs, ours in names.items() if tool.get(theirs) is not None} | more
        else:
            block = dict(stated) if tool is stated else {"type": kind, **tool}
        bare = {name: value for name, value in block.items() if name not in BREAKPOINTS}
        found.append(copy_breakpoint(copy_breakpoint(bare, tool, breakpoint), stated, breakpoint))
    return found


def tool_settings(definitions: Any, tool_choice: Any, parallel: Any, breakpoint: Body) -> Body:
    """`tools` and `tool_choice`, as far as they are set. Raises NotAMessage."""
    chosen = choice(tool_choice, parallel if definitions else None)
    return {
        **({"tools": tools(definitions, "tools", breakpoint)} if definitions is not None else {}),
        **({"tool_choice": chosen} if chosen else {}),
    }


def choice(raw: Any, parallel: Any) -> Body | None:
    """The `tool_choice`, or None. Raises NotAMessage."""
    chosen: Body | None = None
    if isinstance(raw, str) and raw in CHOICES:
        chosen = {"type": CHOICES[raw]}
    elif isinstance(raw, Mapping):
        kind = str(raw.get("type"))
        inner = raw[kind] if isinstance(raw.get(kind), Mapping) else raw
        if kind in ("auto", "any", "none"):
            chosen = dict(raw)
        elif kind == "allowed_tools":
            chosen = {"type": CHOICES.get(str(inner.get("mode")), "auto")}
        else:
            chosen = {"type": "tool", "name": inner.get("name") or kind}
    elif raw is not None:
        raise NotAMessage("tool_choice", "auto, none, required or an object", raw)
    if parallel is False and (chosen or {}).get("type") != "none":
        return {**(chosen or {"type": "auto"}), "disable_parallel_tool_use": True}
    return chosen


def parameters(body: Mapping[str, Any], limits: Iterable[str], effort: Any, format_: Any) -> Body:
    """What else shapes the prompt: the limit of the output, effort and format; and what gateways take as ours.

    OpenAI's own `context_management` is an array, and no part of the prompt.
    """
    kept = {name: body[name] for name in (*PARAMETERS, BREAKPOINT) if body.get(name) is not None}
    kept.pop("tool_choice", None)
    if isinstance(kept.get("context_management"), list):
        del kept["context_management"]
    limit = next((body[name] for name in limits if body.get(name) is not None), None)
    config = {} if effort is None else {"effort": effort}
    if isinstance(format_, Mapping) and format_.get("type") not in (None, "text"):
        inner = format_.get("json_schema")  # Chat nests the schema in it, Responses does not
        schema = (inner if isinstance(inner, Mapping) else format_).get("schema")
        config["format"] = {"type": format_["type"], **({} if schema is None else {"schema": schema})}
    ours = kept.get("output_config") or {}
    return {
        **kept,
        **({} if limit is None else {"max_tokens": limit}),
        **({"output_config": {**config, **ours}} if config and isinstance(ours, Mapping) else {}),
    }


def role_of(message: Mapping[str, Any], path: str, roles: Sequence[str]) -> str:
    """The role of a message, which is one of `roles`. Raises NotAMessage."""
    role = message.get("role")
    if role not in roles:
        raise NotAMessage(f"{path}.role", f"one of {', '.join(roles)}", role, nearest(str(role), roles))
    return str(role)


class Turns:
    """Collects system blocks and messages. Consecutive pieces of one message are joined."""

    def __init__(self) -> None:
        self.system: list[Body] = []
        self.messages: list[dict[str, Any]] = []
        self._open = ""

    def add(self, role: str, blocks: Sequence[Body], result: bool = False, joins: bool = False) -> None:
        """Add one piece. `result`: a tool result, joined to the results before it; `joins`: joined to the piece before
        it if that has the same role."""
        kind = "result" if result else role if joins else ""
        if role == "system" and not self.messages:
            self.system += blocks
        elif kind and kind == self._open:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": list(blocks)})
        self._open = kind

    def body(self) -> Body:
        """The fields of a Messages body."""
        return {**({"system": self.system} if self.system else {}), "messages": self.messages}


LIMITS = ("max_completion_tokens", "max_tokens")


def from_chat(body: Mapping[str, Any]) -> Body:
    """A Chat Completions request as a Messages body. Raises NotAMessage with the path in `body`."""
    messages = array_at(body.get("messages"), "messages", "an array of messages")
    breakpoint, turns = ttl_parameter(body), Turns()
    for number, raw in enumerate(messages):
        path = f"messages.{number}"
        message = require_object(raw, path, "a message object")
        role = role_of(message, path, ("assistant", "developer", "function", "system", "tool", "user"))
        if role == "assistant":
            turns.add("assistant", from_chat_message(message, path, breakpoint))
            continue
        blocks = parts(message.get("content"), f"{path}.content", breakpoint)
        if role in ("tool", "function"):
            result = tool_result(message.get("tool_call_id") or message.get("name"), blocks)
            turns.add("user", [copy_breakpoint(result, message, breakpoint)], result=True)
        else:
            turns.add("user" if role == "user" else "system", _breakpoint_last_block(blocks, message, breakpoint))
    definitions = body.get("tools") if body.get("tools") is not None else body.get("functions")
    chosen, old = body.get("tool_choice"), body.get("function_call")
    if chosen is None:
        chosen = {"type": "function", **old} if isinstance(old, Mapping) else old
    return {
        **cache_parameters(body, messages, breakpoint),
        **parameters(body, LIMITS, body.get("reasoning_effort"), body.get("response_format")),
        **tool_settings(definitions, chosen, body.get("parallel_tool_calls"), breakpoint),
        **turns.body(),
    }


def _breakpoint_last_block(blocks: list[Body], message: Mapping[str, Any], breakpoint: Body) -> list[Body]:
    if not blocks or BREAKPOINT in blocks[-1]:
        return blocks
    return [*blocks[:-1], copy_breakpoint(blocks[-1], message, breakpoint)]


def from_chat_message(message: Mapping[str, Any], path: str = "message", breakpoint: Body = SHORT) -> list[Body]:
    """The blocks of an assistant's message: thinking, text, calls of tools. Raises NotAMessage."""
    content, thinking = message.get("content"), message.get("thinking_blocks")
    shown = [] if content == "" else parts(content, f"{path}.content", breakpoint)
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thinking, list) and thinking:
        place = f"{path}.thinking_blocks"
        blocks = [dict(require_object(one, f"{place}.{n}", "a block object")) for n, one in enumerate(thinking)]
    else:
        blocks = [{"type": "thinking", "thinking": thought}] if isinstance(thought, str) else []
    blocks += shown
    if isinstance(message.get("refusal"), str):
        blocks.append({"type": "text", "text": message["refusal"]})
    place, old = f"{path}.tool_calls", message.get("function_call")
    calls = array_at(message.get("tool_calls") or [], place, "an array of calls")
    for number, one in enumerate(calls):
        raw = require_object(one, f"{place}.{number}", "a call object")
        call = raw.get(str(raw.get("type") or "function"))
        if isinstance(call, Mapping):
            arguments = call.get("input" if raw.get("type") == "custom" else "arguments")
            blocks.append(tool_use(raw.get("id"), str(call.get("name")), arguments))
        elif "type" in raw:
            blocks.append(dict(raw))
        else:
            blocks.append(tool_use(raw.get("id"), str(raw.get("name")), raw.get("arguments")))
    if isinstance(old, Mapping):
        blocks.append(tool_use(old.get("name"), str(old.get("name")), old.get("arguments")))
    return _breakpoint_last_block(blocks, message, breakpoint)


def from_responses(body: Mapping[str, Any]) -> Body:
    """A Responses request as a Messages body. Raises NotAMessage with the path in `body`."""
    breakpoint, turns = ttl_parameter(body), Turns()
    instructions, items = body.get("instructions"), body.get("input")
    if isinstance(instructions, list):
        _add_items(turns, instructions, "instructions", breakpoint)
    elif instructions is not None:
        turns.add("system", parts(instructions, "instructions", breakpoint))
    counted = {"instruction_blocks": len(turns.system)} if turns.system else {}
    if isinstance(items, str):
        turns.add("user", parts(items, "input", breakpoint))
    elif items is not None or body.get("prompt") is None:
        _add_items(turns, items, "input", breakpoint)
    reasoning, text = object_or_empty(body.get("reasoning")), object_or_empty(body.get("text"))
    return {
        **cache_parameters(body, items, breakpoint),
        **counted,
        **parameters(body, ("max_output_tokens", "max_tokens"), reasoning.get("effort"), text.get("format")),
        **({} if text.get("verbosity") is None else {"verbosity": text["verbosity"]}),
        **tool_settings(body.get("tools"), body.get("tool_choice"), body.get("parallel_tool_calls"), breakpoint),
        **turns.body(),
    }


def from_responses_output(output: list[Any]) -> list[Body]:
    """The blocks of an `output`. Raises NotAMessage."""
    turns = Turns()
    _add_items(turns, output, "output", SHORT)
    return [block for message in ({"content": turns.system}, *turns.messages) for block in message["content"]]


def _add_items(turns: Turns, items: Any, path: str, breakpoint: Body) -> None:
    expected = "a text or an array of items" if path == "input" else "an array of items"
    for number, item in enumerate(array_at(items, path, expected)):
        place = f"{path}.{number}"
        _add_item(turns, require_object(item, place, "an item object"), place, breakpoint)


def _add_item(turns: Turns, item: Mapping[str, Any], path: str, breakpoint: Body) -> None:
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        role = role_of(item, path, ("assistant", "developer", "system", "user"))
        blocks = parts(item.get("content"), f"{path}.content", breakpoint)
        turns.add("system" if role == "developer" else role, blocks, joins=role == "assistant")
    elif str(kind).endswith("_output"):
        output = item.get("output")
        pieces = [output] if isinstance(output, Mapping) else output  # one piece: what a computer shows
        if isinstance(pieces, list):
            kinds = [str(one.get("type")) if isinstance(one, Mapping) else "" for one in pieces]
            is_shown = all(kind in IMAGES or kind.startswith("input_") for kind in kinds)
            output = pieces if is_shown else json.dumps(output)
        result = tool_result(item.get("call_id"), parts(output, f"{path}.output", breakpoint))
        turns.add("user", [copy_breakpoint(result, item, breakpoint)], result=True)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments" if kind == "function_call" else "input")
        turns.add("assistant", [tool_use(item.get("call_id"), str(item.get("name")), arguments)], joins=True)
    elif kind == "reasoning":
        # the summary is what is shown, the encrypted content what is sent
        pieces = [piece for name in ("summary", "content") for piece in objects_in(item.get(name))]
        shown = "\n\n".join(str(piece.get("text") or "") for piece in pieces)
        sealed = {"signature": item["encrypted_content"]} if item.get("encrypted_content") else {}
        turns.add("assistant", [{"type": "thinking", "thinking": shown, **sealed}], joins=True)
    elif isinstance(kind, str) or "id" in item:
        turns.add("assistant", [{"type": "item_reference", **item}], joins=True)
    else:
        raise NotAMessage(f"{path}.type", "the item's type", kind)
