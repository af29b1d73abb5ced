"""Edges of the rulebook, each as the short log that shows it: what is replayed, priced, refused and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from host_logs import ask

from bodies import BREAKPOINT, HOUR, Body, marked, text, tool, user
from conversations.session_stores import write_lines

DAY = "2026-10-10T10:{:02}:00Z"
LONG = user(marked(text(6_000)))
WEB = {"type": "web_search_20250305", "name": "web_search"}
USE = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "found " * 200}
Row = dict[str, Any]


def log(folder: Path, *lines: Body) -> Path:
    path = folder / "log.jsonl"
    return write_lines(path, lines)


def call(minute: int, *messages: Body, model: str = "claude-sonnet-5", **fields: Any) -> Body:
    """A line of a log: a request a `minute` after ten."""
    body = {"model": model, "max_tokens": 9, "messages": list(messages), **fields}
    return {"timestamp": DAY.format(minute), "request": body}


def replayed(path: Path, *words: str) -> list[Row]:
    result = ask("replay", path, "--tokens", "bytes", "--json", *words)
    assert result.code == 0, result.words
    return [dict(row) for row in result.rows]


def sent(folder: Path, *lines: Body) -> list[Row]:
    return replayed(log(folder, *lines))


def reads(rows: list[Row]) -> list[int]:
    return [row["usage"]["cache_read_input_tokens"] for row in rows]


def refusals(rows: list[Row]) -> list[str | None]:
    return [(row.get("error") or {}).get("message") for row in rows]


# ---- Thinking that is on by default (rule 2).


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ("claude-sonnet-5", [0, 6_000, 0]),
        ("claude-opus-5", [0, 6_000, 0]),
        ("claude-haiku-5-5", [0, 6_000, 0]),
        ("claude-opus-4-8", [0, 0, 6_000]),
    ],
)
def test_thinking_left_out_equals_the_models_default(tmp_path: Path, model: str, after: list[int]) -> None:
    more = {"model": model, "output_config": {"effort": "low"}}  # with more of it some refuse to go without thinking
    rows = sent(
        tmp_path,
        call(0, LONG, **more),
        call(1, LONG, **more, thinking={"type": "adaptive", "display": "omitted"}),
        call(2, LONG, **more, thinking={"type": "disabled"}),
    )
    assert reads(rows) == after
    assert [row["cause"] for row in rows].count("thinking_changed") == 1


def test_an_empty_list_of_skills_is_none(tmp_path: Path) -> None:
    others = ({"container": {"skills": []}}, {"container": {"id": "c"}}, {"container": {"skills": [{"skill_id": "a"}]}})
    rows = sent(tmp_path, call(0, LONG), *(call(n, LONG, **some) for n, some in enumerate(others, 1)))
    assert reads(rows) == [0, 6_000, 6_000, 0]


# ---- Server tools (rule 10).


def served(first_token_s: float, **fields: Any) -> Body:
    answer = {"content": [USE, FOUND, text(60, "a")]}
    return {**call(0, LONG, **fields), "first_token_s": first_token_s, "response": answer}


def test_a_later_pass_reads_what_the_one_before_it_wrote_however_late_its_first_token(tmp_path: Path) -> None:
    at_once, late = (sent(tmp_path, served(first_token_s))[0] for first_token_s in (0.0, 2.0))
    assert reads([at_once]) == [6_000]
    assert (late["usage"], late["cost_usd"]) == (at_once["usage"], at_once["cost_usd"])


@pytest.mark.parametrize("kind", ["web_search_20250305", "web_fetch_20250910"])
def test_a_breakpoint_on_a_web_tool_writes_nothing_by_itself(tmp_path: Path, kind: str) -> None:
    tools = [tool(3_000), {"type": kind, "name": "web", "cache_control": BREAKPOINT}]
    asks = user(text(3_000))
    rows = sent(tmp_path, call(0, asks, tools=tools), call(1, asks, tools=tools))
    assert [row["usage"]["cache_creation_input_tokens"] for row in rows] == reads(rows) == [0, 0]
    passes = {**call(0, asks, tools=tools), "response": {"content": [USE, FOUND, text(60, "a")]}}
    assert sent(tmp_path, passes)[0]["usage"]["cache_creation_input_tokens"] > 6_000, "the loop's own still write"


# ---- What the API refuses (rule 6), in the words of the request as sent.


def result(*inner: Body) -> Body:
    return user(text(6_000), {"type": "tool_result", "tool_use_id": "t", "content": list(inner)})


PAPER = {"type": "document", "source": {"type": "content", "content": [marked(text(60, "p"))]}}
FINDING = {"type": "search_result", "source": "s", "title": "t", "content": [marked(text(60, "p"))]}
INSIDE = "messages.0.content.1.content.0"
REFUSED = [
    (result(PAPER), f"{INSIDE}.source.content.0.cache_control: Extra inputs are not permitted"),
    (result(FINDING), f"{INSIDE}.content.0.cache_control: Extra inputs are not permitted"),
    (result({"type": "text", "text": "", **marked({})}), f"{INSIDE}.text: cache_control cannot be set for empty"),
    (result(marked(text(60)), text(60)), f"{INSIDE}.cache_control: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("message", "words"), REFUSED)
def test_breakpoints_that_stand_too_deep_or_on_nothing(tmp_path: Path, message: Body, words: str) -> None:
    (refused,) = refusals(sent(tmp_path, call(0, message)))
    assert refused is not None and refused.startswith(words)


def test_a_breakpoint_on_the_last_sub_block_is_the_blocks_own(tmp_path: Path) -> None:
    message = result(text(60), marked(text(60)))
    assert refusals(sent(tmp_path, call(0, message))) == [None]


FIVE, HOURLY = {**tool(3_000), "cache_control": BREAKPOINT}, {**tool(3_000), "cache_control": HOUR}
WEB_FIVE, WEB_HOUR = {**WEB, "cache_control": BREAKPOINT}, {**WEB, "cache_control": HOUR}
ORDERS = [
    ([WEB_FIVE, HOURLY], "tools.1"),
    ([FIVE, WEB_HOUR], "tools.1"),
    ([WEB_HOUR, FIVE], None),
    ([HOURLY, WEB_FIVE], None),
    ([WEB_HOUR, {**tool(90, "d"), "defer_loading": True}, WEB_FIVE, HOURLY], "tools.3"),
]


@pytest.mark.parametrize(("tools", "path"), ORDERS)
def test_lifetimes_are_ordered_as_sent(tmp_path: Path, tools: list[Body], path: str | None) -> None:
    (refused,) = refusals(sent(tmp_path, call(0, user(text(90)), tools=tools)))
    assert refused is None if path is None else str(refused).startswith(f"{path}.cache_control.ttl: ")


def test_a_prewarming_call_has_no_output(tmp_path: Path) -> None:
    usage = {"input_tokens": 3, "output_tokens": 50, "cache_creation_input_tokens": 6_000}
    (row,) = sent(tmp_path, {**call(0, LONG, max_tokens=0), "usage": usage})
    assert row["usage"]["output_tokens"] == 0


# ---- Paths name blocks of the request as sent.

DEFERRED = {**tool(90, "d"), "name": "late", "defer_loading": True}


def test_explain_names_the_tool_that_changed_by_its_place_in_the_request(tmp_path: Path) -> None:
    def tools(description: str) -> list[Body]:
        return [DEFERRED, WEB, tool(3_000, "f"), {"name": "g", "description": description * 900, "input_schema": {}}]

    path = log(tmp_path, call(0, LONG, tools=tools("one")), call(1, LONG, tools=tools("two")))
    for source in (path, recorded(tmp_path, path)):
        result = ask("explain", source, "--tokens", "bytes", "--json")
        assert [one["block"] for one in json.loads(result.out)["findings"]] == ["tools.3"], result.words


def recorded(folder: Path, path: Path) -> Path:
    """The same calls as a recording of ours, without content."""
    made = folder / "recording.jsonl"
    assert ask("import", path, "-o", made, "--content", "digest").code == 0
    return made


def test_a_plan_names_tools_and_system_blocks_as_sent(tmp_path: Path) -> None:
    tools, asked = [DEFERRED, WEB, tool(30_000)], [user(text(200, name)) for name in "abc"]
    path = log(tmp_path, *(call(n, message, tools=tools) for n, message in enumerate(asked)))
    parsed = json.loads(ask("optimize", path, "--tokens", "bytes", "--json").out)
    places = {breakpoint["path"] for step in parsed["best"]["plan"] for breakpoint in step["breakpoints"]}
    assert places == {"tools.2"}, "and none on the server's tool, where it would write nothing"


# ---- Parameters and prices of other hosts.

PROMPT = {"system": [text(6_000)], "tools": [tool(90)]}
SPLITS = [
    ("openai", "gpt-5.5", {"prompt_cache_key": "a"}),
    ("openai", "gpt-5.5", {"verbosity": "low"}),
    ("openai", "gpt-5.5", {"parallel_tool_calls": False}),
    ("openai", "gpt-6.1-sol", {"prompt_cache_key": "a"}),
    ("openai", "gpt-6.1-sol", {"verbosity": "low"}),
    ("openai", "gpt-6.1-sol", {"parallel_tool_calls": False}),
    ("deepseek", "deepseek-flash", {"user_id": "a"}),
    ("vllm", "Qwen/Qwen3-8B", {"cache_salt": "a"}),
    ("sglang", "my-model", {"extra_key": "a"}),
    ("xai", "grok-4.7", {"prompt_cache_key": "a"}),
    ("mistral", "mistral-large-4", {"prompt_cache_key": "a"}),
]


@pytest.mark.parametrize(("host", "model", "more"), SPLITS)
def test_parameters_that_start_the_cache_over(tmp_path: Path, host: str, model: str, more: Body) -> None:
    fields = ({}, {}, more, more)
    asks = user(text(90))
    rows = replayed(
        log(tmp_path, *(call(n, asks, model=model, **PROMPT, **some) for n, some in enumerate(fields))), "--host", host
    )
    assert [read > 0 for read in reads(rows)] == [False, True, False, True]
    assert [row["cause"] for row in rows[2:]] == ["unknown", "hit"], "no content changed"


def test_flex_costs_half(tmp_path: Path) -> None:
    def cost(model: str, **more: Any) -> float:
        lines = [call(0, user(text(90)), model=model, **PROMPT, **more)]
        return float(replayed(log(tmp_path, *lines), "--host", "openai")[0]["cost_usd"])

    for model in ("gpt-5.5", "gpt-6.1-sol", "gpt-5-mini"):
        assert cost(model, service_tier="flex") * 2 == pytest.approx(cost(model))
        assert cost(model, service_tier="default") == cost(model)
    assert cost("gpt-5.5", service_tier="priority") == pytest.approx(2.5 * cost("gpt-5.5"))


def test_qwen_takes_no_breakpoints_on_tools(tmp_path: Path) -> None:
    tools, asks = [{**tool(6_000), "cache_control": BREAKPOINT}], user(text(90))
    lines = [call(n, asks, model="qwen3.8-max-explicit", tools=tools) for n in (0, 1)]
    rows = replayed(log(tmp_path, *lines), "--host", "qwen")
    assert [row["usage"]["cache_creation_input_tokens"] for row in rows] == reads(rows) == [0, 0]


# ---- Bytes that are no reason to refuse a log.


def test_a_byte_order_breakpoint_and_halves_of_surrogates_are_read(tmp_path: Path) -> None:
    path = log(tmp_path, call(0, LONG), call(1, LONG))
    plain = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + plain)
    assert reads(replayed(path)) == [0, 6_000]
    path.write_bytes(plain.replace(b"xxxxxx", rb"\ud800"))
    halves = replayed(path)
    path.write_bytes(plain.replace(b"xxxxxx", "\ufffd".encode()))
    assert [row["usage"] for row in halves] == [row["usage"] for row in replayed(path)]
    assert reads(halves)[1] > 0
