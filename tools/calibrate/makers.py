"""`python -m tools.calibrate.makers LOG…`: what other makers' tokenizers make of recorded texts.

Each tokenizer counts the texts itself, and how many tokens it has for one of cl100k is the median over texts by length,
as for Claude. What stands around the texts is fitted on bills of OpenAI's and Gemini's models, and else assumed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.providers.rules import RuleBook
from cachecost.tokens.calibration import MAKERS
from cachecost.tokens.parts import parts_of
from tools.calibrate.fit import Text, median, percentile, tokens_per_byte
from tools.calibrate.maker_counts import GEMINI, Fit, MakerCounts, ratios_of
from tools.calibrate.report import print_report, write_table
from tools.calibrate.samples import Nothing, Sample, Samples, read_rows, rendered, row_name
from tools.calibrate.vocabularies import OPENAI, tokenizer

HEAD = """\
# Written by `python -m tools.calibrate.makers LOG… --write`; do not edit by hand.
#
# Tokenizers of other makers than Anthropic. What a row has is as in calibration.toml, but for:
# confidence: measured (a tokenizer counted the texts) or assumed (no tokenizer is to be had: the
#   ratios in the middle of those measured, and the widest error that these have with any tokenizer measured).
# ratio: tokens per cl100k token; tools: of a definition as Claude is shown it, as JSON; schema: of a schema indented
#   by 2, as compact JSON. OpenAI's published rendering of a definition, and Gemini's bills, have less JSON around the
#   words: there a definition is that less a constant (`tool`), and at least a share of its cl100k (`tool_least`).
# structure: turn opens a message (a run of equal roles where calls and results stand), end opens the answer, tools
#   stands around all definitions, system around a system block, tool_use and tool_result around a call and its result.
#   Fitted on bills of OpenAI's models from gpt-4o to gpt-5.4, from where OpenAI's cookbook has them. Gemini 2.0 to 3.5
#   is billed for words and one token a message, and for no schema of its output; what it adds to calls and results is
#   assumed. The other makers' are assumed to be as OpenAI's, but for what single recordings of DeepSeek tell.
# guessed: facts whose tokens are a guess; OpenAI's formula for images is that of gpt-4o and gpt-4.1.
# error: for o200k and gemini of a prompt's billed length (50 tokens and more), for the others of its texts as their
#   tokenizer counts them; each source judged by a fit on all the others.
"""
SOURCES: Mapping[str, str] = {
    OPENAI: "o200k_base, and bills of models from gpt-4o to gpt-5.4",
    "gemini": "the tokenizer of Gemma 3, and bills of Gemini 2.0 to 3.5",
    "deepseek": "the tokenizer of DeepSeek V4; tools and calls by 7 bills of V4, other structure assumed",
    "mistral": "Mistral's tekken of September 2024; structure assumed",
    "qwen": "the tokenizer of Qwen 3.6; structure assumed",
}
ASSUMED: Mapping[str, str] = {
    "grok": "no tokenizer to be had, as the middle of five other makers; calls by nine bills",
    "minimax": "no tokenizer to be had, as the middle of five other makers",
    "open": "the model is not known, as the middle of five makers",
}
STATED: Mapping[str, Mapping[str, float]] = {
    "deepseek": {"tools": 212, "tool_use": 31},
    "grok": {"tool_use": 11, "parameter": 9},
}
"""Told by single recordings: what seven prompts of DeepSeek with one tool, some with a call, were billed beyond their
words; what nine answers of Grok (charmbracelet/fantasy, autumn of 2025), nothing but calls, were."""
BILLED = (OPENAI, GEMINI)
"""Makers of whose models bills are to be had."""
KINDS_BILLED = frozenset({"tool", "text", "tool_use", "tool_result"})
"""A bill for anything else (images, thinking, files) tells no constants."""
SHORTEST = 50
"""Tokens: in a shorter prompt one token is 2 % and more, and nothing is cached."""


def middle(texts: Sequence[Text], makers: Iterable[str]) -> dict[str, float]:
    """The middle of all makers' ratios, by content kind."""
    each = [ratios_of(texts, maker) for maker in makers]
    return {kind: median([ratios[kind] for ratios in each]) for kind in each[0]}


def errors(
    maker_counts: MakerCounts, samples: Sequence[Sample], billed: Sequence[Sample], texts: Sequence[Text]
) -> dict[str, list[float]]:
    """Errors by maker; those of a maker with no tokenizer are the widest that the middle has with any."""
    found: dict[str, list[float]] = {maker: [] for maker in maker_counts.makers}
    crossed: dict[str, list[float]] = {maker: [] for maker in maker_counts.makers}
    for source in sorted({sample.source for sample in samples}):
        others = [text for text in texts if text.source != source]
        mine = [sample for sample in samples if sample.source == source]
        between = middle(others, maker_counts.makers)
        for maker in maker_counts.makers:
            ratios = ratios_of(others, maker)
            crossed[maker] += _told(maker_counts.error(sample, maker, between) for sample in mine)
            found[maker] += _told(maker_counts.error(sample, maker, ratios) for sample in mine)
    widest = max(crossed.values(), key=lambda values: percentile(values, 95))
    judged = {maker: _billed_errors(maker_counts, maker, samples, of(maker, billed), texts) for maker in BILLED}
    return {**found, **judged, **dict.fromkeys(ASSUMED, widest)}


def of(maker: str, bills: Sequence[Sample]) -> list[Sample]:
    """The bills of one maker's models. Gemini's answers that are sent again carry reasoning that no body shows, and it
    is billed: they tell nothing."""
    if maker == GEMINI:
        return [one for one in bills if one.request.model.startswith(GEMINI) and not _has_answers(one)]
    return [one for one in bills if not one.request.model.startswith(GEMINI)]


