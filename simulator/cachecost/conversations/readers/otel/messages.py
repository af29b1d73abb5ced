"""Reads the request and the answer of a span from its attributes, in every convention that records them.

In order: the request as OpenInference got it (with its breakpoints), the GenAI conventions since 1.37,
OpenLLMetry's one attribute a field, OpenInference's, and the conventions before 1.37: `gen_ai.prompt`, or an event
a message.

Which spans are calls of a model: each call once, however many tracers wrote it down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cachecost.conversations.readers.common.dialects import Body, answer_of, body_from, parse_json_text
from cachecost.conversations.readers.common.json_values import array_at, require_object
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.openai.chat import from_chat_message, tool_use
from cachecost.conversations.readers.otel.parts import (
    RESULTS,
    blocks_of,
    conversation,
    in_order,
    indexed_objects,
    tool_result,
    tools_of,
)
from cachecost.conversations.readers.otel.spans import OtelSpan

Attributes = Mapping[str, Any]
Events = Sequence[tuple[str, Attributes]]
DETAILS = "gen_ai.client.inference.operation.details"
IN_EVENTS = (DETAILS, "gen_ai.content.prompt", "gen_ai.content.completion")
"""Events whose attributes are those of the call."""
ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
"""Events that are a message each (conventions 1.28 to 1.36)."""
CHOICE = "gen_ai.choice"
REDACTED = "__REDACTED__"
INVOCATION = ("system", "thinking", "max_tokens", "output_config")


def request_of(told: Attributes, events: Events) -> Body | None:
    """The body without its model, from the first convention that has one; None without any. Raises NotAMessage."""
    for reading in (_from_raw_request, _from_messages, _from_indexed_prompts, _from_openinference, _from_prompt):
        body = reading(told)
        if body is not None:
            return body
    messages = [{"role": ROLES[name], **_event_fields(event)} for name, event in events if name in ROLES]
    return conversation((str(one["role"]), _blocks(str(one["role"]), one)) for one in messages) if messages else None


def answer_of_span(told: Attributes, events: Events) -> list[Body] | str:
    """The blocks of the answer, from the first convention that has one. Raises NotAMessage."""
    output = parse_json_text(told.get("output.value"))
    if isinstance(output, Mapping) and ("choices" in output or isinstance(output.get("content"), list)):
        return answer_of(output)
    messages = parse_json_text(told.get("gen_ai.output.messages"))
    if isinstance(messages, list) and messages:
        return _message(messages[0], "gen_ai.output.messages.0")[1]
    blocks = list(_first(indexed_objects(told, "gen_ai.completion")))
    outputs = indexed_objects(told, "llm.output_messages")
    return (
        _openinference_blocks(outputs[0].get("message", {})) if outputs and not blocks else blocks
    ) or _answer_before_1_37(told, events)


def is_cut(value: Any) -> bool:
    """Whether an attribute was JSON before it was cut at the limit of its length."""
    return isinstance(value, str) and value.lstrip()[:2] in ("[{", '{"') and isinstance(parse_json_text(value), str)


# ------------------------------------------------------------------------------------------------- requests


def _from_raw_request(told: Attributes) -> Body | None:
    body = parse_json_text(told.get("input.value"))
    if not isinstance(body, Mapping) or not _has_messages(body):
        return None
    return body_from(body)


def _has_messages(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages", body.get("input") if "model" in body else None)
    return isinstance(messages, list) and all(isinstance(one, Mapping) and "role" in one for one in messages)


def _from_messages(told: Attributes) -> Body | None:
    name = "gen_ai.input.messages"
    messages = parse_json_text(told.get(name))
    if not messages or is_cut(messages):
        return None
    if isinstance(messages, str):
        messages = [{"role": "user", "parts": messages}]
    items = array_at(messages, name, "an array of messages")
    body = conversation(_message(item, f"{name}.{number}") for number, item in enumerate(items))
    instructions = parse_json_text(told.get("gen_ai.system_instructions"))
    head = blocks_of(instructions, "gen_ai.system_instructions") if instructions else []
    system = [*head, *body.get("system", [])]
    definitions = parse_json_text(told.get("gen_ai.tool.definitions"))
    tools = tools_of(definitions, "gen_ai.tool.definitions") if definitions else None
    return {**body, **({"system": system} if system else {}), **({"tools": tools} if tools else {})}


def _message(message: Any, path: str) -> tuple[str, list[Body]]:
    """A message of parts; some tracers write OpenAI's `content` in their place."""
    require_object(message, path, "a message object")
    role = str(message.get("role"))
    if "parts" in message:
        return role, blocks_of(message["parts"], f"{path}.parts")
    return role, _blocks(role, message)


