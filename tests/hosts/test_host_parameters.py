"""Parameters by which a host changes a price, a lifetime or a cache key: what its own reader, `serve` and `lint` make
of each. The readers get the exchange as it went over the wire, headers included."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from cachecost.analysis.lint import lint
from cachecost.base.errors import CannotEvaluate, OtherCache
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.call_builder import CallBuilder
from cachecost.conversations.readers.http.exchange import HttpExchange, read
from cachecost.ledger.rows import CallRow
from cachecost.live.clock import SteppingClock
from cachecost.live.server.state import Meter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from live.server_fakes import Says, post, served_by

Body = dict[str, Any]
LONG = "It reads a file and says what is in it. " * 600
KEY = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01"}
DAY = date(2026, 11, 20)
RULES, PRICES = RuleBook(as_of=DAY), PriceBook.load(None, DAY)


class Api(NamedTuple):
    """How a host is called: its address, its path for a model, and a body with a long prompt."""

    machine: str
    path: str
    body: Body


CHAT: Body = {"messages": [{"role": "system", "content": LONG}, {"role": "user", "content": "Go on."}]}
RESPONSES: Body = {"instructions": LONG, "input": "Go on."}
MESSAGES: Body = {
    "max_tokens": 9,
    "system": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Go on."}],
}
GEMINI: Body = {
    "systemInstruction": {"parts": [{"text": LONG}]},
    "contents": [{"role": "user", "parts": [{"text": "Go on."}]}],
}
CONVERSE: Body = {
    "system": [{"text": LONG}, {"cachePoint": {"type": "default"}}],
    "messages": [{"role": "user", "content": [{"text": "Go on."}]}],
}
MARKED_CHAT: Body = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": "Go on."},
    ]
}
DASHSCOPE = "https://dashscope-intl.aliyuncs.com"
APIS = {
    "openai": Api("https://api.openai.com", "/v1/chat/completions", CHAT),
    "openai-responses": Api("https://api.openai.com", "/v1/responses", RESPONSES),
    "azure": Api("https://a.openai.azure.com", "/openai/v1/chat/completions", CHAT),
    "anthropic": Api("https://api.anthropic.com", "/v1/messages", MESSAGES),
    "bedrock": Api("https://bedrock-runtime.us-east-1.amazonaws.com", "/model/{model}/converse", CONVERSE),
    "bedrock-invoke": Api("https://bedrock-runtime.us-east-1.amazonaws.com", "/model/{model}/invoke", MESSAGES),
    "gemini": Api("https://generativelanguage.googleapis.com", "/v1beta/models/{model}:generateContent", GEMINI),
    "vertex": Api(
        "https://us-central1-aiplatform.googleapis.com",
        "/v1/projects/p/locations/global/publishers/google/models/{model}:generateContent",
        GEMINI,
    ),
    "xai": Api("https://api.x.ai", "/v1/chat/completions", CHAT),
    "xai-responses": Api("https://api.x.ai", "/v1/responses", RESPONSES),
    "moonshot": Api("https://api.moonshot.ai", "/v1/chat/completions", CHAT),
    "deepseek": Api("https://api.deepseek.com", "/chat/completions", CHAT),
    "mistral": Api("https://api.mistral.ai", "/v1/chat/completions", CHAT),
    "groq": Api("https://api.groq.com", "/openai/v1/chat/completions", CHAT),
    "qwen": Api(DASHSCOPE, "/compatible-mode/v1/chat/completions", CHAT),
    "qwen-marked": Api(DASHSCOPE, "/compatible-mode/v1/chat/completions", MARKED_CHAT),
    "qwen-responses": Api(DASHSCOPE, "/api/v2/apps/protocols/compatible-mode/v1/responses", RESPONSES),
    "minimax": Api("https://api.minimax.io", "/anthropic/v1/messages", MESSAGES),
}

TABLE = """
# api             model                      parameter                                              price  key   served
openai            gpt-6.1-sol                {"service_tier": "flex"}                               0.5    lost  yes
openai            gpt-6.1-sol                {"service_tier": "priority"}                           2      lost  yes
openai            gpt-6.1-sol                {"service_tier": "scale"}                              none   -     no
openai            gpt-6.1-sol                {"service_tier": "default"}                            1      kept  yes
openai            gpt-6.1-sol                {"prompt_cache_key": "a"}                              1      lost  yes
openai            gpt-6.1-sol                {"reasoning_effort": "low"}                            1      lost  yes
openai            gpt-6.1-sol                {"reasoning_effort": "medium"}                         1      kept  yes
openai            gpt-6.1-sol                {"verbosity": "low"}                                   1      lost  yes
openai            gpt-6.1-sol                {"parallel_tool_calls": false}                         1      lost  yes
openai            gpt-6.1-sol                {"tool_choice": "none"}                                1      kept  yes
openai            gpt-6.1-sol                {"response_format": {"type": "json_object"}}           1      lost  yes
openai            gpt-6.1-sol                {"safety_identifier": "u"}                             1      kept  yes
openai-responses  gpt-6.1-sol                {"text": {"verbosity": "low"}}                         1      lost  yes
openai-responses  gpt-6.1-sol                {"reasoning": {"effort": "low"}}                       1      lost  yes
openai-responses  gpt-6.1-sol                {"service_tier": "flex"}                               0.5    lost  yes
openai            gpt-5                      {"service_tier": "flex"}                               0.5    kept  yes
openai            gpt-5                      {"prompt_cache_retention": "in_memory"}                1      kept  yes
openai            gpt-5                      {"prompt_cache_retention": "24h"}                      1      kept  yes
azure             gpt-5                      {"prompt_cache_retention": "24h"}                      1      kept  yes
azure             gpt-5                      {"service_tier": "flex"}                               none   -     no
anthropic         claude-opus-5              {"service_tier": "standard_only"}                      1      kept  yes
anthropic         claude-opus-5              {"inference_geo": "us"}                                1.1    kept  yes
anthropic         claude-opus-5              {"speed": "fast"}                                      2      lost  yes
anthropic         claude-opus-5              {"container": {"skills": [{"skill_id": "pdf"}]}}       1      lost  yes
anthropic         claude-opus-5              {"output_config": {"effort": "low"}}                   1      lost  yes
bedrock           us.amazon.nova-pro-v1:0    {"serviceTier": {"type": "default"}}                   1      kept  -
bedrock           us.amazon.nova-pro-v1:0    {"serviceTier": {"type": "flex"}}                      none   -     -
bedrock           us.amazon.nova-pro-v1:0    {"performanceConfig": {"latency": "optimized"}}        none   -     -
bedrock           us.amazon.nova-pro-v1:0    {"performanceConfig": {"latency": "standard"}}         1      kept  -
bedrock-invoke    us.anthropic.claude-opus-4-6-v1  x-amzn-bedrock-service-tier:priority             none   -     -
bedrock-invoke    us.anthropic.claude-opus-4-6-v1  x-amzn-bedrock-service-tier:default              1      kept  -
bedrock-invoke    us.anthropic.claude-opus-4-6-v1  x-amzn-bedrock-performanceconfig-latency:optimized  none  -  -
gemini            gemini-4-argon             {"serviceTier": "flex"}                                0.5    kept  yes
gemini            gemini-4-argon             {"service_tier": "SERVICE_TIER_PRIORITY"}              1.8    kept  yes
gemini            gemini-4-argon             {"serviceTier": "standard"}                            1      kept  yes
gemini            gemini-3.8-flash           {"serviceTier": "priority"}                            none   -     no
vertex            gemini-3.8-flash           x-vertex-ai-llm-shared-request-type:priority           none   -     no
vertex            gemini-3.8-flash           x-vertex-ai-llm-shared-request-type:standard           1      kept  yes
xai               grok-4.7                   x-grok-conv-id:a                                       1      lost  yes
xai-responses     grok-4.7                   {"prompt_cache_key": "a"}                              1      lost  yes
xai               grok-4.7                   {"service_tier": "priority"}                           none   -     no
deepseek          deepseek-flash             {"user_id": "a"}                                       1      lost  yes
mistral           mistral-large-4            {"prompt_cache_key": "a"}                              1      lost  yes
groq              openai/gpt-oss-120b        {"service_tier": "on_demand"}                          1      kept  yes
groq              openai/gpt-oss-120b        {"service_tier": "flex"}                               none   -     no
anthropic         claude-opus-5              {"betas": ["context-1m-2025-08-07"]}                   1      kept  yes
anthropic         claude-opus-5              {"context_management": {"edits": []}}                  1      kept  yes
moonshot          kimi-k3                    {"prompt_cache_options": {"ttl": "5m"}}                1      kept  yes
moonshot          kimi-k3                    {"prompt_cache_options": {"ttl": "1h"}}                2      lost  yes
moonshot          kimi-k3                    {"prompt_cache_key": "a"}                              1      lost  yes
qwen-responses    qwen3.8-max                x-dashscope-session-cache:enable                       1.25   lost  yes
qwen-responses    qwen3.8-max                x-dashscope-session-cache:disable                      1      kept  yes
"""


class Row(NamedTuple):
    api: str
    model: str
    headers: dict[str, str]
    fields: Body
    price: str
    key: str
    served: str


def row_of(line: str) -> Row:
    api, model, rest = line.split(None, 2)
    parameter, price, key, served = rest.rsplit(None, 3)
    if parameter.startswith("{"):
        return Row(api, model, {}, json.loads(parameter), price, key, served)
    name, _, value = parameter.partition(":")
    return Row(api, model, {name: value}, {}, price, key, served)


ROWS = [line for line in TABLE.strip().splitlines() if not line.startswith("#")]


def call_of(
    api: str, model: str, minute: int = 0, headers: Any = (), response: tuple[Any, str] = ((), ""), **fields: Any
) -> Call:
    """A call as the reader of HTTP exchanges reads it; `response` is headers and body of its answer."""
    how = APIS[api]
    body = json.dumps({"model": model, **how.body, **fields}).encode()
    url = how.machine + how.path.format(model=model)
    started = f"2026-11-20T10:{minute:02}:00Z"
    exchange = HttpExchange(
        url=url,
        request_headers=dict(headers),
        request=body,
        started=started,
        response_headers=dict(response[0]),
        response=response[1].encode(),
    )
    found = read(exchange, CallBuilder().build)
    assert isinstance(found, Call), found
    return found


def rows_of(*calls: Call) -> list[CallRow]:
    return list(Simulation(ReplaySetup(RULES, PRICES)).rows(calls))


@pytest.mark.parametrize("line", ROWS)
def test_what_its_own_reader_makes_of_a_parameter(line: str) -> None:
    row = row_of(line)
    plain, first = (
        rows_of(call_of(row.api, row.model, 0, headers, **fields))[0]
        for headers, fields in (({}, {}), (row.headers, row.fields))
    )
    if row.price == "none":
        assert first.error and ("no price" in first.error or "processing" in first.error)
        return
    assert first.error is None and plain.error is None, (first.error, plain.error)
    assert first.cost.total / plain.cost.total == pytest.approx(Decimal(row.price), rel=Decimal("0.02"))
    second = rows_of(call_of(row.api, row.model, 0, row.headers, **row.fields), call_of(row.api, row.model, 1))[1]
    assert (second.usage.read > 1000) == (row.key == "kept")


@pytest.mark.parametrize("line", [line for line in ROWS if not line.endswith("-")])
def test_what_serve_makes_of_it(line: str) -> None:
    row = row_of(line)
    how, host = APIS[row.api], row.api.partition("-")[0]
    meter = Meter(ReplaySetup(RULES, PRICES, host))
    served = served_by(Says(), meter, clock=SteppingClock(2.0))
    answers = [
        post(served, {"model": row.model, **how.body, **fields}, _local(how.path, row.model), {**KEY, **headers})
        for headers, fields in ((row.headers, row.fields), ({}, {}))
    ]
    if row.served == "no":
        assert answers[0].status_code == 400 and "cannot bill" in answers[0].text
        return
    assert [one.status_code for one in answers] == [200, 200], answers[0].text
    one, other = (taken.row for taken in meter.taken)
    assert (other.usage.read > 1000) == (row.key == "kept")
    cold = rows_of(call_of(row.api, row.model, 0, row.headers, **row.fields))[0]
    prompt, cold_prompt = (row.cost.total - row.cost.output for row in (one, cold))
    assert prompt == pytest.approx(cold_prompt, rel=Decimal("0.02"))


def _local(path: str, model: str) -> str:
    """The server has every API at one address."""
    last = next((name for name in ("chat/completions", "responses", "messages") if path.endswith(name)), "")
    return f"/v1/{last}" if last else f"/v1beta/models/{model}:generateContent"


BODIES = [line for line in ROWS if "{" in line and not line.startswith("gemini")]
"""A body alone has no headers, and Gemini's names no model."""


