"""`cachecost mcp` as a client sees it: the SDK's own, in this process, or over stdio to a process of its own.

Half of the processor time of a server is its start: what is true wherever it runs is asked here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import anyio
import jsonschema
import pytest

pytest.importorskip("mcp", reason="the SDK is in the extra mcp")

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from bill_sessions import MAIN, write_sessions
from cachecost.commands.catalogue import COMMAND_GROUPS
from cachecost.commands.mcp_server.answers import cut_answer
from cachecost.commands.mcp_server.server import make_server
from command_runs import printed, run_here

ROOT = Path(__file__).parents[2]
LOG = next(iter(sorted((ROOT / "scenarios/recordings/traffic/rig").glob("*.jsonl"))))
TOOLS = {"bill", "explain", "next_message", "what_if", "lint_request", "models"}
AT = "2026-03-03T23:52:00"
BODY = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
ROOTS = ("--root", str(ROOT), "--root", gettempdir())
OFF = {"CACHECOST_STORE": "off", "CACHECOST_TOKENS": "tiktoken"}

Talk = Callable[[Client], Awaitable[Any]]


def talk(body: Talk) -> Any:
    """What `body` returns, with a client that is connected to a fresh server, in this process."""
    return _run(lambda: Client(make_server()), body)


def talk_apart(body: Talk) -> Any:
    """The same over stdio, with a process as agents start it."""
    words = ["-m", "cachecost", "mcp", *ROOTS]
    command = StdioServerParameters(command=sys.executable, args=words, env={**os.environ, **OFF})
    return _run(lambda: Client(stdio_client(command)), body)


def _run(connected: Callable[[], Client], body: Talk) -> Any:
    async def run() -> Any:
        with anyio.fail_after(60):
            async with connected() as client:
                return await body(client)

    return anyio.run(run)


def answer(name: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of one call, which holds to the schema of its tool."""
    return talk(lambda client: ask_tool(client, name, arguments))


async def ask_tool(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    done = await client.call_tool(name, arguments)
    assert not done.is_error, done.content
    assert isinstance(done.structured_content, dict)
    jsonschema.validate(done.structured_content, tools[name].output_schema)
    assert json.loads(done.content[0].text) == done.structured_content
    return done.structured_content


def failure(name: str, **arguments: Any) -> str:
    """The words of a call that fails, without the name of the tool in front."""

    async def ask(client: Client) -> str:
        done = await client.call_tool(name, arguments)
        assert done.is_error and done.structured_content is None
        return done.content[0].text

    return talk(ask).removeprefix(f"Error executing tool {name}: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sessions(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(autouse=True)
def remember_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OFF.items():
        monkeypatch.setenv(name, value)


def test_every_tool_only_reads_and_has_schemas() -> None:
    async def ask(client: Client) -> Any:
        return (await client.list_tools()).tools, (await client.list_resource_templates()).resource_templates

    tools, templates = talk_apart(ask)
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.description and tool.annotations.read_only_hint and not tool.annotations.open_world_hint
        assert tool.output_schema["type"] == "object" and tool.output_schema["properties"]
    assert [one.uri_template for one in templates] == ["cachecost://codes/{code}"]


def test_a_tool_says_what_its_command_says(folder: Path) -> None:
    told = (
        ("bill", "bill", [folder], {"paths": [str(folder)]}),
        ("next_message", "next", [folder, "--at", AT], {"session": str(folder), "at": AT}),
        ("what_if", "whatif", [LOG], {"paths": [str(LOG)], "limit": 500}),
        ("lint_request", "lint", [LOG], {"paths": [str(LOG)]}),
    )

    async def ask_all(client: Client) -> list[dict[str, Any]]:
        return [await ask_tool(client, name, arguments) for name, _, _, arguments in told]

    for (name, command, words, _), made in zip(told, talk_apart(ask_all), strict=True):
        assert made.pop("cut") == []
        made.pop("diagnostics")
        assert made == json.loads(run_here(command, *words, "--json").stdout), name


def test_explain_answers_for_each_strategy() -> None:
    scenario = ROOT / "scenarios/two-or-four-breakpoints.yaml"
    made = answer("explain", paths=[str(scenario)], limit=2)["explanations"]
    lines = [json.loads(line) for line in printed("explain", scenario, "--json").splitlines()]
    assert [one["strategy"] for one in made] == [line["strategy"] for line in lines]
    long = [n for n, line in enumerate(lines) if len(line["findings"]) > 2]
    assert long
    for number in long:
        assert {"field": "findings", "shown": 2, "of": len(lines[number]["findings"])} in made[number]["cut"]
        costs = sorted((float(one["cost_usd"] or 0) for one in lines[number]["findings"]), reverse=True)
        assert [float(one["cost_usd"] or 0) for one in made[number]["findings"]] == costs[:2]


def test_a_long_list_keeps_its_most_expensive_rows() -> None:
    rows = [{"cost_usd": None}, {"cost_usd": "1.5"}, {"cost_usd": "0.2"}, {"cost_usd": "9"}]
    made = cut_answer({"rows": rows, "unpriced": [1, 2], "calls": 4}, 2)
    assert made["rows"] == [{"cost_usd": "9"}, {"cost_usd": "1.5"}]
    assert made["cut"] == [{"field": "rows", "shown": 2, "of": 4}]
    assert (made["unpriced"], made["calls"]) == ([1, 2], 4)
    assert cut_answer({"rows": rows}, 4) == {"rows": rows, "cut": []}


def test_one_session_call_by_call(folder: Path) -> None:
    made = answer("bill", paths=[str(folder)], session=MAIN, limit=3)
    assert len(made["calls"]) == 3
    assert [one["shown"] for one in made["cut"] if one["field"] == "calls"] == [3]


def test_requests_are_checked_in_order() -> None:
    block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    refused = {**BODY, "messages": [{"role": "user", "content": [block] * 5}]}
    assert answer("lint_request", requests=[BODY, BODY])["requests"] == 2
    made = answer("lint_request", requests=[BODY, refused])
    assert made["findings"][0]["severity"] == "error" and made["findings"][0]["request"] == "requests[1]"
    words = failure("lint_request", requests=[{"model": "claude-sonnet-4-5"}, BODY, {"messages": 1}])
    assert "requests[0]" in words and "requests[2]" in words and "requests[1]" not in words


def test_models_are_brief_unless_one_is_named() -> None:
    all_ = answer("models")
    assert len(all_["models"]) > 5 and "rules" not in all_["models"][0] and all_["models"][0]["prices"]
    (one,) = answer("models", model="claude-sonnet-4-5")["models"]
    assert one["rules"]["minimum_tokens"] and one["prices"]["read"]
    assert "did you mean 'claude-sonnet-4-5" in failure("models", model="claude-sonet-4-5")
    assert "host" in failure("models", host="nowhere")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("explain", {"paths": ["/nowhere/a.jsonl"]}, "'/nowhere/a.jsonl' does not exist"),
        ("bill", {"paths": ["/nowhere/a.jsonl"]}, "'/nowhere/a.jsonl' does not exist"),
        ("bill", {"paths": ["https://example.invalid/a?x=secret"]}, "expected a path on this machine"),
        ("next_message", {"session": "s3://bucket/a"}, "expected a path on this machine"),
        ("explain", {"paths": ["--html=/tmp/never.html"]}, "does not exist"),
        ("bill", {"since": "soon"}, "expected a span (30d, 12h, 2w) or a date"),
        ("bill", {"paths": [], "limit": 0}, "greater than or equal to 1"),
        ("explain", {"paths": []}, "at least 1 item"),
        ("what_if", {"paths": ["x"], "at": "call"}, "valid integer"),
        ("lint_request", {}, "requests, paths: expected one of them"),
    ],
)
def test_bad_input_is_an_error_of_the_tool(tool: str, arguments: dict[str, Any], words: str) -> None:
    told = failure(tool, **arguments)
    assert words in told
    assert "Traceback" not in told and "Usage:" not in told


