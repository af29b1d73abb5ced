"""What a probe does when bills are not what any reading expects: scripted bills, one a call."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from probe_bench import DAY, PRICES, START, FakeClock, tried

from cachecost.base.structs import replace
from cachecost.live.driver.budget import AnsweredCall, CallFailed
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from tools.probes import plan, rules_text, select_probes
from tools.probes.harness import ProbeRun
from tools.probes.layers import LayeredBody, level_after
from tools.probes.model import Unsettled
from tools.probes.parameters import _effort_at

WRITES = Usage(9, write_5m=1100)
READS = Usage(9, read=1100)
ENDS = (1100, 1300, 1500)


class Scripted:
    """A sender whose bills are given; a fault among them is raised. Everything counts 100 tokens."""

    def __init__(self, bills: Iterator[Usage | Exception]) -> None:
        self._bills = bills

    async def send(self, body: Mapping[str, Any]) -> AnsweredCall:
        bill = next(self._bills)
        if isinstance(bill, Exception):
            raise bill
        return AnsweredCall(bill, START, 0.5)

    async def count(self, body: Mapping[str, Any]) -> int:
        return 100


def _bench(probe: str, *bills: Usage | Exception, calls: int | None = None) -> ProbeRun:
    (priced,) = plan("claude-sonnet-4-6", PRICES, RuleBook(), select_probes([probe]), day=DAY)
    return ProbeRun(Scripted(iter(bills)), FakeClock(), replace(priced, calls=calls or priced.calls), "5f1d")


def test_no_call_beyond_those_that_were_priced() -> None:
    bench = _bench("effort", WRITES, READS, calls=1)
    asyncio.run(bench.send({"messages": []}))
    with pytest.raises(Unsettled, match=r"^it would exceed the 1 calls and the tokens that were priced$"):
        asyncio.run(bench.send({"messages": []}))
    assert [taken.usage for taken in bench.taken] == [WRITES]


def test_a_refused_body_is_none_and_any_other_failure_is_not() -> None:
    bench = _bench("effort", CallFailed("no", 400), CallFailed("overloaded", 529))
    assert asyncio.run(bench.send_unless_refused({"messages": []})) is None
    with pytest.raises(CallFailed, match="overloaded"):
        asyncio.run(bench.send_unless_refused({"messages": []}))


@pytest.mark.parametrize(
    ("read", "level"),
    [
        (0, "nothing"),
        (1097, "1097 tokens"),
        (1098, "tools"),
        (1102, "tools"),
        (1103, "1103 tokens"),
        (1300, "system"),
        (1500, "messages"),
    ],
)
def test_a_read_ends_at_a_layer_or_is_told_as_a_number(read: int, level: str) -> None:
    base = LayeredBody("start", "head", "step", ENDS)
    bench = _bench("effort", Usage(9, read=read), Usage(9, read=1500))
    assert asyncio.run(level_after(bench, base, {}, {})) == level


def test_a_change_shows_nothing_where_the_unchanged_body_is_lost_too() -> None:
    bench = _bench("effort", Usage(9, read=1300), Usage(9, read=1300))
    with pytest.raises(Unsettled) as told:
        asyncio.run(level_after(bench, LayeredBody("start", "head", "step", ENDS), {}, {}))
    assert str(told.value) == "the unchanged body read system when sent again, instead of messages"


def test_a_ttl_that_is_in_the_key_one_way_only_is_not_settled() -> None:
    bills = [WRITES, READS, READS, WRITES, READS, WRITES] * 2
    bench = _bench("ttl_in_key", *bills)
    answer = asyncio.run(bench.priced.probe.run(bench))
    assert (answer.value, answer.rounds) == (None, 2)
    assert answer.explanation == "written with 5m, a 1h breakpoint reads 1100; written with 1h, a 5m breakpoint reads 0"


def test_an_entry_that_its_own_kind_of_breakpoint_does_not_read_shows_nothing() -> None:
    bench = _bench("ttl_in_key", *[WRITES, WRITES] * 2)
    answer = asyncio.run(bench.priced.probe.run(bench))
    assert (answer.value, answer.explanation) == (
        None,
        "an entry written with 5m was not read by a breakpoint with the same TTL",
    )


@pytest.mark.parametrize("probe", ["lookback", "lookback_runs"])
def test_a_prefix_that_has_gone_is_not_out_of_reach(probe: str) -> None:
    found = tried(probe, ttl_s={"5m": 7.5, "1h": 3600.0})[probe]
    assert (found.value, found.explanation) == (None, "the prefix could no longer be read")


def test_efforts_that_fit_no_rule_are_not_settled() -> None:
    assert _effort_at({"low": "messages", "medium": "messages", "high": "system"}) is None
    assert _effort_at({"low": "system", "medium": "messages", "high": "nothing"}) is None
    assert _effort_at({"low": "tools", "medium": "messages", "high": "tools"}) is None
    assert _effort_at({"low": "messages", "medium": "messages", "high": "messages"}) == "no effort changes the prompt"


def test_a_switch_on_which_two_models_differ_is_no_reading_for_all() -> None:
    run = tried("ttl_in_key", "structured_output_at")
    structured, one = run.findings
    other = replace(one, model="claude-opus-5-5", value=True)
    told = tomllib.loads(rules_text([structured, one, other], DAY))
    assert told["assumptions"] == {"structured_output_at": "system"}
    assert told["data"]["model"] == "claude-sonnet-4-6, claude-opus-5-5"
    assert [row["verdict"] for row in told["evidence"]] == ["system", "false", "true"]
