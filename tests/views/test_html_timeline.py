"""The timeline: heights are tokens, a rewrite is seen, many calls are thinned to the dearest ones."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from fake_results import ledger, refused, row

from cachecost.ledger.results import EMPTY_TIMELINE, BreakpointAt, CallTimeline, Ledger
from cachecost.ledger.rows import LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage
from cachecost.views.timeline.columns import (
    ALL_TOGETHER,
    FEWEST,
    HEIGHT,
    LANE_END,
    LANE_HEIGHT,
    MOST,
    CallColumn,
    Paths,
    draw_paths,
    ledger_columns,
    limit_columns,
    thin,
)
from cachecost.views.timeline.picture import TimelineScale, call_table, spots, timeline_key, timeline_view


def column(usage: Usage, call: int = 1, timeline: CallTimeline = EMPTY_TIMELINE, **fields: object) -> CallColumn:
    return CallColumn(row("a", call, usage, **fields), timeline)


def heights(path: str, width: int) -> list[int]:
    """The height of each column under a step line."""
    found = [0] * width
    at = 0
    for top, end in re.findall(r"V(\d+)H(\d+)", path):
        found[at : int(end)] = [HEIGHT - int(top)] * (int(end) - at)
        at = int(end)
    return found


def seen(paths: Paths, at: int) -> dict[str, int]:
    """What the eye sees of a column: each state's height above the one painted over it."""
    tops = {name: heights(path, paths.width)[at] for name, path in paths.states}
    below = 0
    shown = {}
    for name in ("read", "write_1h", "write_5m", "input"):
        if name in tops and tops[name] > below:
            shown[name] = tops[name] - below
            below = tops[name]
    return shown


def test_a_column_is_as_high_as_its_tokens_and_divides_like_them() -> None:
    columns = [
        column(Usage(0, 0, 0, 1000)),
        column(Usage(100, 1000, 500, 0)),
        column(Usage(2000, 0, 0, 0)),
        column(Usage(0, 2000, 0, 0)),
    ]
    paths = draw_paths(columns, 2000)
    assert [seen(paths, at) for at in range(4)] == [
        {"write_1h": 100},
        {"read": 100, "write_5m": 50, "input": 10},
        {"input": 200},
        {"read": 200},
    ]


def test_what_nobody_would_see_is_not_drawn() -> None:
    paths = draw_paths([column(Usage(3, 10_000, 0, 0)), column(Usage(3, 10_000, 0, 0))], 10_003)
    assert [name for name, _ in paths.states] == ["read"]
    assert draw_paths([], 0).states == []
    assert draw_paths([column(Usage(), error="no")], 0).states == []


@pytest.mark.parametrize("tokens", [24, 25])
def test_a_span_is_drawn_from_half_a_unit_on(tokens: int) -> None:
    paths = draw_paths([column(Usage(tokens, 5_000 + 26, 0, 0))], 10_000)
    assert ("input" in seen(paths, 0)) == (round((5_026 + tokens) / 50) > round(5_026 / 50))


def test_a_rewrite_is_a_warm_column_among_quiet_ones() -> None:
    made = ledger("a", share=1.0, calls=20, asks=10)
    paths = draw_paths(ledger_columns(made), 40_000)
    warm = [at for at in range(20) if seen(paths, at).get("write_5m", 0) > 100]
    assert warm == [0, 9, 19]


def test_ends_of_layers_are_lines() -> None:
    layers = {
        Layer.TOOLS: LayerTokens(read=500),
        Layer.SYSTEM: LayerTokens(read=250),
        Layer.MESSAGES: LayerTokens(read=250),
    }
    columns = [column(Usage(0, 1000, 0, 0), by_layer=layers), column(Usage(0, 1000, 0, 0), by_layer=layers)]
    assert draw_paths(columns, 1000).layers == "M0 100H2M0 50H2"


def test_breakpoints_that_stay_make_one_line_and_those_that_move_ticks() -> None:
    timelines = [CallTimeline((BreakpointAt(500, "1h"), BreakpointAt(tokens, "5m"))) for tokens in (600, 700, 700)]
    columns = [column(Usage(0, 1000, 0, 0), timeline=timeline) for timeline in timelines]
    assert draw_paths(columns, 1000).breakpoints == "M0 100H3M0 80H1M1 60H3"


def test_the_band_tells_loops_questions_and_turns() -> None:
    columns = [column(Usage(1), turn=1), column(Usage(1), turn=1, inquiry=1), column(Usage(1), turn=2)]
    paths = draw_paths(columns, 1)
    assert paths.loops == "M0 206H1v9H0zM2 206H3v9H2z"
    assert paths.questions == "M1 206H2v9H1z"
    assert paths.turns == "M0 206v12M2 206v12"


