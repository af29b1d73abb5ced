"""The calibration: its arithmetic on small tables, and the whole of it on a log whose bills we made ourselves."""

import json
import tomllib
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from files_of_images import base64, png
from hypothesis import given
from hypothesis import strategies as st

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.errors import CannotEvaluate
from cachecost.tokens.calibration import KINDS, LATIN, SCRIPTS, calibration
from cachecost.tokens.parts import parts_of
from cachecost.tokens.textcounter import count_texts
from cachecost.tokens.tokenizers import Ctok, has_ctok
from tools.calibrate.__main__ import main
from tools.calibrate.fit import (
    TELLING,
    Bill,
    Text,
    blended_ratios,
    is_filler,
    least_absolute,
    median,
    percentile,
    ratio,
    tokens_per_byte,
    told_by_sources,
)
from tools.calibrate.recorded import is_unseen_source, source_of
from tools.calibrate.samples import Samples, parallel_runs, row_name
from tools.calibrate.texts import PAGE, texts_in

WITH_CTOK = pytest.mark.skipif(not has_ctok(), reason="ctok is not installed (it wants Python >= 3.12)")


def bills(n: int, **features: int) -> list[Bill]:
    """`n` bills of prompts with these features, at 30 tokens a call, 14 a parameter, 5 an error."""
    cost = {"tool_use": 30, "parameter": 14, "error": 5}
    return [Bill(features, sum(cost[name] * count for name, count in features.items()), 500 + i) for i in range(n)]


def test_constants_are_found() -> None:
    told = bills(12, tool_use=1) + bills(12, tool_use=1, parameter=2) + bills(12, tool_use=2, parameter=1, error=1)
    assert least_absolute(told, {"tool_use": 10, "parameter": 3, "error": 0}) == {
        "tool_use": 30,
        "parameter": 14,
        "error": 5,
    }


def test_a_few_odd_bills_do_not_matter() -> None:
    odd = [Bill({"tool_use": 1}, 4000, 4500)] * 4
    assert least_absolute(bills(12, tool_use=1) + odd, {"tool_use": 10}) == {"tool_use": 30}


@pytest.mark.parametrize(("samples", "expected"), [(TELLING - 1, 10), (TELLING, 30)])
def test_a_constant_that_few_bills_tell_stays(samples: int, expected: int) -> None:
    assert least_absolute(bills(samples, tool_use=1), {"tool_use": 10}) == {"tool_use": expected}


def test_what_stays_is_taken_off_first() -> None:
    told = bills(TELLING, tool_use=1, parameter=2)
    assert least_absolute([*told, *bills(2, error=1)], {"tool_use": 9, "parameter": 8, "error": 7})["error"] == 7
    fixed = [Bill({"tool_use": 1, "error": 1}, 35, 500)] * 5 + [Bill({"tool_use": 1}, 30, 500)] * 8
    assert least_absolute(fixed, {"tool_use": 0, "error": 5}) == {"tool_use": 30, "error": 5}


def test_of_two_that_only_occur_together_one_is_held() -> None:
    told = [Bill({"tool_use": 1, "tool_result": 1}, 41, 500)] * 20
    assert least_absolute(told, {"tool_use": 3, "tool_result": 9}, ("tool_result",)) == {
        "tool_use": 32,
        "tool_result": 9,
    }


def test_no_constant_is_negative() -> None:
    assert least_absolute([Bill({"thinking": 1}, -9, 500)] * 20, {"thinking": 3}) == {"thinking": 0}
    assert least_absolute([], {"thinking": 2.6}) == {"thinking": 2.5}


def test_halves_that_make_up_for_one_another_are_found_together() -> None:
    """Of 40 tokens a call and 13.5 a parameter; each rounded to whole tokens would be off in every bill."""
    cost = {(1, 0): 40.0, (1, 1): 53.5, (1, 2): 67.0, (2, 4): 134.0}
    told = [Bill({"tool_use": use, "parameter": n}, rest, 500) for (use, n), rest in cost.items() for _ in range(5)]
    assert least_absolute(told, {"tool_use": 30, "parameter": 10}) == {"tool_use": 40, "parameter": 13.5}


