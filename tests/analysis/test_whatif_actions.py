"""The price of switching something now, by hand. Sonnet 4.5: 3, read 0.3, write 3.75, output 15; Haiku 4.5 a third."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from whatif_logs import Row, told, two_calls, usd

from bodies import Body, assistant, body, marked, text, tool, user
from cachecost.analysis.whatif.results import Action
from cachecost.base.errors import CannotEvaluate, InputError

HEAD: dict[str, Any] = {"tools": [marked(tool(5_000, "f"))], "system": [marked(text(5_000, "s"))]}


def conversation(**fields: Any) -> list[Row]:
    """Three calls, 10 s apart, that grow by 300; the last block of each is marked."""
    rows: list[Row] = []
    blocks: list[Body] = [user(text(6_000, "a"))]
    for number in range(3):
        *before, last = blocks
        sent = [*before, user(*last["content"][:-1], marked(last["content"][-1]))]
        rows.append((number * 10.0, body(*sent, **{**HEAD, **fields})))
        blocks = [*blocks, assistant(text(100, f"r{number}")), user(text(200, f"q{number}"))]
    return rows


def action(tmp_path: Path, name: str, at: int | None = 1, rows: list[Row] | None = None) -> Action:
    return told(tmp_path, rows or conversation(), switched=[name], at=at).actions[0]


WITHOUT = usd(16_000, 0.3, 300, 3.75)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("tool_choice=auto", 16_000),  # as left out
        ("tool_choice=any", 10_000),  # the messages layer
        ("tool_choice=tool:f", 10_000),
        ("format=json", 5_000),  # the system layer
        ("format=text", 16_000),
        ("tools-=f", 0),
        ("tools+=g", 5_000),  # 300 tokens after the last tool: what is before them is read
    ],
)
def test_what_is_lost_by_layer(tmp_path: Path, name: str, kept: int) -> None:
    found = action(tmp_path, name)
    gone = {"tools-=f": -5_000, "tools+=g": 300}.get(name, 0)
    assert found.at == 1
    assert found.cost_without == WITHOUT
    assert found.lost == 16_000 - kept
    assert found.cost == usd(kept, 0.3, 16_300 - kept + gone, 3.75)
    assert found.price == found.cost - found.cost_without


@pytest.mark.parametrize(("effort", "kept"), [("low", 10_000), ("high", 16_000)])  # high is the default
def test_another_effort_loses_the_messages(tmp_path: Path, effort: str, kept: int) -> None:
    rows = [(at, {**sent, "model": "claude-opus-4-5"}) for at, sent in conversation()]
    found = action(tmp_path, f"effort={effort}", rows=rows)
    assert found.lost == 16_000 - kept
    assert found.cost == usd(kept, 0.5, 16_300 - kept, 6.25)


def test_effort_on_a_model_without_it_is_not_evaluated(tmp_path: Path) -> None:
    with pytest.raises(CannotEvaluate, match="--action effort=low: This model does not support the effort parameter"):
        action(tmp_path, "effort=low")


def test_a_cheaper_model_pays_after_some_calls(tmp_path: Path) -> None:
    """Haiku writes 16,300 once at 1.25; then each call costs a third. From the third on calls are assumed."""
    found = action(tmp_path, "model=claude-haiku-4-5")
    assert found.cost == usd(16_300, 1.25)
    assert found.then == usd(16_300, 0.1, 300, 1.25)
    assert found.then_without == usd(16_300, 0.3, 300, 3.75)
    gains = [usd(16_300, 0.2, 300, 2.5), usd(16_600, 0.2, 300, 2.5, 150, 10), usd(16_900, 0.2, 300, 2.5, 150, 10)]
    assert sum(gains[:2]) < found.price < sum(gains)
    assert found.pays_after == 4


def test_a_dearer_model_never_pays(tmp_path: Path) -> None:
    found = action(tmp_path, "model=claude-opus-4-5")
    assert found.pays_after is None
    assert found.cost > found.cost_without


def test_after_the_last_call_what_follows_is_assumed(tmp_path: Path) -> None:
    """As it went: every 10 s, 300 tokens more."""
    found = action(tmp_path, "tool_choice=any", at=None)
    assert found.at == 3
    assert found.lost == 6_600
    assert "the calls that follow are assumed: one every 10 s that adds 300 tokens" in found.assumption


def test_several_faults_at_once(tmp_path: Path) -> None:
    names = ["effort=lo", "tool=any", "tools-=g", "tool_choice=all", "format=xml", "model="]
    with pytest.raises(InputError) as refused:
        told(tmp_path, conversation(), switched=names)
    forms = "model=MODEL, effort=low, tool_choice=any, tools+=NAME, tools-=NAME, format=json"
    assert [str(fault) for fault in refused.value.faults] == [
        "--action effort=lo: expected one of low, medium, high, xhigh, max; got 'lo' (did you mean 'low'?)",
        f"--action expected one of {forms}; got 'tool=any'",
        "--action tools-=g: expected a tool of the recording (f); got 'g'",
        "--action tool_choice=all: expected one of auto, any, none, tool:NAME; got 'all'",
        "--action format=xml: expected one of json, text; got 'xml'",
        f"--action expected one of {forms}; got 'model=' (did you mean 'model'?)",
    ]


@pytest.mark.parametrize("at", [0, 4])
def test_a_call_that_is_not_there(tmp_path: Path, at: int) -> None:
    with pytest.raises(InputError, match=f"--at expected a call from 1 to 3; got {at}"):
        told(tmp_path, conversation(), switched=["effort=low"], at=at)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            "claude-haiku-5-5",
            "claude-haiku-5-5 was released on 2026-10-07, after the date of this replay (2026-10-05); "
            "add --as-of 2026-10-07 or a later day",
        ),
        (
            "claude-3-haiku",
            "claude-3-haiku was retired on 2026-04-20; the date of this replay is 2026-10-05; "
            "add --as-of 2026-04-19 or an earlier day",
        ),
    ],
)
def test_a_model_of_another_day_names_the_option(tmp_path: Path, model: str, words: str) -> None:
    with pytest.raises(CannotEvaluate) as raised:
        told(tmp_path, conversation(), switched=[f"model={model}"])
    assert str(raised.value) == f"--action model={model}: {words}"
    with pytest.raises(InputError) as faults:
        told(tmp_path, conversation(), f"model={model}")
    assert str(faults.value) == f"--jointly model={model}: {words}"


def test_a_model_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(CannotEvaluate, match="--action model=claude-haiku-4-6: unknown model 'claude-haiku-4-6'"):
        told(tmp_path, conversation(), switched=["model=claude-haiku-4-6"])


def test_a_switch_that_the_api_refuses(tmp_path: Path) -> None:
    rows = [(at, {**sent, "model": "claude-opus-5-5"}) for at, sent in conversation()]
    with pytest.raises(CannotEvaluate, match="--action tool_choice=any: tool_choice: type 'any' is not supported"):
        told(tmp_path, rows, switched=["tool_choice=any"])


def test_two_calls_are_enough(tmp_path: Path) -> None:
    found = action(tmp_path, "tool_choice=any", at=1, rows=two_calls(10))
    assert found.cost == usd(2_300, 3.75)
    assert found.cost_without == usd(2_000, 0.3, 300, 3.75)
