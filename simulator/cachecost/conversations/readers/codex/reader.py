"""Reads sessions of Codex CLI (`rollout-*.jsonl`) as calls, with their requests as far as the file has them.

The file has the messages, the system prompt (`base_instructions`) and the usage of each call, but not the tools: they
are sized by the bill (common/session_calls.py)..
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import Warn
from cachecost.conversations.readers.codex.rollout import SUMMARY, Rollout
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.session_calls import RoleBlocks, Session, SessionFormat, take_lines
from cachecost.conversations.readers.openai.responses import from_responses_output

LACKS = "Codex sessions lack the tools: sized by the bill; calls that Codex makes on the side are not in them"
ROLES = {"assistant": "assistant", "developer": "system", "system": "system"}


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a session of Codex; None if it is not."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    if {"type", "payload"} <= set(top_keys(first)) and b'"session_meta"' in first:
        return 'its first line is a "session_meta"'
    return None


def _read(path: Path, faults: list[Fault], warn: Warn, keeps_content: bool) -> Session:
    rollout = Rollout(path, keeps_content)
    faults += take_lines(path, rollout.take, warn)
    session = rollout.finish()
    if keeps_content and not faults:
        for note in session.notes:
            warn(f"{path}: {note}")
        value = json.loads(bytes(rollout.instructions)) if rollout.instructions is not None else None
        text = value.get("text") if isinstance(value, dict) else value
        session.system = text if isinstance(text, str) else ""
    return session


def _to_blocks(kind: str, item: Any) -> Iterator[RoleBlocks]:
    if kind == SUMMARY:
        yield "user", [{"type": "text", "text": str(item)}]
        return
    kind_of_item = str(item.get("type"))
    if kind_of_item == "message":
        role = ROLES.get(str(item.get("role")), "user")
    else:
        role = "user" if kind_of_item.endswith("_output") else "assistant"
    yield role, from_responses_output([_bare(item)])


def _bare(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what Codex added to it."""
    return {name: value for name, value in item.items() if name != "internal_chat_message_metadata_passthrough"}


FORMAT = SessionFormat("codex", "Codex", _read, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
