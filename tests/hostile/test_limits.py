"""Limits on input: depth, digits, ranges, and sizes that a variable raises; each an error with its place."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.limits import (
    BLOCKS,
    DEEPEST,
    LINE,
    MOST_NUMBER,
    MOST_TOKENS,
    OutOfLimits,
    check_depth,
    is_amount,
    is_number,
    is_tokens,
    json_value,
    whole_number,
)
from hostile.attempts import Ended, attempt
from hostile.seeds import PRICES, RULES, SCENARIO, TIME, request_body

TOO_DEEP = f"expected at most {DEEPEST} levels of nesting; got more"
TOO_LONG = "expected numbers of at most 4,300 digits; got a longer one"


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def ended(folder: Path, name: str, text: str | bytes, command: str = "replay LOG --tokens bytes") -> Ended:
    """How `command` ended on a file of `text`; the time and memory of all that is here are small."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    good = folder / "good.jsonl"
    good.write_text(json.dumps({"timestamp": TIME.format(1), "request": request_body()}) + "\n")
    found = attempt(command, path, folder / "out", good)
    assert not found.complaint
    return found


def row(**more: str) -> str:
    """A line of a request log with raw JSON at `model`, `usage`, `timestamp`, `input`, `schema` or `extra`."""
    raw = {"model": '"claude-opus-4-6"', "usage": "null", "timestamp": '"2026-03-07T10:00:00Z"', "input": "{}"}
    raw |= {"schema": "{}", "extra": "null", **more}
    use = f'{{"type": "tool_use", "id": "t", "name": "f", "input": {raw["input"]}}}'
    messages = f'[{{"role": "user", "content": "hi"}}, {{"role": "assistant", "content": [{use}]}}]'
    tools = f'[{{"name": "f", "input_schema": {raw["schema"]}}}]'
    body = f'{{"model": {raw["model"]}, "tools": {tools}, "messages": {messages}}}'
    return (
        f'{{"timestamp": {raw["timestamp"]}, "request": {body}, "usage": {raw["usage"]}, "unknown": {raw["extra"]}}}\n'
    )


# ---------------------------------------------------------------------------------------- depth and digits


@pytest.mark.parametrize("levels", [1, DEEPEST])
def test_what_is_as_deep_as_may_be_is_read(levels: int) -> None:
    assert json.dumps(json_value(nested(levels))) == nested(levels)


@pytest.mark.parametrize("levels", [DEEPEST + 1, 900, 5_000, 100_000])
@pytest.mark.parametrize("opens", ["[", '{"a":'])
def test_what_is_deeper_is_not(levels: int, opens: str) -> None:
    closes = "]" if opens == "[" else "}"
    with pytest.raises(OutOfLimits):
        json_value(opens * levels + "1" + closes * levels)


def test_brackets_in_texts_and_beside_each_other_are_no_depth() -> None:
    assert json_value(json.dumps(["[" * 1000, *[[]] * 1000]))
    check_depth([[[1]]] * 1000)


@pytest.mark.parametrize("place", ["input", "schema", "usage", "extra"])
@pytest.mark.parametrize("command", ["replay LOG", "explain LOG", "whatif LOG", "lint LOG"])
def test_deep_json_is_an_error_at_its_line(place: str, command: str, tmp_path: Path) -> None:
    text = row() + row(**{place: nested(100_000)}) + row(model="1")
    found = ended(tmp_path, "log.jsonl", text, command)
    assert found.code == 2 and "log.jsonl:2 " in found.err and "at most 128 levels of nesting" in found.err
    assert "log.jsonl:3 request.model" in found.err or "log.jsonl:3 model" in found.err


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"input": "9" * 5_000}, TOO_LONG),
        ({"usage": '{"input_tokens": 1' + "0" * 300 + "}"}, "usage.input_tokens: expected a whole number of tokens"),
        ({"usage": f'{{"input_tokens": {MOST_TOKENS + 1}}}'}, "usage.input_tokens: expected a whole number of tokens"),
        ({"timestamp": '"0000-01-01T00:00:00Z"'}, "timestamp: expected an ISO 8601 time"),
        ({"timestamp": '"0001-01-01T00:00:00+14:00"'}, "timestamp: expected an ISO 8601 time"),
        ({"timestamp": '"9999-12-31T23:59:59-14:00"'}, "timestamp: expected an ISO 8601 time"),
        ({"timestamp": '"10000-01-01T00:00:00Z"'}, "timestamp: expected an ISO 8601 time"),
    ],
)
def test_numbers_and_times_out_of_range_are_errors_at_their_line(
    fields: dict[str, str], says: str, tmp_path: Path
) -> None:
    found = ended(tmp_path, "log.jsonl", row() + row(**fields))
    assert found.code == 2 and "log.jsonl:2 " in found.err and says in found.err


