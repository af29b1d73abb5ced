"""`python -m tools.calibrate.margins LOG…`: error margins by content kind, and how often they hold.

A third of the files, by the SHA-256 of their names, is never fitted. The margin of a kind is the 90th percentile of the
relative errors of the calls that are mostly of it. All are then widened by what a fit on four fifths of the files is
off on the rest.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.detect import read_calls
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.call_preparer import CallPreparer, PreparedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.calibration import CLAUDE, calibration
from cachecost.tokens.ctok_ import VERSIONS, Ctok
from cachecost.tokens.margins import DATA, KINDS, Margins, opens_answer
from cachecost.tokens.prose import kind_of
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tiktoken_ import Cl100k
from tools.calibrate.samples import is_emptied
from tools.calibrate.texts import texts_in

HEAD = """\
# Written by `python -m tools.calibrate.margins LOG… --write`; do not edit by hand.
#
# How far a count may be off, nine times out of ten, by tokenizer generation and counter: `base` in tokens for any
# prompt, the kinds of its blocks relative to their tokens. A kind that fewer than 10 calls tell has the margin of all
# generations together. A comment says in how many held-out calls the margin of the whole prompt holds; for tiktoken,
# what agents read and write in transcripts counts as calls of results, with the count of ctok for a bill.
"""
NINE_OF_TEN = 90
HELD_OUT = 3
"""One file in so many is held out."""
LEAST_BASE = 2.0
"""Tokens: each block is rounded, and so is the bill of what stands around them."""
PARTS = 5
"""Of the fitted files: how far a fit on all but one is off there widens all margins."""
SHORT = 200
"""Tokens up to which a prompt tells the base, and from which it tells kinds."""
TELLING = 10
"""A kind that fewer calls tell is told by those of all generations."""
COUNTERS = {"ctok": tuple(VERSIONS), "tiktoken": (*VERSIONS, "o200k")}


@dataclass(frozen=True, slots=True)
class BilledCount:
    """A billed call: its file, its counted tokens by content kind, how far the count is off the bill, and how many
    answers are in its prompt.
    """

    file: str
    generation: str
    kinds: Mapping[str, int]
    total: int
    error: int
    answers: int = 0

    @property
    def is_held_out(self) -> bool:
        return int(sha256(self.file.encode()).hexdigest(), 16) % HELD_OUT == 0

    @property
    def is_long(self) -> bool:
        return self.total >= SHORT

    @property
    def main_kind(self) -> str:
        """The kind of most of its tokens."""
        return max(self.kinds, key=self.kinds.__getitem__, default=KINDS[0])

    def error_beyond(self, base: float) -> float:
        """The relative error of its blocks, `base` tokens aside."""
        return max(0.0, abs(self.error) - base) / max(1, sum(self.kinds.values()))

    @property
    def part(self) -> int:
        """The part of the fitted files that it is in."""
        return int(sha256(self.file.encode()).hexdigest(), 16) // HELD_OUT % PARTS

    def margin(self, margins: Margins) -> float:
        words = sum(margins.kinds[kind] * tokens for kind, tokens in self.kinds.items())
        return margins.base + words + margins.answer * self.answers


def judge_all(logs: Iterable[Path], counter: str) -> list[BilledCount]:
    """The billed calls of all logs, each distinct bill of a file once."""
    found = {judged: None for log in logs for judged in _judge_log(log, counter)}
    known: dict[tuple[object, ...], BilledCount] = {}
    for one in found:
        known.setdefault((one.file.split("@")[0], one.generation, one.total, one.error), one)
    return list(known.values())


def judge_texts(files: Iterable[Path]) -> list[BilledCount]:
    """What agents read and write, in a file of texts each: the calibrated count by that of ctok."""
    cl100k = Cl100k()
    found: list[BilledCount] = []
    for file in files:
        texts = texts_in(file)
        raw = [(kind_of((text,)), cl100k(text)) for text in texts]
        for generation in VERSIONS:
            ctok, ratio = Ctok(generation), calibration(generation).ratio
            told = round(sum(ratio[kind] * tokens for kind, tokens in raw))
            if told >= SHORT:
                error = told - sum(map(ctok, texts))
                found.append(BilledCount(file.name, generation, _Frozen({"results": told}), told, error))
    return found


def _judge_log(log: Path, counter: str) -> Iterator[BilledCount]:
    setup = ReplaySetup(RuleBook(), PriceBook(), tokens=counter, may_lack_prices=True)
    preparer = CallPreparer.of(setup)
    lines = log.read_text(encoding="utf-8").splitlines()
    for call in _calls(log):
        row = _row(lines, call)
        if call.billed is None or not call.billed.total_input or row.get("redacted"):
            continue
        try:
            made = preparer.prepare(call)
        except CannotEvaluate:
            continue
        if isinstance(made, PreparedCall) and isinstance(made.counter, TextCounter) and not _is_emptied(call):
            yield _judge(call, made, str(row.get("file") or log.name))


def _calls(log: Path) -> list[RecordedCall]:
    """The calls of a log; none, with a word on stderr, where it is damaged."""
    try:
        return list(read_calls(log, "auto", lambda _: None))
    except InputError as error:
        sys.stderr.write(f"left out: {error}\n")
        return []


def _is_emptied(call: RecordedCall) -> bool:
    """Whether the recorder took the signature out of a thinking block: the bill holds reasoning that is not there."""
    blocks = (block for message in call.request.thread.messages() for block in message.blocks)
    return any(is_emptied(block) for block in blocks)


def _row(lines: Sequence[str], call: RecordedCall) -> Mapping[str, Any]:
    found = json.loads(lines[call.line - 1]) if 0 < call.line <= len(lines) else {}
    return found if isinstance(found, dict) else {}


def _judge(call: RecordedCall, made: PreparedCall, file: str) -> BilledCount:
    assert isinstance(made.counter, TextCounter) and call.billed is not None
    kinds: Counter[str] = Counter()
    for prompt in made.prompts:
        kinds += tokens_by_kind(prompt, made.counter)
    total = sum(prompt.total_tokens for prompt in made.prompts)
    answers = sum(map(_answers, made.prompts))
    return BilledCount(file, made.rules.generation, _Frozen(kinds), total, total - call.billed.total_input, answers)


def _answers(prompt: Prompt) -> int:
    """How many runs of the assistant's blocks a prompt has."""
    found, node = 0, prompt.end
    while node.parent is not None:
        found, node = found + opens_answer(node), node.parent
    return found


