"""The real Claude Code with the MCP server, the hooks and the status line at once, against the simulated API.

Two headless runs, between which the session's times are moved back so that its cache has expired, and then the
interactive client in a terminal. What the guide shows under "A session with all three" is such a screen.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from clients_bench import KEY, Server
from clients_sessions import claude_code_program, written
from clients_transcripts import ClaudeCodeFolder, bill_of_calls, calls_in

from cachecost.base.formatting import dollars

pytestmark = pytest.mark.clients
CACHECOST = shlex.join([sys.executable, "-m", "cachecost"])
ANSWERS = """\
format: 1
replies:
  - {text: Hello.}
  - {text: I ask for the bill., tool: mcp__cachecost__bill, input: {}}
  - {text: I ask what comes next., tool: mcp__cachecost__next_message, input: {}}
  - {text: That is what it costs.}
then: last
"""
IDLE = timedelta(minutes=17)
SENTENCE = "cache expired 12 min ago: this message writes "
RESUMED = "cache expired 12 min ago: the next message of this session writes "
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SECONDS = 20
"""That the terminal has to show something."""


@dataclass(frozen=True)
class Work:
    """A session at work: its folder, its transcript, and the words that start the client."""

    client: ClaudeCodeFolder
    words: tuple[str, ...]
    environment: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.client.server.folder

    @property
    def transcript(self) -> Path:
        (path,) = self.client.projects.glob("*/*.jsonl")
        return path

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.transcript.read_text("utf-8").splitlines()]

    def said(self) -> list[tuple[str, str]]:
        """What hooks said to the person, as the client keeps it: the hook's name, the sentence."""
        attached = [line["attachment"] for line in self.lines() if line["type"] == "attachment"]
        return [(one["hookName"], one["content"]) for one in attached if one["type"] == "hook_system_message"]

    def tool_results(self) -> list[dict[str, Any]]:
        """The answers of the MCP server, as the model gets them."""
        contents = [line["message"]["content"] for line in self.lines() if line["type"] == "user"]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return [json.loads(block["content"]) for block in blocks if block["type"] == "tool_result"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    """A session of two runs, the second after a pause longer than the TTL."""
    claude_code_program()
    folder = tmp_path_factory.mktemp("working")
    server = Server(folder, "--answers", f"script:{written(folder / 'answers.yaml', ANSWERS)}")
    try:
        work = Work(ClaudeCodeFolder(server, folder / "config"), _words(folder), _environment(folder))
        work.client.run("first", "Good morning.", *work.words, **work.environment)
        _move_back(work.transcript)
        work.client.run(
            "second", "What did this cost, and what comes next?", *work.words, "--continue", **work.environment
        )
        yield work
    finally:
        server.close()


def test_the_hooks_are_heard(work: Work) -> None:
    """Not in a session that begins or is warm; after the pause, when it is resumed and before the message."""
    names, sentences = zip(*work.said(), strict=True)
    assert names == ("SessionStart:resume", "UserPromptSubmit")
    assert sentences[0].startswith(RESUMED)
    assert sentences[1].startswith(SENTENCE)
    asked = json.dumps([line["request"] for line in work.client.logged()])
    assert "cache expired" not in asked


def test_the_mcp_server_answers_the_model(work: Work) -> None:
    """Of the calls so far; the client writes the newest of them down a little later than it calls the tool."""
    bill, following = work.tool_results()
    calls = list(calls_in(work.client.projects))
    seen = calls[: bill["calls"]]
    assert 0 < len(seen) < len(calls)
    assert Decimal(bill["billed_usd"]) == bill_of_calls(seen).dollars
    cached = [call.billed.read + call.billed.write for call in calls if call.billed]
    usage = following["usage"]
    assert usage["cache_read_input_tokens"] in (cached[:-1] if following["is_warm"] else [0])


def test_the_status_line_shows_the_figures_of_the_transcript(work: Work) -> None:
    """In the interactive client, which goes on with the session and draws the line below its prompt."""
    if not shutil.which("tmux"):
        pytest.skip("there is no tmux to show the interactive client in")
    bill = bill_of_calls(list(calls_in(work.client.projects)))
    usage = bill.usage
    rate = Decimal(usage.read) / usage.total_input
    screen = _screen(work)
    drawn = next(line.strip() for line in screen.splitlines() if "next message $" in line)
    assert drawn.startswith(f"cache {rate:.0%} · ")
    assert drawn.endswith(f" · session {dollars(bill.dollars)}")
    assert f"UserPromptSubmit says: {SENTENCE}" in screen
    assert "Called cachecost" in screen


def _words(folder: Path) -> tuple[str, ...]:
    hooks = [{"hooks": [_command("hook --least-usd 0.01 --least-tokens 1000")]}]
    settings = {
        "statusLine": _command("statusline"),
        "hooks": {"UserPromptSubmit": hooks, "SessionStart": hooks},
    }
    servers = {"mcpServers": {"cachecost": {"command": sys.executable, "args": ["-m", "cachecost", "mcp"]}}}
    return (
        *("--settings", str(written(folder / "settings.json", json.dumps(settings)))),
        *("--mcp-config", str(written(folder / "mcp.json", json.dumps(servers)))),
        *("--allowedTools", "mcp__cachecost__*"),
    )


def _command(words: str) -> dict[str, str]:
    return {"type": "command", "command": f"{CACHECOST} {words}"}


def _environment(folder: Path) -> dict[str, str]:
    return {"CACHECOST_STORE": str(folder / "kept")}


def _move_back(transcript: Path) -> None:
    """Make the session that much older."""
    text = TIME.sub(lambda found: _earlier(found[0]), transcript.read_text("utf-8"))
    transcript.write_text(text, "utf-8")


def _earlier(time_text: str) -> str:
    moved = datetime.fromisoformat(time_text) - IDLE
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _screen(work: Work) -> str:
    """The interactive client's screen, once it shows the status line."""
    _answer_first_questions(work)
    server, socket = work.client.server, work.folder / "tmux"
    client = [claude_code_program(), *work.words, "--resume", work.transcript.stem]
    more = {**work.environment, "CLAUDE_CONFIG_DIR": str(work.client.config), "TERM": "xterm-256color"}
    tmux = ["tmux", "-f", "/dev/null", "-S", str(socket)]
    begun = [*tmux, "new-session", "-d", "-x", "130", "-y", "40", server.command_line(*client, **more)]
    subprocess.run(begun, cwd=work.folder / "work", check=True)
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            shown = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
            if "next message $" in shown:
                return shown
            time.sleep(0.2)
        pytest.fail(f"no status line after {SECONDS} s\n{shown}")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def _answer_first_questions(work: Work) -> None:
    """What the interactive client asks once: its look, the API key, whether the folder is trusted."""
    path = work.client.config / ".claude.json"
    state = json.loads(path.read_text("utf-8"))
    state |= {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []}}
    state.setdefault("projects", {}).setdefault(str(work.folder / "work"), {})["hasTrustDialogAccepted"] = True
    path.write_text(json.dumps(state), "utf-8")