def test_all_faults_of_a_file_are_told_as_the_command_tells_them(tmp_path: Path) -> None:
    scenario = tmp_path / "two-faults.yaml"
    scenario.write_text("format: 1\nname: x\nmodel: gpt-nothing\nsessions: many\n")
    told, command = failure("explain", paths=[str(scenario)]), run_here("explain", scenario)
    assert told == command.stderr.rstrip()
    assert " errors; nothing was run" in told


@pytest.mark.slow
def test_a_file_that_grows_is_read_again(folder: Path, tmp_path: Path) -> None:
    files = sorted(folder.rglob("*.jsonl"))

    async def ask(client: Client) -> list[int]:
        found = []
        for path in files[:2]:
            (tmp_path / path.name).write_bytes(path.read_bytes())
            done = await client.call_tool("bill", {"paths": [str(tmp_path)]})
            found.append(done.structured_content["calls"])
        return found

    before, after = talk_apart(ask)
    assert 0 < before < after


@pytest.mark.slow
def test_calls_at_the_same_time_do_not_mix(folder: Path) -> None:
    async def ask(client: Client) -> dict[str, Any]:
        made: dict[str, Any] = {}

        async def call(name: str, arguments: dict[str, Any]) -> None:
            made[name] = (await client.call_tool(name, arguments)).structured_content

        async with anyio.create_task_group() as group:
            group.start_soon(call, "bill", {"paths": [str(folder)]})
            group.start_soon(call, "models", {})
            group.start_soon(call, "next_message", {"session": str(folder), "at": AT})
        return made

    made = talk_apart(ask)
    assert made["bill"]["billed_usd"] and made["models"]["models"] and made["next_message"]["cost_usd"]


def test_the_resources_are_the_pages_of_the_documentation() -> None:
    async def ask(client: Client) -> Any:
        texts = [await client.read_resource(uri) for uri in ("cachecost://rulebook", "cachecost://codes/cc301")]
        with pytest.raises(MCPError, match="unknown code 'CC999'"):
            await client.read_resource("cachecost://codes/CC999")
        with pytest.raises(MCPError):
            await client.read_resource("cachecost://codes/..%2Frulebook")
        return [one.contents[0].text for one in texts]

    rulebook, code = talk(ask)
    assert rulebook == (ROOT / "docs/rulebook.md").read_text()
    assert code == (ROOT / "docs/codes/CC301.md").read_text()


def test_nothing_but_the_protocol_is_on_stdout(folder: Path) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "bill", "arguments": {"paths": [str(folder), "/nowhere"]}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "models", "arguments": {}}},
    ]
    words = [sys.executable, "-m", "cachecost", "mcp"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write("".join(json.dumps(one) + "\n" for one in sent) + "no json\n")
        process.stdin.flush()
        ids = set()
        while not {1, 2, 3} <= ids:
            ids.add(json.loads(process.stdout.readline()).get("id"))
        process.stdin.close()
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in process.stdout.read().splitlines())
        assert process.wait(20) == 0


def test_the_catalogue_names_the_tools() -> None:
    summary = COMMAND_GROUPS["While you work"]["mcp"].summary
    assert all(name in summary for name in TOOLS)