class _Frozen(dict[str, int]):
    """Tokens by kind, to be compared as a whole."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def tokens_by_kind(prompt: Prompt, counter: TextCounter) -> Counter[str]:
    """The tokens of a prompt's blocks by content kind, with their frames."""
    found: Counter[str] = Counter()
    node: Prefix | None = prompt.end
    while node is not None:
        if node.block is not None and node.parent is not None:
            found[counter.content_kind(node.block)] += node.tokens - node.parent.tokens
        node = node.parent
    if prompt.format_tokens:
        found["format"] = prompt.format_tokens
    return found


def fit(calls: Sequence[BilledCount], pooled: Margins | None = None) -> Margins:
    """Margins that hold for nine of ten calls that a fit without their part of the files has not seen."""
    off = [off for part in range(PARTS) for off in _unseen_errors(calls, part, pooled)]
    return _widened(_fit(calls, pooled), told_by_most(off))


def _unseen_errors(calls: Sequence[BilledCount], part: int, pooled: Margins | None) -> list[float]:
    """The errors of the calls of a part of the files, in margins of a fit on the others."""
    margins = _fit([one for one in calls if one.part != part], pooled)
    return [abs(one.error) / one.margin(margins) for one in calls if one.part == part]


def _widened(margins: Margins, times: float) -> Margins:
    wide = max(1.0, times)
    return Margins(_up(margins.base * wide), {kind: _up(of * wide) for kind, of in margins.kinds.items()})


