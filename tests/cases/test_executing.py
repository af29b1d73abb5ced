"""Only `check` and `run` run the command of a scenario; an MCP server runs nothing and reads only what it was given."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, copy_case

NAME = "28-mcp-runs-a-command"
EVIL = "evil.yaml"
REFUSED = (
    "evil.yaml:4:3 conversation.command: only check and run run it, and reports/evil/recording.jsonl is not there:"
    " cachecost check evil.yaml --update makes it"
)


@pytest.mark.parametrize(
    "words",
    [
        ("explain", EVIL),
        ("optimize", EVIL),
        ("sweep", EVIL, "--grid", "host=anthropic,bedrock", "--backend", "dask", "--scheduler", "tcp://127.0.0.1:1"),
        ("live", EVIL, "--max-usd", "1", "--dry-run"),
    ],
    ids=lambda words: words[0],
)
def test_no_other_command_runs_it(run_case: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = copy_case(NAME, tmp_path) / EVIL
    if words[0] in ("sweep", "live"):
        path.write_text(path.read_text() + "strategies: [automatic]\nmodel: claude-opus-4-6\n")
    done = run_case(NAME, *words)
    assert done.returncode == 2
    assert REFUSED in done.stderr
    assert not (path.parent / "MARK").exists()


class Talk:
    """`cachecost mcp` as an agent starts it, in a folder of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._running = subprocess.Popen(
            [sys.executable, "-m", "cachecost", "mcp", *words],
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.ask(1, "initialize", about)
        self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *error: object) -> None:
        self._running.kill()
        self._running.communicate()

    def ask(self, number: int, method: str, params: Any) -> Any:
        """The answer, which must come within half a minute."""
        self._send({"id": number, "method": method, "params": params})
        assert self._running.stdout
        assert select.select([self._running.stdout], [], [], 30)[0], "no answer"
        answer = json.loads(self._running.stdout.readline())
        assert answer["id"] == number
        return answer

    def call(self, tool: str, **arguments: Any) -> str:
        """The words of a call that fails."""
        answer = self.ask(2, "tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return str(answer["error"])
        assert answer["result"]["isError"], answer
        return str(answer["result"]["content"][0]["text"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self._running.stdin
        self._running.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._running.stdin.flush()


def scenario(folder: Path, recording: str) -> str:
    text = f"format: 1\nname: x\nmodel: claude-opus-4-6\nconversation: {{recording: '{recording}'}}\n"
    text += "strategies: [automatic]\n"
    (folder / "x.yaml").write_text(text)
    return "x.yaml"


def nested(depth: int) -> dict[str, Any]:
    outer = inner = {}
    for _ in range(depth):
        inner["a"] = {}
        inner = inner["a"]
    return outer


def test_what_an_agent_is_talked_into_neither_runs_nor_reads_outside(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the SDK is in the extra mcp")
    folder = copy_case(NAME, tmp_path)
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"password": "PLANTED"}\n')
    (folder / "link.jsonl").symlink_to(secret)
    outside = "lies outside of what may be read here"
    with Talk(folder) as talk:
        assert REFUSED in talk.call("explain", paths=[EVIL])
        for tool in ("bill", "explain", "what_if", "lint_request"):
            for name in (str(secret), "../secret.jsonl", "link.jsonl"):
                assert outside in talk.call(tool, paths=[name]), (tool, name)
        assert outside in talk.call("next_message", session=str(secret))
        assert outside in talk.call("explain", paths=[scenario(folder, "../secret.jsonl")])
        for url in ("http://127.0.0.1:1/x.jsonl", "s3://bucket/x.jsonl"):
            assert "no URL is opened here" in talk.call("explain", paths=[scenario(folder, url)])
            assert "expected a path on this machine; got a URL" in talk.call("bill", paths=[url])
        assert "got one with a NUL" in talk.call("bill", paths=["a\0b"])
        assert "got one with a NUL" in talk.call("next_message", session="a\0b")
        for depth in (150, 400, 3_000):
            assert "at most 128 levels of nesting" in talk.call("lint_request", requests=[nested(depth)]), depth
    assert not (folder / "MARK").exists()


@pytest.mark.slow
def test_a_root_that_was_given_is_read(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the SDK is in the extra mcp")
    folder, other = copy_case(NAME, tmp_path), tmp_path / "other"
    other.mkdir()
    (other / "log.jsonl").write_text("{}\n")
    with Talk(folder, "--root", str(other)) as talk:
        assert "lies outside" not in talk.call("explain", paths=[str(other / "log.jsonl")])
        assert "lies outside" in talk.call("explain", paths=[str(folder / EVIL)])
