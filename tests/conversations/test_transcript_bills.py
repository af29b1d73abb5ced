"""Generated sessions in the shapes that clients leave: each is recognized, and its bill is that of a plain count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cachecost.conversations.importing import ImportOptions, import_files
from cachecost.conversations.readers.claude_code.steps import sniff
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

Line = dict[str, Any]
PRICES = {"claude-opus-4-5-20251101": (5, 0.5, 6.25, 10, 25), "claude-sonnet-4-5-20250929": (3, 0.3, 3.75, 6, 15)}
"""Dollars per million tokens: input, read, 5m write, 1h write, output (Anthropic's price page; up to 200k tokens)."""
SNAPSHOT = {
    "type": "file-history-snapshot",
    "messageId": "m",
    "snapshot": {"messageId": "m"},
    "isSnapshotUpdate": False,
}
BEGINNINGS: tuple[tuple[Line, ...], ...] = (
    (),
    (SNAPSHOT,),
    ({"type": "summary", "summary": "A title", "leafUuid": "x"}, SNAPSHOT),
    ({"type": "queue-operation", "operation": "dequeue", "sessionId": "s"}, SNAPSHOT),
    ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},),
    ({"type": "permission-mode", "permissionMode": "plan"}, {"type": "custom-title", "customTitle": "x"}, SNAPSHOT),
    ({"type": "pr-link", "prNumber": 1}, {"type": "mood"}),
)


class Session:
    """Lines of a session as a client writes them, made up from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.name = f"session-{seed}"
        self.lines: list[Line] = list(BEGINNINGS[seed % len(BEGINNINGS)])
        self.last: str | None = None
        self.second = 0
        for call in range(self.random.randint(1, 12)):
            self.add_call(call)

    def add(self, kind: str, **fields: Any) -> None:
        self.second += 1
        uuid = f"{self.name}-{len(self.lines)}"
        stamp = f"2026-01-02T{10 + self.second // 3600}:{self.second // 60 % 60:02}:{self.second % 60:02}.000Z"
        where = {"uuid": uuid, "parentUuid": self.last, "sessionId": self.name, "timestamp": stamp}
        self.lines.append({"type": kind, "isSidechain": False, **where, **fields})
        self.last = uuid

    def add_call(self, number: int) -> None:
        side = {"isSidechain": True, "agentId": "a1"} if self.random.random() < 0.2 else {}
        self.add("user", message={"role": "user", "content": f"please {number}"}, **side)
        if self.random.random() < 0.2:
            message = {"id": "x", "model": "<synthetic>", "role": "assistant", "content": [], "usage": usage(9, 9, 9)}
            self.add("assistant", message=message, isApiErrorMessage=True)
        write = self.random.randint(0, 9_000)
        hour = self.random.choice((0, write, write // 3))
        read, final = self.random.randint(0, 90_000), self.random.randint(1, 900)
        lines = self.random.randint(1, 4)
        for part in range(lines):
            output = final if part == lines - 1 else self.random.randint(1, final)
            message = {"id": f"msg_{self.name}_{number}", "role": "assistant", "model": list(PRICES)[number % 2]}
            content = [{"type": "text", "text": f"part {part}"}]
            billed = usage(3, output, write, hour, read)
            self.add("assistant", message={**message, "usage": billed, "content": content}, requestId="r", **side)
            if self.random.random() < 0.3:
                self.lines.append({"type": "progress", "uuid": f"p-{self.name}-{len(self.lines)}", "data": {}})

    def written_to(self, folder: Path) -> Path:
        path = folder / f"{self.name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


def usage(uncached: int, output: int, write: int, hour: int = 0, read: int = 0) -> Line:
    split = {"ephemeral_5m_input_tokens": write - hour, "ephemeral_1h_input_tokens": hour}
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {**dict(zip(names, (uncached, output, write, read), strict=True)), "cache_creation": split}


def plain_count(paths: Iterable[Path]) -> tuple[int, Usage, Decimal]:
    """(calls, tokens, dollars): each message and request id once, the last usage counted, the client's words none."""
    calls: dict[tuple[str, str], Line] = {}
    for line in _lines(paths):
        message = line.get("message", {})
        if line["type"] == "assistant" and message["model"] != "<synthetic>":
            calls[message["id"], line["requestId"]] = message
    total, dollars = Usage(), Decimal(0)
    for message in calls.values():
        told = message["usage"]
        split = told["cache_creation"]
        numbers = (
            told["input_tokens"],
            told["cache_read_input_tokens"],
            split["ephemeral_5m_input_tokens"],
            split["ephemeral_1h_input_tokens"],
            told["output_tokens"],
        )
        total += Usage(*numbers)
        prices = map(str, PRICES[message["model"]])
        dollars += sum(Decimal(price) * tokens for price, tokens in zip(prices, numbers, strict=True)) / 10**6
    return len(calls), total, dollars


def _lines(paths: Iterable[Path]) -> Iterator[Line]:
    for path in paths:
        yield from map(json.loads, path.read_text().splitlines())


@pytest.mark.parametrize("seed", range(28))
def test_each_session_is_recognized_and_billed_as_counted(tmp_path: Path, seed: int) -> None:
    path = Session(seed).written_to(tmp_path)
    report = import_files([path], tmp_path / "out.jsonl", ImportOptions(prices=PriceBook.load()))
    assert (report.refused, report.skipped) == ([], [])
    assert (report.calls, report.billed_usage, report.billed_usd) == plain_count([path])


def test_a_folder_of_sessions_is_billed_as_counted_and_copies_once(tmp_path: Path) -> None:
    """Every third session goes on in another file, which begins with a copy of it."""
    logs = tmp_path / "logs"
    logs.mkdir()
    paths = [Session(seed).written_to(logs) for seed in range(28)]
    for path in paths[::3]:
        copy = logs / f"{path.stem}-resumed.jsonl"
        copy.write_text(path.read_text())
    expected = plain_count(paths)
    for out in ("all.jsonl", "again.jsonl"):
        report = import_files([logs], tmp_path / out, ImportOptions(prices=PriceBook.load()))
        assert (report.files, report.refused, report.skipped) == (38, [], [])
        assert (report.calls, report.billed_usage, report.billed_usd) == expected


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((SNAPSHOT,), 'its first line has a "type" and a "isSnapshotUpdate"'),
        (({"type": "mood"}, {}, {"type": "user", "sessionId": "s"}), None),
        (({"type": "mood"}, {"type": "user", "sessionId": "s"}), 'its line 2 has a "type" and a "sessionId"'),
        (({"type": "mood"}, {"type": "hunger"}), None),
        (({"type": "x", "messageId": "m", "snapshot": {}},), 'its first line has a "type" and a "messageId"'),
    ],
)
def test_the_first_line_that_only_a_transcript_has_decides(lines: tuple[Line, ...], reason: str | None) -> None:
    assert sniff("".join(json.dumps(line) + "\n" for line in lines).encode()) == reason