def _from_indexed_prompts(told: Attributes) -> Body | None:
    messages = indexed_objects(told, "gen_ai.prompt")
    if not messages:
        return None
    body = conversation((str(one.get("role", "user")), _blocks(str(one.get("role", "user")), one)) for one in messages)
    functions = indexed_objects(told, "llm.request.functions")
    return {**body, **({"tools": tools_of(functions, "llm.request.functions")} if functions else {})}


def _blocks(role: str, message: Mapping[str, Any]) -> list[Body]:
    """The blocks of a message with content, tool calls and the id of the call it answers.

    OpenLLMetry writes an Anthropic tool call twice: in the content, and as a tool call.
    """
    content, called = message.get("content", message.get("user")), message.get("tool_call_id", message.get("id"))
    if role in RESULTS and called:
        return [tool_result(called, _unpack_blocks(content))]
    blocks = _content(content)
    known = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else in_order(calls)
    return blocks + [call for call in map(_call, calls) if call["id"] is None or call["id"] not in known]


def _content(content: Any) -> list[Body]:
    told = _unpack_blocks(content)
    if told is None or told == "":
        return []
    return blocks_of(told if isinstance(told, (str, list)) else json.dumps(told, ensure_ascii=False), "content")


def _unpack_blocks(content: Any) -> Any:
    """Blocks that are a JSON string, parsed; any other content unchanged."""
    told = parse_json_text(content)
    is_blocks = isinstance(told, list) and all(isinstance(one, Mapping) and "type" in one for one in told)
    return told if is_blocks else content


def _call(call: Any) -> Body:
    """A tool call, flat or with OpenAI's `function`."""
    require_object(call, "tool_calls", "a tool call")
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    return tool_use(call.get("id"), str(inner.get("name")), inner.get("arguments"))


def _from_openinference(told: Attributes) -> Body | None:
    messages = [one.get("message", {}) for one in indexed_objects(told, "llm.input_messages")]
    if not messages or any(value == REDACTED and name.endswith(("content", ".text")) for name, value in told.items()):
        return None
    body = conversation((str(one.get("role", "user")), _openinference_blocks(one)) for one in messages)
    tools = [
        parse_json_text(one["tool"].get("json_schema")) for one in indexed_objects(told, "llm.tools") if "tool" in one
    ]
    given = parse_json_text(told.get("llm.invocation_parameters"))
    more = {name: given[name] for name in INVOCATION if name in given} if isinstance(given, Mapping) else {}
    return {**more, **body, **({"tools": tools_of(tools, "llm.tools")} if tools else {})}


def _openinference_blocks(message: Mapping[str, Any]) -> list[Body]:
    """The blocks of OpenInference's message: `content` or `contents`, then tool calls."""
    calls = [one.get("tool_call", {}) for one in in_order(message.get("tool_calls"))]
    parts = [one.get("message_content", {}) for one in in_order(message.get("contents"))]
    if not parts:
        return _blocks(str(message.get("role")), {**message, "tool_calls": calls})
    return [_part(part) for part in parts] + list(map(_call, calls))


def _part(part: Mapping[str, Any]) -> Body:
    kind = part.get("type", "text")
    if kind == "reasoning" and "data" in part:
        return {"type": "redacted_thinking", "data": part["data"]}
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part.get("text"), "signature": part.get("signature")}
    if kind in ("image", "image_url"):
        image = part.get("image")
        inner = image.get("image", image) if isinstance(image, Mapping) else {}
        return {
            "type": "image",
            "source": {"type": "url", "url": (inner.get("url") if isinstance(inner, Mapping) else None)},
        }
    return {**part, "type": kind}