@pytest.mark.parametrize("line", BODIES)
def test_what_lint_makes_of_it(line: str) -> None:
    """It takes no parameter for a fault."""
    row = row_of(line)
    body: Body = {"model": row.model, "modelId": row.model, **APIS[row.api].body, **row.fields}
    body.pop("model" if row.api == "bedrock" else "modelId")
    host = row.api.partition("-")[0]
    if RULES.rules(host, row.model).is_supported_by("lint"):
        assert [one.code for one in lint(body, host=host) if one.code.startswith("CC50")] == []
    else:
        with pytest.raises((OtherCache, CannotEvaluate)):
            lint(body, host=host)


@pytest.mark.parametrize(
    ("api", "model", "marked"),
    [
        ("qwen", "qwen3.8-max", "qwen3.8-max"),
        ("qwen-marked", "qwen3.8-max", "qwen3.8-max-explicit"),
        ("qwen-marked", "qwen3-max", "qwen3-max"),  # of which no source says that it takes breakpoints
        ("minimax", "MiniMax-M2.7", "MiniMax-M2.7-explicit"),
        ("minimax", "minimax-m2.7", "minimax-m2.7-explicit"),
        ("anthropic", "claude-opus-5", "claude-opus-5"),
    ],
)
def test_breakpoints_choose_the_way_of_caching_where_another_is_the_default(api: str, model: str, marked: str) -> None:
    assert call_of(api, model).request.model == marked


