"""The pictures: nothing overlaps, nothing is cut off, the same bytes in any process."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from colour_vision import SIGHTS, difference
from fake_results import ARMS, comparison, ledger, result, row, small, ten_arms, wholly_refused
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from cachecost.analysis.comparison.summary import Summary, cumulative_title, dollars_title, question_title, summarise
from cachecost.base.structs import replace
from cachecost.ledger.results import Ledger, RunResult
from cachecost.ledger.rows import Cost
from cachecost.providers.usage import Usage
from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS, PAPER
from cachecost.views.charts.style import house_style
from cachecost.views.run.charts import _curves, chart_files, figures, spread
from cachecost.views.run.files import DOLLARS, PROVIDERS, QUESTION
from slow_cases import mostly_slow

CSS_PIXELS, TALLEST = 96, 1_200
"""Pixels of an inch of an SVG, and how high a chart may be."""


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return chart_files(summary_of(ten_arms()))


def summary_of(shown: RunResult) -> Summary:
    return summarise(shown.main)


def alike() -> RunResult:
    """Fourteen strategies that cost nearly the same: their labels want the same place."""
    return result(comparison([ledger(f"strategy number {number} of many", 0.3) for number in range(14)]))


def odd() -> dict[str, RunResult]:
    free = Ledger("free", [row("free", 1, Usage(input_tokens=5), cost=Cost(), cost_by_layer={})])
    return {
        "ten arms": ten_arms(),
        "small": small(),
        "alike": alike(),
        "one": result(comparison([ledger("alone")])),
        "free": result(comparison([free])),
        "no calls": result(comparison([Ledger("idle", [])])),
        "all refused": result(comparison([wholly_refused("a", "no"), wholly_refused("b" * 90, "no")])),
        "maths": result(comparison([ledger("$a_1$ costs $\\frac{x}{y}$"), ledger("構造化\nx")])),
    }


@pytest.mark.parametrize("case", mostly_slow(odd(), 3))
def test_words_neither_overlap_nor_leave_the_picture(case: str) -> None:
    for name, figure in figures(summary_of(odd()[case])).items():
        boxes = _word_boxes(figure)
        width, height = figure.get_size_inches() * figure.dpi
        for words, box in boxes:
            assert box.x0 >= 0 and box.y0 >= 0, (name, words)
            assert box.x1 <= width and box.y1 <= height, (name, words)
        for (one, first), (other, second) in combinations(boxes, 2):
            assert not first.overlaps(second), f"{name}: {one!r} over {other!r}"


def test_names_amounts_and_changes_stand_in_the_picture() -> None:
    said = [words for words, _ in _word_boxes(figures(summary_of(ten_arms()))[DOLLARS])]
    for name in ARMS:
        assert any(name == " ".join(words.split()) for words in said)
    assert {"$4.60", "$1.78", "−61%", "6 of 60 calls refused", "60 of 60 calls refused"} <= set(said)


def test_pictures_tell_no_date_version_or_place(files: dict[str, bytes]) -> None:
    for name, content in files.items():
        for word in (b"dc:date", b"Matplotlib v", mpl.__version__.encode(), b"Software", b"tIME"):
            assert word not in content, name


def test_svg_is_whole_and_not_large(files: dict[str, bytes]) -> None:
    assert list(files) == ["dollars.svg", "cumulative.svg", "question.svg", "chart.png"]
    for name in ("dollars.svg", "cumulative.svg", "question.svg"):
        assert ET.fromstring(files[name]).tag == "{http://www.w3.org/2000/svg}svg"
        assert len(files[name]) < 120_000
    assert files["chart.png"].startswith(b"\x89PNG")


def test_drawn_again_a_picture_is_the_same_bytes(files: dict[str, bytes]) -> None:
    assert chart_files(summary_of(ten_arms())) == files


def test_settings_of_the_process_are_left_as_they_were() -> None:
    before = dict(mpl.rcParams)
    chart_files(summary_of(small()))
    assert dict(mpl.rcParams) == before


def test_there_is_no_picture_of_nothing() -> None:
    assert list(figures(summary_of(odd()["all refused"]))) == list(figures(summary_of(odd()["free"]))) == [DOLLARS]
    assert QUESTION not in figures(summary_of(result(comparison([ledger("a", asks=0)]))))
    assert figures(summary_of(result(comparison([])))) == {}


def test_the_cheapest_line_is_strong_solid_and_of_the_first_colour_at_any_place() -> None:
    many = [ledger(f"s{number}", 0.9 - number / 20) for number in range(12)]
    curves = _curves(summary_of(result(comparison(many))))
    assert [(curve.strong, curve.dashed) for curve in curves] == [(False, False)] * 9 + [(False, True)] * 2 + [
        (True, False)
    ]
    assert curves[-1].colour == LINE_COLOURS[0]
    assert len({(curve.colour, curve.dashed) for curve in curves}) == 12


@pytest.mark.parametrize("count", mostly_slow([13, 12, 49, 120], 1))
def test_of_many_strategies_at_most_twelve_have_a_name(count: int) -> None:
    summary = summary_of(result(comparison([ledger(f"strategy {number}", number / count) for number in range(count)])))
    for name, figure in figures(summary).items():
        words = [words for words, _ in _word_boxes(figure)]
        named = [text for text in words if text.startswith("strategy ")]
        assert len(named) == 12, name
        assert sum(1 + _others(text) for text in named) == count, name
        assert figure.get_size_inches()[1] * CSS_PIXELS <= TALLEST, name


def _others(words: str) -> int:
    found = re.search(r" and (?:(\d+) others|strategy \d+)", words)
    return int(found[1] or 1) if found else 0


def test_strategies_that_are_the_same_line_are_one() -> None:
    alike = [ledger(f"s{number}", 0.4) for number in range(28)]
    curves = _curves(summary_of(result(comparison([*alike, ledger("dear", 0.9), ledger("cheap", 0.1)]))))
    assert [curve.label.partition("  ")[0] for curve in curves] == ["s0 and 27 others", "dear", "cheap"]
    assert [curve.low == curve.high for curve in curves] == [True, True, True]


def test_the_legend_of_a_chart_shows_what_occurs() -> None:
    words = [words for words, _ in _word_boxes(figures(summary_of(small()))[DOLLARS])]
    usage = [line.usage for line in summary_of(small()).lines]
    assert ("write 1h" in words) == any(one.write_1h for one in usage)
    unwritten = Ledger("a", [row("a", 1, Usage(input_tokens=50_000, output_tokens=900))])
    words = [words for words, _ in _word_boxes(figures(summary_of(result(comparison([unwritten]))))[DOLLARS])]
    assert "uncached" in words and "output" in words and "write 5m" not in words and "read" not in words


def test_several_hosts_have_a_picture_of_their_own() -> None:
    shown = on_hosts("anthropic", "bedrock", "gemini", "openai")
    summaries = [summarise(one) for one in shown.comparisons]
    drawn = figures(summaries[0], summaries)
    assert PROVIDERS in drawn
    boxes = _word_boxes(drawn[PROVIDERS])
    words = [text for text, _ in boxes]
    assert {"anthropic, as written", "bedrock", "gemini", "openai", "dear", "cheap"} <= set(words)
    width, height = drawn[PROVIDERS].get_size_inches() * drawn[PROVIDERS].dpi
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for _, box in boxes)
    assert not [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]
    assert PROVIDERS not in figures(summaries[0], summaries[:2])
    files = chart_files(summaries[0], summaries)
    assert files["chart.png"] != chart_files(summaries[0])["chart.png"]


def on_hosts(*hosts: str) -> RunResult:
    made = [
        replace(comparison([ledger("dear", 0.8), ledger("cheap", 0.1 * number)]), host=host, variant=host)
        for number, host in enumerate(hosts, 1)
    ]
    return result(replace(made[0], variant=""), *made[1:])


def test_titles_say_the_finding() -> None:
    summary = summary_of(ten_arms())
    assert dollars_title(summary) == "Cheapest: “progressive”, $1.78, 61% less than “structured output, no tools”"
    assert cumulative_title(summary) == (
        "“structured output, no tools”: $4.60 after 60 calls, 2.6 × as much as “progressive”"
    )
    assert (
        question_title(summary) == "One question costs $0.03 (“progressive”) to $0.26 (“structured output, no tools”)"
    )


@pytest.mark.parametrize(
    ("case", "of_dollars", "of_questions"),
    [
        ("one", "“alone” costs $3.16", "One question costs $0.14"),
        ("all refused", "Every strategy had calls that the provider refuses", "What one question costs"),
        ("alike", "All strategies cost the same: $2.59", "One question costs $0.0963"),
        ("free", "“free” costs $0.00", "What one question costs"),
    ],
)
def test_titles_where_there_is_little_to_find(case: str, of_dollars: str, of_questions: str) -> None:
    summary = summary_of(odd()[case])
    assert (dollars_title(summary), question_title(summary)) == (of_dollars, of_questions)
    of_calls = "Dollars spent, call after call"
    assert cumulative_title(summary) == (f"{of_dollars} after 60 calls" if case == "alike" else of_calls)


@pytest.mark.parametrize("sight", SIGHTS)
def test_token_classes_can_be_told_apart(sight: str) -> None:
    for one, other in combinations((*CLASS_COLOURS.values(), PAPER), 2):
        assert difference(one, other, sight) > 10, (one, other)


@given(st.lists(st.floats(0, 3.4), max_size=14))
def test_labels_are_spread_in_order_within_the_axes(wanted: list[float]) -> None:
    places = spread(wanted, 0.19, 0.05, 3.4)
    ranked = [place for _, place in sorted(zip(wanted, places, strict=True))]
    assert all(above - below >= 0.19 - 1e-9 for below, above in pairwise(ranked))
    assert all(0.05 - 1e-9 <= place <= 3.4 + 1e-9 for place in places)


def test_labels_that_have_room_are_not_moved() -> None:
    assert spread([1.0, 3.0, 2.0], 0.2, 0.0, 4.0) == pytest.approx([1.0, 3.0, 2.0])
    assert spread([1.0, 1.0], 0.2, 0.0, 4.0) == pytest.approx([1.1, 0.9])
    assert spread([0.0, 4.0, 4.0], 0.2, 0.0, 4.0) == pytest.approx([0.0, 4.0, 3.8])


def _word_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    canvas: Any = FigureCanvasAgg(figure)
    with house_style():
        canvas.draw()
        renderer = canvas.get_renderer()
        words = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        return [(text.get_text(), Text.get_window_extent(text, renderer)) for text in words]
