"""Judging recorded calls: what counts as a hit, what anchors what, and that no call is judged by its own bill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bodies import Body, assistant, body, breakpoint_last, marked, text, tool, tool_result, tool_use, user
from cachecost.analysis.fidelity.checker import FidelityChecker
from cachecost.analysis.fidelity.judging import evidence_of
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Judgement
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden
from cachecost.prompts.request import Request, block_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage


@dataclass
class Crude:
    """A counter that is wrong by `factor`: what bills tell must not depend on it."""

    factor: float = 1.0
    name: str = "crude"
    source: str = "crude"
    error_margin: float = 0.5

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        return round(block.size * self.factor)

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


def judged(*rows: tuple[Body, Usage], factor: float = 1.0, **fields: Any) -> list[Judgement]:
    """Judge calls 10 s apart; a row is (body, bill) and may hold a response as third item."""
    intake = Intake(keep_content=True)
    calls = []
    for number, (request, bill, *response) in enumerate(rows, 1):
        answer = tuple(block_of("assistant", item) for item in response[0]) if response else ()
        calls.append(Call(intake.body(request), 10.0 * number, billed=bill, response=answer, line=number, **fields))
    checker = FidelityChecker(RuleBook(), PriceBook.load(), lambda generation: Crude(factor))
    judgements, not_judged = checker.check_calls("log", calls)
    assert not not_judged
    return judgements


ASK = user(text(2000, "ask"))
FIRST = breakpoint_last(body(ASK))
SECOND = breakpoint_last(body(ASK, assistant(text(300)), user(text(200))))
COLD = Usage(3, 0, 2000)
HIT = Usage(3, 2000, 500)


def kinds(judgements: list[Judgement]) -> list[tuple[str, bool]]:
    return [(one.kind, one.exact) for one in judgements]


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
def test_a_hit_is_sized_by_the_writers_bill_however_wrong_the_counter(factor: float) -> None:
    first, second = judged((FIRST, COLD), (SECOND, HIT), factor=factor)
    assert kinds([first, second]) == [("cold", True), ("hit", True)]
    assert second.predicted.read == 2000


@pytest.mark.parametrize(("read", "exact"), [(1998, True), (2002, True), (1997, False)])
def test_a_read_is_exact_within_two_tokens(read: int, exact: bool) -> None:
    second = judged((FIRST, COLD), (SECOND, Usage(3, read, 500)))[1]
    assert second.exact is exact


def test_a_read_that_nothing_recorded_wrote_is_unknown_and_stays_in_the_list() -> None:
    first, second = judged((FIRST, Usage(3, 1500, 500)), (SECOND, HIT))
    assert kinds([first, second]) == [("unknown", False), ("hit", True)]
    assert first.reason == "read 1,500 tokens that no recorded call can have written"


def test_a_missed_hit_is_no_unknown() -> None:
    """Nothing was read although an entry stood there: a contradiction, however it came about."""
    second = judged((FIRST, COLD), (SECOND, Usage(3, 0, 2500)))[1]
    assert (second.kind, second.exact) == ("cold", False)
    assert "evicted, or not readable yet" in second.reason


def test_an_older_entry_of_the_same_path_is_a_hit_on_another_prefix() -> None:
    third = breakpoint_last(body(ASK, assistant(text(300)), user(text(200)), assistant(text(90)), user(text(110))))
    last = judged((FIRST, COLD), (SECOND, HIT), (third, Usage(3, 2000, 700)))[2]
    assert (last.kind, last.exact) == ("hit", False)
    assert last.reason == "another prefix was hit: 2,500 tokens were predicted, 2,000 were read"


def test_its_own_bill_never_sizes_a_call() -> None:
    lone = judged((FIRST, Usage(3, 0, 9999)))[0]
    assert lone.predicted.write_5m == 2000, "the estimate, not the bill"


def test_what_a_bill_tells_lies_between_exact_lengths() -> None:
    """The tools' breakpoint was billed apart by nobody: its length is scaled between what is told."""
    tools = [marked(tool(1000))]
    first = breakpoint_last(body(user(text(1000)), tools=tools))
    other = breakpoint_last(body(user(text(800, "other")), tools=tools))
    judgement = judged((first, Usage(0, 0, 4000)), (other, Usage(0, 2000, 1600)), factor=1.0)[1]
    assert judgement.predicted.read == 2000 and judgement.exact


def test_passes_of_server_tools_are_told_apart_by_sums() -> None:
    use = {**tool_use(90, "s1"), "type": "server_tool_use"}
    result = {**tool_result(400, "s1"), "type": "web_search_tool_result"}
    added = sum(block_of("assistant", item).size for item in (use, result))
    answer = [use, result, text(100)]
    row = (FIRST, Usage(3, 2000, 2000 + added), answer)
    first = judged(row)[0]
    assert (first.kind, first.exact) == ("cold", True), "what was read is what its own first pass had written"
    later = body(ASK, assistant(*answer), user(text(200)))
    second = judged(row, (breakpoint_last(later), Usage(3, 2000 + added, 300)))[1]
    assert (second.kind, second.exact) == ("hit", True), "the second call reads what the server's breakpoint left"


def test_a_call_without_a_bill_still_writes() -> None:
    intake = Intake(keep_content=True)
    calls = [
        Call(intake.body(FIRST), 10.0, line=1),
        Call(intake.body(SECOND), 20.0, billed=HIT, line=2),
    ]
    checker = FidelityChecker(RuleBook(), PriceBook.load(), lambda generation: Crude())
    judgements, not_judged = checker.check_calls("log", calls)
    assert kinds(judgements) == [("hit", True)] and not_judged == [("log:1", "it has no usage")]


def test_a_failed_call_writes_nothing() -> None:
    intake = Intake(keep_content=True)
    failed = Call(intake.body(FIRST), 10.0, status=529, line=1)
    checker = FidelityChecker(RuleBook(), PriceBook.load(), lambda generation: Crude())
    judgements, _ = checker.check_calls(
        "log", [failed, Call(intake.body(SECOND), 20.0, billed=Usage(3, 0, 2500), line=2)]
    )
    assert kinds(judgements) == [("cold", True)]


def test_server_tools_without_a_breakpoint_are_uncached_in_every_pass() -> None:
    use = {**tool_use(90, "s1"), "type": "server_tool_use"}
    result = {**tool_result(400, "s1"), "type": "web_search_tool_result"}
    row = (body(ASK), Usage(4500, 0, 0), [use, result, text(100)])
    assert kinds(judged(row)) == [("cold", True)]


def test_a_bill_without_cached_tokens_tells_that_a_prefix_was_too_short() -> None:
    """The counter says 1,500; an equal prompt was billed 900 tokens, so nothing can have been written."""
    short = breakpoint_last(body(user(text(1500))))
    assert kinds(judged((short, Usage(900, 0, 0)), (short, Usage(900, 0, 0)))) == [("cold", True), ("cold", True)]


def test_evidence_counts_what_calls_prove_and_contradict() -> None:
    rows = {each.rule: each for each in evidence_of(judged((FIRST, COLD), (SECOND, HIT)))}
    assert rows["9 lookback"].standing == "seen 1 time, 1 model, 1 client (thin)"
    assert rows["2 speed"].standing == "documented only"
    wrong = {each.rule: each for each in evidence_of(judged((FIRST, COLD), (SECOND, Usage(3, 0, 2500))))}
    assert wrong["9 lookback"].contradicted == ("log:2",)
