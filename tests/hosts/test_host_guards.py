"""Commands that know only caches like Claude's say so of another, in words, with exit code 3; the others work."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_logs import Sent, Told, ask, body, every, write_log
from host_models import BY_BREAKPOINTS, GPU, LIKE_CLAUDE, MODELS

from bodies import BREAKPOINT, Body, assistant, marked, text, user
from cachecost.live.server.model import CallCharge, ClientCall, ModelAnswer
from cachecost.live.server.state import Meter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from slow_cases import mostly_slow

OTHERS = [one for one in MODELS if one not in LIKE_CLAUDE]
HEAD: Body = {"system": [marked(text(5_000, "s"))]}
ASKED, ANSWERED, THEN = user(text(3_000, "a")), assistant(text(100, "b")), user(text(200, "c"))
CALLS = every(20, body(ASKED, **HEAD), body(ASKED, ANSWERED, THEN, **HEAD))
OBJECTS = ("gemini", "gemini-3.8-flash-explicit")
ALL_BUT_OBJECTS = "all caches but explicit cache objects"
PLAIN: Body = {"system": [text(5_000, "s")]}
UNMARKED_CALLS = every(20, body(ASKED, **PLAIN), body(ASKED, ANSWERED, THEN, **PLAIN))
NOON = 1_795_262_400.0
"""Noon of the Saturday on which the logs begin, in seconds."""
WAYS = {
    "gpt-6.1-sol": "uses breakpoints, and looks for entries at breakpoints and at the ends of messages",
    "gpt-5.5": "keeps every prefix automatically, in fixed-size blocks of tokens",
    "gemini-3.8-flash": "is automatic and best effort",
    "gemini-3.8-flash-explicit": "keeps explicit cache objects",
    "deepseek-flash": "keeps fixed units automatically",
}


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.toml"
    path.write_text(GPU, encoding="utf-8")
    return path


FOUND = {"explain": "CC110", "whatif": "volatile=last", "optimize": "volatile=last", "lint": "CC530"}
"""What each command says of a clock in the system prompt."""


def clocked(turns: int) -> Body:
    """A call of so many turns whose system prompt begins with the time."""
    question, answer = "question {} " + "abc " * 1500, {"type": "text", "text": "yes " * 9}
    asked = [user({"type": "text", "text": question.format(turn)}) for turn in range(turns)]
    sent = [one for pair in zip(asked, [assistant(answer)] * turns, strict=True) for one in pair]
    return body(*sent[:-1], system=[marked({"type": "text", "text": f"It is 10:0{turns}. " + "word and more " * 1500})])


def asked_of(tmp_path: Path, command: str, host: str, model: str, *words: str | Path) -> Told:
    return ask(command, write_log(tmp_path / "log.jsonl", model, CALLS), "--host", host, *words)


@pytest.mark.parametrize(
    ("command", "host", "model"),
    [(command, *OBJECTS) for command in ("explain", "whatif", "optimize", "lint")],
)
def test_what_knows_only_caches_like_claudes_says_so(
    tmp_path: Path, gpu: Path, command: str, host: str, model: str
) -> None:
    calls = UNMARKED_CALLS if model in BY_BREAKPOINTS else CALLS
    log = write_log(tmp_path / "log.jsonl", model, calls)
    result = ask(command, log, "--host", host, *(["--prices", gpu] if host in {"vllm", "sglang"} else []))
    assert result.code == 3
    known = "breakpoint caches with a lookback only, like Claude's" if command == "optimize" else ALL_BUT_OBJECTS
    assert f"{command} supports {known}; the cache of" in result.words
    assert "(bill, replay and validate support it)" in result.words
    assert f"the cache of {model} on host {host} {WAYS.get(model, '')}" in result.words


@pytest.mark.parametrize(("host", "model"), [one for one in OTHERS if one != OBJECTS])
@pytest.mark.parametrize("command", ["explain", "whatif", "optimize", "lint"])
def test_a_clock_in_the_system_prompt_is_found_on_every_host(
    tmp_path: Path, gpu: Path, command: str, host: str, model: str
) -> None:
    log = write_log(tmp_path / "log.jsonl", model, every(20, *(clocked(turns) for turns in range(1, 4))))
    result = ask(command, log, "--host", host, *(["--prices", gpu] if host in {"vllm", "sglang"} else []))
    assert result.code == (1 if command == "lint" else 0), result
    is_planned = (
        command == "optimize" and model in BY_BREAKPOINTS
    )  # breakpoints are, where requests choose to have them
    if host != "cerebras" and not is_planned:  # what is read costs as much there as what is not
        assert FOUND[command] in result.out


@pytest.mark.parametrize(("host", "model"), [*LIKE_CLAUDE, *(one for one in MODELS if one[1] in BY_BREAKPOINTS)])
@pytest.mark.parametrize("command", ["explain", "whatif", "optimize", "lint"])
def test_they_answer_wherever_breakpoints_look_back(tmp_path: Path, command: str, host: str, model: str) -> None:
    """Also where a host has one TTL. What `lint` finds here is a hint, which is its exit code 1."""
    result = asked_of(tmp_path, command, host, model)
    assert result.code == (1 if command == "lint" else 0), result
    assert "supports breakpoint caches" not in result.words


@pytest.mark.parametrize("command", ["explain", "whatif", "optimize"])
def test_of_models_that_nobody_knows_nothing_is_said(tmp_path: Path, command: str) -> None:
    result = asked_of(tmp_path, command, "openai", "gpt-6.3-sol")
    assert result.code == 3
    assert result.out == ""
    assert "unknown model 'gpt-6.3-sol' on host openai (did you mean 'gpt-6.2-sol'?)" in result.words


def test_another_model_is_one_that_is_cached_the_same_way(tmp_path: Path) -> None:
    result = asked_of(tmp_path, "whatif", "qwen", "qwen3.8-max-explicit")
    assert "model=qwen3.8-flash-explicit" in result.out
    assert "model=qwen3.8-flash " not in result.out
    refused = asked_of(tmp_path, "whatif", "qwen", "qwen3.8-max-explicit", "--jointly", "model=qwen3.8-flash")
    assert refused.code == 2


@pytest.mark.parametrize(("host", "model"), [OBJECTS])
def test_a_page_of_a_replay_is_written_without_what_explain_cannot_say(tmp_path: Path, host: str, model: str) -> None:
    page = tmp_path / "page.html"
    result = asked_of(tmp_path, "replay", host, model, "--html", page)
    assert result.code == 0, result.words
    assert f"the page does not show avoidable costs: explain supports {ALL_BUT_OBJECTS}" in result.words
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("host", "model", "names"),
    [("openai", "gpt-6.1-sol", ("30m", "12h")), ("anthropic", "claude-opus-5-5", ("5m", "1h"))],
)
def test_a_table_names_the_lifetimes_of_its_host(tmp_path: Path, host: str, model: str, names: tuple[str, str]) -> None:
    for words in ([], ["--strategy", "automatic"]):
        head = asked_of(tmp_path, "replay", host, model, "--tokens", "bytes", *words).out.splitlines()[1]
        assert f"write {names[0]}  write {names[1]}" in head


def test_a_bill_that_the_host_has_no_price_for_is_no_row_of_no_dollars(tmp_path: Path) -> None:
    usage = '"usage": {"input_tokens": 3000, "output_tokens": 5}'
    log = write_log(tmp_path / "log.jsonl", "claude-opus-5-5", CALLS)
    log.write_text(log.read_text().replace('{"timestamp"', f'{{{usage}, "timestamp"'), encoding="utf-8")
    words = ("replay", log, "--strategy", "automatic", "--tokens", "bytes")
    assert "  billed " in ask(*words).out
    result = ask(*words, "--host", "xai", "--model", "grok-4.7")
    assert "  billed " not in result.out
    assert "2 calls not in the billed dollars: unknown model 'claude-opus-5-5' on host xai" in result.words


def scenario(folder: Path, host: str, model: str, budget: str = "") -> Path:
    """A scenario of the recorded calls, replanned; its strategies are held to `budget`."""
    write_log(folder / "log.jsonl", model, CALLS)
    limits = f"budget:\n  - {{strategy: automatic, {budget}}}\n" if budget else ""
    path = folder / "other.yaml"
    path.write_text(
        f"format: 1\nname: other\nhost: {host}\nmodel: {model}\nas_of: 2026-11-21\ntokens: bytes\n"
        f"conversation: {{recording: log.jsonl}}\nstrategies: [automatic, system-only]\n{limits}",
        encoding="utf-8",
    )
    return path


ONE_OF_EACH_WAY = [one for one in MODELS if one[1] in {*WAYS, "qwen3.8-max-explicit"}]


@pytest.mark.parametrize(("host", "model"), mostly_slow(ONE_OF_EACH_WAY, 4))
def test_a_scenario_has_its_report_whatever_the_cache(tmp_path: Path, host: str, model: str) -> None:
    result = ask("run", scenario(tmp_path, host, model), "--out", tmp_path / "report")
    assert result.code == 0, result.words
    assert {".html", ".md"} <= {path.suffix for path in (tmp_path / "report").rglob("*")}


CHECKED = [
    ("openai", "gpt-6.1-sol", "min_lookback_margin: 3", 3, "has a cache without lookback: the cache of gpt-6.1-sol on"),
    ("deepseek", "deepseek-flash", "min_lookback_margin: 3", 3, "has a cache without lookback: the cache of deepseek-"),
    ("qwen", "qwen3.8-max-explicit", "min_lookback_margin: 3", 0, "lookback positions left"),
    ("deepseek", "deepseek-flash", "max_breakpoints: 0", 0, "places 0 breakpoints"),
    ("openai", "gpt-6.1-sol", "max_breakpoints: 0", 1, "places 1 breakpoint in call 1; the limit is 0"),
    (
        "gemini",
        "gemini-3.8-flash",
        "max_cost_usd: 0.011",
        3,
        "without a cache hit: hits are best effort here. The limit",
    ),
    ("gemini", "gemini-3.8-flash", "max_cost_usd: 1", 0, "the limit is $1"),
    ("gemini", "gemini-3.8-flash", "max_cost_usd: 0.0001", 1, "more than the limit of $0.0001"),
    ("gemini", "gemini-3.8-flash", "min_cache_hit_rate: 10%", 3, "may reach a cache hit rate of"),
    ("gemini", "gemini-3.8-flash", "min_cache_hit_rate: 99%", 1, "; the minimum is 99%"),
    ("deepseek", "deepseek-flash", "min_cache_hit_rate: 10%", 0, "; the minimum is 10%"),
]


@pytest.mark.parametrize(("host", "model", "budget", "code", "words"), CHECKED)
def test_budgets_hold_what_the_cache_of_the_host_has(
    tmp_path: Path, host: str, model: str, budget: str, code: int, words: str
) -> None:
    result = ask("check", scenario(tmp_path, host, model, budget))
    assert (result.code, words in result.out + result.words) == (code, True), result


def test_of_other_caches_a_broken_budget_gives_no_cause_of_claudes(tmp_path: Path) -> None:
    result = ask("check", scenario(tmp_path, "openai", "gpt-6.1-sol", "max_cost_usd: 0.0001"))
    assert result.code == 1
    assert "[CC" not in result.out


@pytest.mark.parametrize(("host", "model"), [("openai", "gpt-6.1-sol"), ("deepseek", "deepseek-flash")])
def test_live_speaks_to_one_api(tmp_path: Path, host: str, model: str) -> None:
    result = ask("live", scenario(tmp_path, host, model), "--max-usd", "1", "--dry-run")
    assert result.code == 3
    assert result.words == f"live supports only Anthropic's API; the scenario's host is {host}\n"


def test_optimize_says_it_of_a_scenario_too(tmp_path: Path) -> None:
    result = ask("optimize", scenario(tmp_path, "openai", "gpt-6.1-sol"))
    assert result.code == 3
    assert "optimize supports breakpoint caches" in result.words


def test_many_seeds_are_played_one_by_one_where_the_engine_of_columns_knows_no_such_cache(tmp_path: Path) -> None:
    result = ask("sweep", scenario(tmp_path, "deepseek", "deepseek-flash"), "--seeds", "2", "--jobs", "1")
    assert result.code == 0, result.words
    assert "means of 2 seeds" in result.out


@pytest.mark.parametrize(("host", "model"), [one for one in OTHERS if one[0] not in {"vllm", "sglang"}])
def test_a_served_call_is_billed_as_a_replayed_one(tmp_path: Path, host: str, model: str) -> None:
    meter = Meter(ReplaySetup(RuleBook(), PriceBook.load(), host, "bytes"))
    for number, one in enumerate(CALLS):
        request = {**one.request, "model": model}
        assert isinstance(
            meter.charge(ClientCall(f"msg_{number}", request, "w", NOON + one.at), ModelAnswer(())), CallCharge
        )
    rows = asked_of(tmp_path, "replay", host, model, "--tokens", "bytes", "--json").rows
    assert [row.usage.wire() for row in meter.rows] == [row["usage"] for row in rows]


def test_a_served_call_of_an_unknown_model_is_a_404() -> None:
    meter = Meter(ReplaySetup(RuleBook(), PriceBook.load(), "openai", "bytes"))
    refused = meter.charge(ClientCall("msg_1", body(ASKED, cache_control=BREAKPOINT), "w", NOON), ModelAnswer(()))
    assert getattr(refused, "status", None) == 404


@pytest.mark.parametrize(("host", "model"), [one for one in LIKE_CLAUDE if "claude" not in one[1]])
def test_optimize_plans_many_conversations_where_there_is_one_ttl(tmp_path: Path, host: str, model: str) -> None:
    """With pauses so different that no plan is at the lower bound, rules of every TTL are tried."""
    starts = [(start + 290.0 * turn * turn, start, turn) for start in (0, 400, 1010, 1300) for turn in range(4)]
    question = "question {} " + "abc " * 900
    calls = [
        Sent(at, body(user({"type": "text", "text": question.format(start)}), *[ANSWERED, THEN] * turn, **HEAD))
        for at, start, turn in sorted(starts)
    ]
    result = ask("optimize", write_log(tmp_path / "log.jsonl", model, calls), "--host", host)
    assert result.code == 0, result.words