def text(tokens: int, cl100k: int, kind: str = "text") -> Text:
    return Text("s", kind, 4 * cl100k, cl100k, {"claude-3": tokens})


def test_ratio_is_a_median_by_length() -> None:
    assert ratio([text(10, 10), text(11, 10), text(30, 10)], "text", "claude-3") == 1.1
    assert ratio([text(10, 10), text(10, 10), text(45, 30)], "text", "claude-3") == 1.5
    assert ratio([text(10, 10), text(20, 10, "code"), text(0, 0)], "code", "claude-3") == 2.0
    with pytest.raises(CannotEvaluate, match=r"^no text of kind 'data' to tell a ratio from: give more with --text$"):
        ratio([text(10, 10)], "data", "claude-3")


def test_ratios_of_blends_are_told_apart() -> None:
    kinds = ("text", "code")
    blends = [text(1100, 1000), text(1200, 1000, "code:5000,text:5000"), text(1280, 1000, "code:9000,text:1000")]
    assert blended_ratios([*blends, text(9, 1, "schema")], kinds, "claude-3") == {"text": 1.1, "code": 1.3}
    with pytest.raises(CannotEvaluate, match=r"^no text of kind 'code' to tell a ratio from: give more with --text$"):
        blended_ratios(blends[:1], kinds, "claude-3")


def test_tokens_per_byte() -> None:
    assert tokens_per_byte([text(10, 10), text(30, 10), text(99, 10, "code")], "text", "claude-3") == 0.5


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 95, 0),
        ([3], 95, 3),
        ([1, 2], 50, 1),
        ([1, 2, 3], 50, 2),
        (list(range(1, 21)), 95, 19),
        (list(range(1, 22)), 95, 20),
    ],
)
def test_percentile(values: list[float], percent: int, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_median_of_unordered_values() -> None:
    assert median([5, 1, 3]) == 3


def test_filler_is_long_and_repeats_itself() -> None:
    sentence = "This paragraph is padding about nothing in particular. "
    assert is_filler(sentence * 30)
    assert not is_filler(sentence * 5)
    assert not is_filler("".join(f"{n * 7919 % 104729:x} is {n * 31 % 101} of {n}; " for n in range(99)))


def test_texts_in_any_json(tmp_path: Path) -> None:
    long, coded = "words and words " * 20, "coded words " * 30
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps([{"a": {"b": long, "id": "x" * 400}}, [b64encode(coded.encode()).decode(), "short"]]))
    assert texts_in(whole) == [long, coded]
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"t": long}) + "\n\n" + json.dumps({"t": "y y" * 9000}) + "\n")
    assert texts_in(lines) == [long, ("y y" * 9000)[:PAGE]]


def test_runs_of_results() -> None:
    from cachecost.prompts.request import block_of

    kinds = {"u": "tool_use", "r": "tool_result", "t": "text"}
    counted = {
        run: parallel_runs([block_of("user", {"type": kinds[letter]}) for letter in run])
        for run in ("", "r", "rr", "rrr", "urur", "uurrt", "uurruurrr")
    }
    assert counted == {"": 0, "r": 0, "rr": 1, "rrr": 1, "urur": 0, "uurrt": 1, "uurruurrr": 2}


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"name": "read", "description": "Read a file from the working folder", "input_schema": SCHEMA}
CODE = "fn main() { let x = foo[i] + bar(b); }"
DATA = "2026-03-07 10:15:00 1532 200 4711"
PROSE = "The file that you asked for is not in the folder, and it is not in this one."


def row(source: str, body: dict[str, Any], billed: int, **more: Any) -> str:
    usage = {"input_tokens": billed - 7, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}
    return json.dumps({"source": source, "request": {"model": "claude-sonnet-4-5", **body}, "usage": usage, **more})


PICTURE = {"type": "image", "source": base64(png(330, 291), "image/png")}