def test_a_marked_prompt_of_qwen_is_written_and_read_as_documented() -> None:
    written, again = rows_of(call_of("qwen-marked", "qwen3.8-max"), call_of("qwen-marked", "qwen3.8-max", 4))
    late = rows_of(call_of("qwen-marked", "qwen3.8-max"), call_of("qwen-marked", "qwen3.8-max", 6))[1]
    assert written.usage.write_5m == again.usage.read > 1000
    assert (late.usage.read, late.usage.write_5m) == (0, written.usage.write_5m)


@pytest.mark.parametrize("api", ["openai", "azure"])
@pytest.mark.parametrize(
    ("model", "retention", "pause", "is_read"),
    [
        ("gpt-5", "in_memory", 4, True),
        ("gpt-5", "in-memory", 6, False),  # as the SDK of November 2025 spelled it
        ("gpt-5", "24h", 29, True),
        ("gpt-5", "24h", 31, False),
        ("gpt-5", None, 29, True),  # the default since October 2026
        ("gpt-4o", "24h", 6, False),  # not among the models that have it
        ("gpt-6.1-sol", "in_memory", 29, True),  # deprecated from GPT-5.6 on
    ],
)
def test_retention_is_how_long_entries_are_kept(
    api: str, model: str, retention: str | None, pause: int, is_read: bool
) -> None:
    stated = {"prompt_cache_retention": retention} if retention else {}
    first, second = (call_of(api, model, minute, **stated) for minute in (0, pause))
    assert (rows_of(first, second)[1].usage.read > 1000) == is_read


