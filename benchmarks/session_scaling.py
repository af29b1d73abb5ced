"""Time and peak memory of the commands against the number of calls in sessions, and of bare parsing.

    python benchmarks/session_scaling.py [--sessions 20 88 350 1750] [--runs 1] [--minutes 10] [--json FILE] [--out SVG]
    python benchmarks/session_scaling.py --draw

sessions.py writes the folders: 350 sessions are about 20,000 calls and 380 MB, 1,750 are 100,000 calls and 1.9 GB, in
the temporary folder of the system. Processor time, the least of the runs; the most memory. A command stops at the
length before the one at which it would take over --minutes, as long as time follows length. The figures are kept in
the JSON file after each length; --draw draws the chart from it and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from cachecost.views.charts.palette import INK, LINE_COLOURS, MUTED
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, WIDTH, draw_title, house_style, svg, widest
from scaling import format_plainly
from session_speed import Sessions
from session_tables import BARE

CHART, FIGURES = Path(__file__).with_name("session_scaling.svg"), Path(__file__).with_name("session_scaling.json")
SESSIONS = (20, 88, 350, 1_750)
MEGABYTES_A_SESSION = 380 / 350
NAMES = {
    "optimize": "optimize",
    "whatif": "whatif",
    "explain": "explain",
    "strategy": "replay --strategy",
    "replay": "replay",
    "import": "import",
    "bill": "bill",
    BARE: "json.loads of every line",
}
"""Of session_speed.py, with what the chart calls them, the one that takes longest first."""
COLOURS = dict(zip(NAMES, (*(LINE_COLOURS[place] for place in (3, 1, 2, 6, 0, 5, 9)), MUTED), strict=True))
HEIGHT, LEFT, BOTTOM, TOP, BETWEEN = 4.6, 0.6, 0.85, 1.25, 0.65
"""Inches: the chart, left of the axes, under them, over them, between the two."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A command on so many calls: the least processor seconds, the most MiB."""

    name: str
    calls: int
    processor_s: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was measured, where a command that would have taken over `minutes` was left out."""

    minutes: float
    found: Sequence[Measurement] = ()

    @classmethod
    def load(cls, path: Path) -> Measurements:
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def save(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    def of(self, name: str) -> list[Measurement]:
        """In the order of their lengths."""
        return sorted((one for one in self.found if one.name == name), key=lambda one: one.calls)

    @property
    def lengths(self) -> list[int]:
        return sorted({one.calls for one in self.found})

    def is_short(self, name: str, calls: int) -> bool:
        """Whether that many calls would take at most `minutes`, as long as time follows length."""
        shorter = self.of(name)
        return not shorter or shorter[-1].processor_s * calls / shorter[-1].calls <= self.minutes * 60

    def and_those(self, found: Iterable[Measurement]) -> Measurements:
        return Measurements(self.minutes, [*self.found, *found])


def measure_length(before: Measurements, sessions: int, runs: int) -> list[Measurement]:
    """All commands that are short enough on a folder of so many sessions, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        written = Sessions.written(Path(folder), sessions, sessions * MEGABYTES_A_SESSION)
        names = [name for name in NAMES if before.is_short(name, written.calls)]
        written.count_tokens()
        found = written.in_turns(names, runs)
    return [
        Measurement(
            name, written.calls, min(run.processor_s for run in each), round(max(run.peak_mib for run in each), 1)
        )
        for name, each in found.items()
    ]


def measure_all(sessions: Sequence[int], runs: int, minutes: float, path: Path) -> Measurements:
    """Shorter folders first; the file is written after each."""
    measured = Measurements(minutes)
    for number in sorted(sessions):
        measured = measured.and_those(measure_length(measured, number, runs))
        measured.save(path)
        print("\n".join(table(measured.found[-len(NAMES) :], measured.lengths[-1])), flush=True)
    return measured


def table(found: Iterable[Measurement], calls: int) -> list[str]:
    lines = [f"{calls:,} calls{'processor s':>22}{'MiB':>7}"]
    for one in found:
        if one.calls == calls:
            lines.append(f"{NAMES[one.name]:25}{one.processor_s:9.2f}{one.peak_mib:7.0f}")
    return lines


