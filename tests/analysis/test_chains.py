"""Transcripts against their bills: what is predicted, what is knowable, and that no step is judged by its own bill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cachecost.analysis.fidelity.chains import check_steps
from cachecost.analysis.fidelity.judging import evidence_of
from cachecost.base.structs import replace
from cachecost.ledger.results import Judgement
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from step_records import TranscriptStep, read_steps, session_calls, steps_to_records

RULES, PRICES = RuleBook(), PriceBook()
AT = 1767348000.0
KEEPS, STRIPS = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929"
FIRST = TranscriptStep(1, 1, "main", None, KEEPS, Usage(3, 0, 5000), AT, AT + 2, AT + 4, 1)
"""Its entry of 5,000 tokens is touched between AT and AT + 2."""


def after(
    before: TranscriptStep, seconds: float, read: int, write: int = 200, words: Sequence[str] = (), waited: float = 2.0
) -> TranscriptStep:
    """A step that goes on from `before`: its request at least `seconds` after the latest start of that."""
    assert before.answered is not None
    sent = before.answered + seconds
    hour = write if before.usage.write_1h else 0
    number = before.number + 1
    return replace(
        before,
        number=number,
        line=number,
        before=before.number,
        usage=Usage(3, read, write - hour, hour),
        after=sent,
        answered=sent + waited,
        ended=sent + waited + 1,
        blocks=3,
        between=tuple(words),
        thinking=False,
        summed=False,
    )


def judged(*steps: TranscriptStep) -> list[Judgement]:
    """The judgements of those steps that can be judged."""
    return check_steps(session_calls(steps), "here.jsonl", RULES, PRICES)[0]


def last(*steps: TranscriptStep) -> Judgement:
    """The judgement of the last step."""
    made = judged(*steps)[-1]
    assert made.call == steps[-1].number
    return made


def hourly(step: TranscriptStep) -> TranscriptStep:
    return replace(step, usage=replace(step.usage, write_5m=0, write_1h=step.usage.write))


# ------------------------------------------------------------------------------------------- a tool loop


def test_a_step_of_a_loop_reads_the_whole_prefix() -> None:
    second = after(FIRST, 10, 5000)
    third = after(second, 10, 5200, 150)
    one, two, three = judged(FIRST, second, third)
    assert (one.kind, one.exact, one.predicted) == ("cold", True, Usage(3, 0, 5000))
    assert (two.kind, two.exact, two.predicted, two.billed) == ("hit", True, Usage(3, 5000, 200), second.usage)
    assert (three.kind, three.exact, three.predicted) == ("hit", True, Usage(3, 5200, 200))
    assert (two.source, two.call, two.line, two.model, two.reason) == ("here.jsonl", 2, 2, KEEPS, "")
    assert (two.features, two.rules) == (("5m", "alive", "tool loop", "transcript"), ("12 alive",))
    assert (one.features, one.rules) == (("first step", "transcript"), ())


def test_dollars_are_of_the_input_side() -> None:
    two = last(FIRST, replace(after(FIRST, 10, 5000), usage=Usage(3, 5000, 200, 0, 10**6)))
    assert two.billed_usd == Decimal("0.003765")  # 3 at $5, 5,000 at $0.50, 200 at $6.25, per million
    assert two.predicted_usd == Decimal("0.002515")  # nothing tells how much is written


def test_a_length_that_the_next_step_does_not_tell_grows_as_at_the_median() -> None:
    second = after(FIRST, 10, 5000)
    third = after(second, 10, 5200, 300)
    missed = after(third, 10, 1000)
    _, _, three, four = judged(FIRST, second, third, missed)
    assert (three.predicted, four.predicted) == (Usage(3, 5200, 200), Usage(3, 5500, 200))
    compacted = after(FIRST, 10, 700, 400, words=("compaction",))
    assert judged(FIRST, compacted, after(compacted, 10, 1100))[-2].predicted == Usage(3, 1100)


def test_a_mode_changes_the_price() -> None:
    plain = after(FIRST, 10, 5000)
    batch = last(FIRST, replace(plain, modes=("batch",)))
    assert batch.billed_usd == Decimal("0.003765") / 2


@pytest.mark.parametrize(
    ("read", "kind", "exact"),
    [
        (0, "cold", False),
        (1000, "hit", False),
        (4997, "hit", False),
        (4998, "hit", True),
        (5002, "hit", True),
        (5003, "unknown", False),
    ],
)
def test_a_read_is_exact_within_two_tokens(read: int, kind: str, exact: bool) -> None:
    two = last(FIRST, after(FIRST, 10, read))
    assert (two.kind, two.exact, two.rules) == (kind, exact, ("12 alive",))


@pytest.mark.parametrize(
    ("read", "words", "reason"),
    [
        (0, (), "a hit of 5,000 tokens was predicted, and nothing was read: evicted, or the prompt was changed"),
        (1000, (), "read 1,000 of 5,000 tokens: evicted early, or the prompt was changed"),
        (
            5300,
            ("human",),
            "read 5,300 tokens that no recorded step can have written; predicted 5,000: the client may have made"
            " a side call",
        ),
        (
            1000,
            ("human",),
            "read 1,000 of 5,000 tokens: evicted early, or the prompt was changed",
        ),
    ],
)
def test_a_mismatch_has_its_reason(read: int, words: Sequence[str], reason: str) -> None:
    assert last(FIRST, after(FIRST, 10, read, words=words)).reason == reason


# --------------------------------------------------------------------------------------------------- age


@pytest.mark.parametrize(
    ("first", "seconds", "read", "kind", "exact"),
    [
        (FIRST, 295.9, 5000, "hit", True),
        (FIRST, 296, 5000, "unknown", True),
        (FIRST, 299.9, 0, "unknown", False),
        (FIRST, 300, 0, "cold", True),
        (FIRST, 300, 5000, "hit", False),
        (FIRST, 300, 900, "unknown", False),
        (FIRST, 300, 5300, "unknown", False),
        (hourly(FIRST), 300, 5000, "hit", True),
        (hourly(FIRST), 3595.9, 5000, "hit", True),
        (hourly(FIRST), 3596, 5000, "unknown", True),
        (hourly(FIRST), 3600, 5000, "hit", False),
        (hourly(FIRST), 3600, 0, "cold", True),
    ],
)
def test_an_entry_lives_for_its_lifetime_and_no_longer(
    first: TranscriptStep, seconds: float, read: int, kind: str, exact: bool
) -> None:
    """Both requests began within two seconds, so an age is known to four."""
    second = last(first, after(first, seconds, read))
    assert (second.kind, second.exact) == (kind, exact)
    if kind == "unknown" and 296 <= seconds < 300:
        assert second.reason == "not knowable: its age may be on either side of the TTL"


def test_an_expired_step_says_so() -> None:
    outlived = last(FIRST, after(FIRST, 400, 5000))
    assert outlived.reason == "read 5,000 tokens that had expired; predicted 0"
    assert (outlived.rules, outlived.features) == (("12 expired",), ("5m", "expired", "tool loop", "transcript"))
    others = last(FIRST, after(FIRST, 400, 900))
    assert others.reason.endswith("predicted 0: others may have kept it alive")
    spoken = last(FIRST, after(FIRST, 400, 0, words=("human",)))
    assert (spoken.kind, spoken.exact, spoken.rules) == ("cold", True, ("12 expired",))


def test_a_read_touches() -> None:
    steps = [FIRST]
    for _ in range(4):
        steps.append(after(steps[-1], 200, steps[-1].usage.read + steps[-1].usage.write, 0))
    assert [(one.kind, one.exact) for one in judged(*steps)[1:]] == [("hit", True)] * 4
    hour = hourly(FIRST)
    touched = after(hour, 10, 5000, 0)
    assert last(hour, touched, after(touched, 3000, 5000)).exact
    part = after(hour, 10, 1000, 0, words=("human",))
    assert last(hour, part, after(part, 3000, 1000)).exact


def test_of_mixed_lifetimes_the_hour_remains() -> None:
    mixed = replace(FIRST, usage=Usage(3, 0, 1000, 4000))
    second = after(mixed, 10, 5000)
    second = replace(second, usage=Usage(3, 5000, 200))
    assert last(mixed, second).predicted == Usage(3, 5000, 0)
    late = after(second, 400, 4000)
    (_, _, three) = judged(mixed, second, late)
    assert (three.kind, three.exact, three.predicted.read) == ("hit", True, 4000)
    assert (three.features, three.rules) == (("5m", "expired", "tool loop", "transcript"), ("12 expired",))
    assert last(mixed, after(mixed, 3700, 0)).exact
    assert last(mixed, after(mixed, 400, 5000)).reason.startswith("read 5,000 tokens that had expired")


def test_without_times_nothing_is_known_of_age() -> None:
    second = replace(after(FIRST, 10, 5000), after=None, answered=None, ended=None)
    assert (last(FIRST, second).kind, last(FIRST, second).exact) == ("unknown", True)
    begun = replace(FIRST, after=None)
    assert last(begun, after(begun, 10, 5000)).kind == "unknown"
    assert last(begun, after(begun, 400, 0)).kind == "cold"
    sent = replace(after(FIRST, 10, 5000), after=None)  # no earlier than the end of the answer before
    assert last(FIRST, sent, after(sent, 10, 5200)).kind == "hit"


# ---------------------------------------------------------------------------------------------- not knowable


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("compaction", "the conversation was compacted before it"),
        ("edit", "old tool results were taken out before it"),
        ("model", "the step before it was of another model"),
        ("client", "the step before it was by another version of the client"),
        ("fork", "another step continues from the same one"),
    ],
)
@pytest.mark.parametrize("read", [0, 700, 5000])
def test_what_changes_the_prefix_makes_a_step_unknowable(word: str, why: str, read: int) -> None:
    second = last(FIRST, after(FIRST, 10, read, words=(word,)))
    assert (second.kind, second.exact, second.reason) == ("unknown", read == 5000, f"not knowable: {why}")
    assert (second.rules, "unclear" in second.features, "tool loop" in second.features) == ((), True, False)


def test_an_error_and_an_unmarked_tail_change_nothing() -> None:
    second = replace(after(FIRST, 10, 5000, words=("error",)), usage=Usage(4000, 5000, 200))
    third = after(second, 10, 5200)
    assert [(one.kind, one.exact) for one in judged(FIRST, second, third)] == [
        ("cold", True),
        ("hit", True),
        ("hit", True),
    ]


@pytest.mark.parametrize(
    ("model", "thinking", "words", "kind"),
    [
        (STRIPS, True, ("human",), "unknown"),
        (STRIPS, False, ("human",), "hit"),
        (STRIPS, True, (), "hit"),
        (KEEPS, True, ("human",), "hit"),
    ],
)
def test_stripped_thinking_changes_the_prefix(model: str, thinking: bool, words: Sequence[str], kind: str) -> None:
    """Thinking of the step before last still counts: nobody spoke since."""
    first = replace(FIRST, model=model, thinking=thinking)
    second = after(first, 10, 5000)
    third = last(first, second, after(second, 10, 5200, words=words))
    assert third.kind == kind
    if kind == "unknown":
        assert third.reason == "not knowable: earlier thinking was stripped, because a person spoke"


def test_thinking_is_stripped_once() -> None:
    first = replace(FIRST, model=STRIPS, thinking=True)
    second = after(first, 10, 4000, words=("human",))
    assert last(first, second, after(second, 10, 4200, words=("human",))).kind == "hit"


@pytest.mark.parametrize(("blocks", "kind"), [(19, "hit"), (20, "unknown")])
def test_a_breakpoint_looks_back_twenty_positions(blocks: int, kind: str) -> None:
    assert last(FIRST, replace(after(FIRST, 10, 5000), blocks=blocks)).kind == kind


def test_sums_of_passes_are_no_lengths() -> None:
    second = replace(after(FIRST, 10, 7000, 900), summed=True)
    third = after(second, 10, 6000)
    fourth = after(third, 10, 6200)
    kinds = [(one.kind, one.reason) for one in judged(FIRST, second, third, fourth)]
    why = "not knowable: it, or the step before it, sums several passes"
    assert kinds == [("unknown", why), ("unknown", why), ("hit", "")]


@pytest.mark.parametrize(
    ("read", "kind", "exact"),
    [(5200, "hit", True), (5000, "hit", False), (4000, "hit", False), (5400, "unknown", False), (0, "cold", False)],
)
def test_after_a_persons_words_a_read_counts_where_a_recorded_write_ended(read: int, kind: str, exact: bool) -> None:
    second = after(FIRST, 10, 5000)
    third = last(FIRST, second, after(second, 10, read, words=("human",)))
    assert (third.kind, third.exact, third.rules) == (kind, exact, ())
    assert third.features == ("5m", "after a person's words", "alive", "transcript")


def test_another_branch_of_the_chain_explains_no_longer_read() -> None:
    second = after(FIRST, 10, 5000, 4000)
    third = replace(after(FIRST, 30, 5000, words=("human", "fork")), number=3)
    fourth = last(FIRST, second, third, after(third, 10, 9000, words=("human",)))
    assert (fourth.kind, fourth.exact, fourth.predicted.read) == ("unknown", False, 5200)


def test_what_was_written_before_a_compaction_is_gone() -> None:
    second = after(FIRST, 10, 900, 7000, words=("compaction",))
    third = last(FIRST, second, after(second, 10, 5000, words=("human",)))
    assert (third.kind, third.exact) == ("hit", False)


# ------------------------------------------------------------------------------------------------ first steps


def test_a_first_step_may_read_what_was_there_before() -> None:
    first = replace(FIRST, usage=Usage(3, 1500, 3500))
    one, two = judged(first, after(first, 10, 5000))
    assert (one.kind, one.exact, one.predicted) == ("unknown", False, Usage(3, 0, 5000))
    assert one.reason == "read 1,500 tokens that no recorded step can have written"
    assert (two.kind, two.exact) == ("hit", True)


def test_chains_are_told_apart() -> None:
    side = replace(FIRST, number=2, chain="side 1", usage=Usage(3, 0, 700))
    third = replace(after(FIRST, 10, 5000), number=3)
    fourth = replace(after(side, 10, 700), number=4, before=2)
    made = judged(FIRST, side, third, fourth)
    assert [(one.kind, one.exact) for one in made] == [("cold", True)] * 2 + [("hit", True)] * 2
    assert ["side chain" in one.features for one in made] == [False, True, False, True]


def test_what_cannot_be_judged_is_told() -> None:
    alone, plain = replace(FIRST, line=9), replace(FIRST, number=2, usage=Usage(50))
    odd = replace(FIRST, number=3, model="claude-opus-44")
    made, left = check_steps(session_calls([alone, plain, odd]), "here.jsonl", RULES, PRICES)
    assert made == []
    assert [where for where, _ in left] == ["here.jsonl:9", "here.jsonl:1", "here.jsonl:1"]
    assert [why for _, why in left][:2] == [
        "the first step of its chain, and no later one gives its length",
        "nothing was cached, and nothing could have been read",
    ]
    assert left[2][1].startswith("unknown model 'claude-opus-44' on host anthropic")


# ------------------------------------------------------------------------------------------------- as a whole


gaps = some.one_of(some.floats(0, 290), some.floats(305, 3500), some.floats(3700, 9000))


@some.composite
def lawful_chains(draw: some.DrawFn) -> list[TranscriptStep]:
    """A tool loop whose bills obey the rules."""
    first = draw(some.sampled_from([FIRST, hourly(FIRST)]))
    life = 3600 if first.usage.write_1h else 300
    steps = [first]
    for _ in range(draw(some.integers(1, 8))):
        before, gap, growth = steps[-1], draw(gaps), draw(some.integers(3, 900))
        cached = before.usage.read + before.usage.write
        read = cached if gap < life else 0
        steps.append(after(before, gap, read, cached - read + growth))
    return steps


@given(lawful_chains())
def test_a_chain_that_obeys_the_rules_is_judged_exact(steps: list[TranscriptStep]) -> None:
    made = judged(*steps)
    assert all(one.exact and one.kind in ("hit", "cold") for one in made)
    for one, following in pairwise(made):
        told = following.billed.read > 0
        assert not told or one.predicted == replace(one.billed, input_tokens=one.predicted.input_tokens)
    rows = {row.rule: row for row in evidence_of(made)}
    assert sum(row.seen for rule, row in rows.items() if rule.startswith("12 ")) == len(steps) - 1
    assert rows["12 alive"].contradicted == rows["12 expired"].contradicted == ()


@given(lawful_chains(), some.data())
def test_a_step_is_not_judged_with_its_own_bill(steps: list[TranscriptStep], data: some.DataObject) -> None:
    index = data.draw(some.integers(0, len(steps) - 1))
    other = Usage(*(data.draw(some.integers(1, 10**6)) for _ in range(5)))
    changed = [*steps[:index], replace(steps[index], usage=other), *steps[index + 1 :]]
    before, now = ({one.call: one.predicted for one in judged(*some_steps)} for some_steps in (steps, changed))
    assert before.get(index + 1) == now.get(index + 1)


def test_a_file_is_judged_as_its_content_free_form_is(tmp_path: Path) -> None:
    second = after(FIRST, 10, 5000)
    path = tmp_path / "steps.jsonl"
    records = steps_to_records([FIRST, second, after(second, 400, 900, words=("human",))], "x")
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    made, left = check_steps(session_calls(read_steps(path)), str(path), RULES, PRICES)
    assert [(one.source, one.call, one.line, one.kind) for one in made] == [
        (str(path), 1, 2, "cold"),
        (str(path), 2, 3, "hit"),
        (str(path), 3, 4, "unknown"),
    ]
    assert left == []