@pytest.mark.parametrize("year", ["0001-01-01T00:00:00Z", "8999-12-31T23:59:59Z"])
def test_the_first_and_the_last_time_are_read(year: str, tmp_path: Path) -> None:
    assert ended(tmp_path, "log.jsonl", row(timestamp=f'"{year}"')).code in (0, 3)


@pytest.mark.parametrize(("value", "is_one"), [(0, True), (MOST_TOKENS, True), (MOST_TOKENS + 1, False), (-1, False)])
def test_a_count_is_in_range(value: int, is_one: bool) -> None:
    assert is_tokens(value) is is_one and not is_tokens(True) and not is_tokens(1.0)


def test_numbers_and_amounts_are_finite_and_in_range() -> None:
    odd: list[Any] = [float("inf"), float("nan"), -1, MOST_NUMBER + 1, True, "1", None]
    assert not any(map(is_number, odd)) and not any(map(is_amount, odd))
    assert is_number(0.5) and is_amount(Decimal("0.1234567")) and is_amount(MOST_NUMBER)
    assert not any(map(is_amount, (Decimal("1e400"), Decimal("1e-999999"), Decimal("NaN"), Decimal("-0.1"))))


# ------------------------------------------------------------------------------------------------ TOML and YAML


@pytest.mark.parametrize(
    ("kind", "line", "says"),
    [
        ("prices", "x = " + nested(100_000), TOO_DEEP),
        ("prices", "x = " + nested(200), TOO_DEEP),
        ("prices", ".".join("a" * 300) + " = 1", TOO_DEEP),
        ("rules", ".".join("a" * 20_000), TOO_DEEP),
        ("rules", "x = {" + ".".join("a" * 20_000) + " = 1}", TOO_DEEP),
        ("prices", "x = " + "9" * 5_000, TOO_LONG),
        ("prices", "x = 1e99999999999999999999", "exponent"),
        ("prices", '[[price]]\nmodel = "claude-opus-4-6"\ninput = 1e400', "price[1].input: expected USD"),
        ("prices", '[[price]]\nmodel = "claude-opus-4-6"\ninput = 1e-999999', "price[1].input: expected USD"),
        ("rules", "x = " + nested(100_000), TOO_DEEP),
        ("rules", f'[[minimum_tokens]]\nmodel = "claude-opus-4-6"\nvalue = 1{"0" * 300}', "value: expected tokens"),
    ],
)
def test_own_files_are_errors_at_their_line(kind: str, line: str, says: str, tmp_path: Path) -> None:
    text = f"{PRICES if kind == 'prices' else RULES}{line}\n"
    if not line.startswith("[["):
        text = f"{line}\n{text}"
    found = ended(tmp_path, "own.toml", text, f"replay GOOD --{kind} LOG --tokens bytes")
    assert found.code == 2 and says in found.err and "own.toml:" in found.err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("turns: 3", "turns: 1e308", "turns: expected a whole number"),
        ("turns: 3", "turns: 1_000_000_000", f"expected at most 1,000,000 blocks; got 7,000,000,000; set {BLOCKS[0]}"),
        ("tools: 2", "tools: 1_000_000_000", "conversation.synthetic: expected at most 1,000,000 blocks"),
        ("tools: 2", "tools: {choices: [1, 1e12], weights: [1e12, 1]}", ""),
        ("rate: 0.5", "rate: 1, batch: 1e12", "conversation.synthetic: expected at most 1,000,000 blocks"),
        ("count: 3", "count: 1_000_000_000", "head.tools"),
        ("choices: [10, 400]", "choices: [10, 1e13]", "pauses that end before the year 9000"),
        ("mean: 60, sd: 20", "mean: 1e-300, sd: 1e300", "human"),
        ("mean: 60, sd: 20", "mean: 1, sd: 1e7", "expected an sd of at most 1,000,000 times the mean"),
        ("max_cost_usd: 40", "max_cost_usd: 1e400", "expected dollars"),
        ("question: What does it cost?", "question: " + nested(100_000), TOO_DEEP),
        ("seed: 3", "seed: " + "9" * 5_000, "seed: expected a whole number"),
    ],
)
def test_scenarios_out_of_range_are_errors_at_their_line(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in SCENARIO
    found = ended(tmp_path, "s.yaml", SCENARIO.replace(old, new), "run LOG --no-report")
    assert (found.code == 2 and "s.yaml:" in found.err and says in found.err) if says else found.code == 0


@pytest.mark.parametrize(("value", "code"), [("0.1", 0), ("2", 0), ("-0.1", 2), ("1e400", 2), ("nan", 2)])
def test_a_rules_file_may_have_fractions(value: str, code: int, tmp_path: Path) -> None:
    text = f"[assumptions]\nvisibility_lag_s = {value}\n"
    assert ended(tmp_path, "own.toml", text, "replay GOOD --rules LOG --tokens bytes").code == code


# ---------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("command", ["replay LOG", "explain LOG", "import LOG -o OUT/made.jsonl", "lint LOG"])
def test_a_long_line_is_an_error_that_names_the_variable(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LINE.variable, "1M")
    found = ended(tmp_path, "log.jsonl", row() + row(extra=json.dumps("x" * (1 << 20))), command)
    assert found.code == 2
    assert "log.jsonl:2 expected at most 1,048,576 bytes in a line or body; got more" in found.err + found.out
    assert f"set {LINE.variable} to raise the limit" in found.err + found.out
    assert not (tmp_path / "out" / "made.jsonl").exists()
    monkeypatch.setenv(LINE.variable, "2M")
    assert ended(tmp_path, "log.jsonl", row() + row(extra=json.dumps("x" * (1 << 20))), "replay LOG").code == 0


def test_a_gzip_file_is_unpacked_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(row().encode() * 5_000)
    assert ended(tmp_path, "log.jsonl.gz", packed, "replay LOG --json").code == 0
    monkeypatch.setenv("CACHECOST_MAX_UNPACKED", "100K")
    found = ended(tmp_path, "log.jsonl.gz", packed)
    assert found.code == 2 and "expected at most 102,400 bytes when unpacked or piped; got more" in found.err


def test_a_file_that_is_one_value_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_MAX_FILE", "1K")
    text = json.dumps({"log": {"version": "1.2", "entries": [], "comment": "x" * 2000}})
    found = ended(tmp_path, "a.har", text)
    assert found.code == 2 and "expected a file of at most 1,024 bytes; got more" in found.err


@pytest.mark.parametrize("command", ["run LOG --no-report", "lint LOG", "replay GOOD --prices LOG", "replay LOG"])
def test_a_device_without_end_is_an_error(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LINE.variable, "1M")
    (tmp_path / "good.jsonl").write_text(row())
    found = attempt(command, Path("/dev/zero"), tmp_path / "out", tmp_path / "good.jsonl")
    assert found.code == 2 and not found.complaint and "/dev/zero" in found.err


@pytest.mark.parametrize("text", ["abc", "-1", "0", "1T", "1.5M"])
def test_a_variable_that_is_no_amount_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LINE.variable, text)
    with pytest.raises(InputError, match=f"{LINE.variable} expected a whole number from 1, as in 64M; got"):
        LINE.value()


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("9" * 20, 10**20 - 1), ("9" * 21, None), ("9" * 5_000, None), ("", None), ("-1", None)],
)
def test_a_text_of_digits_is_a_number_of_bounded_length(text: str, number: int | None) -> None:
    assert whole_number(text) == number
