"""Transcripts that the real Claude Code wrote, against the bill of the server that answered it: the same calls, the
same usage, the same dollars. What the client writes into no transcript (the calls of a compaction) is listed apart.
"""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest
from clients_bench import Server
from clients_transcripts import (
    ALLOWED,
    SCRIPT,
    ClaudeCodeFolder,
    KnownSessions,
    bill_of_calls,
    bill_of_log,
    breakpoint_ttls,
    calls_in,
    message_id,
    read_ttls,
    usage_of,
)

from cachecost import cli
from cachecost.base.formatting import exact
from cachecost.providers.clients.settings import effective_ttl, messages_ttl

pytestmark = pytest.mark.clients
UNWRITTEN = "compaction"
"""The run whose calls no transcript contains."""
ONE_SESSION = ("sub-agents", "resume", UNWRITTEN, "after", "model")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnownSessions]:
    """A session with sub-agents, resumed, compacted, continued on another model, and forked."""
    folder = tmp_path_factory.mktemp("claude-code")
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    server = Server(folder, "--answers", f"script:{script}")
    try:
        client = ClaudeCodeFolder(server, folder / "config")
        client.run("sub-agents", "Have somebody look.", *ALLOWED)
        same = ("--resume", client.results["sub-agents"]["session_id"])
        client.run("resume", "Once more.", *same, *ALLOWED)
        client.run(UNWRITTEN, "/compact in short", *same)
        client.run("after", "Go on.", *same, *ALLOWED)
        client.run("model", "On another model.", *same, "--model", "claude-sonnet-5-5", *ALLOWED)
        client.run("fork", "Apart.", *same, "--fork-session", *ALLOWED)
        client.run_sdk("sdk", "Through the SDK.")
        bill = Decimal(server.bill()["total"]["cost_usd"])
        yield KnownSessions(client.projects, server.record, bill, client.logged(), client.results, client.calls_of_run)
    finally:
        server.close()


def test_every_run_was_billed(sessions: KnownSessions) -> None:
    assert all(sessions.calls_of_run.values())
    assert {line["status"] for line in sessions.logged} == {200}
    models = {
        run: {sessions.logged[n]["request"]["model"] for n in calls} for run, calls in sessions.calls_of_run.items()
    }
    assert models["model"] == {"claude-sonnet-5-5"}
    assert models["sub-agents"] == {"claude-opus-5-5"}


def test_each_call_is_read_once_with_the_usage_that_was_billed(sessions: KnownSessions) -> None:
    billed = {line["response"]["id"]: usage_of(line) for line in sessions.logged}
    written = sessions.written()
    assert max(Counter(map(message_id, written)).values()) == 1
    assert {message_id(call): call.billed for call in written} == {
        name: usage for name, usage in billed.items() if name not in sessions.ids_of(UNWRITTEN)
    }


def test_the_dollars_are_those_of_the_server(sessions: KnownSessions) -> None:
    """The transcripts and the calls that they lack add up to the server's bill."""
    written = bill_of_calls(sessions.written())
    lacking = bill_of_log(sessions.record, sessions.ids_of(UNWRITTEN))
    assert written.dollars + lacking.dollars == sessions.billed_usd
    assert lacking.dollars > 0


