"""Fit on recorded calls, measure on other sources and on held-out files, print all, write `calibration.toml`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.extras import NotInstalled, require
from cachecost.tokens.calibration import DATA, Calibration
from tools.calibrate.fit import Text
from tools.calibrate.measure import COUNTERS, Errors, FitTrials
from tools.calibrate.report import print_report, write_table
from tools.calibrate.samples import Sample, Samples
from tools.calibrate.searches import searches_in, with_searches

HEAD = """\
# Written by `python -m tools.calibrate LOG… --write`; do not edit by hand.
#
# ratio: Claude tokens per cl100k token by content kind, Claude's counted by ctok: least absolute deviations over texts
#   that are blends of text, code and data (prose.py), a median over tool definitions;
#   schema: of the schema of a structured output, indented by 2 (fitted on those of tools).
# structure: tokens of what stands around the texts, in halves: least absolute relative deviations from billed totals.
#   tool, system, thinking    a tool definition, a system block, a thinking block
#   tool_use, tool_result     a call and its result; bills only tell both together, so the result's is not fitted
#   parameter, error          a parameter of a call, an is_error result
#   parallel                  a run of two or more results of parallel calls
#   format                    a structured output prompt, besides its schema
#   image, page, document     what stands around an image, a page of a PDF, a document; the image itself is a formula
#   citations                 the prompt that enabled citations add; sentence: of a document to be cited
#   cited, reference          a citation in an answer that is sent again; a tool that a search names
#   container_upload, server_result          a file, the result of a server tool
#   found, sealed             a result of a web search, a character of its sealed content: fitted on bills of searches
#   unseen                    a byte of text that only a signature or a file holds, counted as prose
#   A constant that fewer than 3 prompts tell is the older generation's; where it is prose, grown as texts grow.
#   tool_result, thinking, sentence and what stands from cited to server_result is told by single recordings, and not
#   fitted.
# tool_prompt_head: tokens of the tool-use prompt before the tool definitions; where no bill tells, grown as those.
# error: of a prompt's billed length, each source judged by a fit on all the others; p95 is what reports state.
# held_out: of the prompts of the recordings that no fit uses (analysis/fidelity/validation.py), judged by this fit.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the calibration; returns the exit code: 2 for a damaged log, 3 for what cannot be fitted."""
    given = _parser().parse_args(arguments)
    try:
        report = _calibrate(given)
    except (InputError, CannotEvaluate, NotInstalled) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2 if isinstance(fault, InputError) else 3
    print_report(report, given.write)
    return 0


def _calibrate(given: argparse.Namespace) -> str:
    require("calibration", "ctok")
    reader = Samples()
    samples = reader.read(given.logs)
    for reason, rows in sorted(reader.left_out.items()):
        sys.stderr.write(f"left out, {reason}: {rows}\n")
    bench = FitTrials(given.date)
    texts = bench.texts(samples, given.text)
    fitted = with_searches(bench.fit(samples, texts), searches_in(given.logs))
    unused = bench.errors_on(Samples(only_held_out=True).read(given.logs), fitted)
    return toml(fitted, bench.held_out(samples, texts), unused, samples, texts, given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help='JSON Lines: {"source", "request", "usage", …}')
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument(
        "--text", nargs="*", default=[], type=Path, help="JSON (Lines) files whose texts tell content ratios"
    )
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {DATA}")
    return parser


def toml(
    fitted: Mapping[str, Calibration],
    errors: Mapping[tuple[str, str], Errors],
    unused: Mapping[tuple[str, str], Errors],
    samples: Sequence[Sample],
    texts: Sequence[Text],
    given: argparse.Namespace,
) -> str:
    """The calibration file."""
    sources = sorted({sample.source for sample in samples})
    lines = [HEAD, "[fit]", f"date = {given.date}", f"requests = {len(samples)}"]
    lines += [f"texts = {len(texts)}", f"text_files = {len(given.text)}"]
    lines += ["sources = [", *(f'  "{source}",' for source in sources), "]"]
    for generation, found in fitted.items():
        requests = sum(sample.generation == generation for sample in samples)
        lines += ["", f'[generations."{generation}"]', f"requests = {requests}"]
        lines += [f"tool_prompt_head = {found.tool_prompt_head}", f"ratio = {write_table(found.ratio)}"]
        lines += [f"structure = {write_table(found.structure)}"]
        lines += [f"error.{counter} = {_error(errors[generation, counter])}" for counter in COUNTERS]
        measured = [
            (counter, unused[generation, counter]) for counter in COUNTERS if unused[generation, counter].values
        ]
        lines += [f"held_out.{counter} = {_error(each)}" for counter, each in measured]
    return "\n".join(lines) + "\n"


def _error(error: Errors) -> str:
    return (
        f"{{ median = {error.median:.4f}, p95 = {error.p95:.4f}, "
        f"requests = {len(error.values)}, sources = {len(error.sources)} }}"
    )


if __name__ == "__main__":
    sys.exit(main())
