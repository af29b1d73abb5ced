"""Sessions of Claude Code whose bill is known: what the simulated API answered, and what the client wrote of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from clients_bench import SCRIPTS, Done, Server, python_of
from clients_sessions import claude_code_program

from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.logs import find_input_files, merge_calls
from cachecost.conversations.readers.detect import read_calls
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

ALLOWED = ("--allowedTools", "Read", "Agent", "Bash(echo:*)")
SCRIPT = """\
format: 1
replies:
  - thinking: Two others may look.
    text: I ask two agents.
    tools:
      - tool: Agent
        input: {description: look, prompt: Look around., subagent_type: Explore, run_in_background: false}
      - tool: Agent
        input: {description: look too, prompt: Look again., subagent_type: general-purpose, run_in_background: false}
  - {text: They looked., tool: Bash, input: {command: echo hello}}
  - {text: Done.}
  - {text: Another turn., tool: Bash, input: {command: echo again}}
  - {text: Done again.}
then: last
"""
"""What the model answers, call by call of a conversation. Agents that have the Agent tool call it in their turn."""


@dataclass
class ClaudeCodeFolder:
    """A configuration folder of Claude Code, the server that answers its calls, and what was run in it."""

    server: Server
    config: Path
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls_of_run: dict[str, range] = field(default_factory=dict)
    """The lines of the server's log that each run added."""

    def run(self, name: str, prompt: str, *words: str, **environment: str) -> Done:
        """One run of the client in headless mode; its result goes into `results`."""
        program = (claude_code_program(), "-p", prompt, "--output-format", "json", *words)
        done = self._run(name, *program, **environment)
        self.results[name] = json.loads(done.out)
        return done

    def run_sdk(self, name: str, prompt: str) -> Done:
        """A run of the Agent SDK, which starts the same client."""
        return self._run(name, python_of("claude-agent-sdk"), str(SCRIPTS / "agent_sdk.py"), prompt)

    def _run(self, name: str, *words: str, **environment: str) -> Done:
        begun = len(self.logged())
        done = self.server.run(*words, CLAUDE_CONFIG_DIR=str(self.config), **environment)
        assert done.code == 0, done.err or done.out
        self.calls_of_run[name] = range(begun, len(self.logged()))
        return done

    @property
    def projects(self) -> Path:
        return self.config / "projects"

    def logged(self) -> list[dict[str, Any]]:
        """The server's log: a line for each call that it billed."""
        record = self.server.record
        return [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []


@dataclass(frozen=True)
class KnownSessions:
    """What is left of the sessions: the transcripts, the server's log with its bill, and the client's own sums."""

    projects: Path
    record: Path
    billed_usd: Decimal
    logged: list[dict[str, Any]]
    results: Mapping[str, Mapping[str, Any]]
    calls_of_run: Mapping[str, range]

    def written(self) -> list[Call]:
        """The calls in all transcripts of the folder, each once."""
        return list(calls_in(self.projects))

    def ids_of(self, *runs: str) -> set[str]:
        """The message ids of the calls of these runs."""
        return {self.logged[number]["response"]["id"] for run in runs for number in self.calls_of_run[run]}


def message_id(call: Call) -> str:
    """The id of the answer, without that of the request."""
    return call.id.split(" ")[0]


def usage_of(line: Mapping[str, Any]) -> Usage:
    """The usage in a line of the server's log."""
    usage = line["usage"]
    parts = usage["cache_creation"]
    return Usage(
        usage["input_tokens"],
        usage["cache_read_input_tokens"],
        parts["ephemeral_5m_input_tokens"],
        parts["ephemeral_1h_input_tokens"],
        usage["output_tokens"],
    )


def calls_in(folder: Path, said: list[str] | None = None) -> Iterator[Call]:
    """The calls of a folder of logs, as every command reads them; notes go to `said`."""
    notes = said if said is not None else []
    files = list(find_input_files([folder], "auto", notes.append, []))
    return merge_calls([file.calls(notes.append) for file in files], notes.append)


def bill_of_calls(calls: Iterator[Call] | list[Call]) -> BillTotal:
    """The bill of the calls at public prices."""
    bill = BillTotal(PriceBook.load())
    for call in calls:
        bill.add(call)
    assert not bill.unpriced
    return bill


def bill_of_log(record: Path, ids: set[str]) -> BillTotal:
    """The bill of those calls of the server's log."""
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    chosen = [line["response"]["id"] in ids for line in lines]
    return bill_of_calls([call for call, one in zip(read_calls(record), chosen, strict=True) if one])


def breakpoint_ttls(body: Mapping[str, Any]) -> dict[str, set[str]]:
    """The TTLs of the breakpoints of a request: those in system and tools, and those in messages."""
    head = [*body["system"], *body["tools"]]
    messages = [block for message in body["messages"] for block in _blocks(message)]
    return {"head": _ttls(head), "messages": _ttls(messages)}


def read_ttls(call: Call) -> dict[str, set[str]]:
    """The same of a call that was read from a transcript."""
    found: dict[str, set[str]] = {"head": set(), "messages": set()}
    for one in call.request.breakpoints:
        found["messages" if one.node else "head"].add(one.ttl)
    return found


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    return message["content"] if isinstance(message["content"], list) else []


def _ttls(blocks: list[Any]) -> set[str]:
    marked = [block["cache_control"] for block in blocks if "cache_control" in block]
    return {one.get("ttl", "5m") for one in marked}
