"""Time and peak memory of a replay against the length of the log, drawn beside bare parsing of the same lines.

    python benchmarks/scaling.py [--runs 3] [--out benchmarks/scaling.svg]

Two kinds of logs: conversations of 50 requests one after another, 250 to 8,000 requests (320 MB), and one conversation
that only grows, to 2,000 requests; since every request repeats all before it, that is 1.5 GB already. Processor time,
the least of all runs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from cachecost.views.charts.palette import INK, LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, TEXT_SIZE, WIDTH, draw_title, house_style, svg, widest
from cases import PYTHON, replay
from growing_log import Shape, write_log
from log_shapes import ORJSON
from measure import Run, in_turns

CHART = Path(__file__).with_name("scaling.svg")
TALK = 50
IN_A_ROW = tuple(Shape(length // TALK, TALK, interleaved=False) for length in (250, 500, 1_000, 2_000, 4_000, 8_000))
ONLY_GROWS = tuple(Shape(1, length) for length in (250, 500, 1_000, 2_000))
COLUMNS = ((f"conversations of {TALK} requests, one after another", IN_A_ROW), ("one that only grows", ONLY_GROWS))
NAMES = ("cachecost replay", "orjson.loads of every line")
COLOURS = (LINE_COLOURS[0], MUTED)
HEIGHT = 5.6
BOTTOM, TOP, BETWEEN = 0.55, 0.95, 0.45
"""Inches: under the axes, over them, and between the two rows."""


@dataclass(frozen=True, slots=True)
class Point:
    """A log of so many requests: processor seconds and peak MiB of the replay and of the bare script."""

    requests: int
    seconds: tuple[float, float]
    peak_mib: tuple[float, float]


def point(shape: Shape, folder: Path, runs: int) -> Point:
    log = folder / "log.jsonl"
    write_log(log, shape)
    bare, own = zip(*in_turns([PYTHON, "-c", ORJSON, str(log)], replay(log), runs), strict=True)
    return Point(shape.conversations * shape.requests, (least(own), least(bare)), (peak(own), peak(bare)))


def least(runs: Sequence[Run]) -> float:
    return min(run.processor_s for run in runs)


def peak(runs: Sequence[Run]) -> float:
    return max(run.peak_mib for run in runs)


def measured_columns(runs: int) -> list[list[Point]]:
    with tempfile.TemporaryDirectory() as folder:
        return [[point(shape, Path(folder), runs) for shape in shapes] for _, shapes in COLUMNS]


def figure(columns: Sequence[Sequence[Point]]) -> Figure:
    """Time above, memory below; one column a kind of log."""
    with house_style():
        drawn = Figure(figsize=(WIDTH, HEIGHT))
        draw_title(drawn, "What a longer log costs, beside the least that any reader of it must do")
        grid = drawn.subplots(2, 2, sharey="row", gridspec_kw=_places())
        for column, (points, (name, _)) in enumerate(zip(columns, COLUMNS, strict=True)):
            _time(grid[0][column], points, name)
            _memory(grid[1][column], points)
        grid[0][0].set_ylabel("seconds of processor time")
        grid[1][0].set_ylabel("MiB at the peak")
        _legend(drawn)
    return drawn


def _places() -> dict[str, float]:
    rows = (HEIGHT - BOTTOM - TOP - BETWEEN) / 2
    edges = {"left": 0.75 / WIDTH, "right": 1 - MARGIN / WIDTH, "bottom": BOTTOM / HEIGHT, "top": 1 - TOP / HEIGHT}
    return {**edges, "wspace": 0.08, "hspace": BETWEEN / rows}


def _time(axes: Axes, points: Sequence[Point], name: str) -> None:
    _lines(axes, points, [one.seconds for one in points])
    axes.set_title(name, loc="left", size=TEXT_SIZE)
    axes.set_yscale("log")
    axes.set_yticks([0.1, 0.3, 1, 3, 10])
    format_plainly(axes)


def _memory(axes: Axes, points: Sequence[Point]) -> None:
    _lines(axes, points, [one.peak_mib for one in points])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("requests", loc="left")
    format_plainly(axes)


def _lines(axes: Axes, points: Sequence[Point], values: Sequence[tuple[float, float]]) -> None:
    lengths = [one.requests for one in points]
    for side, colour in enumerate(COLOURS):
        axes.plot(lengths, [value[side] for value in values], color=colour, linewidth=2.2 - side, marker="o", ms=3.5)
    axes.set_xscale("log")
    axes.set_xticks(lengths)


def format_plainly(axes: Axes) -> None:
    """Numbers as they are said, no powers of ten."""
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)


def _legend(drawn: Figure) -> None:
    """Which line is which, above the axes on the left."""
    at, height = 0.75, 1 - 0.6 / HEIGHT
    for name, colour in zip(NAMES, COLOURS, strict=True):
        drawn.text(at / WIDTH, height, "●", color=colour, size=SMALL_SIZE, va="center_baseline")
        drawn.text((at + 0.16) / WIDTH, height, name, color=INK, size=SMALL_SIZE, va="center_baseline")
        at += 0.16 + widest([name], SMALL_SIZE) + 0.3


def write(runs: int, out: Path = CHART) -> None:
    columns = measured_columns(runs)
    for points, (name, _) in zip(columns, COLUMNS, strict=True):
        print(f"\n{name}: requests, seconds and MiB of the replay, of {NAMES[1]}")
        for one in points:
            own, bare = zip(one.seconds, one.peak_mib, strict=True)
            print(f"{one.requests:8,} {own[0]:8.2f} {own[1]:6.0f} {bare[0]:8.2f} {bare[1]:6.0f}")
    out.write_bytes(svg(figure(columns)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws time and memory against length.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=CHART)
    options = parser.parse_args()
    write(options.runs, options.out)


if __name__ == "__main__":
    main()