def figure(measured: Measurements) -> Figure:
    """Time on the left, memory on the right, both axes logarithmic."""
    with house_style():
        drawn = Figure(figsize=(WIDTH, HEIGHT))
        draw_title(drawn, "Time and memory against the number of calls in Claude Code sessions")
        time, memory = drawn.subplots(1, 2, gridspec_kw=_places())
        _draw(time, measured, "processor_s", "seconds of processor time")
        _draw(memory, measured, "peak_mib", "MiB at the peak")
        _draw_legend(drawn)
        _draw_note(drawn, measured)
    return drawn


def _places() -> dict[str, float]:
    width = (WIDTH - LEFT - MARGIN - BETWEEN) / 2
    edges = {"left": LEFT / WIDTH, "right": 1 - MARGIN / WIDTH, "bottom": BOTTOM / HEIGHT, "top": 1 - TOP / HEIGHT}
    return {**edges, "wspace": BETWEEN / width}


def _draw(axes: Axes, measured: Measurements, value: str, label: str) -> None:
    for name, colour in COLOURS.items():
        points = measured.of(name)
        style = "--" if name == BARE else "-"
        lengths, values = [one.calls for one in points], [getattr(one, value) for one in points]
        axes.plot(lengths, values, color=colour, linestyle=style, linewidth=1.8, marker="o", ms=3.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.set_xticks(measured.lengths)
    axes.set_xlabel("calls", loc="left")
    axes.set_title(label, loc="left", size=SMALL_SIZE, color=MUTED)
    format_plainly(axes)


def _draw_legend(drawn: Figure) -> None:
    """Which line is which, in two rows under the title."""
    names = list(NAMES)
    for row, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :])):
        _draw_names(drawn, part, 0.6 + 0.22 * row)


def _draw_names(drawn: Figure, names: Sequence[str], inches: float) -> None:
    """In columns of the same width, so many inches from the top."""
    width = widest(list(NAMES.values()), SMALL_SIZE) + 0.4
    for column, name in enumerate(names):
        at, height = LEFT + column * width, 1 - inches / HEIGHT
        drawn.text(at / WIDTH, height, "●", color=COLOURS[name], size=SMALL_SIZE, va="center_baseline")
        drawn.text((at + 0.16) / WIDTH, height, NAMES[name], color=INK, size=SMALL_SIZE, va="center_baseline")


def _draw_note(drawn: Figure, measured: Measurements) -> None:
    drawn.text(LEFT / WIDTH, 0.2 / HEIGHT, note(measured), color=MUTED, size=SMALL_SIZE)


def note(measured: Measurements) -> str:
    """Which lines stop at what length, and why; empty if none does."""
    longest = max(measured.lengths, default=0)
    ends: Mapping[str, int] = {name: measured.of(name)[-1].calls for name in NAMES if measured.of(name)}
    early = [f"{NAMES[name]} ({calls:,} calls)" for name, calls in ends.items() if calls < longest]
    if not early:
        return ""
    return f"Stopped where a run would take over {measured.minutes:g} min of processor time: {', '.join(early)}."


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws time and memory of the commands against calls.")
    parser.add_argument("--sessions", type=int, nargs="+", default=SESSIONS, help="of the folders, one each")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="of processor time, that a command may take")
    parser.add_argument("--json", type=Path, default=FIGURES, help="where the figures are kept")
    parser.add_argument("--out", type=Path, default=CHART)
    parser.add_argument("--draw", action="store_true", help="draw the figures that are kept, measure nothing")
    options = parser.parse_args()
    if options.draw and not options.json.exists():
        parser.error(f"{options.json} does not exist; leave out --draw to measure")
    measured = (
        Measurements.load(options.json)
        if options.draw
        else measure_all(options.sessions, options.runs, options.minutes, options.json)
    )
    options.out.write_bytes(svg(figure(measured)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
