"""An upstream that reports less than it bills, or answers nonsense: the limit holds, and the run says so."""

from __future__ import annotations

import json
import shutil
import time
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random

import pytest
from driver_fake import FakeApi, FakeClock, driven, event, small_plan
from lying_answers import ANSWERS, COUNTS, much_text

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.driver import run
from cachecost.live.driver.sending import read_journal

PLAN = small_plan(tokens="tiktoken")
KEPT = "the usage is not believed (0 input tokens, "


def lying(answer: str = "", count: str = "honest", **over: object) -> FakeApi:
    lie = ANSWERS[answer] if answer else list
    return FakeApi(FakeClock(), lie=lie, count_lie=COUNTS[count], tokens="tiktoken", **over)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["empty", "zeros", "only output"])
def test_usage_below_the_count_is_kept_at_worst_case_and_said(tmp_path: Path, answer: str) -> None:
    api = lying(answer)
    result = driven(PLAN, api, tmp_path, limit="0.05")
    state = read_journal(tmp_path / "journal.jsonl")
    assert 0 < api.billed <= state.billed_usd + state.unknown <= Decimal("0.05")
    assert set(api.answered.values()) == {1}
    assert result.ended.why.startswith("stopped before ")
    assert len([note for note in result.outcomes[0].notes if KEPT in note]) == len(result.outcomes[0].calls) > 0
    assert any(sentence.startswith("progressive: progressive/1: ") for sentence in run.sentences(result))


def test_a_run_goes_on_with_what_was_kept(tmp_path: Path) -> None:
    """What counts as spent is in the journal: a second process starts with it."""
    first = driven(PLAN, lying("zeros"), tmp_path, limit="0.05")
    again = driven(PLAN, lying(), tmp_path, limit="0.05")
    assert (again.billed, again.unknown) == (first.billed, first.unknown)
    assert again.ended.why == first.ended.why


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("all of it read", " tokens read, 0 written before"),
        ("much text", "7 output tokens, 3,125 the least for so much text"),
        ("no output", "0 output tokens, 1 the least for so much text"),
        ("a tenth less", " counted before sending"),
    ],
)
def test_why_a_usage_is_not_believed(tmp_path: Path, answer: str, words: str) -> None:
    result = driven(PLAN, lying(answer), tmp_path)
    assert words in result.outcomes[0].notes[0]
    assert result.outcomes[0].notes[0].endswith(" counts as spent")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("null", "message_start has no usage"),
        ("no usage at the end", "message_delta has no usage"),
        ("negative", "usage.input_tokens: expected a whole number of tokens; got -3"),
        ("a second start", "a second message begins in the answer"),
        ("a block that did not begin", "a delta of block 0, which has not begun"),
    ],
)
def test_an_answer_without_a_readable_bill_is_kept_and_named(tmp_path: Path, answer: str, words: str) -> None:
    api = lying(answer)
    result = driven(PLAN, api, tmp_path, retries=1)
    assert api.billed <= result.billed + result.unknown
    assert words in result.ended.failed["progressive/1"]
    assert api.attempts == 2


def test_counts_that_fall_within_an_answer_are_taken_at_their_highest(tmp_path: Path) -> None:
    lied, honest = (driven(PLAN, lying(answer), tmp_path / (answer or "honest")) for answer in ("falling counts", ""))
    assert lied.outcomes[0].usage.total_input == honest.outcomes[0].usage.total_input > 0
    assert not lied.ended.undone and lied.unknown == 0


@pytest.mark.parametrize("count", ["zero", "negative", "a word", "far too few"])
def test_a_count_that_cannot_be_true_is_replaced_by_the_bound_of_the_bytes(tmp_path: Path, count: str) -> None:
    api = lying(count=count)
    result = driven(PLAN, api, tmp_path)
    assert not result.ended.undone and result.billed == api.billed
    first = json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[1])
    assert Decimal(first["usd"]) > 3 * result.outcomes[0].calls[0].billed_usd


def test_a_long_answer_in_many_deltas_does_not_hang(tmp_path: Path) -> None:
    api = lying()
    api.lie = partial(much_text, deltas=20_000, size=1_000)
    start = time.process_time()
    result = driven(small_plan(tokens="tiktoken", strategies=["none"]), api, tmp_path, limit="0.03")
    assert time.process_time() - start < 30
    assert "7 output tokens, 312,500 the least for so much text" in result.outcomes[0].notes[0]


def test_an_answer_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.live.driver.sending.MOST_ANSWER_BYTES", 100_000)
    result = driven(PLAN, lying("much text"), tmp_path, retries=0)
    assert result.ended.failed["progressive/1"] == "lost: the answer has more than 100,000 bytes"


def test_blocks_without_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.live.driver.sending.LARGEST_ANSWER", 100_000)
    result = driven(PLAN, lying("much text"), tmp_path, retries=0)
    assert result.ended.failed["progressive/1"] == "lost: the answer has more than 100,000 characters"


def lie_at_random(seed: int, folder: Path) -> None:
    """One upstream with lies of its own for each answer. It never bills more than the limit and one worst case."""
    random = Random(seed)
    names = random.sample(sorted(ANSWERS), random.randint(1, 4))
    honest = random.choice((0.0, 0.2, 0.6))
    api = lying(count=random.choice(sorted(COUNTS)), count_status=random.choice((200, 200, 200, 404)))
    api.lie = lambda whole: whole if random.random() < honest else ANSWERS[random.choice(names)](whole)
    limit = Decimal(random.randint(10, 90)) / 1000
    driven(PLAN, api, folder, str(limit), parallel=random.choice((1, 2)), retries=random.randint(0, 2))
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    worst = max((Decimal(line["usd"]) for line in lines if line["kind"] == "reserved"), default=Decimal(0))
    state = read_journal(folder / "journal.jsonl")
    assert api.billed <= limit + worst, (names, api.billed, limit)
    assert set(api.answered.values()) <= {1} or state.unknown > 0


@pytest.mark.parametrize("block", range(3))
def test_no_lie_makes_an_upstream_bill_more_than_the_limit(tmp_path: Path, block: int) -> None:
    for seed in range(10 * block, 10 * (block + 1)):
        lie_at_random(seed, tmp_path / str(seed))


@pytest.mark.long
def test_no_lie_of_a_thousand_upstreams_makes_them_bill_more_than_the_limit(tmp_path: Path) -> None:
    for seed in range(1_000, 2_000):
        lie_at_random(seed, tmp_path / "run")
        shutil.rmtree(tmp_path / "run")


def test_the_recording_has_the_input_of_a_tool(tmp_path: Path) -> None:
    """A stream has it as JSON in pieces; a client sends it back as an object."""

    def call_tool(whole: list[bytes]) -> list[bytes]:
        start = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"at"', ': "home"}')]
        deltas = [event("content_block_delta", {"index": 0, "delta": piece}) for piece in pieces]
        return [whole[0], event("content_block_start", {"index": 0, "content_block": start}), *deltas, *whole[3:]]

    api = FakeApi(FakeClock(), lie=call_tool, tokens="tiktoken")
    driven(PLAN, api, tmp_path)
    answers = [call.response for call in read_calls(tmp_path / "recording.jsonl", says_format=False)]
    assert {block.content["input"]["at"] for (block,) in answers if block.content} == {"home"}
