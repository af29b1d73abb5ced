"""What OpenHands logs of each call (`log_completions`): a file with messages, LiteLLM's answer and the parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.conversations.readers.detect import CALLS, detect
from cachecost.providers.usage import Usage

CACHED = {"cache_control": {"type": "ephemeral"}}
SYSTEM = {"role": "system", "content": [{"type": "text", "text": "You fix bugs.", **CACHED}]}
QUESTION = {"role": "user", "content": [{"type": "text", "text": "Fix this one.", **CACHED}]}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Run it", "parameters": {"type": "object"}}}
USAGE = {
    "prompt_tokens": 2_340,
    "completion_tokens": 6,
    "prompt_tokens_details": {"cached_tokens": 2_296, "audio_tokens": None},
    "cache_creation_input_tokens": 40,
    "cache_read_input_tokens": 2_296,
}
ANSWER = {
    "id": "chatcmpl-1",
    "created": 1_754_000_000,
    "model": "claude-sonnet-4-20250514",
    "object": "chat.completion",
    "choices": [{"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "Done."}}],
    "usage": USAGE,
}
LOGGED = {"messages": [SYSTEM, QUESTION], "response": ANSWER, "kwargs": {"temperature": 0.0}, "cost": 0.01}


@pytest.mark.parametrize(
    ("more", "began", "tools"),
    [
        ({"timestamp": 1_754_000_004.5, "latency_sec": 4.0}, 1_754_000_000.5, 0),
        ({"timestamp": 1_754_000_004.5, "args": []}, 1_754_000_004.5, 0),
        ({"kwargs": {"tools": [TOOL]}}, 1_754_000_000.0, 1),
        ({"tools": [TOOL], "context_window": 200_000}, 1_754_000_000.0, 1),
    ],
    ids=["SDK", "server", "tools passed on", "tools beside it"],
)
def test_a_logged_completion_is_a_call(tmp_path: Path, more: dict[str, Any], began: float, tools: int) -> None:
    path = tmp_path / "claude-1754000004.500.json"
    path.write_text(json.dumps({**LOGGED, **more}))
    assert detect(path)[0] == "openai-log"
    (call,) = CALLS["openai-log"].calls(path)
    assert (call.request.model, call.start, len(call.request.tools.blocks)) == (ANSWER["model"], began, tools)
    assert call.billed == Usage(4, 2_296, 40, output_tokens=6)
    assert len(call.request.breakpoints) == 2 and [block.kind for block in call.response] == ["text"]


def test_a_response_is_one_too(tmp_path: Path) -> None:
    answer = {"id": "r", "object": "response", "created_at": 1_754_000_000, "model": "gpt-5", "output": []}
    usage = {"input_tokens": 90, "output_tokens": 5}
    path = tmp_path / "gpt.json"
    path.write_text(json.dumps({"input": [QUESTION], "response": {**answer, "usage": usage}, "kwargs": {}}))
    (call,) = CALLS[detect(path)[0]].calls(path)
    assert (call.request.model, call.billed) == ("gpt-5", Usage(90, output_tokens=5))
