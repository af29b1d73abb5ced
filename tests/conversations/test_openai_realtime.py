"""Events of a Realtime session: each response is a call with its prompt and its usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.openai_log import calls, sniff
from cachecost.providers.usage import Usage

Row = dict[str, Any]
SESSION = {
    "id": "sess_1",
    "object": "realtime.session",
    "model": "gpt-realtime",
    "instructions": "Be brief.",
    "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
}


def event(kind: str, **more: Any) -> Row:
    return {"type": kind, "event_id": "event_1", **more}


def message(name: str, role: str, text: str) -> Row:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"id": name, "type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def done(*output: Row, tokens: int = 1_200, read: int = 1_024, audio: int = 0, **more: Any) -> Row:
    details = {"text_tokens": tokens - audio, "audio_tokens": audio, "cached_tokens": read}
    usage = {"total_tokens": tokens + 9, "input_tokens": tokens, "output_tokens": 9, "input_token_details": details}
    told = {"object": "realtime.response", "id": "resp_1", "status": "completed", "conversation_id": "conv_1"}
    return event("response.done", response={**told, "output": list(output), "usage": usage}, **more)


def log(folder: Path, *rows: Row) -> Path:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts(call: Any) -> list[tuple[str, str]]:
    found, node = [], call.request.thread
    while node.message is not None:
        found.append((node.message.role, *[block.content["text"] for block in node.message.blocks]))
        node = node.parent
    return found[::-1]


def test_each_response_is_a_call(tmp_path: Path) -> None:
    first, yes, more = message("a", "user", "go"), message("b", "assistant", "yes"), message("c", "user", "more")
    path = log(
        tmp_path,
        event("session.created", session=SESSION),
        event("conversation.item.added", item=first, previous_item_id=None),
        event("response.created", response={"object": "realtime.response"}),
        event("conversation.item.added", item=yes, previous_item_id="a"),
        done(yes, timestamp="2026-03-07T10:00:00.5Z"),
        event("conversation.item.created", item=more, previous_item_id="b"),
        event("response.output_text.delta", delta="…"),
        done(tokens=1_300),
    )
    one, other = calls(path)
    assert sniff(path.read_bytes()) == "its first object is an event of a Realtime session"
    assert detect(path, "auto", "request-log")[0] == "openai-log"
    assert (one.billed, other.billed) == (Usage(176, 1_024, 0, 0, 9), Usage(276, 1_024, 0, 0, 9))
    assert (one.timestamp, one.session, one.request.model) == ("2026-03-07T10:00:00.5Z", "conv_1", "gpt-realtime")
    assert texts(one) == [("user", "go")], "its own answer is not in its prompt"
    assert texts(other) == [("user", "go"), ("assistant", "yes"), ("user", "more")]
    assert [block.content for block in one.request.system.blocks] == [{"type": "text", "text": "Be brief."}]
    assert len(one.request.tools.blocks) == 1
    assert [block.content["text"] for block in one.response if block.content] == ["yes"]


def test_items_come_in_their_order_and_go(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        event("session.created", session=SESSION),
        event("conversation.item.created", item=message("a", "user", "1")),
        event("conversation.item.created", item=message("c", "user", "3")),
        event("conversation.item.created", item=message("b", "user", "2"), previous_item_id="a"),
        event("conversation.item.done", item=message("c", "user", "three"), previous_item_id="b"),
        event("conversation.item.deleted", item_id="a"),
        event("response.create", response={"instructions": "Only now."}),
        done(),
        done(),
        event("session.created", session=SESSION),
        done(),
    )
    first, second, third = calls(path)
    assert texts(first) == texts(second) and [text for _, *text in texts(first)] == [["2"], ["three"]]
    heads = [call.request.system.blocks[0].content["text"] for call in (first, second)]  # type: ignore[index]
    assert heads == ["Only now.", "Be brief."]
    assert texts(third) == [], "another session"


def test_audio_is_noted(tmp_path: Path) -> None:
    said: list[str] = []
    path = log(tmp_path, event("session.created", session=SESSION), done(audio=100))
    (call,) = calls(path, said.append)
    assert call.billed == Usage(176, 1_024, 0, 0, 9)
    assert any("with audio, which has its own prices" in line for line in said)


def test_odd_values_are_read_as_none(tmp_path: Path) -> None:
    odd = {"object": "realtime.response", "id": "resp_1", "output": 7, "usage": {"input_tokens": 5, "output_tokens": 1}}
    path = log(
        tmp_path,
        event("session.created", session=SESSION),
        event("conversation.item.added", item=message("a", "user", "go"), previous_item_id=["a"]),
        event("response.done", response=odd),
    )
    (call,) = calls(path)
    assert (texts(call), call.response) == ([("user", "go")], ())