def _has_answers(sample: Sample) -> bool:
    return any(block.role == "assistant" for block in sample.blocks)


def _billed_errors(
    maker_counts: MakerCounts, maker: str, samples: Sequence[Sample], billed: Sequence[Sample], texts: Sequence[Text]
) -> list[float]:
    found: list[float] = []
    for source in sorted({one.source for one in billed}):
        fit = maker_counts.billed(maker, [one for one in billed if one.source != source], samples, texts)
        found += [maker_counts.billed_error(one, maker, fit) for one in billed if one.source == source]
    return found


def bills_in(files: Iterable[Path]) -> list[Sample]:
    """Billed prompts of other makers' models, each once: rows as Claude's, bodies in the words of Messages.

    Recordings that are held out of every fit are left out.
    """
    intake, renderer = Intake(keep_content=True), Renderer(Nothing())
    rules = RuleBook().rules("anthropic", "claude-sonnet-4-5")
    found: dict[tuple[object, ...], Sample] = {}
    rows = ((file, row) for file in files for row in read_rows(file))
    for row in (row for file, row in rows if not is_held_out(row_name(row, file))):
        request = intake.body(row["request"])
        blocks = rendered(renderer.render(request, (), rules).end)
        total, source = row["usage"]["input_tokens"], str(row.get("source"))
        key = (request.tools.digest, request.system.digest, request.thread, json.dumps(dict(request.params)), total)
        if total >= SHORTEST and all(map(_is_counted, blocks)):
            found.setdefault(key, Sample(source, request, rules, blocks, total, 0, None))
    return list(found.values())


def _is_counted(block: Block) -> bool:
    content = block.content or {}
    parts = parts_of(block.kind, content)
    defined = block.kind != "tool" or "input_schema" in content
    return block.kind in KINDS_BILLED and defined and not any(" image" in fact for fact in parts.facts)


def _told(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def toml(
    maker_counts: MakerCounts,
    samples: Sequence[Sample],
    billed: Sequence[Sample],
    texts: Sequence[Text],
    day: date,
    files: int,
) -> str:
    """The file of other makers' calibrations."""
    found = errors(maker_counts, samples, billed, texts)
    fits = {maker: maker_counts.billed(maker, of(maker, billed), samples, texts) for maker in BILLED}
    lines = [HEAD, "[fit]", f"date = {day}", f"requests = {len(samples)}"]
    lines += [
        f"texts = {len(texts)}",
        f"text_files = {files}",
        f"bills = {sum(len(of(maker, billed)) for maker in BILLED)}",
    ]
    lines += ["sources = [", *(f'  "{source}",' for source in sorted({one.source for one in billed})), "]"]
    around = {name: value for name, value in fits[OPENAI].structure.items() if name != "tool"}
    for maker in maker_counts.makers:
        fit = fits.get(maker) or Fit(ratios_of(texts, maker), {**around, **STATED.get(maker, {})})
        lines += _row(maker, "measured", fit, texts, found)
        lines += ['guessed = ["image"]'] if maker == OPENAI else []
    for maker in ASSUMED:
        lines += _row(
            maker, "assumed", Fit(middle(texts, maker_counts.makers), {**around, **STATED.get(maker, {})}), texts, found
        )
    return "\n".join(lines) + "\n"


def _row(
    maker: str, confidence: str, fit: Fit, texts: Sequence[Text], found: Mapping[str, Sequence[float]]
) -> list[str]:
    unseen = tokens_per_byte(texts, "text", maker if maker in texts[0].tokens else OPENAI)
    structure = {name: value for name, value in fit.structure.items() if value} | {"unseen": unseen}
    return [
        "",
        f'[generations."{maker}"]',
        f'confidence = "{confidence}"',
        f'source = "{ASSUMED.get(maker) or SOURCES[maker]}"',
        f"ratio = {write_table(fit.ratios)}",
        f"structure = {write_table(structure)}",
        f"error.tiktoken = {_error(found[maker])}",
        *([f"tool_least = {fit.tool_least}"] if fit.tool_least else []),
    ]


def _error(values: Sequence[float]) -> str:
    return f"{{ median = {percentile(values, 50):.4f}, p95 = {percentile(values, 95):.4f}, requests = {len(values)} }}"


def main(arguments: list[str] | None = None) -> int:
    """Run the measurement; returns the exit code: 2 for a damaged log, 3 for what cannot be measured."""
    given = _parser().parse_args(arguments)
    files = dict(one.split("=", 1) for one in given.tokenizer)
    try:
        maker_counts = MakerCounts({maker: tokenizer(maker, files.get(maker, "")) for maker in SOURCES})
        samples, billed = Samples().read(given.logs), bills_in(given.bills)
        report = toml(
            maker_counts, samples, billed, maker_counts.texts(samples, given.text), given.date, len(given.text)
        )
    except (InputError, CannotEvaluate) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2 if isinstance(fault, InputError) else 3
    print_report(report, given.write)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate.makers", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help='JSON Lines: {"source", "request", "usage", …}')
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--bills", nargs="+", required=True, type=Path, help="the same of OpenAI's and Gemini's models")
    parser.add_argument("--text", nargs="*", default=[], type=Path, help="JSON (Lines) files whose texts tell ratios")
    parser.add_argument("--tokenizer", nargs="*", default=[], help="MAKER=FILE: a tokenizer.json, or Mistral's tekken")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {MAKERS}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
