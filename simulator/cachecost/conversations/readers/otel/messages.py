"""Reads the request and the answer of a span from its attributes, in every convention that records them.

Source: the JSON schemas of the GenAI conventions (semantic-conventions-genai, schema 1.42, 2026) for parts, on
OpenLLMetry's instrumentations and OpenInference's specification (2026) for `gen_ai.prompt.N.…` and
`llm.input_messages.N.message.…`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachecost.base.limits import whole_number
from cachecost.conversations.readers.apis.formats import Body, answer_of, body_from
from cachecost.conversations.readers.apis.openai import SHORT, Turns, from_chat_message, tool_use, tools
from cachecost.conversations.readers.call_builder import parse_json_text
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, require_object
from cachecost.prompts.request import BREAKPOINT, NotAMessage

Attributes = Mapping[str, Any]
Events = Sequence[tuple[str, Attributes]]
ROLES = {"tool": "user", "function": "user", "developer": "system", "model": "assistant", "human": "user"}
RESULTS = ("tool", "function")
EVENT_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
"""Events that are a message each (conventions 1.28 to 1.36)."""
CHOICE = "gen_ai.choice"


def request_of(attributes: Attributes, events: Events) -> Body | None:
    """The body without its model, from the first convention that has one; None without any. Raises NotAMessage."""
    for reading in (_from_raw_request, _from_messages, _from_indexed_prompts, _from_openinference, _from_prompt):
        body = reading(attributes)
        if body is not None:
            return body
    messages = [{"role": EVENT_ROLES[name], **_event_fields(event)} for name, event in events if name in EVENT_ROLES]
    return _conversation((str(one["role"]), _blocks(str(one["role"]), one)) for one in messages) if messages else None


def answer_of_span(attributes: Attributes, events: Events) -> list[Body] | str:
    """The blocks of the answer, from the first convention that has one. Raises NotAMessage."""
    output = parse_json_text(attributes.get("output.value"))
    if isinstance(output, Mapping) and ("choices" in output or isinstance(output.get("content"), list)):
        return answer_of(output)
    messages = parse_json_text(attributes.get("gen_ai.output.messages"))
    if isinstance(messages, list) and messages:
        return _message(messages[0], "gen_ai.output.messages.0")[1]
    blocks: list[Body] = []
    for one in indexed_objects(attributes, "gen_ai.completion"):
        if one.get("role") != "thinking":
            blocks += _blocks("assistant", one)
            break
        blocks.append({"type": "thinking", "thinking": one.get("content")})
    outputs = indexed_objects(attributes, "llm.output_messages")
    if outputs and not blocks:
        blocks = _openinference_blocks(outputs[0].get("message", {}))
    return blocks or _answer_before_1_37(attributes, events)


def is_cut(value: Any) -> bool:
    """Whether an attribute was JSON before it was cut at the limit of its length."""
    return isinstance(value, str) and value.lstrip()[:2] in ("[{", '{"') and isinstance(parse_json_text(value), str)


def _conversation(messages: Iterable[tuple[str, list[Body]]]) -> Body:
    turns = Turns()
    for role, blocks in messages:
        turns.add(ROLES.get(role, role), blocks, result=role in RESULTS)
    return turns.body()


def _from_raw_request(attributes: Attributes) -> Body | None:
    body = parse_json_text(attributes.get("input.value"))
    if not isinstance(body, Mapping):
        return None
    messages = body.get("messages", body.get("input") if "model" in body else None)
    are_messages = isinstance(messages, list) and all(isinstance(one, Mapping) and "role" in one for one in messages)
    return body_from(body) if are_messages else None


def _from_messages(attributes: Attributes) -> Body | None:
    name, head = "gen_ai.input.messages", "gen_ai.system_instructions"
    messages = parse_json_text(attributes.get(name))
    if not messages or is_cut(messages):
        return None
    if isinstance(messages, str):
        messages = [{"role": "user", "parts": messages}]
    items = array_at(messages, name, "an array of messages")
    body = _conversation(_message(item, f"{name}.{number}") for number, item in enumerate(items))
    instructions = parse_json_text(attributes.get(head))
    system = [*(blocks_of(instructions, head) if instructions else []), *body.get("system", [])]
    definitions = parse_json_text(attributes.get("gen_ai.tool.definitions"))
    found = _tools(definitions, "gen_ai.tool.definitions") if definitions else []
    return {**body, **({"system": system} if system else {}), **({"tools": found} if found else {})}


def _from_indexed_prompts(attributes: Attributes) -> Body | None:
    messages = indexed_objects(attributes, "gen_ai.prompt")
    if not messages:
        return None
    body = _conversation((str(one.get("role", "user")), _blocks(str(one.get("role", "user")), one)) for one in messages)
    functions = indexed_objects(attributes, "llm.request.functions")
    return {**body, **({"tools": _tools(functions, "llm.request.functions")} if functions else {})}


def _from_openinference(attributes: Attributes) -> Body | None:
    messages = [one.get("message", {}) for one in indexed_objects(attributes, "llm.input_messages")]
    redacted = [name for name, value in attributes.items() if value == "__REDACTED__"]
    if not messages or any(name.endswith(("content", ".text")) for name in redacted):
        return None
    body = _conversation((str(one.get("role", "user")), _openinference_blocks(one)) for one in messages)
    definitions = [one["tool"] for one in indexed_objects(attributes, "llm.tools") if "tool" in one]
    schemas = [parse_json_text(one.get("json_schema")) for one in definitions]
    stated = parse_json_text(attributes.get("llm.invocation_parameters"))
    names = ("system", "thinking", "max_tokens", "output_config")
    more = {name: value for name, value in object_or_empty(stated).items() if name in names}
    return {**more, **body, **({"tools": _tools(schemas, "llm.tools")} if schemas else {})}


def _from_prompt(attributes: Attributes) -> Body | None:
    prompt = parse_json_text(attributes.get("gen_ai.prompt"))
    if not prompt or is_cut(prompt):
        return None
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    return body_from(prompt if isinstance(prompt, Mapping) and "messages" in prompt else {"messages": messages})


def _event_fields(event: Attributes) -> dict[str, Any]:
    return {name: value if name == "content" else parse_json_text(value) for name, value in event.items()}


def _answer_before_1_37(attributes: Attributes, events: Events) -> list[Body] | str:
    completion = parse_json_text(attributes.get("gen_ai.completion"))
    first = completion[0] if isinstance(completion, list) and completion else completion
    if isinstance(first, Mapping):
        return from_chat_message(first)
    if isinstance(first, str):
        return first
    choice = next((_event_fields(event) for name, event in events if name == CHOICE), {})
    message = choice.get("message", choice)
    return _blocks("assistant", message) if isinstance(message, Mapping) else _content(message)


def _message(message: Any, path: str) -> tuple[str, list[Body]]:
    """A message of parts; some tracers write OpenAI's `content` in their place."""
    require_object(message, path, "a message object")
    role = str(message.get("role"))
    return role, blocks_of(message["parts"], f"{path}.parts") if "parts" in message else _blocks(role, message)


