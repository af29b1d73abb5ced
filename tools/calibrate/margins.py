"""`python -m tools.calibrate.margins LOG…`: error margins by content kind, and how often they hold.

A third of the recordings (`analysis/fidelity/validation.py`) and whole sources (`recorded.py`) are never fitted. The
margin of a kind is what nine of ten calls of a further source, which are mostly of it, are expected to be off.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.render import CannotCount, Prompt, Renderer
from cachecost.prompts.request import block_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import CallPreparer, PreparedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.calibration import CLAUDE, calibration
from cachecost.tokens.images import unseen_margins
from cachecost.tokens.margins import DATA, FITTED, KINDS, UNSEEN, Margins, margins_of, opens_answer
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import VERSIONS, ctok_counter, tiktoken_counter
from tools.calibrate.fit import LEAST_SOURCES, round_up, told_by_sources
from tools.calibrate.recorded import Recorded, is_unseen_source, read_calls_of, read_recorded, source_of
from tools.calibrate.report import print_report
from tools.calibrate.samples import HOST, Nothing, rendered

HEAD = """\
# Written by `python -m tools.calibrate.margins LOG… --write`; do not edit by hand.
#
# How far a count may be off, nine times out of ten, by tokenizer generation and counter: `base` in tokens for any
# prompt, the kinds of its blocks relative to their tokens: what nine of ten calls of a further source are off
# (`told_by_sources` in tools/calibrate/fit.py). A kind that fewer than 9 sources tell (`thin`) has 1.25 times the
# margin of the worst of them, and no less than all generations together and than the kinds that are most like it. For
# tiktoken, the words of recordings without a bill and of packages count, too, with the count of ctok for a bill. What
# only a URL or file id names has a range of its own (images.toml), and so has what is not in Latin letters
# (scripts.toml).
"""
LEAST_BASE = 2.0
"""Tokens: each block is rounded, and so is the bill of what stands around them."""
WORDS = ("text", "tools", "results")
"""Kinds that are told by counts of ctok, too."""
WORDS_OF = "claude-sonnet-4-5"
"""The model as whose requests they are rendered."""
PACKAGES = 10
"""Fitted, and as many held out: about as many as there are sources of recordings, so that neither outweighs these."""
PAGE = 6000
"""Characters that an agent reads of a file."""
MOST_CALLS = 20
"""Of a recording: a long session repeats its prompt."""
SHORT = 200
"""Tokens up to which a prompt tells the base, and from which it tells kinds."""
WIDER = 1.25
"""How much wider than the worst of few sources a margin is: of 1, 1.25, 1.5 … the first with which nine of ten calls of
a source hold by what the other recordings tell (all kinds of all generations, each source left out in turn)."""
NEAREST = {
    "results": ("text",),
    "tools": ("text",),
    "format": ("tools",),
    "thinking": ("text", "results"),
    "pdf": ("text",),
    "image": ("pdf",),
    "server": ("results",),
    "mcp": ("server",),
    "unknown": ("server",),
}
"""The kinds that are most like a kind: one that few sources tell is no surer than those, of which some were told."""
GUESSED = frozenset({"thinking", "server", "mcp", "unknown"})
UNTOLD = 2.0
LEAST = {"image": 0.1, "pdf": 0.1, "thinking": 0.5, "server": 0.5, "unknown": UNTOLD}
"""The least margin of a kind that few sources tell: of pixels and pages, whose formula is 7% off for one model; of what
is not in a request, and guessed from the length of what is encrypted; of what is not told at all."""
FEW = 3
"""Sources that have calls which are mostly of a kind."""
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

    def tells(self, kind: str) -> bool:
        """Whether it is partly of a kind, and of none that is guessed besides."""
        is_partly = self.kinds.get(kind, 0) >= PARTLY * sum(self.kinds.values()) > 0
        return is_partly and self.kinds.keys().isdisjoint(GUESSED - {kind})

    def error_beyond(self, base: float) -> float:
        """The relative error of its blocks, `base` tokens aside."""
        return max(0.0, abs(self.error) - base) / max(1, sum(self.kinds.values()))

    def left(self, kind: str, margins: Margins) -> float:
        """What `margins` leave open, relative to the tokens of a kind."""
        return max(0.0, abs(self.error) - self.margin(margins)) / self.kinds[kind]

    def margin(self, margins: Margins) -> float:
        words = sum(margins.kinds[kind] * tokens for kind, tokens in self.kinds.items())
        return margins.base + words + margins.answer * self.answers


def judge_all(logs: Iterable[Path], counter: str) -> list[BilledCount]:
    """The billed calls of all logs: each counts, as it does where coverage is shown."""
    return [judged for log in logs for judged in _judge_log(log, counter)]


def judge_by_ctok(logs: Iterable[Path]) -> list[BilledCount]:
    """The words of recorded calls as tiktoken counts them, with ctok's counts for a bill, for each generation and
    content kind: words are the same whoever billed them, and ctok counts Claude's tokens as they are billed.
    """
    renderer, rules = Renderer(Nothing()), RuleBook().rules(HOST, WORDS_OF)
    counters = [(generation, tiktoken_counter(generation), ctok_counter(generation)) for generation in VERSIONS]
    found: list[BilledCount] = []
    for log in logs:
        calls = read_calls_of(log)
        for call in calls[:: -(-len(calls) // MOST_CALLS) or 1]:
            blocks = rendered(renderer.render(call.request, (), rules).end)
            for generation, tiktoken, ctok in counters:
                found += _judge_words(log.name, generation, blocks, tiktoken, ctok)
    return found


def judge_packages(folder: Path) -> list[BilledCount]:
    """What agents read, as `judge_by_ctok`: of some installed packages, each a source, what it says of itself, its
    longest module, and the list of its files.
    """
    found: list[BilledCount] = []
    packages = sorted(folder.glob("*.dist-info"), key=lambda path: sha256(_package(path).encode()).digest())
    fitted = [path for path in packages if not is_unseen_source(_package(path))]
    for path in fitted[:PACKAGES] + [path for path in packages if path not in fitted][:PACKAGES]:
        files = (path / "RECORD").read_text(encoding="utf-8")
        modules = [folder / line.partition(",")[0] for line in files.splitlines() if ".py," in line]
        longest = max(modules, key=lambda module: (module.stat().st_size, module.name), default=None)
        about = (path / "METADATA").read_text(encoding="utf-8").partition("\n\n")[2]
        code = longest.read_text(encoding="utf-8") if longest else ""
        for kind, text in (("text", about), ("tool_result", code), ("tool_result", files)):
            block = block_of("user", {"type": kind, "tool_use_id": "a", "text": text[:PAGE], "content": text[:PAGE]})
            for generation in VERSIONS:
                counters = tiktoken_counter(generation), ctok_counter(generation)
                found += _judge_words(_package(path), generation, [block], *counters)
    return found


def _package(path: Path) -> str:
    return path.name.partition("-")[0].lower()


def _judge_words(
    name: str, generation: str, blocks: Iterable[Block], tiktoken: TextCounter, ctok: TextCounter
) -> Iterator[BilledCount]:
    counted, billed = Counter[str](), Counter[str]()
    for block in blocks:
        with suppress(CannotCount):
            tokens, kind = ctok.block(block), tiktoken.content_kind(block)
            counted[kind] += tiktoken.block(block)
            billed[kind] += tokens
    for kind, tokens in counted.items():
        if kind in WORDS and tokens >= SHORT:
            yield BilledCount(name, generation, {kind: tokens}, tokens, tokens - billed[kind])


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


def fit(calls: Sequence[BilledCount], pooled: Margins | None = None, guessed: Container[str] = ()) -> Margins:
    """The margin of each kind by these calls; of a thin one no less than the kinds that are most like it."""
    told = fit_told(calls, pooled, guessed)
    kinds = dict(told.kinds)
    for kind, near in NEAREST.items():
        if kind in thin_kinds(calls):
            kinds[kind] = max(kinds[kind], *(kinds[one] for one in near))
    return replace(told, kinds={kind: round_up(kinds[kind]) for kind in FITTED} | unseen_margins())


def fit_told(calls: Iterable[BilledCount], pooled: Margins | None = None, guessed: Container[str] = ()) -> Margins:
    """The margin of each kind by what calls are off that tell of it.

    Calls with what only a URL or file id names are left out: it alone is what they are off. A thin kind has `WIDER`
    times what the worst of its sources has; one that fewer than `FEW` tell, no less than is left open in calls that are
    partly of it, and than all generations together.
    """
    told = [one for one in calls if not one.kinds.keys() & set(UNSEEN)]
    short = by_source((one, abs(one.error)) for one in told if one.total < SHORT and set(one.kinds) == {"text"})
    bases = [LEAST_BASE, told_by_sources(short, WIDER), pooled.base if pooled and len(short) < FEW else 0.0]
    base = float(math.ceil(max(bases)))
    kinds = {kind: told_by_sources(_off(kind, told, base), WIDER) for kind in FITTED}
    narrow = Margins(base, dict.fromkeys(KINDS, 0.0) | kinds)
    for kind in thin_kinds(told):
        kinds[kind] = max(kinds[kind], LEAST.get(kind, 0.0), UNTOLD if kind in guessed else 0.0)
        if len(_off(kind, told, base)) < FEW:
            left = by_source((one, one.left(kind, narrow)) for one in told if one.tells(kind))
            kinds[kind] = max(kinds[kind], told_by_sources(left, WIDER), pooled.kinds[kind] if pooled else 0.0)
    return Margins(base, kinds | unseen_margins())


def by_source(values: Iterable[tuple[BilledCount, float]]) -> dict[str, list[float]]:
    found = defaultdict[str, list[float]](list)
    for one, value in values:
        found[source_of(one.name)].append(value)
    return found


def thin_kinds(calls: Sequence[BilledCount]) -> list[str]:
    """The kinds that too few sources tell."""
    return [kind for kind in FITTED if len(_off(kind, calls, 0.0)) < LEAST_SOURCES]


def _off(kind: str, calls: Iterable[BilledCount], base: float) -> dict[str, list[float]]:
    """By source, what the calls that are mostly of a kind, and long where that is text, are off."""
    mostly = (one for one in calls if one.main_kind == kind and (kind != "text" or one.is_long))
    return by_source((one, one.error_beyond(base)) for one in mostly)


def holds(calls: Iterable[BilledCount], margins: Margins) -> tuple[int, int]:
    """(how many calls are off by no more than their margin, how many calls)."""
    told = [abs(one.error) <= one.margin(margins) for one in calls]
    return sum(told), len(told)


def found_shares(calls: Iterable[BilledCount], margins: Margins) -> dict[str, float]:
    """By source, the share of its calls that are off by no more than their margin."""
    found = by_source((one, float(abs(one.error) <= one.margin(margins))) for one in calls)
    return {source: fmean(held) for source, held in found.items()}


def coverage(judged: Mapping[str, Sequence[BilledCount]]) -> str:
    """How often the margins in use hold in calls that no fit has seen, by counter, generation and main kind: the mean
    of the sources."""
    lines = ["stated 90%; found in what no fit has seen:"]
    for counter, generations in COUNTERS.items():
        for generation in generations:
            margins = margins_of(generation, counter, 1.0)
            mine = [one for one in judged[counter] if one.generation == generation and not is_fitted(one)]
            for kind in ("", *KINDS):
                if shares := found_shares([one for one in mine if kind in ("", one.main_kind)], margins):
                    found = f"{fmean(shares.values()):.0%} of {len(shares)} sources"
                    lines.append(f"{counter} {generation} {kind or 'all'}: {found}")
    return "\n".join(lines) + "\n"


def toml(judged: Mapping[str, Sequence[BilledCount]], day: date) -> str:
    """The file of margins."""
    lines = [HEAD, "[fit]", f"date = {day}"]
    for counter, generations in COUNTERS.items():
        fitted = [one for one in judged[counter] if is_fitted(one)]
        claude = fit_told([one for one in fitted if one.generation.startswith(CLAUDE)])
        for generation in generations:
            mine = [one for one in fitted if one.generation == generation]
            margins = fit(mine, claude if generation in VERSIONS else None, calibration(generation).guessed)
            unseen = [one for one in judged[counter] if one.generation == generation and not is_fitted(one)]
            right, all_ = holds(unseen, margins)
            lines += ["", f"# fitted on {len(mine)} calls of {_sources(mine)}"]
            lines += [f"# holds in {right} of {all_} calls of {_sources(unseen)} that no fit has seen"]
            lines += [f'[margins."{generation}".{counter}]', f"base = {margins.base}"]
            lines += [f"{kind} = {margins.kinds[kind]}" for kind in FITTED]
            lines += [f"thin = {json.dumps(thin_kinds(mine))}"]
    return "\n".join(lines) + "\n"


def _sources(calls: Iterable[BilledCount]) -> str:
    number = len({source_of(one.name) for one in calls})
    return f"{number} source{'s' * (number != 1)}"


def is_fitted(one: BilledCount) -> bool:
    """Whether a fit may use a call: neither its recording nor its source is held out."""
    return not (one.is_held_out or is_unseen_source(source_of(one.name)))


def main(arguments: list[str] | None = None) -> int:
    """Run the fit; prints the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate.margins", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="recorded calls with their bills, in any format")
    parser.add_argument("--words", nargs="*", default=[], type=Path, help="recordings with ctok's counts, bills or not")
    parser.add_argument("--packages", nargs="*", default=[], type=Path, help="a folder of installed packages")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {DATA}")
    given = parser.parse_args(arguments)
    judged = {counter: judge_all(given.logs, counter) for counter in COUNTERS}
    judged["tiktoken"] += judge_by_ctok(given.words)
    judged["tiktoken"] += [one for folder in given.packages for one in judge_packages(folder)]
    sys.stderr.write(coverage(judged))
    report = toml(judged, given.date)
    print_report(report, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
