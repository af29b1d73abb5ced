"""One small valid file of every format that a command reads: what the fuzzer damages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from conversations.cline_store import MESSAGES, SENT, SHOWN, sdk_session, task
from conversations.opencode_store import TURN, database, session, storage
from conversations.session_stores import codex_session, gemini_session, qwen_session
from conversations.test_anthropic_batch_reader import request, result
from conversations.test_claude_events import collected, console
from conversations.test_claude_events import request as api_request
from conversations.test_crush_reader import TURN as CRUSH_TURN
from conversations.test_crush_reader import database as crush_database
from conversations.test_gemini_log_reader import generated
from conversations.test_har_reader import archive, entry
from conversations.test_jp_reader import answer, ask, config, question, say, story, think, use
from conversations.test_jp_reader import result as tool_result
from conversations.test_langfuse_reader import seen
from conversations.test_langsmith_reader import run
from conversations.test_litellm_reader import payload
from conversations.test_mitmproxy_reader import dump, flow
from conversations.test_mooncake_reader import row, trace_file
from conversations.test_openai_log_reader import answered, asked, chat, completion, log, pair, requested, resulted
from conversations.test_otel_reader import current, exported, span
from conversations.test_recorders_reader import recorded
from conversations.test_transcript_reader import CALL, RESULT, SAYS, user
from conversations.test_transcript_reader import answer as replied
from conversations.test_vcr_reader import cassette, vcrpy

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
TIME = "2026-03-07T10:{:02}:00Z"
TEXT = {"type": "text", "text": "word " * 1200, "cache_control": {"type": "ephemeral"}}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {"at": {}}}}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": [1, 2.5]}}
BILL = {"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 1300, "output_tokens": 9}
SCENARIO = """\
format: 1
name: fuzzed
question: What does it cost?
as_of: 2026-03-07
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {seed: 3, turns: 3, calls: [1, 3], tools: 2, sizes: {human: {mean: 60, sd: 20}, text: 10},
              pauses: {turn: {choices: [10, 400], weights: [3, 1]}}, inquiries: {rate: 0.5}}
  head: {tools: {count: 3, tokens: 2000}, system: {tokens: 900}}
strategies:
  - progressive
  - {name: own, breakpoints: [last_tool, last_system, automatic], ttl: 1h}