def made(n: int) -> tuple[dict[str, Any], int]:
    """A body and its bill: 496 for the tool prompt, 1 + 3 a turn, 2 a tool, 50 a call with its result, 132 + 5 an
    image of 330 x 291 pixels."""
    call = {"type": "tool_use", "id": "i", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "i", "content": f"{n} {CODE}"}
    turns = [
        ("user", [{"type": "text", "text": f"{n} {PROSE}"}, *[PICTURE] * (n % 3)]),
        ("assistant", [call]),
        ("user", [result, {"type": "text", "text": f"{n} {DATA}"}]),
    ][: 3 if n % 4 < 2 else 1]
    contents = [content for _, blocks in turns for content in blocks]
    parts = [parts_of("tool", TOOL), *(parts_of(str(content["type"]), content) for content in contents)]
    words = count_texts(Ctok("claude-3"), tuple(text for part in parts for text in part.texts))
    body = {"tools": [TOOL], "messages": [{"role": role, "content": blocks} for role, blocks in turns]}
    return body, words + 496 + 1 + 3 * (len(turns) + 1) + 2 + 50 * (len(turns) // 2) + (132 + 5) * (n % 3)


@WITH_CTOK
def test_a_calibration_finds_what_was_billed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(row("one" if n % 2 else "two", *made(n)) for n in range(48)) + "\n")
    out = tmp_path / "found.toml"
    assert main([str(log), "--date", "2026-11-21", "--write", str(out)]) == 0
    found = tomllib.loads(out.read_text(encoding="utf-8"))
    assert capsys.readouterr().out == out.read_text(encoding="utf-8")
    assert found["fit"]["sources"] == ["one", "two"]
    assert found["fit"]["requests"] == 48
    structure = found["generations"]["claude-3"]["structure"]
    assert (structure["tool"], structure["tool_use"] + structure["tool_result"], structure["image"]) == (2, 50, 5)
    errors = found["generations"]["claude-3"]["error"]
    assert errors["ctok"] == {"median": 0.0, "p95": 0.0, "requests": 48, "sources": 2}
    assert errors["tiktoken"]["median"] < 0.02
    assert found["generations"]["claude-4.8"]["error"]["ctok"]["requests"] == 0


