"""`python -m tools.calibrate.scripts FOLDER…`: ratios of texts that are not in Latin letters, by translated programs.

A folder has compiled translations (`LANGUAGE/LC_MESSAGES/PROGRAM.mo`, as in /usr/share/locale).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from statistics import fmean
from struct import unpack_from
from typing import NamedTuple

from cachecost.prompts.blocks import WHOLE, main_kind, shares_in
from cachecost.tokens.calibration import SCRIPTS, SCRIPTS_DATA, calibration, prose_of_texts
from cachecost.tokens.textcounter import Tally
from cachecost.tokens.tokenizers import PACKAGES, VERSIONS, Cl100k, Ctok, NativeTally, has_native
from tools.calibrate.fit import median, round_up, told_by_sources
from tools.calibrate.margins import WIDER
from tools.calibrate.recorded import is_unseen_source
from tools.calibrate.report import print_report

HEAD = """\
# Written by `python -m tools.calibrate.scripts FOLDER… --write`; do not edit by hand.
#
# ratio: tokens per cl100k token of texts that are not in Latin letters, by tokenizer generation: the mean of the
#   languages, each the median of its texts: messages of programs in the translations that Debian 13 installs, of those
#   programs that are not held out (tools/calibrate/recorded.py). `assumed`: of a maker without a tokenizer to be had,
#   the middle of those of other makers.
# margin: what a count by tiktoken may be off, relative to it, nine times out of ten, in a further language
#   (`told_by_sources` in tools/calibrate/fit.py). `assumed`: the widest.
"""
LEAST, MOST = 800, 2500
"""Characters of a program's messages: fewer tell little; more, nothing new."""
SHOWN = 2
PROGRAMS = 12
"""Of a language: enough to tell its median."""
SENTENCE = 15
"""Characters of a message that is no single word."""


class TranslatedText(NamedTuple):
    """The messages of a program in a language."""

    language: str
    program: str
    text: str
    prose: str


def translated_texts(folders: Iterable[Path]) -> Iterator[TranslatedText]:
    """The texts in another script than Latin; of each language those of the first `PROGRAMS` programs."""
    found = defaultdict[str, int](int)
    for path in sorted(path for folder in folders for path in folder.glob("*/LC_MESSAGES/*.mo")):
        language = path.parts[-3]
        text = "\n".join(one for one in _messages(path.read_bytes()) if len(one) > SENTENCE)[:MOST]
        prose = prose_of_texts((text,))
        if len(text) >= LEAST and main_kind(prose) in SCRIPTS and found[language] < PROGRAMS:
            found[language] += 1
            yield TranslatedText(language, path.stem, text, prose)


def _messages(data: bytes) -> Iterator[str]:
    """The translations in a file of GNU gettext, but for the first, which describes it; none of another charset."""
    number, _, table = unpack_from("<3I", data, 8)
    for at in range(1, number):
        size, start = unpack_from("<2I", data, table + 8 * at)
        with suppress(UnicodeDecodeError):
            yield data[start : start + size].decode().replace("\0", "\n")


def fit(texts: Iterable[TranslatedText], count: Callable[[str], int]) -> dict[str, float]:
    """Tokens per cl100k token by script."""
    cl100k = Cl100k()
    told = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for one in texts:
        told[main_kind(one.prose)][one.language].append(count(one.text) / cl100k(one.text))
    return {script: round(fmean(map(median, languages.values())), 2) for script, languages in sorted(told.items())}


def margins_by(
    texts: Iterable[TranslatedText], count: Callable[[str], int], ratio: Mapping[str, float]
) -> dict[str, float]:
    """What counts with these ratios are off, relative to them, by script."""
    cl100k = Cl100k()
    off = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for one in texts:
        shares = shares_in(one.prose)
        told = cl100k(one.text) * sum(share * ratio[kind] for kind, share in shares.items()) / WHOLE
        off[main_kind(one.prose)][one.language].append(abs(told - count(one.text)) / told)
    return {script: round_up(told_by_sources(languages, WIDER)) for script, languages in sorted(off.items())}


def count_unseen(texts: Iterable[TranslatedText], tallies: Mapping[str, Tally]) -> list[list[object]]:
    """Of the held-out programs, at most `SHOWN` of a language: its language, its blend, its cl100k tokens, and those of
    each tokenizer."""
    found, shown, cl100k = list[list[object]](), Counter[str](), Cl100k()
    for one in texts:
        shown[one.language] += 1
        if shown[one.language] <= SHOWN:
            counts = {name: tally(one.text) for name, tally in tallies.items()}
            found.append([one.language, one.prose, cl100k(one.text), counts])
    return found


def toml(tables: Mapping[str, Mapping[str, Mapping[str, float]]], day: date) -> str:
    """The file of ratios and margins."""
    lines = [HEAD, "[fit]", f"date = {day}"]
    for name, rows in tables.items():
        lines += ["", f"[{name}]"]
        for generation, found in rows.items():
            values = ", ".join(f"{kind} = {value:g}" for kind, value in found.items())
            lines.append(f'"{generation}" = {{ {values} }}')
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the fit; prints the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibrate.scripts", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="with LANGUAGE/LC_MESSAGES/PROGRAM.mo")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--unseen", type=Path, help="where to write the counts of the held-out programs, for a test")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {SCRIPTS_DATA}")
    given = parser.parse_args(arguments)
    all_texts = list(translated_texts(given.folders))
    texts = [one for one in all_texts if not is_unseen_source(one.program)]
    tallies: dict[str, Tally] = {generation: Ctok(generation) for generation in VERSIONS}
    tallies |= {maker: NativeTally(maker) for maker in PACKAGES if has_native(maker)}
    ratios = {name: fit(texts, tally) for name, tally in tallies.items()}
    others = [found for name, found in ratios.items() if name not in VERSIONS]
    ratios["assumed"] = {kind: median([found[kind] for found in others]) for kind in SCRIPTS}
    margins = {
        name: margins_by(texts, tally, {**calibration(name).ratio, **ratios[name]}) for name, tally in tallies.items()
    }
    margins["assumed"] = {kind: max(found[kind] for found in margins.values()) for kind in SCRIPTS}
    if given.unseen is not None:
        rows = count_unseen((one for one in all_texts if is_unseen_source(one.program)), tallies)
        given.unseen.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    print_report(toml({"ratio": ratios, "margin": margins}, given.date), given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