def test_an_hour_of_kimi_k3_is_kept_and_paid_as_such() -> None:
    hour, short = {"prompt_cache_options": {"ttl": "1h"}}, {"prompt_cache_options": {"ttl": "5m"}}
    for stated, pause, is_read in ((hour, 59, True), (short, 4, True), (short, 6, False), ({}, 6, False)):
        first, second = rows_of(*(call_of("moonshot", "kimi-k3", minute, **stated) for minute in (0, pause)))
        assert (second.usage.read > 1000) == is_read
        assert (first.usage.write_1h > 1000, first.usage.write_5m > 1000) == (stated is hour, stated is not hour)
    usage = {"prompt_tokens": 5000, "completion_tokens": 1, "cache_write_tokens": 4864}
    answer = json.dumps({"usage": usage, "choices": [{"message": {"role": "assistant", "content": "x"}}]})
    for stated, paid in ((hour, 6), (short, 3)):
        billed = call_of("moonshot", "kimi-k3", response=((), answer), **stated).billed
        assert billed is not None and (billed.write_1h if paid == 6 else billed.write_5m) == 4864


def test_retention_before_it_was_the_default() -> None:
    for day, expected in (("2026-10-01", 300.0), ("2026-10-02", 1800.0)):
        book = RuleBook(as_of=date.fromisoformat(day))
        names = ("gpt-5", "gpt-5-in-memory", "gpt-5-24h")
        assert [book.rules("openai", name).ttl_s["5m"] for name in names] == [expected, 300.0, 1800.0]