def _blocks(role: str, message: Mapping[str, Any]) -> list[Body]:
    """OpenLLMetry writes an Anthropic tool call twice: in the content, and as a tool call."""
    content, called = message.get("content", message.get("user")), message.get("tool_call_id", message.get("id"))
    if role in RESULTS and called:
        return [_tool_result(called, _unpack_blocks(content))]
    blocks = _content(content)
    known = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else in_order(calls)
    return blocks + [call for call in map(_call, calls) if call["id"] is None or call["id"] not in known]


def _content(content: Any) -> list[Body]:
    found = _unpack_blocks(content)
    if found is None or found == "":
        return []
    return blocks_of(found if isinstance(found, (str, list)) else json.dumps(found, ensure_ascii=False), "content")


def _unpack_blocks(content: Any) -> Any:
    """Blocks that are a JSON string, parsed; any other content unchanged."""
    found = parse_json_text(content)
    return found if _are_blocks(found) else content


def _are_blocks(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) and "type" in one for one in value)


def _call(call: Any) -> Body:
    require_object(call, "tool_calls", "a tool call")
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    return tool_use(call.get("id"), str(inner.get("name")), inner.get("arguments"))


def _openinference_blocks(message: Mapping[str, Any]) -> list[Body]:
    calls = [one.get("tool_call", {}) for one in in_order(message.get("tool_calls"))]
    parts = [one.get("message_content", {}) for one in in_order(message.get("contents"))]
    if not parts:
        return _blocks(str(message.get("role")), {**message, "tool_calls": calls})
    blocks: list[Body] = []
    for part in parts:
        kind = part.get("type", "text")
        if kind == "reasoning" and "data" in part:
            blocks.append({"type": "redacted_thinking", "data": part["data"]})
        elif kind == "reasoning":
            blocks.append({"type": "thinking", "thinking": part.get("text"), "signature": part.get("signature")})
        elif kind in ("image", "image_url"):
            image = object_or_empty(part.get("image"))
            url = object_or_empty(image.get("image", image)).get("url")
            blocks.append({"type": "image", "source": {"type": "url", "url": url}})
        else:
            blocks.append({**part, "type": kind})
    return blocks + list(map(_call, calls))