@WITH_CTOK
def test_what_is_held_out_is_measured_and_never_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bills of the file "h" are wrong: the fit does not see them, its errors there are large."""
    body, billed = made(1)
    rows = [row("one" if n % 2 else "two", *made(n), file="c" if n % 2 else "a") for n in range(48)]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*rows, row("s", {**body, "max_tokens": 8}, 3 * billed, file="d")]) + "\n")
    files = {"one__c": is_held_out("one__c"), "two__a": is_held_out("two__a"), "s__d": is_held_out("s__d")}
    assert files == {"one__c": False, "two__a": False, "s__d": True}
    assert main([str(log), "--date", "2026-11-21"]) == 0
    found = tomllib.loads(capsys.readouterr().out)
    assert (found["fit"]["sources"], found["fit"]["requests"]) == (["one", "two"], 48)
    generation = found["generations"]["claude-3"]
    assert generation["error"]["ctok"]["p95"] == 0.0
    assert generation["held_out"]["ctok"] == {"median": 0.6667, "p95": 0.6667, "requests": 1, "sources": 1}
    assert "held_out" not in found["generations"]["claude-4.8"]


def test_a_row_without_a_file_has_the_name_of_its_log(tmp_path: Path) -> None:
    assert row_name({"source": "a/b", "file": "c/d.yaml"}, tmp_path / "log.jsonl") == "a+b__c_d.yaml"
    assert row_name({"source": "a/b"}, tmp_path / "log.jsonl") == "log.jsonl"


def test_a_damaged_log_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not has_ctok():
        assert main(["log", "--date", "2026-11-21"]) == 3
        assert "calibration: ctok is not installed" in capsys.readouterr().err
        return
    log = tmp_path / "log.jsonl"
    log.write_text('{"request": {}, "usage": {}}\n\n{"request": 1}\n')
    assert main([str(log), "--date", "2026-11-21"]) == 2
    assert capsys.readouterr().err == f'{log}:3 expected a JSON object with "request" and "usage"\n'


HELLO = {"messages": [{"role": "user", "content": "hi"}]}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
LATER = "tools that the provider defines, or loads later"
TAKEN_OUT = {"type": "thinking", "thinking": "", "signature": "[redacted]"}


@pytest.mark.parametrize(
    ("body", "more", "reason"),
    [
        (HELLO, {"redacted": 3}, "text altered by the recorder"),
        ({**HELLO, "model": "claude-2.0"}, {}, "unknown model"),
        ({"messages": 3}, {}, "no Messages request"),
        ({**HELLO, "container": "c"}, {}, "server side work"),
        ({**HELLO, "tools": [{**TOOL, "defer_loading": True}]}, {}, LATER),
        ({**HELLO, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, {}, LATER),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, {}, "no rule counts: image"),
        (
            {
                "model": "claude-opus-4-8",
                "messages": [*HELLO["messages"], {"role": "assistant", "content": [TAKEN_OUT]}],
            },
            {},
            "thinking taken out by the recorder",
        ),
    ],
)
def test_rows_that_tell_nothing_are_left_out(
    tmp_path: Path, body: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join((row("s", body, 10, **more), row("s", HELLO, 10), row("t", HELLO, 11))) + "\n")
    reader = Samples()
    taken = reader.read([log])
    assert [(sample.source, sample.total, sample.cached, sample.read_and_1h) for sample in taken] == [
        ("s", 10, 7, None)
    ]
    assert reader.left_out == {reason: 1, "the same prompt again": 1}


@pytest.mark.parametrize("generation", ["claude-3", "claude-4.7", "claude-4.8"])
def test_shipped_data_is_whole_and_sane(generation: str) -> None:
    shipped = calibration(generation)
    assert set(shipped.ratio) == {*KINDS, "schema"}
    assert all(1.0 < shipped.ratio[kind] < 1.8 for kind in (*LATIN, "schema"))
    assert all(0.7 < shipped.ratio[kind] < 1.2 for kind in SCRIPTS), "one or two tokens a letter in all of them"
    assert set(shipped.error_margin) == {"tiktoken", "ctok"}
    assert all(value >= 0 for value in shipped.structure.values())
    assert 150 < shipped.tool_prompt_head < 286


SOURCES = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))


def test_the_unseen_sources_are_those_decided_before_the_fit() -> None:
    """A changed rule would let a fit see what is to judge it."""
    found: dict[str, set[str]] = {"unseen": set(), "fitted": set()}
    for log in (Path(__file__).parents[2] / "scenarios" / "recordings").rglob("*.jsonl"):
        source = source_of(log.name)
        found["unseen" if is_unseen_source(source) else "fitted"].add(sha256(source.encode()).hexdigest()[:16])
    assert len(found["unseen"]) >= 9
    assert all(found[part] <= set(SOURCES[part]) for part in found)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("owner+repository__tests_a_1@3fa8.jsonl", "owner+repository"),
        ("0owner+repository__tests_a.jsonl", "0owner+repository"),
        ("some-client-0e53-a5.jsonl", "some-client"),
        ("some-client-fc_ea11.jsonl", "some-client"),
        ("jp-176.jsonl", "jp"),
        ("0.jsonl", "0.jsonl"),
    ],
)
def test_who_recorded_a_file_is_in_its_name(name: str, source: str) -> None:
    assert source_of(name) == source


def test_of_many_sources_each_weighs_the_same() -> None:
    """Of 9 sources the tenth may have any value, so that the bound is the largest of theirs; of 19 one may be wider."""
    alike = {str(one): [0.1] * 50 for one in range(9)}
    assert told_by_sources(alike | {"0": [0.3]}, 2.0) == 0.3
    assert told_by_sources({str(one): [0.1] for one in range(18)} | {"odd": [0.3] * 500}, 2.0) == 0.1


def test_of_few_sources_the_worst_is_widened() -> None:
    assert told_by_sources({"a": [0.1], "b": [0.2]}, 1.5) == pytest.approx(0.3)
    assert told_by_sources({"a": [0.1] * 19 + [9.0]}, 1.5) == pytest.approx(0.15), "one odd bill of twenty"
    assert told_by_sources({}, 1.5) == 0.0


@given(st.dictionaries(st.integers(0, 40), st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=9, max_size=40))
def test_nine_of_ten_values_of_the_sources_are_within_the_bound(values: dict[int, list[float]]) -> None:
    bound = told_by_sources({str(one): of for one, of in values.items()}, 1.0)
    assert sum(sum(one <= bound for one in of) / len(of) for of in values.values()) >= 0.9 * len(values)
