"""Recorded calls of hosts with other caches: what is a hit, what nobody can know, and a range that is never exact."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest
from test_fidelity import Crude

from bodies import Body, assistant, body, text, user
from cachecost.analysis.fidelity.checker import GONE_S, EarlierPrompts, FidelityChecker
from cachecost.analysis.fidelity.judging import evidence_of, evidence_of_hosts, find_claims, find_refuted_claims
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Fidelity, Judgement
from cachecost.prompts.blocks import Block, Layer, Prefix, given_block
from cachecost.prompts.compare import text_of
from cachecost.prompts.intake import Intake
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.views.fidelity.scores import Score
from cachecost.views.fidelity.text import (
    HostScore,
    exactness_sentences,
    fidelity_object,
    host_table,
    other_scores_sentence,
)
from cachecost.views.tables.table import fit_table

ASK = user(text(2000, "ask"))
MORE = (ASK, assistant(text(300)), user(text(200)))


def judged(host: str, model: str, *rows: tuple[Body, Usage], step_s: float = 10.0, **rules: Any) -> list[Judgement]:
    """Judge calls `step_s` seconds apart. A block is as many tokens as bytes."""
    intake = Intake(keep_content=True)
    calls = [
        Call(intake.body({**request, "model": model}), step_s * number, host=host, billed=bill, line=number)
        for number, (request, bill) in enumerate(rows, 1)
    ]
    checker = FidelityChecker(RuleBook(assumptions_from(rules)), PriceBook.load(), lambda generation: Crude())
    judgements, not_judged = checker.check_calls("log", calls)
    assert not not_judged
    return judgements


HELD = "2 of 2 (100%)"


def told(judgements: list[Judgement]) -> list[tuple[str, bool, int]]:
    return [(one.kind, one.exact, one.predicted.read) for one in judgements]


@pytest.mark.parametrize(
    ("host", "model", "reads"),
    [
        ("openai", "gpt-4o", 2176),  # a prompt of 2,000 and its answer of 300, to a multiple of 128
        ("openai", "gpt-5.4", 1408),  # 2 × 1,024 - 627 = 1,421, told in steps of 128
        ("mistral", "mistral-large-2512", 1984),  # the prompt alone, without its last step of 16
        ("deepseek", "deepseek-flash", 2176),
    ],
)
def test_a_hit_is_the_number_that_the_hosts_grid_gives(host: str, model: str, reads: int) -> None:
    rows = ((body(ASK), Usage(2000)), (body(*MORE), Usage(2500 - reads, reads)))
    assert told(judged(host, model, *rows)) == [("cold", True, 0), ("hit", True, reads)]
    less = ((body(ASK), Usage(2000)), (body(*MORE), Usage(2500 - reads + 64, reads - 64)))
    assert told(judged(host, model, *less))[1] == ("hit", False, reads)


def test_a_read_longer_than_all_that_was_sent_is_unknown() -> None:
    first, second = judged(
        "mistral", "mistral-large-2512", (body(ASK), Usage(16, 1984)), (body(*MORE), Usage(200, 2300))
    )
    assert told([first, second]) == [("unknown", False, 0), ("hit", False, 1984)], "its answer may have been cached"
    other = judged("mistral", "mistral-large-2512", (body(ASK), Usage(2000)), (body(user(text(900))), Usage(4, 896)))[1]
    assert other.kind == "unknown" and other.reason == "read 896 tokens that no recorded call can have written"


def test_a_predicted_hit_that_read_nothing_is_wrong() -> None:
    second = judged("openai", "gpt-4o", (body(ASK), Usage(2000)), (body(ASK), Usage(2000)))[1]
    assert (second.kind, second.exact) == ("cold", False)
    late = judged("openai", "gpt-4o", (body(ASK), Usage(2000)), (body(ASK), Usage(2000)), step_s=301)[1]
    assert (late.kind, late.exact) == ("cold", True), "its TTL was over"


def test_a_read_past_the_lifetime_contradicts_it() -> None:
    second = judged("openai", "gpt-4o", (body(ASK), Usage(2000)), (body(ASK), Usage(80, 1920)), step_s=301)[1]
    assert told([second]) == [("hit", False, 0)]


@pytest.mark.parametrize(("read", "holds"), [(0, True), (700, True), (2000, True), (2300, False)])
def test_best_effort_is_a_range_and_never_exact(read: int, holds: bool) -> None:
    rows = ((body(ASK), Usage(2000)), (body(ASK, user(text(500, "more"))), Usage(2500 - read, read)))
    second = judged("gemini", "gemini-2.5-flash", *rows)[1]
    assert (second.kind, second.exact, second.holds, second.is_right) == ("range", False, holds, holds)
    said = "at most 2,000 tokens were predicted, 2,300 were read, more than any recorded call sent of it"
    assert second.reason == ("" if holds else f"{said}; the call continues a recorded one")
    scored = HostScore("gemini", "best_effort", Score("", [second]), 500)
    assert scored.standing.startswith(f"the range holds in {int(holds)} of 1")


def test_below_the_minimum_there_is_no_range() -> None:
    """Nothing can be read: that is a prediction, and a read breaks it."""
    rows = ((body(ASK), Usage(2000)), (body(ASK), Usage(1500, 500)))
    first, second = judged("gemini", "gemini-3.8-flash", *rows)
    assert (first.kind, first.exact, first.has_range) == ("cold", True, False)
    assert (second.kind, second.exact, second.has_range) == ("hit", False, False)
    assert second.reason == "0 tokens were predicted, 500 were read"


def test_a_range_as_wide_as_the_prompt_predicts_nothing() -> None:
    rows = ((body(ASK), Usage(2000)), (body(ASK, user(text(100, "more"))), Usage(2100)))
    second = judged("gemini", "gemini-2.5-flash", *rows)[1]
    assert (second.holds, second.spans_prompt, round(second.range_width, 2)) == (True, True, 0.95)
    score = Score("", [second])
    assert (score.ranges, score.held, score.spanning, score.ranges_in_words) == (0, 0, 1, "")
    assert score.width_in_words == "95%, 1 all"
    standing = HostScore("gemini", "best_effort", score, clients=1, models=1).standing
    assert standing == "1 range as wide as the prompt; 1 model, 1 client (thin)"
    for calls in ([second], [second, replace(second, kind="cold", exact=True, bounds=None)]):
        assert exactness_sentences(Fidelity(calls, "crude")) == ["Recorded calls show neither: gemini."]
    found = fidelity_object(Fidelity([second], "crude"))["ranges"]
    assert found == {"judged": 0, "hold": 0, "width": second.range_width, "span_prompt": 1}


class Sharing(Crude):
    """A character is a token."""

    def shared(self, one: Block, other: Block) -> int:
        return sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text_of(one), text_of(other), strict=False))
        )


LONG, OTHER = (user({"type": "text", "text": "doc" * 500 + asked}) for asked in ("one" * 133, "two" * 166))
MISTRAL = "mistral", "mistral-large-2512"


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        # the first call of another conversation: somebody may have sent it before
        (((body(ASK), Usage(2000)), (body(user(text(900))), Usage(4, 896))), "unknown"),
        # one that continues a recorded call
        (((body(ASK), Usage(2000)), (body(*MORE), Usage(100, 2400))), "hit"),
        # the same where all of that call had been sent before it was recorded
        (((body(ASK), Usage(16, 1984)), (body(*MORE), Usage(4, 2496))), "unknown"),
        # a read that no step of the host gives
        (((body(ASK), Usage(2000)), (body(user(text(900))), Usage(5, 895))), "hit"),
        (((body(ASK), Usage(2000)), (body(user(text(90))), Usage(74, 16))), "unknown"),
    ],
)
def test_what_a_recorded_call_cannot_have_written_is_unknown_only_where_others_can(
    rows: tuple[tuple[Body, Usage], ...], kind: str
) -> None:
    second = judged(*MISTRAL, *rows)[1]
    assert (second.kind, second.exact) == (kind, False)


@pytest.mark.parametrize(
    ("keeps", "read", "kind"),
    [(True, 1488, "hit"), (False, 1488, "hit"), (True, 1792, "unknown"), (False, 1792, "hit")],
)
def test_prompts_that_part_inside_a_block_share_what_is_before(keeps: bool, read: int, kind: str) -> None:
    """Without content, the longer of two blocks may begin with all of the other."""
    intake = Intake(keep_content=keeps)
    rows = (body(LONG), Usage(1900)), (body(OTHER), Usage(2000 - read, read))
    calls = [
        Call(intake.body({**request, "model": MISTRAL[1]}), 10.0 * number, host="mistral", billed=bill, line=number)
        for number, (request, bill) in enumerate(rows, 1)
    ]
    checker = FidelityChecker(RuleBook(), PriceBook.load(), lambda generation: Sharing())
    second = checker.check_calls("log", calls)[0][1]
    assert second.kind == kind


def test_openais_late_breakpoints_are_judged_as_breakpoints() -> None:
    """The implicit breakpoint stands at the end of the first user message; the next call reads it to its end, or a
    grid.
    """
    rows = ((body(ASK), Usage(0, 0, 2000)), (body(*MORE), Usage(0, 2000, 500)))
    assert told(judged("openai", "gpt-6.1-sol", *rows)) == [("cold", True, 0), ("hit", True, 2000)]
    round_down_to_block = ((body(ASK), Usage(0, 0, 2000)), (body(*MORE), Usage(579, 1421, 500)))
    assert judged("openai", "gpt-6.1-sol", *round_down_to_block)[1].exact is False
    assert told(judged("openai", "gpt-6.1-sol", *round_down_to_block, openai_reads="grid"))[1][2] == 1421


def test_numbers_of_reads_prove_and_refuse_claims() -> None:
    rules = RuleBook().rules("openai", "gpt-4o")
    for read, broken in ((1024, []), (1152, []), (1100, ["step"]), (896, ["minimum"]), (1000, ["step"])):
        assert list(find_refuted_claims(rules, Usage(0, read))) == broken
    stepped = RuleBook().rules("openai", "gpt-5.4")
    assert [list(find_refuted_claims(stepped, Usage(0, read))) for read in (11648, 17792, 11520)] == [[], [], ["step"]]
    assert list(find_claims(rules, "unknown", Usage(), Usage(0, 1024))) == ["step", "minimum"]
    assert list(find_claims(rules, "cold", Usage(0, 1024), Usage())) == ["kept"]
    assert list(find_claims(rules, "cold", Usage(), Usage())) == ["nothing else"]


def test_claims_of_hosts_are_no_evidence_for_the_rulebook() -> None:
    judgements = judged("xai", "grok-4.7", (body(ASK), Usage(1872, 128)), (body(*MORE), Usage(516, 1984)))
    assert {row.standing for row in evidence_of(judgements)} == {"documented only"}
    rows = {row.rule: row.standing for row in evidence_of_hosts(judgements)}
    assert rows == dict.fromkeys(("xai: step", "xai: minimum", "xai: kept"), "seen 2 times, 1 model, 1 client (thin)")


def test_what_was_sent_long_ago_cannot_have_been_read() -> None:
    root = Prefix(None, Layer.TOOLS, None, 0)
    end = root.then(given_block("text", "user", "a", 9), Layer.MESSAGES, 9)
    for pause, found in ((GONE_S, end), (GONE_S + 1, None)):
        earlier = EarlierPrompts()
        assert earlier.reach(end, 5.0, None) is None
        assert earlier.reach(end, 5.0 + pause, None) == (found and (found, 0))


def test_an_answer_that_comes_back_can_have_been_read() -> None:
    root, earlier = Prefix(None, Layer.TOOLS, None, 0), EarlierPrompts()
    asked = root.then(given_block("text", "user", "a", 9), Layer.MESSAGES, 9)
    answered = asked.then(given_block("text", "assistant", "b", 5), Layer.MESSAGES, 5)
    after = answered.then(given_block("text", "user", "c", 5), Layer.MESSAGES, 5)
    assert earlier.reach(asked, 0, None) is None
    assert earlier.reach(after, 1, None) == (answered, 0)


def test_a_table_says_of_every_host_what_recordings_confirm() -> None:
    judgements = judged("xai", "grok-4.7", (body(ASK), Usage(1872, 128)), (body(*MORE), Usage(516, 1984)))
    fidelity = Fidelity(judgements, "crude")
    rows = {row[0]: tuple(row) for row in host_table(fidelity).rows}
    assert rows["xai"][1:7] == (
        "automatic, fixed-size blocks",
        "confirmed; 1 model, 1 client (thin)",
        "2",
        "2 of 2",
        "",
        HELD,
    )
    assert rows["qwen"][2] == "nothing recorded: documented only" and rows["qwen"][3] == "0"
    assert other_scores_sentence(fidelity) == "", "there are no calls of Anthropic's to set them beside"
    said = {row["host"]: row["standing"] for row in fidelity_object(fidelity)["hosts"]}
    assert said["xai"] == "confirmed; 1 model, 1 client (thin)" and said["vllm"] == "nothing recorded: documented only"


def judgement(host: str, kind: str = "hit", *, exact: bool = False, holds: bool = False) -> Judgement:
    usage = Usage(10, 100, 0, 0, 5)
    ranged: dict[str, Any] = {"coverage": 1.0, "bounds": (0, 50)} if kind == "range" else {}
    return Judgement("log", 1, 1, "m", kind, exact, usage, usage, None, None, "", host=host, holds=holds, **ranged)


def test_hosts_are_sorted_by_how_they_are_predicted() -> None:
    exact, ranged = [], []
    for number in range(20):  # the 20th of the first host is wrong: 95%; of the second its range breaks twice: 90%
        exact.append(judgement("openai", exact=number > 0))
        ranged.append(judgement("mistral", "range", holds=number > 1))
    apart = [judgement("groq", "unknown"), judgement("together", "cold", exact=True)]
    assert exactness_sentences(Fidelity([*exact, *ranged, *apart], "crude")) == [
        "At least 95% of the knowable hits and cold starts are exact: openai (19 of 20), together (1 of 1, thin).",
        "Reads have a range, which holds in at least 90% of the calls: mistral (18 of 20).",
        "Recorded calls show neither: groq.",
    ]
    apart[1] = judgement("together", "cold")
    worse = [judgement("openai"), judgement("mistral", "range")]
    assert exactness_sentences(Fidelity([*exact, *ranged, *apart, *worse], "crude")) == [
        "Recorded calls show neither: groq, mistral, openai, together."
    ]


@pytest.mark.parametrize("width", [80, 90, 100, 120, 160])
def test_no_cell_of_the_hosts_is_cut_in_a_narrow_terminal(width: int) -> None:
    judgements = judged("xai", "grok-4.7", (body(ASK), Usage(1872, 128)), (body(*MORE), Usage(516, 1984)))
    fitted = fit_table(host_table(Fidelity(judgements, "crude"), recorded_only=True), width)
    assert fitted.room >= 0
    assert {"hits exact", "cold exact", "in range (stated)"} <= {column.key for column in fitted.shown}
    assert bool(fitted.hidden) == (width < 160)
