"""What a model refuses besides breakpoints, in the same words wherever it is asked: `lint`, `replay`, `serve`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, rows_of

from cachecost.analysis.lint import lint
from cachecost.live.server.model import ApiError
from cachecost.providers.hosts import catalogue
from cachecost.providers.rules import RuleBook
from command_runs import run_here
from live.simulated_calls import Served

Body = dict[str, Any]
HAIKU_4_5, SONNET_4_5, SONNET_4_6, SONNET_5 = (
    f"claude-{name}" for name in ("haiku-4-5", "sonnet-4-5", "sonnet-4-6", "sonnet-5")
)
NO_EFFORT = "This model does not support the effort parameter."
NO_SYSTEM = "role 'system' is not supported on this model"


def not_thinking(kind: str) -> str:
    return (
        f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    )


CASE = {
    "effort-sonnet-4-5.json": ("output_config.effort", NO_EFFORT),
    "fast-sonnet-5.json": ("speed", "'claude-sonnet-5' does not support the `speed` parameter."),
    "system-message-sonnet-4-5.json": ("messages.1.role", NO_SYSTEM),
    "system-message-sonnet-5.json": ("messages.1.role", NO_SYSTEM),
    "thinking-disabled-fable-5-1.json": ("thinking", not_thinking("disabled")),
    "thinking-enabled-opus-4-8.json": ("thinking", not_thinking("enabled")),
    "us-sonnet-4-5.json": ("inference_geo", "'claude-sonnet-4-5' does not support the `inference_geo` parameter."),
    "zero-format.json": ("max_tokens", "max_tokens: 0 is not supported with `output_config.format`"),
    "zero-in-batch.jsonl": ("max_tokens", "max_tokens: 0 is not supported with `batch`"),
    "zero-stream.json": ("max_tokens", "max_tokens: 0 is not supported with `stream`"),
    "zero-thinking.json": ("max_tokens", "max_tokens: 0 is not supported with `thinking.type: enabled`"),
}


@pytest.mark.parametrize("name", CASE)
def test_eleven_refused_requests_are_errors_of_lint_and_rows_of_replay(
    run_case: Run, tmp_path: Path, name: str
) -> None:
    path, words = CASE[name]
    done = run_case("27-refused-requests", "lint", name, "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, found["code"], found["path"], found["message"]) == (1, "CC509", path, words)
    file = tmp_path / "27-refused-requests" / name
    if file.suffix == ".json":
        file.write_text(json.dumps({"request": json.loads(file.read_text())}) + "\n")
    (row,) = rows_of(run_here("replay", file, "--json"))
    assert row["error"] == {"type": "invalid_request_error", "message": words}
    assert "usage" not in row


FORMAT = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
DOCUMENT = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "It is so."},
    "citations": {"enabled": True},
}
ASK: Body = {"role": "user", "content": [{"type": "text", "text": "Is it so?"}]}
OTHERWISE: Body = {"role": "system", "content": [], "output_config": {"effort": "low"}}
MANUAL = {"type": "enabled", "budget_tokens": 2000}
REFUSED: dict[str, tuple[str, str, Body, str, str]] = {
    # rule, model, fields, path, words
    "system message": (
        "accepts_system_messages",
        SONNET_4_6,
        {"messages": [ASK, {"role": "system", "content": "Be brief."}]},
        "messages.1.role",
        NO_SYSTEM,
    ),
    "prefill": (
        "accepts_prefill",
        SONNET_4_6,
        {"messages": [ASK, {"role": "assistant", "content": "It"}]},
        "messages.1.role",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "effort in a message": (
        "accepts_message_effort",
        "claude-opus-4-8",
        {"messages": [ASK, OTHERWISE]},
        "messages.1.output_config",
        "messages.1.output_config: Extra inputs are not permitted",
    ),
    "effort": ("accepted_efforts", HAIKU_4_5, {"output_config": {"effort": "high"}}, "output_config.effort", NO_EFFORT),
    "effort level": (
        "accepted_efforts",
        SONNET_4_6,
        {"output_config": {"effort": "xhigh"}},
        "output_config.effort",
        "output_config.effort: 'xhigh' is not supported on claude-sonnet-4-6; it takes low, medium, high, max.",
    ),
    "manual thinking": ("accepted_thinking", SONNET_5, {"thinking": MANUAL}, "thinking", not_thinking("enabled")),
    "no thinking": (
        "accepted_thinking",
        "claude-sonnet-5-5",
        {"thinking": {"type": "disabled"}},
        "thinking",
        not_thinking("disabled"),
    ),
    "adaptive thinking": (
        "accepted_thinking",
        SONNET_4_5,
        {"thinking": {"type": "adaptive"}},
        "thinking",
        "adaptive thinking is not supported on this model",
    ),
    "no thinking at high effort": (
        "efforts_without_thinking",
        "claude-opus-5",
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}},
        "thinking",
        "thinking.type: 'disabled' is not supported on claude-opus-5 with effort 'max', only with low, medium, high.",
    ),
    "fast": (
        "accepts_fast",
        "claude-opus-4-7",
        {"speed": "fast"},
        "speed",
        "'claude-opus-4-7' does not support the `speed` parameter.",
    ),
    "region": (
        "accepts_inference_geo",
        "claude-opus-4-5",
        {"inference_geo": "us"},
        "inference_geo",
        "'claude-opus-4-5' does not support the `inference_geo` parameter.",
    ),
    "forced": (
        "accepts_forced_choice",
        "claude-fable-5-1",
        {"tools": [{"name": "t", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"}},
        "tool_choice",
        "tool_choice: type 'any' is not supported on claude-fable-5-1; it answers to 'auto' and 'none' only.",
    ),
    "citations with a format": (
        "format_excludes",
        SONNET_4_6,
        {"messages": [{"role": "user", "content": [DOCUMENT, *ASK["content"]]}], "output_config": FORMAT},
        "output_config.format",
        "output_config.format is not supported with `citations`",
    ),
    **{
        f"pre-warming with {name}": (
            "prewarming_excludes",
            SONNET_4_5,
            {"max_tokens": 0, **fields},
            "max_tokens",
            f"max_tokens: 0 is not supported with `{name}`",
        )
        for name, fields in {
            "stream": {"stream": True},
            "thinking.type: enabled": {"thinking": MANUAL},
            "output_config.format": {"output_config": FORMAT},
            "tool_choice.type: any": {"tool_choice": {"type": "any"}},
            "tool_choice.type: tool": {"tool_choice": {"type": "tool", "name": "t"}},
        }.items()
    },
}


def body_of(model: str, fields: Body) -> Body:
    return {"model": model, "max_tokens": 100, "messages": [ASK], **fields}


@pytest.mark.parametrize(("rule", "model", "fields", "path", "words"), REFUSED.values(), ids=REFUSED)
def test_lint_replay_and_serve_refuse_in_the_same_words(
    tmp_path: Path, rule: str, model: str, fields: Body, path: str, words: str
) -> None:
    body = body_of(model, fields)
    assert (path, words) in [(one.path, one.message) for one in lint(body, tokens="bytes")]
    served = Served("bytes").call(body)
    assert isinstance(served, ApiError)
    assert (served.status, served.type, served.message) == (400, "invalid_request_error", words)
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"request": body}) + "\n")
    (row,) = rows_of(run_here("replay", log, "--json"))
    assert row["error"]["message"] == words


def test_every_rule_that_says_400_is_in_a_test() -> None:
    of_breakpoints = {"accepts_threads", "accepts_compaction"}  # tests/analysis/test_lint.py, tests/event_threads.py
    by_batch = {"fast_excludes"}  # below
    says = {name for name, rule in catalogue("anthropic").rules.items() if "400" in rule.meaning}
    assert says - of_breakpoints - by_batch == {rule for rule, *_ in REFUSED.values()}


PAUSED: Body = {
    "role": "assistant",
    "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "it"}}],
}
ACCEPTED: dict[str, tuple[str, Body]] = {
    "prefill": (SONNET_4_5, {"messages": [ASK, {"role": "assistant", "content": "It"}]}),
    "a paused server tool": ("claude-opus-5", {"messages": [ASK, PAUSED]}),
    "system message": ("claude-opus-4-8", {"messages": [ASK, {"role": "system", "content": "Be brief."}]}),
    "effort in a message": ("claude-opus-5", {"messages": [ASK, OTHERWISE]}),
    "effort": ("claude-opus-4-5", {"output_config": {"effort": "low"}}),
    "manual thinking": (SONNET_4_6, {"thinking": MANUAL}),
    "no thinking on Sonnet 5": (SONNET_5, {"thinking": {"type": "disabled"}}),
    "no thinking at default effort": ("claude-opus-5", {"thinking": {"type": "disabled"}}),
    "no thinking on an old model": ("claude-3-haiku", {"thinking": {"type": "disabled"}}),
    "fast": ("claude-opus-5-5", {"speed": "fast"}),
    "standard speed": (SONNET_5, {"speed": "standard"}),
    "region": (SONNET_4_6, {"inference_geo": "us"}),
    "pre-warming": (SONNET_4_5, {"max_tokens": 0, "tool_choice": {"type": "auto"}, "stream": False}),
    "stream": (SONNET_4_5, {"stream": True}),
    "format without citations": (SONNET_4_6, {"output_config": FORMAT}),
}


@pytest.mark.parametrize(("model", "fields"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_a_model_takes_is_no_error(model: str, fields: Body) -> None:
    assert [one for one in lint(body_of(model, fields), tokens="bytes") if one.severity == "error"] == []


@pytest.mark.parametrize(
    ("day", "message"),
    [("2026-07-01", None), ("2026-07-24", "'claude-opus-4-7' does not support the `speed` parameter.")],
)
def test_a_parameter_is_refused_from_its_day_on(day: str, message: str | None) -> None:
    found = lint(body_of("claude-opus-4-7", {"speed": "fast"}), as_of=day, tokens="bytes")
    assert [one.message for one in found if one.code == "CC509"] == ([message] if message else [])


def test_a_batch_takes_no_fast_mode(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"service": "batch", "request": body_of("claude-opus-5-5", {"speed": "fast"})}) + "\n")
    (row,) = rows_of(run_here("replay", log, "--json"))
    assert row["error"]["message"] == "speed: fast is not supported with `batch`"
    assert "speed: fast is not supported with `batch`" in run_here("lint", log).stdout


def test_a_gateway_that_drops_parameters_and_a_model_of_another_maker_refuse_nothing() -> None:
    fields = {"thinking": MANUAL, "output_config": {"effort": "xhigh"}, "messages": [ASK, {**ASK, "role": "system"}]}
    for host, model in (("openrouter", "anthropic/claude-fable-5"), ("bedrock", "us.amazon.nova-lite-v1:0")):
        found = lint(body_of(model, fields), host=host, tokens="bytes")
        assert [one for one in found if one.severity == "error"] == [], host


@pytest.mark.parametrize("fields", [{"output_config": {"effort": "low"}}, {"thinking": {"type": "adaptive"}}])
def test_an_answer_in_the_log_outweighs_the_row(tmp_path: Path, fields: Body) -> None:
    usage = {"input_tokens": 30, "output_tokens": 5}
    row = {"host": "anthropic", "request": body_of(SONNET_4_5, fields), "usage": usage}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(row) + "\n")
    assert "CC509" not in run_here("lint", log).stdout
    (replayed,) = rows_of(run_here("replay", log, "--json"))
    assert "does not support" not in json.dumps(replayed)


def test_what_one_reading_says_is_marked_assumed() -> None:
    rows = catalogue("anthropic").model("claude-sonnet-5", None).rows["accepts_system_messages"]
    assert [(row.value, row.confidence) for row in rows] == [(False, "assumed")]
    assert not RuleBook().rules("anthropic", SONNET_5).accepts_system_messages