@pytest.mark.parametrize(
    ("api", "model", "headers", "answer", "tier"),
    [
        ("gemini", "gemini-4-argon", {"x-gemini-service-tier": "standard"}, {}, "standard"),
        ("gemini", "gemini-4-argon", {}, {"usageMetadata": {"serviceTier": "STANDARD"}}, "standard"),
        ("gemini", "gemini-4-argon", {}, {"usageMetadata": {"trafficType": "ON_DEMAND_FLEX"}}, "flex"),
        ("bedrock", "us.amazon.nova-pro-v1:0", {}, {"serviceTier": {"type": "default"}}, "default"),
    ],
)
def test_the_tier_that_answered_is_the_one_that_is_paid(
    api: str, model: str, headers: Any, answer: Body, tier: str
) -> None:
    asked: Body = {"serviceTier": "priority"} if api == "gemini" else {"serviceTier": {"type": "priority"}}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1, "inputTokens": 9, "outputTokens": 1}
    content = {"output": {"message": {"role": "assistant", "content": [{"text": "x"}]}}, "candidates": []}
    whole = {"usage": usage, "usageMetadata": usage, **content, **answer}
    whole.pop("usage" if api == "gemini" else "usageMetadata")
    found = call_of(api, model, response=(headers, json.dumps(whole)), **asked)
    assert found.request.params["service_tier"] == tier


@pytest.mark.parametrize(("choice", "read"), [({"any": {}}, 0), ({"auto": {}}, 1)])
def test_nova_reads_nothing_that_a_call_with_a_forced_choice_wrote(choice: Body, read: int) -> None:
    tool = {"toolSpec": {"name": "t", "inputSchema": {"json": {"type": "object"}}}}
    first = call_of("bedrock", "amazon.nova-lite-v1:0", toolConfig={"tools": [tool], "toolChoice": choice})
    second = call_of("bedrock", "amazon.nova-lite-v1:0", 1, toolConfig={"tools": [tool]})
    assert (rows_of(first, second)[1].usage.read > 1000) == bool(read)
