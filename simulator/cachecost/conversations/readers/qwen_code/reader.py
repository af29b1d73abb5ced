"""Reads sessions of Qwen Code (`~/.qwen/projects/PROJECT/chats/SESSION.jsonl`) as calls, with their requests.

The file has the messages and the tokens of each answer, but neither the system prompt nor the tools: they are sized by
the bill (common/session_calls.py)..
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import Warn
from cachecost.conversations.readers.common.json_values import object_at
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.session_calls import RoleBlocks, Session, SessionFormat, take_lines
from cachecost.conversations.readers.http.exchange import from_generate_content
from cachecost.conversations.readers.qwen_code.session import QwenSession

LACKS = (
    "Qwen Code's sessions lack system prompt and tools, sized by the bill, and cache writes: "
    "what was written counts as uncached input, before version 0.24 maybe not at all"
)
ROLES = (b'"parts"', b'"systemPayload"')


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a session of Qwen Code; None if it is not.

    Its records are like Claude Code's; but messages have "parts" instead of a "content".
    """
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    keys = set(top_keys(first))
    if {"uuid", "parentUuid", "sessionId", "type"} <= keys and any(sign in first for sign in ROLES):
        return 'its first line has a "parentUuid" and a message with "parts"'
    return None


def _read(path: Path, faults: list[Fault], warn: Warn, keeps_content: bool) -> Session:
    parsed = QwenSession(path, keeps_content)
    faults += take_lines(path, parsed.take, warn)
    return parsed.finish()


def _to_blocks(kind: str, value: Any) -> Iterator[RoleBlocks]:
    """The blocks of the parts of a message ("user", "model"), or of a whole `content` of a compressed history."""
    role, parts = kind, value
    if kind == "content":
        content = object_at(value, "compressedHistory")
        role, parts = str(content.get("role") or "user"), content.get("parts")
    if parts:
        body = from_generate_content({"contents": [{"role": role, "parts": parts}]}, "")
        yield "assistant" if role == "model" else "user", body["messages"][0]["content"]


FORMAT = SessionFormat("qwen-code", "Qwen Code", _read, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