def test_recorded_calls_tell_their_turns_by_their_last_message() -> None:
    columns = [column(Usage(1), timeline=CallTimeline(is_human=human)) for human in (True, False, False, True)]
    assert draw_paths(columns, 1).turns == "M0 206v12M3 206v12"


def test_a_refused_call_is_marked() -> None:
    paths = draw_paths([column(Usage(1)), CallColumn(refused("a", 2, "why"), CallTimeline())], 1)
    assert paths.refused == "M1 200h1v-12h-1z"


@pytest.mark.parametrize(("calls", "columns", "stands_for"), [(400, 400, 1), (401, 201, 2), (1_000, 334, 3)])
def test_many_calls_are_thinned(calls: int, columns: int, stands_for: int) -> None:
    made = ledger_columns(ledger("a", calls=calls, asks=0))
    assert len(made) == columns <= MOST
    assert made[0].stands_for == stands_for
    assert sum(column.stands_for for column in made) == calls


def test_a_thinned_picture_keeps_every_rewrite() -> None:
    made = ledger("a", share=1.0, calls=1_000, asks=101)
    dear = {each.call for each in made.rows if each.usage.write_5m > 10_000}
    assert len(dear) == 10
    assert dear <= {column.row.call for column in ledger_columns(made)}


def test_many_strategies_share_the_room() -> None:
    assert limit_columns(0) == limit_columns(ALL_TOGETHER // MOST) == MOST
    assert limit_columns(47) == ALL_TOGETHER // 47
    assert limit_columns(10_000) == FEWEST


def test_rewritten_dollars_have_a_lane_above_the_prompts() -> None:
    made = [
        CallColumn(row("a", at, Usage(0, 100)), rewritten=Decimal(usd))
        for at, usd in enumerate(("0", "4", "2", "0.01"))
    ]
    paths = draw_paths(made, 100)
    assert paths.most_rewritten == 4
    tops = re.findall(r"M(\d+) (-\d+)v-(\d+)h1V(-\d+)z", paths.rewritten)
    assert [(int(at), int(height)) for at, _, height, _ in tops] == [(1, LANE_HEIGHT), (2, LANE_HEIGHT // 2), (3, 1)]
    assert {int(ground) for _, ground, _, end in tops for ground in (ground, end)} == {LANE_END}
    assert paths.top == LANE_END - LANE_HEIGHT
    assert draw_paths([column(Usage(0, 100))], 100).top == 0


def test_of_neighbours_the_one_that_rewrote_most_is_shown() -> None:
    costs = [Decimal(0)] * 900
    costs[451] = Decimal("0.01")
    made = thin([CallColumn(row("a", at, Usage(100, 0)), rewritten=usd) for at, usd in enumerate(costs)])
    assert [one.row.call for one in made if one.rewritten] == [451]


def test_the_legend_has_what_occurs_and_nothing_else() -> None:
    def key(*columns: CallColumn) -> list[str]:
        scale = TimelineScale(100)
        return [words for _, words in timeline_key([timeline_view("a", "a", "", columns, scale)])]

    read = column(Usage(0, 100))
    assert key(read) == ["read"]
    assert key(read, column(Usage(0, 50, 50))) == ["read", "written 5m"]
    assert key(read, column(Usage(0, 50, 0, 50))) == ["read", "written 1h"]
    assert key(column(Usage(100))) == ["uncached"]
    assert key(CallColumn(read.row, rewritten=Decimal(1))) == ["read", "dollars rewritten"]
    assert key(read, column(Usage(0, 100), inquiry=1)) == ["read", "tool loop", "question"]
    timeline = CallTimeline((BreakpointAt(50, "5m"),), is_human=True)
    assert key(column(Usage(0, 100), timeline=timeline)) == ["read", "breakpoint", "human turn"]


def test_few_columns_are_no_walls_and_their_axis_ends_with_them() -> None:
    made = [column(Usage(0, 100), call) for call in (1, 2, 3)]
    view = timeline_view("a", "a", "", made, TimelineScale(100))
    assert (view.paths.width, view.filled) == (12, 25)
    long = timeline_view("a", "a", "", made * 10, TimelineScale(100))
    assert (long.paths.width, long.filled) == (30, 100)


def test_spots_cover_every_column_once() -> None:
    columns = ledger_columns(ledger("a", calls=50))
    for most in (50, 24, 7, 1):
        made = spots(columns, most)
        assert len(made) <= most
        assert [at for spot in made for at in range(spot.at, spot.at + spot.width)] == list(range(50))
        assert len(call_table(columns, most).rows) == len(made)
    assert spots(columns, 24)[0].says.startswith("calls 1 to 3 · $")


def test_nothing_is_asked_of_an_empty_ledger() -> None:
    assert ledger_columns(Ledger("a", [])) == [] == spots([], 10) == call_table([], 10).rows
