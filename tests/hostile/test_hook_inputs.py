"""Whatever a client writes to the hook and to the status line, both answer or are silent, and never fail."""

from __future__ import annotations

import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cachecost.commands.hook_run import HookOptions, hook_answer
from slow_cases import mostly_slow

TRANSCRIPT = next(iter(sorted(Path("scenarios/recordings/transcripts").absolute().glob("*.jsonl"))))
EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "PreModelSwitch")
ODD: tuple[Any, ...] = (
    *(None, "", "\ud800", "x" * 5_000, 0, -1, 2**70, 1e308, True, [], [[]], {}, {"a": {}}, "/", "\0", "a\nb"),
    "9" * 5_000,
)
FIELDS = ("hook_event_name", "session_id", "transcript_path", "cwd", "prompt", "source", "trigger", "model")
RAW = (b"", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"\0", b"{" * 5_000, b"[" * 100_000, b'{"a":1}' * 2)


def event(name: str, transcript: str) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s", "transcript_path": transcript, "cwd": "/tmp",
            "prompt": "go on", "source": "resume", "trigger": "manual", "model": "claude-opus-4-5"}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("odd", mostly_slow(ODD, 6), ids=lambda odd: repr(odd)[:12])
def test_a_hook_bears_any_value(tmp_path: Path, field: str, odd: Any) -> None:
    path = str(shutil.copy(TRANSCRIPT, tmp_path))
    for name in EVENTS:
        data = json.dumps({**event(name, path), field: odd}).encode()
        answer = hook_answer(BytesIO(data), HookOptions(), 1_790_000_000.0)
        assert answer is None or isinstance(answer, dict)


@pytest.mark.parametrize("raw", RAW, ids=lambda raw: repr(raw[:8]))
def test_what_is_no_event_is_answered_by_nothing(raw: bytes) -> None:
    assert hook_answer(BytesIO(raw), HookOptions(), 1_790_000_000.0) is None
