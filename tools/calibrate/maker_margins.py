"""`python -m tools.calibrate.maker_margins LOG…`: error margins of other makers' models, and how often they hold.

There are few bills of each maker, so three figures are fitted in turn: what short prompts without an answer are off, in
tokens (what stands around the texts is assumed); what the other prompts without one are off beyond that, relative to
their tokens; and what those with answers are off beyond both, in tokens for each answer: a bill may hold reasoning that
the request does not show. Where no tokenizer is to be had, words are no surer than the ratios that stand for it: a few
bills tell of a few texts. The recordings that `analysis/fidelity/validation.py` holds out are only judged.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from cachecost.analysis.fidelity.validation import recording_name
from cachecost.base.structs import replace
from cachecost.tokens.calibration import calibration
from cachecost.tokens.images import unseen_margins
from cachecost.tokens.margins import FITTED, MAKERS, Margins
from cachecost.tokens.tokenizers import NATIVE as NAME
from cachecost.tokens.tokenizers import has_native
from tools.calibrate.fit import told_by_most
from tools.calibrate.margins import LEAST_BASE, BilledCount, holds, judge_all
from tools.calibrate.report import print_report

HEAD = """\
# Written by `python -m tools.calibrate.maker_margins LOG… --write`; do not edit by hand.
#
# As margins.toml, of the models of other makers than Anthropic: `base` in tokens for a prompt, `answer` in tokens for
# each answer in it, one relative figure for words; a kind that no call tells has the error of the generation. A third
# of the recordings is held out by the hash of their names; a comment says in how many held-out calls the margin holds.
# error: of the lengths of prompts of 50 tokens and more, fitted and held out.
"""
GENERATIONS = {
    "tiktoken": ("deepseek", "gemini", "grok", "mistral"),
    NAME: ("deepseek",),
}
"""By counter, those of whose bills more than one text is known. Another counter has the margins of tiktoken."""
TOLD = frozenset({"text", "tools", "results", "format", "thinking"})
"""Kinds of words."""
SHORT = 300
"""Tokens of its blocks up to which a prompt tells the base."""
SHORTEST = 50
"""Tokens of a prompt from which its relative error is counted."""


def judge_logs(logs: Iterable[Path], counter: str) -> list[BilledCount]:
    """The billed calls of all logs, under the names of their recordings, which "@commit" does not change: one that was
    made again is in the same part of the files. Each distinct bill of a recording once.
    """
    known: dict[tuple[object, ...], BilledCount] = {}
    for log in logs:
        for one in judge_all([log], counter):
            named = replace(one, name=recording_name(one.name))
            known.setdefault((named.name, named.generation, named.total, named.error), named)
    return list(known.values())


def fit_maker(calls: Sequence[BilledCount], general: float, least: float = 0.0) -> Margins:
    """Margins of a maker by its fitted calls; `general` for the kinds that they do not tell, and at least `least` for
    words.
    """
    plain, answered = [one for one in calls if not one.answers], [one for one in calls if one.answers]
    base = max(LEAST_BASE, _most(abs(one.error) for one in plain if sum(one.kinds.values()) < SHORT))
    words = max(least, _most(_beyond(one, base) / max(1, sum(one.kinds.values())) for one in plain))
    kinds = {kind: _up(words) if kind in TOLD else general for kind in FITTED}
    told = Margins(float(base), kinds | unseen_margins())
    answer = _most(max(0.0, abs(one.error) - one.margin(told)) / one.answers for one in answered)
    return replace(told, answer=float(math.ceil(answer)))


def _beyond(one: BilledCount, base: float) -> float:
    return max(0.0, abs(one.error) - base)


def _most(values: Iterable[float]) -> float:
    found = list(values)
    return told_by_most(found) if found else 0.0


def _up(number: float) -> float:
    return math.ceil(number * 1000) / 1000


def toml(judged: dict[str, Sequence[BilledCount]], day: date) -> str:
    """The file of margins."""
    lines = [HEAD, "[fit]", f"date = {day}"]
    for counter, generations in GENERATIONS.items():
        for generation in generations:
            mine = [one for one in judged[counter] if one.generation == generation]
            lines += _table(generation, counter, mine) if mine else []
    return "\n".join(lines) + "\n"


def _table(generation: str, counter: str, calls: Sequence[BilledCount]) -> list[str]:
    fitted = [one for one in calls if not one.is_held_out]
    known = calibration(generation)
    general = known.error_margin["tiktoken"]
    margins = fit_maker(fitted, general, general if known.confidence == "assumed" else 0.0)
    right, all_ = holds([one for one in calls if one.is_held_out], margins)
    return [
        "",
        f"# fitted on {len(fitted)} calls; holds in {right} of {all_} held-out ones",
        f'[margins."{generation}".{counter}]',
        f"error = {_error(calls)}",
        f"base = {margins.base}",
        f"answer = {margins.answer}",
        *(f"{kind} = {margins.kinds[kind]}" for kind in FITTED),
    ]


def _error(calls: Sequence[BilledCount]) -> str:
    errors = sorted(abs(one.error) / (one.total - one.error) for one in calls if one.total - one.error >= SHORTEST)
    median, p95 = errors[len(errors) // 2], errors[min(len(errors) - 1, len(errors) * 95 // 100)]
    return f"{{ median = {median:.4f}, p95 = {p95:.4f}, requests = {len(errors)} }}"


def main(arguments: list[str] | None = None) -> int:
    """Run the fit; prints the file. Exit code 3 where a tokenizer to be judged is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate.maker_margins", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="recorded calls with their bills, in any format")
    parser.add_argument("--texts", nargs="*", default=[], type=Path, help="the same with content, for native counts")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {MAKERS}")
    given = parser.parse_args(arguments)
    if missing := [one for one in GENERATIONS[NAME] if not has_native(one)]:
        sys.stderr.write(f"the tokenizers of {', '.join(missing)} are not installed\n")
        return 3
    report = toml({"tiktoken": judge_logs(given.logs, "tiktoken"), NAME: judge_logs(given.texts, NAME)}, given.date)
    print_report(report, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
