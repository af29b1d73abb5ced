"""Small transcripts of Claude Code, line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
MODEL = "claude-opus-4-5"


def stamp(at: float) -> str:
    """The time `at` seconds after the start."""
    return (START + timedelta(seconds=at)).isoformat().replace("+00:00", "Z")


def line(kind: str, at: float | None = None, **fields: Any) -> bytes:
    """A line of a transcript with its newline."""
    time = {} if at is None else {"timestamp": stamp(at)}
    return json.dumps({"type": kind, "sessionId": "s", "cwd": "/home/u/shop", **time, **fields}).encode() + b"\n"


def answer(
    at: float,
    tokens: Sequence[int],
    name: str = "",
    model: str = MODEL,
    content: Sequence[Any] = ("done",),
    message: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """An answer; `tokens` are input, read, 5m write, 1h write and output; `message` has more of its fields."""
    uncached, read, five, hour, output = tokens
    usage = {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": five + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
    }
    body = {"id": name or f"msg_{at:g}", "model": model, "usage": usage, "content": list(content), **(message or {})}
    return line("assistant", at, uuid=f"u-{name}-{at:g}", message=body, **fields)


def write(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path