def _up(number: float) -> float:
    """Rounded up to two digits."""
    if not number:
        return 0.0
    digits = 1 - math.floor(math.log10(number))
    return round(math.ceil(number * 10.0**digits - 1e-6) / 10.0**digits, 6)


def _fit(calls: Sequence[BilledCount], pooled: Margins | None) -> Margins:
    """The base by short prompts, each kind by the calls that are mostly of it; `pooled` where too few tell."""
    short = [abs(one.error) for one in calls if one.total < SHORT and set(one.kinds) == {"text"}]
    base = max(LEAST_BASE, told_by_most(short) if len(short) >= TELLING else pooled.base if pooled else 0.0)
    kinds: dict[str, float] = {}
    for kind in KINDS:
        told = [one.error_beyond(base) for one in calls if one.main_kind == kind and (kind != "text" or one.is_long)]
        kinds[kind] = told_by_most(told) if len(told) >= TELLING else -1.0
    known = Margins(base, {kind: max(0.0, of) for kind, of in kinds.items()})
    return Margins(base, {kind: _or_left(of, kind, calls, known, pooled) for kind, of in kinds.items()})


def _or_left(told: float, kind: str, calls: Sequence[BilledCount], known: Margins, pooled: Margins | None) -> float:
    """What was told of a kind; else what the margins of the others leave open in the calls that have it."""
    if told >= 0:
        return told
    left = [max(0.0, abs(one.error) - one.margin(known)) / one.kinds[kind] for one in calls if one.kinds.get(kind)]
    if len(left) >= TELLING or not pooled:
        return told_by_most(left) if left else 0.0
    return min(1.0, max(pooled.kinds[kind], *left, 0.0))


def told_by_most(values: Sequence[float]) -> float:
    """What at least nine of ten further values are expected not to exceed: with few values, the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered), -(-(len(ordered) + 1) * NINE_OF_TEN // 100)) - 1]


def holds(calls: Iterable[BilledCount], margins: Margins) -> tuple[int, int]:
    """(how many calls are off by no more than their margin, how many calls)."""
    told = [abs(one.error) <= one.margin(margins) for one in calls]
    return sum(told), len(told)


def toml(judged: Mapping[str, Sequence[BilledCount]], day: date) -> str:
    """The file of margins."""
    lines = [HEAD, "[fit]", f"date = {day}"]
    for counter, generations in COUNTERS.items():
        claude = fit([one for one in judged[counter] if _is_fitted(one) and one.generation.startswith(CLAUDE)])
        for generation in generations:
            mine = [one for one in judged[counter] if one.generation == generation]
            margins = fit([one for one in mine if _is_fitted(one)], claude)
            right, all_ = holds([one for one in mine if one.is_held_out], margins)
            fitted = len(mine) - all_
            lines += ["", f"# fitted on {fitted} calls; holds in {right} of {all_} held-out ones"]
            lines += [f'[margins."{generation}".{counter}]', f"base = {margins.base}"]
            lines += [f"{kind} = {margins.kinds[kind]}" for kind in KINDS]
    return "\n".join(lines) + "\n"


def _is_fitted(one: BilledCount) -> bool:
    return not one.is_held_out


def main(arguments: list[str] | None = None) -> int:
    """Run the fit; prints the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate.margins", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="recorded calls with their bills, in any format")
    parser.add_argument("--text", nargs="*", default=[], type=Path, help="JSON (Lines) files of what agents read")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {DATA}")
    given = parser.parse_args(arguments)
    judged = {counter: judge_all(given.logs, counter) for counter in COUNTERS}
    judged["tiktoken"] += judge_texts(given.text)
    report = toml(judged, given.date)
    sys.stdout.write(report)
    if given.write:
        given.write.write_text(report, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
