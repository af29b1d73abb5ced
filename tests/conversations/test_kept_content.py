"""Whose content `replay --tokens bytes` keeps: decided call by call, whatever a log begins with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import read_calls
from cachecost.prompts.exact_json import has_content
from command_runs import run_here

LONG = "The same document, again and again. " * 400
DOCUMENT, OTHER = [{"role": "user", "content": f"{LONG}{asked}"} for asked in ("Who wrote it?", "When was it?")]
ANSWER = {"role": "assistant", "content": "Somebody."}
SECOND = count()


def line(model: str, *messages: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    time = f"2026-11-20T12:{next(SECOND) % 60:02}:00Z"
    return {"timestamp": time, "request": {"model": model, "max_tokens": 9, "messages": messages}, **fields}


def claude(*messages: Mapping[str, Any]) -> dict[str, Any]:
    return line("claude-opus-5", *messages)


def gpt(*messages: Mapping[str, Any]) -> dict[str, Any]:
    return line("gpt-4o", *messages)


def replayed(log: Path) -> list[dict[str, Any]]:
    done = run_here("replay", log, "--tokens", "bytes", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(row) for row in done.stdout.splitlines()]


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


LOGS = {
    "claude first": lambda: [claude(DOCUMENT), gpt(DOCUMENT), gpt(OTHER)],
    "claude between": lambda: [gpt(DOCUMENT), claude(OTHER), gpt(OTHER)],
    "claude goes on": lambda: [
        claude(DOCUMENT),
        claude(DOCUMENT, ANSWER, OTHER),
        gpt(DOCUMENT),
        claude(DOCUMENT, ANSWER, OTHER, ANSWER, OTHER),
        gpt(OTHER),
    ],
    "a conversation changes hosts": lambda: [
        claude(DOCUMENT),
        gpt(DOCUMENT, ANSWER, OTHER),
        gpt(DOCUMENT, ANSWER, {**OTHER, "content": f"{LONG}Where?"}),
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_a_host_that_matches_tokens_reads_what_it_would_read_alone(tmp_path: Path, name: str) -> None:
    rows = LOGS[name]()
    found = replayed(write(tmp_path, rows))
    mine = [row for row in rows if row["request"]["model"] == "gpt-4o"]
    alone = replayed(write(tmp_path, mine))
    usages = [row["usage"] for row in found if row["model"] == "gpt-4o"]
    assert usages == [row["usage"] for row in alone]
    assert usages[-1]["cache_read_input_tokens"] > len(LONG) * 0.9


def kept(calls: Iterator[Call]) -> list[bool]:
    return [
        all(has_content(block) for node in call.request.thread.back() for block in node.message_blocks)
        for call in calls
    ]


def test_content_is_kept_only_where_it_is_needed(tmp_path: Path) -> None:
    messages = [DOCUMENT, ANSWER, OTHER, ANSWER, {**OTHER, "content": "Why?"}]
    rows = [
        claude(*messages[:1]),
        claude(*messages[:3]),
        claude(*messages),
        gpt(OTHER),
        claude(*messages, ANSWER, OTHER),
    ]

    def keeps(host: str | None, model: str, day: date | None) -> bool:
        assert (host, day) == (None, date(2026, 11, 20))
        return model == "gpt-4o"

    calls = list(read_calls(write(tmp_path, rows), keep_content=keeps))
    assert kept(iter(calls)) == [False, False, False, True, False]
    threads = [call.request.thread for call in calls]
    assert threads[1].common(threads[4]) is threads[1], "what a log repeats stays one thread"
