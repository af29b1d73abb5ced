"""`python -m tools.calibrate.margins LOG…`: error margins by content kind, and how often they hold.

A third of the recordings is never fitted (`analysis/fidelity/validation.py`). The margin of a kind is the 90th
percentile of the relative errors of the calls that are mostly of it, the widest by all fitted recordings and by four
fifths of them.
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

from cachecost.analysis.fidelity.validation import ONE_IN, is_held_out, recording_name
from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.blocks import WHOLE, Prefix, shares_in
from cachecost.prompts.render import Prompt
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import CallPreparer, PreparedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.calibration import CLAUDE, calibration, prose_of_texts
from cachecost.tokens.images import unseen_margins
from cachecost.tokens.margins import DATA, FITTED, UNSEEN, Margins, opens_answer
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import VERSIONS, Cl100k, Ctok
from tools.calibrate.recorded import Recorded, read_recorded
from tools.calibrate.report import print_report
from tools.calibrate.texts import texts_in

HEAD = """\
# Written by `python -m tools.calibrate.margins LOG… --write`; do not edit by hand.
#
# How far a count may be off, nine times out of ten, by tokenizer generation and counter: `base` in tokens for any
# prompt, the kinds of its blocks relative to their tokens. A kind that fewer than 10 different calls tell (`thin`) has
# the margin of all generations together, if that is wider. A comment says in how many held-out calls the margin of the
# whole prompt holds; for tiktoken, what agents read and write in transcripts counts as calls of results, with the count
# of ctok for a bill. What only a URL or file id names has a range of its own (images.toml).
"""
NINE_OF_TEN = 90
LEAST_BASE = 2.0
"""Tokens: each block is rounded, and so is the bill of what stands around them."""
PARTS = 5
"""Of the fitted files: no one of them alone makes a margin narrow."""
SHORT = 200
"""Tokens up to which a prompt tells the base, and from which it tells kinds."""
TELLING = 10
"""A kind that fewer different calls tell is told by those of all generations."""
PARTLY = 0.2
"""The share of a call's tokens from which it says something of a kind that few calls are mostly of."""
COUNTERS = {"ctok": tuple(VERSIONS), "tiktoken": (*VERSIONS, "o200k")}


@dataclass(frozen=True, slots=True)
class BilledCount:
    """A billed call: the name of its recording, its counted tokens by content kind, how far it is off the bill, and how
    many answers are in its prompt.
    """

    name: str
    generation: str
    kinds: Mapping[str, int]
    total: int
    error: int
    answers: int = 0

    @property
    def is_held_out(self) -> bool:
        return is_held_out(self.name)

    @property
    def is_long(self) -> bool:
        return self.total >= SHORT

    @property
    def main_kind(self) -> str:
        """The kind of most of its tokens."""
        return max(self.kinds, key=self.kinds.__getitem__, default=FITTED[0])

    def is_partly(self, kind: str) -> bool:
        return self.kinds.get(kind, 0) >= PARTLY * sum(self.kinds.values()) > 0

    def error_beyond(self, base: float) -> float:
        """The relative error of its blocks, `base` tokens aside."""
        return max(0.0, abs(self.error) - base) / max(1, sum(self.kinds.values()))

    @property
    def part(self) -> int:
        """The part of the fitted files that it is in."""
        return int(sha256(recording_name(self.name).encode()).hexdigest(), 16) // ONE_IN % PARTS

    def margin(self, margins: Margins) -> float:
        words = sum(margins.kinds[kind] * tokens for kind, tokens in self.kinds.items())
        return margins.base + words + margins.answer * self.answers


def judge_all(logs: Iterable[Path], counter: str) -> list[BilledCount]:
    """The billed calls of all logs: each counts, as it does where coverage is shown."""
    return [judged for log in logs for judged in _judge_log(log, counter)]


def judge_texts(files: Iterable[Path]) -> list[BilledCount]:
    """What agents read and write, in a file of texts each: the calibrated count by that of ctok."""
    cl100k = Cl100k()
    found: list[BilledCount] = []
    for file in files:
        texts = texts_in(file)
        raw = [(shares_in(prose_of_texts((text,))), cl100k(text)) for text in texts]
        for generation in VERSIONS:
            ctok, ratio = Ctok(generation), calibration(generation).ratio
            told = round(
                sum(ratio[kind] * share * tokens / WHOLE for shares, tokens in raw for kind, share in shares.items())
            )
            if told >= SHORT:
                error = told - sum(map(ctok, texts))
                found.append(BilledCount(file.name, generation, {"results": told}, told, error))
    return found


