"""Small session files of coding agents, written line by line as the clients write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, SessionFile

Row = dict[str, Any]


def write_lines(path: Path, rows: Iterable[Row], *, end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows) + end)
    return path


def stamp(second: float) -> str:
    """`second` seconds after 2026-11-20T10:00:00Z."""
    minutes, rest = divmod(second, 60)
    return f"2026-11-20T10:{int(minutes):02}:{rest:06.3f}Z"


START = 1795168800.0
"""2026-11-20T10:00:00Z"""


def agree(
    path: Path,
    calls: Callable[[Path], Iterable[Call]],
    session_files: Callable[[Path], list[SessionFile]],
) -> tuple[list[Call], SessionFile]:
    """Both readings of a file, which say the same of every call."""
    recorded, (billed,) = list(calls(path)), session_files(path)
    assert list(map(_of_recorded, recorded)) == [_of_billed(call, billed.project) for call in billed.calls]
    assert [call.session.split(" ")[0] for call in recorded] == [call.session for call in billed.calls]
    assert [call.number for call in billed.calls] == list(range(1, len(recorded) + 1))
    return recorded, billed


def _of_recorded(call: Call) -> tuple[object, ...]:
    start = call.start if call.timestamp else None
    return call.billed, call.request.model, start, call.host, call.agent, call.id, call.line, call.project


def _of_billed(call: BilledCall, project: str) -> tuple[object, ...]:
    return call.usage, call.model, call.start, call.host or None, call.agent, call.id, call.line, project


def shape(call: Call) -> list[tuple[str, list[str]]]:
    """Roles and kinds of the messages."""
    return [(message.role, [block.kind for block in message.blocks]) for message in call.request.thread.messages()]


# ------------------------------------------------------------------------------------------------- Codex CLI


def codex_line(second: float, kind: str, **payload: Any) -> Row:
    return {"timestamp": stamp(second), "type": kind, "payload": payload}


def codex_meta(name: str = "t-1", **more: Any) -> Row:
    told = {"cwd": "/home/me/proj", "cli_version": "0.169.0", "source": "exec", "model_provider": "openai"}
    return codex_line(0, "session_meta", id=name, **{**told, "base_instructions": {"text": "Be kind."}, **more})


def codex_context(second: float, model: str = "gpt-5.6", **more: Any) -> Row:
    return codex_line(second, "turn_context", cwd="/home/me/proj", model=model, **more)


def codex_says(second: float, role: str, text: str) -> Row:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_line(second, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def codex_calls(second: float, name: str = "c1") -> Row:
    return codex_line(second, "response_item", type="function_call", name="exec", arguments="{}", call_id=name)


def codex_returns(second: float, name: str = "c1") -> Row:
    return codex_line(second, "response_item", type="function_call_output", call_id=name, output="seen")


def codex_thinks(second: float) -> Row:
    return codex_line(second, "response_item", type="reasoning", summary=[], encrypted_content="AA")


def codex_usage(read: int, total: int, output: int, written: int = 0) -> Row:
    counts = {"input_tokens": total, "cached_input_tokens": read, "cache_write_input_tokens": written}
    return {**counts, "output_tokens": output, "reasoning_output_tokens": 1, "total_tokens": total + output}


def codex_bill(second: float, name: str, usage: Row, total: Row | None = None) -> Row:
    return codex_line(second, "token_usage_record", response_id=name, usage=usage, thread_token_usage=total or usage)


def codex_count(second: float, last: Row | None, total: Row) -> Row:
    """The event of clients before September 2026, and of later ones beside the record."""
    info = {"total_token_usage": total, **({} if last is None else {"last_token_usage": last})}
    return codex_line(second, "event_msg", type="token_count", info=info, rate_limits=None)


def codex_sum(*usages: Row) -> Row:
    return {name: sum(usage[name] for usage in usages) for name in usages[0]}


FIRST, SECOND = codex_usage(0, 900, 30), codex_usage(896, 1000, 20, 64)


def codex_session() -> list[Row]:
    """Two calls: a tool call and its result between them."""
    return [
        codex_meta(),
        codex_context(1),
        codex_says(1.5, "developer", "Rules."),
        codex_line(2, "event_msg", type="user_message", message="please"),
        codex_says(2, "user", "please"),
        codex_thinks(4),
        codex_calls(5),
        codex_bill(5.5, "r1", FIRST),
        codex_returns(7),
        codex_count(7, FIRST, FIRST),
        codex_says(9, "assistant", "done"),
        codex_bill(9.5, "r2", SECOND, codex_sum(FIRST, SECOND)),
        codex_count(9.5, SECOND, codex_sum(FIRST, SECOND)),
    ]


# ------------------------------------------------------------------------------------------------ Gemini CLI


def gemini_head(name: str = "g-1", **more: Any) -> Row:
    return {"sessionId": name, "projectHash": "2b75", "startTime": stamp(0), "lastUpdated": stamp(0), **more}


def gemini_user(name: str, second: float, *parts: Row) -> Row:
    content = list(parts) or [{"text": "please"}]
    return {"id": name, "timestamp": stamp(second), "type": "user", "content": content}


def gemini_answer(
    name: str, second: float, tokens: tuple[int, int, int, int] | None, text: str = "", **more: Any
) -> Row:
    """`tokens` are input, cached, output and thoughts."""
    told = dict(zip(("input", "cached", "output", "thoughts"), tokens, strict=True)) if tokens else None
    counts = {**told, "tool": 0, "total": told["input"] + told["output"] + told["thoughts"]} if told else None
    row = {"id": name, "timestamp": stamp(second), "type": "gemini", "content": text, "model": "gemini-2.5-pro"}
    return {**row, "thoughts": [], **({"tokens": counts} if counts else {}), **more}


def gemini_tool(second: float, **more: Any) -> Row:
    return {"id": "t1", "name": "look", "args": {"at": 1}, "timestamp": stamp(second), "status": "success", **more}


GEMINI_RESULT: Row = {"functionResponse": {"id": "t1", "name": "look", "response": {"output": "seen"}}}


def gemini_session() -> list[Row]:
    """Two calls: a tool call and its result between them."""
    return [
        gemini_head(kind="main"),
        {"$set": {"messages": [gemini_user("u0", 0, {"text": "context"})], "lastUpdated": stamp(0)}},
        gemini_user("u1", 1),
        {"$set": {"lastUpdated": stamp(1)}},
        gemini_answer("a1", 3, (800, 0, 20, 5)),
        gemini_answer("a1", 3, (800, 0, 20, 5), toolCalls=[gemini_tool(4)]),
        gemini_user("u2", 4.5, GEMINI_RESULT),
        gemini_answer("a2", 6, (900, 700, 10, 0), "done"),
    ]


# ------------------------------------------------------------------------------------------------- Qwen Code


def qwen_line(name: str, parent: str | None, second: float, kind: str, **more: Any) -> Row:
    row = {"uuid": name, "parentUuid": parent, "sessionId": "q-1", "timestamp": stamp(second), "type": kind}
    return {**row, "cwd": "/home/me/proj", "version": "0.24.4", **more}


def qwen_user(name: str, parent: str | None, second: float, **more: Any) -> Row:
    message = {"role": "user", "parts": [{"text": "please"}]}
    return qwen_line(name, parent, second, "user", **{"message": message, **more})


def qwen_result(name: str, parent: str | None, second: float) -> Row:
    response = {"functionResponse": {"id": "t1", "name": "look", "response": {"output": "seen"}}}
    return qwen_line(name, parent, second, "tool_result", message={"role": "user", "parts": [response]})


def qwen_response(name: str, parent: str | None, second: float, tokens: tuple[int, int, int], **more: Any) -> Row:
    """`tokens` are input, cached and output; the call took two seconds."""
    counts = {"input_token_count": tokens[0], "cached_content_token_count": tokens[1], "output_token_count": tokens[2]}
    event = {"event.name": "qwen-code.api_response", "event.timestamp": stamp(second), "response_id": f"r-{name}"}
    told = {"model": "qwen3.7-plus", "duration_ms": 2000, "ttft_ms": 500, "auth_type": "openai"}
    whole = {**event, **told, **counts, "thoughts_token_count": 5, "total_token_count": tokens[0] + tokens[2], **more}
    return qwen_line(name, parent, second, "system", subtype="ui_telemetry", systemPayload={"uiEvent": whole})


def qwen_answer(name: str, parent: str | None, second: float, tokens: tuple[int, int, int], **more: Any) -> Row:
    usage = {"promptTokenCount": tokens[0], "cachedContentTokenCount": tokens[1], "candidatesTokenCount": tokens[2]}
    whole = {**usage, "thoughtsTokenCount": 5, "totalTokenCount": tokens[0] + tokens[2]}
    parts: list[Mapping[str, Any]] = [{"text": "hm", "thought": True}, {"functionCall": {"id": "t1", "name": "look"}}]
    row = {"model": "qwen3.7-plus", "message": {"role": "model", "parts": parts}, "usageMetadata": whole}
    return qwen_line(name, parent, second, "assistant", **{**row, **more})


def qwen_session() -> list[Row]:
    """Two calls: a tool call and its result between them."""
    return [
        qwen_user("u1", None, 1),
        qwen_response("e1", "u1", 3, (800, 0, 30)),
        qwen_answer("a1", "e1", 3.1, (800, 0, 30)),
        qwen_result("u2", "a1", 5),
        qwen_response("e2", "u2", 7.5, (900, 768, 20)),
        qwen_answer("a2", "e2", 7.6, (900, 768, 20)),
    ]