def _from_prompt(told: Attributes) -> Body | None:
    prompt = parse_json_text(told.get("gen_ai.prompt"))
    if not prompt or is_cut(prompt):
        return None
    if isinstance(prompt, Mapping) and "messages" in prompt:
        return body_from(prompt)
    return body_from({"messages": prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]})


def _event_fields(event: Attributes) -> dict[str, Any]:
    return {name: value if name == "content" else parse_json_text(value) for name, value in event.items()}


# -------------------------------------------------------------------------------------------------- answers


def _first(completions: list[dict[str, Any]]) -> Iterator[Body]:
    for one in completions:
        if one.get("role") != "thinking":
            yield from _blocks("assistant", one)
            return
        yield {"type": "thinking", "thinking": one.get("content")}


def _answer_before_1_37(told: Attributes, events: Events) -> list[Body] | str:
    completion = parse_json_text(told.get("gen_ai.completion"))
    first = completion[0] if isinstance(completion, list) and completion else completion
    if isinstance(first, Mapping):
        return from_chat_message(first)
    if isinstance(first, str):
        return first
    choice = next((_event_fields(event) for name, event in events if name == CHOICE), {})
    message = choice.get("message", choice)
    return _blocks("assistant", message) if isinstance(message, Mapping) else _content(message)


CALLS = ("chat", "generate_content", "text_completion", "completion", "responses", "messages")
"""`gen_ai.operation.name` and `llm.request.type` of a model call."""
NO_CALLS = (
    *("embeddings", "embedding", "execute_tool", "invoke_agent", "create_agent", "invoke_workflow", "retrieval"),
    *("plan", "rerank", "image_generation", "speech", "transcription"),
)
BETWEEN = ("execute_tool", "invoke_agent", "invoke_workflow", "tool", "agent", "chain")
"""Spans between two nested model calls that make the inner one a separate call."""
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model_name")
USAGE = ("gen_ai.usage.", "llm.token_count.")
RECORDS = (DETAILS, CHOICE, *ROLES)


def model_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> Iterator[OtelSpan]:
    """The spans that are model calls. Their log records and events are merged into their attributes."""
    spans = _join_records(list(found), notes)
    for span in spans:
        for name, attributes in span.events:
            if name in IN_EVENTS:
                span.attributes = {**attributes, **span.attributes}
    known = {(span.trace, span.id): span for span in spans if span.id}
    chosen = [span for span in spans if _is_call(span)]
    outer = {id(above) for span in chosen for above in _outer_duplicates(span, known)}
    notes.skip("span", "not a model call", len(spans) - len(chosen))
    notes.skip("span", "same call as a span inside it", len(outer))
    yield from (span for span in chosen if id(span) not in outer)


def _join_records(found: list[OtelSpan], notes: ReaderNotes) -> list[OtelSpan]:
    """The spans, each with its log records. A record of a whole call stands for a span that is not there."""
    spans = [span for span in found if not span.is_record]
    known = {(span.trace, span.id): span for span in spans if span.id}
    for record in (one for one in found if one.is_record):
        span = known.get((record.trace, record.id))
        if span is not None and record.name in RECORDS:
            span.events += record.events
        elif span is None and record.name == DETAILS:
            spans.append(record)
        else:
            notes.skip("log record", "not a model call")
    return spans


def _is_call(span: OtelSpan) -> bool:
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type") or "").lower()
    if kind is not None or operation in (*CALLS, *NO_CALLS):
        return kind == "LLM" if kind is not None else operation in CALLS
    has_usage = any(name.startswith(USAGE) for name in attributes)
    return has_usage and any(attributes.get(name) for name in MODEL)


def _outer_duplicates(span: OtelSpan, known: Mapping[tuple[str, str], OtelSpan]) -> Iterator[OtelSpan]:
    """Calls that a call lies in with no agent or tool between: the same call, seen from further out."""
    above, seen = known.get((span.trace, span.parent)), {id(span)}
    while above is not None and id(above) not in seen and not _separates_calls(above):
        seen.add(id(above))
        if _is_call(above):
            yield above
        above = known.get((above.trace, above.parent))


def _separates_calls(span: OtelSpan) -> bool:
    attributes = span.attributes
    names = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
    return any(str(attributes.get(name)).lower() in BETWEEN for name in names)