def test_the_bill_command_says_the_same(
    sessions: KnownSessions, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it counts, and what the client's own sums have beyond it, is the server's bill."""
    monkeypatch.setenv("CACHECOST_STORE", "off")
    words = ["bill", str(sessions.projects), "--json"]
    code = cli.exit_code(lambda: cli.cachecost.main(args=words, prog_name="cachecost", standalone_mode=False))
    bill = json.loads(capsys.readouterr().out)
    written, lacking = sessions.written(), bill_of_log(sessions.record, sessions.ids_of(UNWRITTEN))
    assert (code, bill["calls"], bill["skipped"]) == (0, len(written), [])
    assert Decimal(bill["billed_usd"]) == bill_of_calls(written).dollars
    assert bill["usage"] == bill_of_calls(written).usage.wire()
    assert bill["unwritten"] == {"sessions": 1, "usage": lacking.usage.wire(), "cost_usd": exact(lacking.dollars)}
    assert Decimal(bill["billed_usd"]) + Decimal(bill["unwritten"]["cost_usd"]) == sessions.billed_usd


def test_the_client_keeps_the_whole_sum_of_a_session(sessions: KnownSessions) -> None:
    """The last `cost-state` of a session has what its transcript lacks. A fork goes on from the sum of its parent."""
    (path,) = sessions.projects.glob(f"*/{sessions.results['resume']['session_id']}.jsonl")
    states = [line for line in map(json.loads, path.read_text("utf-8").splitlines()) if line["type"] == "cost-state"]
    session = bill_of_log(sessions.record, sessions.ids_of(*ONE_SESSION))
    forked = bill_of_log(sessions.record, sessions.ids_of(*ONE_SESSION, "fork"))
    assert len(states) == len(ONE_SESSION)
    assert states[-1]["totalCostUSD"] == pytest.approx(float(session.dollars), abs=1e-9)
    assert sessions.results["fork"]["total_cost_usd"] == pytest.approx(float(forked.dollars), abs=1e-9)


def test_sub_agents_have_their_own_files(sessions: KnownSessions) -> None:
    session = sessions.results["sub-agents"]["session_id"]
    folder = next(sessions.projects.glob(f"*/{session}/subagents"))
    metas = {path.name.removesuffix(".meta.json"): json.loads(path.read_text()) for path in folder.glob("*.meta.json")}
    transcripts = {path.stem: list(calls_in(path)) for path in folder.glob("*.jsonl")}
    assert set(metas) == set(transcripts)
    assert {meta["agentType"] for meta in metas.values()} == {"Explore", "general-purpose"}
    assert max(meta["spawnDepth"] for meta in metas.values()) > 1
    called = {message_id(call) for calls in transcripts.values() for call in calls}
    assert called < sessions.ids_of("sub-agents")
    assert all(calls for calls in transcripts.values())


def test_nothing_in_them_is_unknown(sessions: KnownSessions) -> None:
    said: list[str] = []
    assert list(calls_in(sessions.projects, said))
    assert [note for note in said if "skipped" in note] == []


# ---------------------------------------------------------------------------------------------- the TTL of a request

AGENT = """\
---
name: looker
description: Looks around.
tools: Bash
{more}---
You look around.
"""
ASK_THE_AGENT = """\
format: 1
replies:
  - text: I ask.
    tool: Agent
    input: {description: look, prompt: Look., subagent_type: looker, run_in_background: false}
  - {text: Done.}
then: last
"""
FRONTMATTER = 'experimental:\n  cacheTtl: "1h"\n'
TTL_CASES = {
    "default": ({}, {}, None),
    "enable": ({}, {"ENABLE_PROMPT_CACHING_1H": "1"}, None),
    "bedrock alone": ({}, {"ENABLE_PROMPT_CACHING_1H_BEDROCK": "1"}, None),
    "frontmatter": ({}, {}, "1h"),
    "setting over frontmatter": ({"subagentPromptCacheTtl": "5m", "promptCacheTtl": "1h"}, {}, "1h"),
    "variable over setting": ({"promptCacheTtl": "5m"}, {"CLAUDE_CODE_PROMPT_CACHE_TTL": "1h"}, None),
    "variable for others": ({}, {"CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL": "1h"}, None),
    "env of the settings": ({"env": {"CLAUDE_CODE_PROMPT_CACHE_TTL": "1h"}}, {}, None),
    "env over environment": (
        {"env": {"CLAUDE_CODE_PROMPT_CACHE_TTL": "5m"}},
        {"CLAUDE_CODE_PROMPT_CACHE_TTL": "1h"},
        None,
    ),
    "invalid": ({"promptCacheTtl": "2h"}, {"CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL": "1H"}, None),
    "force": ({"promptCacheTtl": "1h"}, {"FORCE_PROMPT_CACHING_5M": "true", "ENABLE_PROMPT_CACHING_1H": "1"}, "1h"),
    "messages": ({"promptCacheTtl": "1h"}, {"CLAUDE_CODE_MESSAGES_PROMPT_CACHE_TTL": "5m"}, None),
    "off": ({"promptCacheTtl": "1h"}, {"DISABLE_PROMPT_CACHING": "1"}, None),
    "off for another family": ({}, {"DISABLE_PROMPT_CACHING_SONNET": "1"}, None),
    "off for its family": ({}, {"DISABLE_PROMPT_CACHING_OPUS": "1"}, None),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("claude-code-ttl")
    script = folder / "script.yaml"
    script.write_text(ASK_THE_AGENT)
    server = Server(folder, "--answers", f"script:{script}")
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("name", TTL_CASES)
def test_the_client_asks_for_the_ttl_that_its_settings_say(asked: Server, name: str) -> None:
    settings, environment, agent_ttl = TTL_CASES[name]
    client = ClaudeCodeFolder(asked, asked.folder / name.replace(" ", "-"))
    (client.config / "agents").mkdir(parents=True)
    (client.config / "agents/looker.md").write_text(AGENT.format(more=FRONTMATTER if agent_ttl else ""))
    (client.config / "settings.json").write_text(json.dumps(settings))
    client.run(name, "Have it looked at.", *ALLOWED, **environment)
    bodies = [client.logged()[number]["request"] for number in client.calls_of_run[name]]
    by_agent = {is_main: [body for body in bodies if _offers_agents(body) is is_main] for is_main in (True, False)}
    for is_main, found in by_agent.items():
        ttl, _ = effective_ttl(
            settings, environment, is_main, False, agent_ttl=None if is_main else agent_ttl, model=found[0]["model"]
        )
        head = {ttl} if ttl else set()
        last = {messages_ttl(ttl, environment)} if ttl else set()
        assert [breakpoint_ttls(body) for body in found] == [{"head": head, "messages": last}] * len(found)

    logged = [client.logged()[number] for number in client.calls_of_run[name]]
    sent = {line["response"]["id"]: breakpoint_ttls(line["request"]) for line in logged}
    assert {message_id(call): read_ttls(call) for call in calls_in(client.projects)} == sent


def _offers_agents(body: dict[str, list[dict[str, str]]]) -> bool:
    return any(tool["name"] == "Agent" for tool in body["tools"])
