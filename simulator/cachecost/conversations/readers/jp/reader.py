"""jp conversations: `.jp/conversations/ID-TITLE/events.json`, one JSON array of timed events.

How jp's events are converted (jp's own storage and Anthropic provider, 2026-03):

- Times are UTC without a zone. jp writes an event when it is *complete*; so a reply's `first_token_s`
  (first event of the reply − start of the call) bounds the time to the first token from above.
- A reply is the run of chat_response and tool_call_request events between two inputs. In jp all
  results of a reply come after all its requests, so a request that follows a result opens a new
  reply. (In the 14 recorded sessions the gap there is 2.1 s or more, the time of a call; within a
  run of requests it is 1.6 s or less.) turn_start and config_delta are no input and end no run.
- A reply's call started with the last input before it: the last tool result, or the human message.
- An inquiry stands where it was asked. k-th questions of a reply's different tool calls share a
  batch: they could have been asked in parallel, though jp asked one after another. An inquiry
  without an answer gets its default. Only tools' questions count as inquiries.
- Reasoning is a thinking block, with its signature if it is Anthropic's: another provider's would not be sent.
- Strings in arguments, results and metadata are base64, older ones URL-safe; one that does not
  decode is taken as it is, as jp does.
- The file holds neither tools nor system prompt as sent, nor the content of attachments.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject, parse_json, reason
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.jp.events import ConversationBuilder, Question
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import block_of, show_found, text_block

SIGNATURE = "anthropic_thinking_signature"
REDACTED = "anthropic_redacted_thinking"
FIRST_EVENT = re.compile(rb'\s*\[\s*\{[^{}\[\]]*?"type"\s*:\s*"(config_delta|turn_start|chat_request)"')


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a jp conversation; None if they do not."""
    first = FIRST_EVENT.match(head)
    return f"a JSON array of events that begins with {first[1].decode()}" if first else None


def read(path: str | Path, warn: Warn = quiet) -> Conversation:
    """The conversation of an events.json. What the file lacks goes to `warn`.

    Raises InputError with every error and its place, as in `events[17].timestamp`.
    """
    faults: list[Fault] = []
    builder = ConversationBuilder()
    for event in _events(Path(path), faults):
        _take(event, builder)
    if faults:
        raise InputError(faults)
    conversation = builder.conversation(_name(Path(path)))
    builder.report(str(path), warn)
    return conversation


def _events(path: Path, faults: list[Fault]) -> list[JsonObject]:
    value = parse_json(read_input(path))
    if isinstance(value, ValueError):
        faults.append(Fault(str(path), reason(value)))
    elif not isinstance(value, list) or not value:
        faults.append(
            Fault(str(path), f"expected an array of events; got {'none' if value == [] else show_found(value)}")
        )
    items = value if isinstance(value, list) else []
    return [
        JsonObject(item if isinstance(item, dict) else {}, faults, str(path), None, f"events[{n}].")
        for n, item in enumerate(items)
    ]


def _name(path: Path) -> str:
    """ "jp-" and the conversation's id; a title, which a model wrote, is no part of it."""
    ids = (re.match(r"(?:jp-)?(?:c)?(\d{6,})", part) for part in (path.name, path.parent.name))
    return next((f"jp-{match[1]}" for match in ids if match), "jp")


# ------------------------------------------------------------------------- one event of the file


def _take(event: JsonObject, builder: ConversationBuilder) -> None:
    kind = event.one_of("type", TAKE)
    at = event.time("timestamp")
    if event.data.get("type") == kind:
        TAKE[kind](event, at, builder)


def _chat_request(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    builder.add_human(at, event.text("content"))


def _chat_response(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    if event.has("reasoning"):
        metadata = _decode_strings(event.mapping("metadata", required=False))
        builder.add_block(at, _thinking(event.text("reasoning"), metadata))
    elif event.has("data"):
        builder.add_block(
            at, text_block("assistant", json.dumps(event.data["data"], ensure_ascii=False, separators=(",", ":")))
        )
    elif text := event.text("message"):
        builder.add_block(at, text_block("assistant", text))


def _thinking(text: str, metadata: Mapping[str, Any]) -> Block:
    if REDACTED in metadata:
        return block_of("assistant", {"type": "redacted_thinking", "data": metadata[REDACTED]})
    signed = {"signature": metadata[SIGNATURE]} if SIGNATURE in metadata else {}
    return block_of("assistant", {"type": "thinking", "thinking": text, **signed})


def _tool_call_request(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    call = event.text("id")
    content = {
        "type": "tool_use",
        "id": call,
        "name": event.text("name"),
        "input": _decode_strings(event.mapping("arguments", required=False)),
    }
    builder.add_tool_call(at, call, block_of("assistant", content))


def _tool_call_response(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    call = event.text("id")
    failed = {"is_error": True} if event.flag("is_error") else {}
    content = {"type": "tool_result", "tool_use_id": call, "content": _decode_strings(event.text("content")), **failed}
    builder.add_tool_result(at, call, block_of("user", content))


def _inquiry_request(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    question = JsonObject(event.mapping("question"), event.faults, event.file, None, f"{event.place}question.")
    text, kind = question.text("text"), question.data.get("answer_type", "boolean")
    if event.mapping("source", required=False).get("source", "tool") != "tool":
        builder.notes.skip("question", "not asked by a tool")
        return
    answer_type = str(kind.get("type") if isinstance(kind, dict) else kind)
    builder.add_question(Question(at, event.text("id"), text, answer_type, question.data.get("default")))


def _inquiry_response(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    builder.add_answer(event.text("id"), event.data.get("answer"))


def _config_delta(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    builder.settings.merge(event.mapping("delta"))


def _turn_start(event: JsonObject, at: float, builder: ConversationBuilder) -> None:
    """A turn of jp starts with its chat_request; the event itself is no input."""


TAKE: dict[str, Callable[[JsonObject, float, ConversationBuilder], None]] = {
    "config_delta": _config_delta,
    "turn_start": _turn_start,
    "chat_request": _chat_request,
    "chat_response": _chat_response,
    "tool_call_request": _tool_call_request,
    "tool_call_response": _tool_call_response,
    "inquiry_request": _inquiry_request,
    "inquiry_response": _inquiry_response,
}


def _decode_strings(value: Any) -> Any:
    """`value` with every string in it decoded from base64."""
    if isinstance(value, dict):
        return {key: _decode_strings(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_decode_strings(inner) for inner in value]
    return _decode(value) if isinstance(value, str) else value


def _decode(text: str) -> str:
    try:
        return b64decode(text.replace("-", "+").replace("_", "/"), validate=True).decode()
    except ValueError:
        return text