def blocks_of(parts: Any, path: str) -> list[Body]:
    """The blocks of `parts`, which may be a string. Raises NotAMessage."""
    if isinstance(parts, str):
        return [{"type": "text", "text": parts}]
    blocks = []
    for number, part in enumerate(array_at(parts, path, "an array of parts")):
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
            continue
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise NotAMessage(f"{path}.{number}", "a part with a type", part)
        breakpoint = {BREAKPOINT: part[BREAKPOINT]} if BREAKPOINT in part else {}
        blocks.append({**_convert_part(part), **breakpoint})
    return blocks


def _convert_part(part: Mapping[str, Any]) -> Body:
    """A part as a block; an unknown kind stays unchanged."""
    kind, modality = part["type"], part.get("modality")
    if kind == "text":
        return {"type": "text", "text": part.get("content", part.get("text"))}
    if kind == "reasoning":
        signature = {"signature": part["signature"]} if part.get("signature") else {}
        return {"type": "thinking", "thinking": part.get("content"), **signature}
    if kind == "tool_call":
        return tool_use(part.get("id"), str(part.get("name")), part.get("arguments"))
    if kind == "tool_call_response":
        return _tool_result(part.get("id"), part.get("response", part.get("result")))
    sources = {
        "blob": {"type": "base64", "media_type": part.get("mime_type"), "data": part.get("content")},
        "uri": {"type": "url", "url": part.get("uri")},
        "file": {"type": "file", "file_id": part.get("file_id")},
    }
    return (
        {"type": modality, "source": sources[kind]}
        if kind in sources and modality in ("image", "document")
        else dict(part)
    )


def _tool_result(id_: Any, content: Any) -> Body:
    """A tool_result block. Content that is neither a string nor blocks becomes JSON."""
    if _are_blocks(content):
        content = blocks_of(content, "response")
    elif content is not None and not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": id_, **({} if content is None else {"content": content})}


def _tools(definitions: Any, path: str) -> list[Body]:
    """Tools of definitions, which and whose schemas may stand as texts. Raises NotAMessage."""
    found = []
    for one in map(parse_json_text, array_at(definitions, path, "an array of tools")):
        stated = {name: value for name, value in one.items() if value is not None} if isinstance(one, Mapping) else {}
        schemas = {name: parse_json_text(stated[name]) for name in ("parameters", "input_schema") if name in stated}
        found.append({**stated, **schemas} if isinstance(one, Mapping) else one)
    return tools(found, path, SHORT)


def indexed_objects(attributes: Attributes, prefix: str) -> list[dict[str, Any]]:
    """What stands under `prefix.0.…`, `prefix.1.…` as objects, in order of the numbers."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        *outer, last = name.removeprefix(f"{prefix}.").split(".")
        tree: Any = root
        for one in outer:
            tree = tree.setdefault(one, {}) if isinstance(tree, dict) else None
        if isinstance(tree, dict):
            tree.setdefault(last, value)
    return in_order(root)


def in_order(tree: Any) -> list[dict[str, Any]]:
    """The objects of a tree whose names are numbers."""
    if not isinstance(tree, dict):
        return []
    numbers = sorted((number, name) for name in tree if (number := whole_number(name)) is not None)
    return [tree[name] for _, name in numbers if isinstance(tree[name], dict)]
