"""Bad input through the real command: every fault at once, exit code 2 or 3, nothing half-written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from command_runs import run_apart, run_here

LONG = {"type": "text", "text": "x" * 5000, "cache_control": {"type": "ephemeral"}}
GOOD = {
    "timestamp": "2026-03-07T10:00:00Z",
    "request": {
        "model": "claude-opus-4-6",
        "max_tokens": 1,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x" * 5000, "cache_control": {"type": "ephemeral"}}]}
        ],
    },
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**GOOD, "request": {**GOOD["request"], **fields}}  # type: ignore[dict-item]


def blocks(*breakpoints: str | None) -> list[dict[str, Any]]:
    made = []
    for number, ttl in enumerate(breakpoints):
        block: dict[str, Any] = {"type": "text", "text": f"block {number}"}
        made.append({**block, "cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else block)
    return [{"role": "user", "content": made}]


def replay(folder: Path, *lines: object) -> CompletedProcess[str]:
    log = folder / "log.jsonl"
    log.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return run_here("replay", "log.jsonl", "--tokens", "bytes", "--json", cwd=folder)


def rows(done: CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_good_log_has_every_promised_field(tmp_path: Path) -> None:
    done = replay(tmp_path, GOOD)
    (row,) = rows(done)
    assert done.returncode == 0, done.stderr
    assert row["format"] == 1 and row["call"] == 1 and row["strategy"] == "as recorded"
    assert row["timestamp"] == "2026-03-07T10:00:00Z" and row["model"] == "claude-opus-4-6"
    assert row["usage"] == {
        "input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 5025,
        "cache_creation": {"ephemeral_5m_input_tokens": 5025, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 0,
    }
    assert row["cost_usd"] == "0.03140625" and row["cause"] == "cold_start"


def test_a_damaged_line_and_all_other_faults_are_told_at_once(tmp_path: Path) -> None:
    done = replay(
        tmp_path,
        GOOD,
        '{"request": {"model": "claude-opus-4-6", "mess',
        changed(messages=[{"role": "usr", "content": "x"}]),
        {"timestamp": "2026-03-07T10:00:00Z"},
        changed(model=None),
        {**GOOD, "timestamp": "yesterday"},
        {**GOOD, "usage": {"input_tokens": "many"}},
        changed(messages="hello"),
        changed(tool_choice="any"),
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "log.jsonl:2 expected one JSON object; got a damaged line (cut off)",
        "log.jsonl:3 messages.0.role: expected one of assistant, system, user; got 'usr' (did you mean 'user'?)",
        "log.jsonl:4 request: expected a Messages API body; got nothing",
        "log.jsonl:5 model: expected a model id; got nothing",
        "log.jsonl:6 timestamp: expected an ISO 8601 time; got 'yesterday'",
        "log.jsonl:7 usage.input_tokens: expected a whole number of tokens; got 'many'",
        "log.jsonl:8 messages: expected an array; got a string",
        "log.jsonl:9 tool_choice: expected an object; got 'any'",
        "8 errors; nothing was run.",
    ]


def test_a_last_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD)[:200])
    done = run_here("replay", "log.jsonl", "--tokens", "bytes", "--json", cwd=tmp_path)
    assert done.returncode == 0 and len(rows(done)) == 1
    assert done.stderr == "log.jsonl:2 the last line is still being written: skipped\n"


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    done = replay(tmp_path)
    assert done.returncode == 2
    assert "log.jsonl expected a request log, one JSON object a line; got an empty file" in done.stderr


BREAKPOINT = {"type": "ephemeral"}
MARKED_THINKING = {"type": "thinking", "thinking": "…", "signature": "s", "cache_control": BREAKPOINT}
MARKED_DEFERRED = {"name": "X", "input_schema": {}, "defer_loading": True, "cache_control": BREAKPOINT}
MANUAL = {"type": "enabled", "budget_tokens": 1024}
REFUSED = {
    "five breakpoints": (
        changed(messages=blocks("5m", "5m", "5m", "5m", "5m")),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "1h after 5m": (
        changed(messages=blocks("5m", "1h")),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block. "
        "Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    ),
    "thinking": (
        changed(messages=[*blocks(None), {"role": "assistant", "content": [MARKED_THINKING]}]),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "automatic": (
        changed(cache_control=BREAKPOINT, messages=blocks("1h")),
        "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'",
    ),
    "deferred": (
        changed(tools=[MARKED_DEFERRED]),
        "Tool 'X' cannot have both defer_loading=true and cache_control set. "
        "Tools with defer_loading cannot use prompt caching.",
    ),
    "forced": (
        changed(tool_choice={"type": "any"}, thinking=MANUAL),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
}


@pytest.mark.parametrize(("request_", "message"), REFUSED.values(), ids=REFUSED)
def test_a_refused_call_is_a_row_with_its_error_and_not_an_abort(tmp_path: Path, request_: Any, message: str) -> None:
    done = replay(tmp_path, request_, GOOD)
    refused, answered = rows(done)
    assert done.returncode == 0, done.stderr
    assert refused["error"] == {"type": "invalid_request_error", "message": message}
    assert "usage" not in refused and refused["call"] == 1
    assert answered["usage"]["cache_creation_input_tokens"] == 5025, "a refused call touches nothing"


def test_an_unknown_model_is_a_row_with_its_error_and_exit_code_3(tmp_path: Path) -> None:
    done = replay(tmp_path, changed(model="claude-opus-46"), GOOD)
    unknown, known = rows(done)
    assert done.returncode == 3
    assert (
        "claude-opus-46" in unknown["error"]["message"]
        and "did you mean 'claude-opus-4-6'?" in unknown["error"]["message"]
    )
    assert known["cost_usd"] == "0.03140625"


def test_a_failed_call_writes_nothing_and_costs_nothing(tmp_path: Path) -> None:
    done = replay(tmp_path, {**GOOD, "status": 529}, GOOD)
    failed, good = rows(done)
    assert (failed["cost_usd"], good["cause"]) == ("0", "cold_start")


def test_an_unknown_rule_switch_is_told_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(GOOD) + "\n")
    done = run_here("replay", "log.jsonl", "--rule", "lookback_run=counted", cwd=tmp_path)
    assert done.returncode == 2
    assert "lookback_run" in done.stderr and "did you mean 'lookback_runs'?" in done.stderr


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    done = run_here("replay", "nowhere.jsonl", cwd=tmp_path)
    assert done.returncode == 2 and "nowhere.jsonl" in done.stderr


def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    done = run_apart("rply", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean 'replay'?" in done.stderr


def test_a_call_in_a_batch_costs_half_and_has_a_band(tmp_path: Path) -> None:
    done = replay(
        tmp_path, {**GOOD, "service": "batch"}, {**GOOD, "service": "batch", "timestamp": "2026-03-07T10:00:09Z"}
    )
    written, read = rows(done)
    assert (written["cost_usd"], written["cost_range_usd"]) == ("0.015703125", ["0.015703125", "0.015703125"])
    assert (read["cost_usd"], read["cost_range_usd"]) == ("0.00125625", ["0.00125625", "0.015703125"])


def test_pre_warming_reads_and_writes_as_any_call(tmp_path: Path) -> None:
    warm = changed(max_tokens=0)
    done = replay(tmp_path, warm, {**GOOD, "timestamp": "2026-03-07T10:00:09Z"})
    assert [row["cause"] for row in rows(done)] == ["cold_start", "hit"]


def test_keep_alive_pings_carry_an_entry_over_a_long_pause(tmp_path: Path) -> None:
    def at(clock: str, **fields: Any) -> dict[str, Any]:
        return {**changed(**fields), "timestamp": f"2026-03-07T{clock}Z"}

    pinged = replay(
        tmp_path, at("10:00:00"), at("10:04:00", max_tokens=0), at("10:08:00", max_tokens=0), at("10:12:00")
    )
    assert [row["cause"] for row in rows(pinged)] == ["cold_start", "hit", "hit", "hit"]
    alone = replay(tmp_path, at("10:00:00"), at("10:12:00"))
    assert [row["cause"] for row in rows(alone)] == ["cold_start", "ttl_expired"]


@pytest.mark.parametrize(
    ("name", "text"), [("e.har", '{"log": {"entries": []}}'), ("e.json", '{"resourceSpans": []}'), ("e.jsonl", "{cut")]
)
def test_a_recording_without_calls_is_no_fault_of_ours(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    done = run_here("replay", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{name}   no calls\n")


def test_a_gzip_that_is_cut_off_is_told(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"request": {"model": "m", "messages": []}}\n' * 500)
    (tmp_path / "log.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    for command in (("replay", "log.jsonl.gz"), ("import", "log.jsonl.gz", "-o", "out.jsonl")):
        done = run_here(*command, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("log.jsonl.gz damaged gzip: ")
    assert not (tmp_path / "out.jsonl").exists()


NAMES = [
    (
        ("bill", "--by", "sesion"),
        "--by",
        "session, project, branch, pr, day, week, month, model, version, agent, server, skill, tool",
        "sesion",
        "session",
    ),
    (("check", "--badge-shows", "hitrate"), "--badge-shows", "hit-rate, cost, both", "hitrate", "hit-rate"),
    (("import", "x", "--content", "digests"), "--content", "keep, digest", "digests", "digest"),
]


@pytest.mark.parametrize(("arguments", "option", "known", "got", "near"), NAMES)
def test_a_value_that_is_none_of_several_names_the_nearest(
    tmp_path: Path, arguments: tuple[str, ...], option: str, known: str, got: str, near: str
) -> None:
    (tmp_path / "x").write_text("{}\n")
    done = run_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    said = f"Invalid value for '{option}': expected one of {known}; got '{got}' (did you mean '{near}'?)\n"
    assert done.stderr.endswith(said)


@pytest.mark.parametrize("command", ["replay", "explain", "validate", "optimize", "whatif", "lint"])
def test_an_empty_folder_is_one_error_of_every_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "logs").mkdir()
    done = run_here(command, "logs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "logs has no file of a known format\n1 error; nothing was run.\n"


NO_LOGS: list[tuple[bytes, str]] = [
    (b"\x7fELF\x02\x01\x01" + bytes(64), "unrecognized format (nearest: request-log; name it with --format)"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\n\xff{\x00\n", "unrecognized format (nearest: request-log; name it with --format)"),
    (b"# Notes\n\n[link](x)\nno log\n", "unrecognized format (nearest: request-log; name it with --format)"),
    ('{"request": 1}\n'.encode("utf-16"), "unrecognized format: expected UTF-8; got UTF-16 (iconv "),
]
"""Beginnings of files that are no logs, whose every line would be an error."""


@pytest.mark.parametrize(("content", "said"), NO_LOGS)
@pytest.mark.parametrize("command", ["replay", "explain", "lint"])
def test_a_file_that_is_no_log_is_one_error(tmp_path: Path, command: str, content: bytes, said: str) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    done = run_here(command, "x.bin", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    skipped = said.replace("unrecognized format", "unrecognized format, skipped")
    assert done.stderr.startswith((f"x.bin {said}", f"x.bin: {skipped}"))
    assert len(done.stderr.splitlines()) == 2
    assert done.stderr.endswith("nothing was run.\n")


def test_a_damaged_first_line_does_not_hide_that_the_file_is_a_log(tmp_path: Path) -> None:
    done = replay(tmp_path, "garbage", GOOD)
    assert done.returncode == 2
    assert "log.jsonl:1 expected one JSON object; got a damaged line" in done.stderr
