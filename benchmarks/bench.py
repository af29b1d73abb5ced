"""Everything that is held to a ratio, in one table: `make bench`.

    python benchmarks/bench.py [--quick] [--check] [--record] [--only NAME…] [--runs 5] [--json]

Each case of cases.py is measured against its reference in the same run, as processes of their own in turns, and stands
beside what recorded.json has of it. Over the limit is what is a third worse than recorded, ratio or peak of memory; it
is measured once more with twice the runs before that counts. With --check the exit code is then 1. --quick is what CI
runs: three runs, without the cases that take longest. --record writes what was found into recorded.json and into the
table of README.md. A whole run draws scaling.svg too (scaling.py); one with --quick, --only or --json does not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from json import dumps
from pathlib import Path

import readme_table
from cachecost.views.tables.table import print_table
from cases import CASES, Case
from verdicts import Recorded, Result, as_json, load, record, recorded_now

RUNS, QUICK_RUNS = 5, 3
COLUMNS = ("case", "against", "  ratio", "recorded", "  limit", "   MiB", "verdict")


def found(case: Case, runs: int, recorded: Recorded | None) -> Result:
    """The least of each side over the other's; the peak is the most of all runs."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = case.pairs(Path(folder), runs)
    ratio = min(pair.cost for pair in pairs) / min(pair.reference for pair in pairs)
    peak = max((pair.peak_mib for pair in pairs if pair.peak_mib is not None), default=None)
    return Result(case.name, case.against, ratio, peak, recorded)


def judged(case: Case, runs: int, recorded: Recorded | None) -> Result:
    """What is over its limit is measured once more, with twice the runs."""
    tell(f"{case.name} …")
    result = found(case, runs, recorded)
    if not recorded or not result.faults:
        return result
    then = f"{recorded.ratio:.3g} on Python {recorded.python}, {recorded.date}"
    tell(f"{case.name}: {result.verdict} ({result.ratio:.3g}; {then}); once more, with {2 * runs} runs")
    return found(case, 2 * runs, recorded)


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def print_results(results: Sequence[Result]) -> None:
    print_table("", COLUMNS, [cells(one) for one in results])


def cells(one: Result) -> list[str]:
    recorded = one.recorded.ratio if one.recorded else None
    numbers = [number(one.ratio, 7), number(recorded, 8), number(one.limit, 7), number(one.peak_mib, 6, places=0)]
    return [one.name, one.against, *numbers, one.verdict]


def number(value: float | None, width: int, places: int | None = None) -> str:
    """Three digits, or so many places, flush right."""
    if value is None:
        return "–".rjust(width)
    return (f"{value:.{places}f}" if places is not None else f"{value:#.3g}").rjust(width)


def chosen(only: Sequence[str], quick: bool) -> list[Case]:
    """Those named, else all; `quick` leaves out the long ones that nobody named."""
    return [case for case in CASES if (case.name in only if only else case.quick or not quick)]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Time and memory as ratios, beside the recorded ones.")
    parser.add_argument("--quick", action="store_true", help="three runs, without the cases that take longest")
    parser.add_argument("--check", action="store_true", help="exit 1 if something is a third worse than recorded")
    parser.add_argument("--record", action="store_true", help="write what was found into recorded.json and README.md")
    parser.add_argument("--only", nargs="+", default=[], choices=[case.name for case in CASES], metavar="NAME")
    parser.add_argument("--runs", type=int, help="of each case")
    parser.add_argument("--json", action="store_true")
    return parser


def main() -> int:
    parser = arguments()
    options = parser.parse_args()
    if find_spec("orjson") is None:
        parser.error("orjson is what replays are compared with: `make bench` installs it")
    runs = options.runs or (QUICK_RUNS if options.quick else RUNS)
    recorded = load()
    results = [judged(case, runs, recorded.get(case.name)) for case in chosen(options.only, options.quick)]
    if options.record:
        record(results, [case.name for case in CASES])
        readme_table.write(CASES, load())
        results = [recorded_now(one) for one in results]
    if options.json:
        print(dumps([as_json(one) for one in results]))
    else:
        print_results(results)
    if not (options.quick or options.only or options.json):
        draw(runs)
    return 1 if options.check and any(one.faults for one in results) else 0


def draw(runs: int) -> None:
    tell("scaling.svg …")
    from scaling import write

    write(runs)


if __name__ == "__main__":
    sys.exit(main())
