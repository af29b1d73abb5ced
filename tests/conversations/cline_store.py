"""Small stores of Cline and Roo Code: tasks as the extensions write them, and sessions of Cline's SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]
START = 1_772_877_600_000
"""2026-03-07T10:00:00Z, in milliseconds."""
ENVIRONMENT = (
    "<environment_details>\n# Current Working Directory (/home/me/app) Files\nREADME.md\n</environment_details>"
)
CLINE = "saoudrizwan.claude-dev"
ROO = "rooveterinaryinc.roo-cline"


def started(at: int, tokens: tuple[int, int, int, int] | None, model: str = "", **more: Any) -> Record:
    """A request with (tokensIn, cacheReads, cacheWrites, tokensOut); None: it has no answer yet."""
    info: Record = {"request": ENVIRONMENT, **more}
    if tokens is not None:
        counts = zip(("tokensIn", "cacheReads", "cacheWrites", "tokensOut"), tokens, strict=True)
        info |= {**dict(counts), "cost": 0.5}
    told = {"modelInfo": {"modelId": model, "providerId": "anthropic", "mode": "act"}} if model else {}
    return {"ts": START + at, "type": "say", "say": "api_req_started", "text": json.dumps(info), **told}


def shown(at: int, say: str, text: str = "", **more: Any) -> Record:
    return {"ts": START + at, "type": "say", "say": say, "text": text, **more}


def sent(role: str, *blocks: Record, at: int = 0) -> Record:
    return {"role": role, "content": list(blocks), "ts": START + at}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


SHOWN = [
    shown(0, "text", "list the files"),
    started(100, (3, 0, 5000, 60), "claude-opus-4-6"),
    shown(900, "tool", "{}"),
    started(1200, (4, 5000, 80, 20), "claude-opus-4-6"),
    shown(1900, "completion_result", "there are none"),
]
SENT = [
    sent("user", text("list the files"), text(ENVIRONMENT)),
    sent("assistant", text("I look")),
    sent("user", text("nothing")),
    sent("assistant", text("there are none")),
]


def task(
    folder: Path, messages: list[Record], number: str = "1772877600000", extension: str = CLINE, **files: Any
) -> Path:
    """The log of a task; `files` are the other ones in its folder, by their names without an ending."""
    place = folder / "globalStorage" / extension / "tasks" / number
    place.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (place / f"{name}.json").write_text(json.dumps(value))
    path = place / "ui_messages.json"
    path.write_text(json.dumps(messages))
    return path


def said(role: str, at: int, *blocks: Record, metrics: tuple[int, int, int, int] | None = None, **more: Any) -> Record:
    """A message of an SDK session; `metrics` are (inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens)."""
    told: Record = {"id": f"m{at}", "role": role, "content": list(blocks), "ts": START + at, **more}
    if metrics is not None:
        names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
        model = {"id": "claude-opus-4-6", "provider": "anthropic"}
        told |= {"metrics": {**dict(zip(names, metrics, strict=True)), "cost": 0.5}, "modelInfo": model}
    return told


USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": []}
MESSAGES = [
    said("user", 0, text("list the files")),
    said("assistant", 900, USE, metrics=(5002, 0, 5000, 60)),
    said("user", 1000, RESULT),
    said("assistant", 1900, text("there are none"), metrics=(5100, 5000, 0, 20)),
]


def sdk_session(folder: Path, messages: list[Record], name: str = "177_a", file: str = "", agent: str = "lead") -> Path:
    """The messages of a session, or those of its sub-agent in `file`; beside them the session's own file."""
    place = folder / "sessions" / name
    place.mkdir(parents=True, exist_ok=True)
    manifest = {"version": 1, "session_id": name, "cwd": "/home/me/app", "workspace_root": "/home/me/app"}
    (place / f"{name}.json").write_text(json.dumps({**manifest, "messages_path": "x"}))
    own = f"{name}__{file}" if file else name
    head = {"version": 1, "updated_at": "2026-03-07T10:00:02Z", "agent": agent, "sessionId": own}
    path = place / f"{file or name}.messages.json"
    path.write_text(json.dumps({**head, "origin": {"version": "3.0.65"}, "messages": messages}, indent=2))
    return path