compare_to: progressive
variants: [{name: later, as_of: 2026-10-01, rules: {ttl_in_key: true}}]
published_figures: [{source: a page, says: "$0.59", tokens: 95_000, price: write_5m - read}]
sweep: {conversation.head.system.tokens: [100, 2000]}
budget: {strategy: own, max_cost_usd: 40, max_regression: 5%, min_cache_hit_rate: 10%}
"""
PRICES = """\
[[price]]
model = "claude-opus-4-6"
input = 4.5
read = 0.4
write_5m = 6
write_1h = 9
output = 20
from = 2026-01-01
above = 1000
source = "mine"
[[gpu]]
host = "vllm"
usd_per_hour = 2.5
prefill_tokens_per_s = 10_000
[[modifier]]
name = "discount"
models = ["*"]
multiplier = 0.9
"""
RULES = """\
[data]
source = "by hand"
[assumptions]
ttl_in_key = false
visibility_lag_s = 1.5
[[minimum_tokens]]
model = "claude-opus-4-6"
value = 512
from = 2026-01-01
[[evidence]]
said = ["a", {b = 1}]
"""


class Seed(NamedTuple):
    """A valid file: what it is (log, recording, scenario, body, prices, rules), its name and what is in it."""

    kind: str
    name: str
    data: bytes


def seeds(folder: Path) -> list[Seed]:
    """All of them; `folder` is where those that need a file are made."""
    found = [Seed("log", path.name, path.read_bytes()) for path in log_files(folder)]
    found += [Seed("recording", path.name, b"".join(path.read_bytes().splitlines(True)[:6])) for path in _recordings()]
    body = request_body()
    found.append(Seed("body", "body.json", json.dumps(body, indent=1).encode()))
    texts = (("scenario", "scenario.yaml", SCENARIO), ("prices", "own.toml", PRICES), ("rules", "own.toml", RULES))
    return found + [Seed(kind, name, text.encode()) for kind, name, text in texts]


def request_body(messages: int = 1) -> dict[str, object]:
    turns = [{"role": "assistant", "content": [USE]}, {"role": "user", "content": [{**RESULT[0], "tool_use_id": "t1"}]}]
    opening = {"role": "user", "content": [TEXT]}
    return {
        "model": "claude-opus-4-6",
        "max_tokens": 100,
        "tools": [TOOL],
        "system": "be kind",
        "messages": [opening, *turns * (messages - 1)],
    }


def log_files(folder: Path) -> list[Path]:
    made = {
        name: folder / name for name in ("request", "batch", "completions", "pairs", "transcript", "nock", "exchange")
    }
    for path in made.values():
        path.mkdir()
    requests = [{"timestamp": TIME.format(n), "request": request_body(n), "usage": BILL} for n in (1, 2, 3)]
    story(folder, *_events())
    return [
        log(made["request"], *requests, name="requests.jsonl"),
        log(made["batch"], request("a"), request("b"), result("a"), result("b"), name="batch.jsonl"),
        log(made["completions"], requested("b1"), resulted("b1", completion())),
        log(made["pairs"], pair(asked("please"), answered("x")), pair(chat(), completion()), name="pairs.jsonl"),
        log(folder, generated(), generated(10), name="gemini.jsonl"),
        log(made["transcript"], *_records(), name="session.jsonl"),
        archive(folder, entry(), entry("2026-03-07T10:01:00Z")),
        log(folder, seen(), seen(3), name="observations.jsonl"),
        log(folder, run(), run(3), name="runs.jsonl"),
        log(folder, payload(), name="litellm.jsonl"),
        log(folder, exported(span(current()), span(current(), 5, "a2")), name="spans.jsonl"),
        log(folder, collected(api_request(), api_request(2)), name="events.jsonl"),
        printed_file(folder / "console.txt"),
        dump(folder, flow(), flow()),
        trace_file(folder, row(0, 900, [1, 2]), row(3000, 1400, [1, 2, 3])),
        cassette(folder, vcrpy(), vcrpy()),
        recorded(made["nock"], "nock"),
        recorded(made["exchange"], "req_llm"),
        folder / "17700000001-a-title.events.json",
        log(folder, *codex_session(), name="rollout-t-1.jsonl"),
        log(folder, *gemini_session(), name="session-g-1.jsonl"),
        log(folder, *qwen_session(), name="q-1.jsonl"),
        *_stores(folder),
    ]


def _stores(folder: Path) -> list[Path]:
    """Session stores of coding agents."""
    return [
        database(folder, [session()], TURN),
        *storage(folder, [session()], TURN),
        task(folder, SHOWN, api_conversation_history=SENT),
        sdk_session(folder, MESSAGES),
        crush_database(folder, CRUSH_TURN),
    ]


def printed_file(path: Path) -> Path:
    """Events as a console prints them."""
    path.write_text("".join(f"{console(api_request(number))}\n" for number in (1, 2)))
    return path


def _events() -> list[dict[str, object]]:
    model = {"model": {"id": {"provider": "anthropic", "name": "claude-opus-4-6"}}}
    turn = [config(0, assistant=model), ask(5, "fix"), think(8, "hm"), say(9, "I will"), use(10, "t", path="x")]
    return [*turn, question(10.6, "t.apply"), answer(14, "t.apply"), tool_result(15, "t", "done"), say(19)]


def _records() -> list[dict[str, object]]:
    first = [user("a", None, 0), replied("b", "a", 3, (10, 0, 5000, 30), CALL, sessionId="s")]
    return [*first, user("z", "b", 7, RESULT), replied("f", "z", 9, (2, 5010, 400, 55), SAYS, "m2", "r2")]


def _recordings() -> list[Path]:
    small = (path for path in sorted(RECORDINGS.glob("traffic/*/*.jsonl")) if path.stat().st_size < 6000)
    return [*list(small)[::12], *sorted(RECORDINGS.glob("*.jsonl"))[:2], *sorted(RECORDINGS.glob("sessions/*.jsonl"))]