def _judge_log(log: Path, counter: str) -> Iterator[BilledCount]:
    setup = ReplaySetup(RuleBook(), PriceBook(), tokens=counter, may_lack_prices=True)
    preparer = CallPreparer.of(setup)
    for one in read_recorded(log):
        try:
            made = preparer.prepare(one.call)
        except CannotEvaluate:
            continue
        if isinstance(made, PreparedCall) and isinstance(made.counter, TextCounter):
            yield _judge(one, made)


def _judge(one: Recorded, made: PreparedCall) -> BilledCount:
    assert isinstance(made.counter, TextCounter)
    kinds: Counter[str] = Counter()
    for prompt in made.prompts:
        kinds += tokens_by_kind(prompt, made.counter)
    total = sum(prompt.total_tokens for prompt in made.prompts)
    answers = sum(map(_answers, made.prompts))
    return BilledCount(one.name, made.rules.generation, kinds, total, total - one.billed, answers)


def _answers(prompt: Prompt) -> int:
    """How many runs of the assistant's blocks a prompt has."""
    found, node = 0, prompt.end
    while node.parent is not None:
        found, node = found + opens_answer(node), node.parent
    return found


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


def fit(calls: Iterable[BilledCount], pooled: Margins | None = None) -> Margins:
    """The margin of each kind by the fitted recordings: the widest of what all of them tell, and all but one part.

    Calls with what only a URL or file id names are left out: it alone is what they are off.
    """
    told = [one for one in calls if not one.kinds.keys() & set(UNSEEN)]
    fits = [_fit([one for one in told if one.part != part], pooled) for part in range(PARTS + 1)]
    kinds = {kind: _up(max(one.kinds[kind] for one in fits)) for kind in FITTED}
    return Margins(_up(max(one.base for one in fits)), kinds | unseen_margins())


def _up(number: float) -> float:
    """Rounded up to two digits."""
    if not number:
        return 0.0
    digits = 1 - math.floor(math.log10(number))
    return round(math.ceil(number * 10.0**digits - 1e-6) / 10.0**digits, 6)


def _fit(calls: Sequence[BilledCount], pooled: Margins | None) -> Margins:
    """The base by short prompts, each kind by the calls that are mostly of it.

    A kind that few calls are mostly of has what the margins of the others leave open in calls that are partly of it,
    and no less than all generations together have.
    """
    short = [abs(one.error) for one in calls if one.total < SHORT and set(one.kinds) == {"text"}]
    base = max(LEAST_BASE, told_by_most(short) if len(short) >= TELLING else pooled.base if pooled else 0.0)
    mostly = {kind: [one.error_beyond(base) for one in _mostly(kind, calls)] for kind in FITTED}
    told_kinds = {kind: told_by_most(told) if told else 0.0 for kind, told in mostly.items()}
    known = Margins(base, told_kinds | unseen_margins())
    kinds = dict(known.kinds)
    for kind in FITTED:
        if _is_thin(kind, calls):
            kinds[kind] = max(known.kinds[kind], _left(kind, calls, known), pooled.kinds[kind] if pooled else 0.0)
    return Margins(base, kinds)


def _is_thin(kind: str, calls: Iterable[BilledCount]) -> bool:
    """Whether too few calls are mostly of a kind: the same content in other words of the client tells no more."""
    return len({(one.total, *sorted(one.kinds.items())) for one in _mostly(kind, calls)}) < TELLING


def _left(kind: str, calls: Iterable[BilledCount], known: Margins) -> float:
    """What the margins leave open, relative to the tokens of a kind, in nine of ten calls that are partly of it."""
    left = [max(0.0, abs(one.error) - one.margin(known)) / one.kinds[kind] for one in calls if one.is_partly(kind)]
    return told_by_most(left) if left else 0.0


def _mostly(kind: str, calls: Iterable[BilledCount]) -> list[BilledCount]:
    """The calls that tell the margin of a kind: they are mostly of it, and long where that is text."""
    return [one for one in calls if one.main_kind == kind and (kind != "text" or one.is_long)]


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
            lines += [f"{kind} = {margins.kinds[kind]}" for kind in FITTED]
            thin = [kind for kind in FITTED if _is_thin(kind, filter(_is_fitted, mine))]
            lines += [f"thin = {json.dumps(thin)}"]
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
    print_report(report, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
