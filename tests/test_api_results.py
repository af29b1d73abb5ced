"""What results are: frames with documented columns, figures, tables that leave a notebook's page alone, months."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

import cachecost
from cachecost.api.explaining import FINDING_FIELDS
from cachecost.base.frames import frame_of
from command_runs import run_here

ROOT = Path(__file__).parents[1]
LOG = ROOT / "scenarios" / "recordings" / "sessions" / "claude-code-56-minutes.jsonl"
TALK = ROOT / "scenarios" / "recordings" / "jp-17727484633.jsonl"
BODY = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be <b>brief</b>. " * 20, "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "hello"}],
}
BUDGET = """\
format: 1
name: small
as_of: 2026-03-07
model: claude-opus-4-6
tokens: tiktoken
conversation: {synthetic: {seed: 1, turns: 2, calls: 3}}
strategies: [none, {name: <auto> & cheap, preset: automatic}]
budget:
  - {strategy: <auto> & cheap, max_cost_usd: 0.000001}
  - {strategy: none, max_cost_usd: 1000}
"""


def _clock_log(folder: Path) -> Path:
    """Three calls to a cache that finds by itself what was sent before; the system prompt begins with the time."""
    path, lines = folder / "clock.jsonl", []
    for turn in range(1, 4):
        asked = [{"role": "user", "content": f"question {number} " + "abc " * 1_500} for number in range(turn)]
        sent = [message for question in asked for message in (question, {"role": "assistant", "content": "yes " * 9})]
        system = [{"type": "text", "text": f"It is 10:0{turn}. " + "word and more " * 1_500}]
        request = {"model": "gpt-5.5", "max_tokens": 100, "system": system, "messages": sent[:-1]}
        lines.append({"timestamp": f"2026-11-21T10:0{turn}:00Z", "host": "openai", "request": request})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def _check(folder: Path) -> cachecost.CheckResult:
    scenario = folder / "small.yaml"
    scenario.write_text(BUDGET, encoding="utf-8")
    return cachecost.check(scenario, reports=folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    log, clock = cachecost.read(LOG), _clock_log(tmp_path_factory.mktemp("clock"))
    result = cachecost.compare(log, ["as recorded", "none", {"name": "<i>mine</i>", "preset": "automatic@1h"}])
    return {
        "replay": cachecost.replay(log, "automatic"),
        "compare": result,
        "validate": cachecost.validate(LOG, tokens="tiktoken"),
        "check": _check(tmp_path_factory.mktemp("check")),
        "explain": cachecost.explain(log),
        "lint": cachecost.lint(BODY),
        "optimize": cachecost.optimize(TALK),
        "optimize_content": cachecost.optimize(clock),
        "replay_range": cachecost.replay(clock),
        "whatif": cachecost.whatif(log, assumptions=False),
        "next_message": cachecost.next_message(LOG, tools=5000),
        "bill": cachecost.bill(LOG),
        "monthly": result.monthly(sessions_per_day=40),
    }


USAGE = "input_tokens cache_read_input_tokens cache_creation_input_tokens cache_creation.ephemeral_5m_input_tokens "
USAGE += "cache_creation.ephemeral_1h_input_tokens output_tokens"
TOKENS = " ".join(f"usage.{name}" for name in USAGE.split())
COLUMNS = {
    "replay": f"call timestamp model strategy {TOKENS} cost_usd cause",
    "replay_range": f"call timestamp model strategy {TOKENS} cost_usd cost_range_usd cause",
    "compare": f"calls errors {TOKENS} cost_usd",
    "validate": "source call line model kind predicted.input_tokens predicted.cache_read_input_tokens",
    "check": "scenario strategy budget limit actual verdict message file line column",
    "explain": "code cause call since_call layer block tokens cost_usd paid_again_usd message excerpt behind fix",
    "lint": "code name severity path request call calls message why fix source tokens offset excerpt session file line "
    "bill explains_as",
    "optimize": "cost_usd above_lower_bound refused",
    "optimize_content": "cost_usd above_lower_bound refused",
    "whatif": "kind does cost_usd most_usd saving_usd share calls_changed extra_calls error_usd keeps_answers",
    "next_message": f"kind cost_usd {TOKENS} breaks_even_after note first.cost_usd",
    "bill": "key session title project agent client branch version model first last calls results "
    f"estimated_result_tokens hit_rate {TOKENS} cost_usd",
    "monthly": "usd_per_month low_usd_per_month high_usd_per_month",
}
ROWS = {
    "replay": 62, "replay_range": 3, "compare": 3, "validate": 62, "check": 2, "explain": 3, "lint": 1, "optimize": 80,
    "optimize_content": 2, "whatif": 20, "next_message": 6, "bill": 1, "monthly": 3,
}  # fmt: skip
"""At least so many rows."""
COUNTS = {"call", "calls", "tokens", "extra_calls", "refused", "errors", *TOKENS.split()}
NAMES = {"cause", "model", "strategy", "session", "kind", "code", "verdict"}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_frame_can_be_computed_with(name: str, results: dict[str, Any]) -> None:
    frame = results[name].frame()
    wanted = COLUMNS[name].split()
    assert list(frame.columns)[: len(wanted)] == wanted
    assert len(frame) >= ROWS[name]
    money = [column for column in frame if "usd" in re.split("[_.]", column)]
    assert all(frame[column].dtype == "float64" for column in money if column != "cost_range_usd")
    kinds = {column: str(frame[column].dtype) for column in frame}
    assert {kinds[column] for column in COUNTS & set(frame) if frame[column].notna().all()} <= {"int64"}
    assert {kinds[column] for column in COUNTS & set(frame) if frame[column].isna().any()} <= {"Int64"}
    assert {kinds[column] for column in {"timestamp", "first", "last"} & set(frame)} <= {"datetime64[ns, UTC]"}
    assert {kinds[column] for column in NAMES & set(frame)} <= {"category"}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_frame_has_exact_dollars_on_request(name: str, results: dict[str, Any]) -> None:
    rounded, exact = results[name].frame(), results[name].frame(money="decimal")
    assert list(rounded.columns) == list(exact.columns)
    for column in (column for column in exact if "usd" in re.split("[_.]", column) and column != "cost_range_usd"):
        stated = [value for value in exact[column] if value is not None]
        assert all(isinstance(value, Decimal) for value in stated), column
        assert [float(value) for value in stated] == rounded[column].dropna().tolist()


def test_dollars_are_scaled_sorted_and_drawn(results: dict[str, Any]) -> None:
    costs = results["optimize"].frame()["cost_usd"]
    assert (costs * 0.9).sum() == pytest.approx(0.9 * costs.sum())
    assert costs.nlargest(3).tolist() == sorted(costs, reverse=True)[:3]
    assert len(costs.head(5).plot.bar().patches) == 5
    calls = results["replay"].frame()
    assert calls.set_index("timestamp")["cost_usd"].resample("D").sum().sum() == pytest.approx(calls["cost_usd"].sum())


CSV = {"bill": ["bill"], "explain": ["explain"], "whatif": ["whatif"], "validate": ["validate", "--tokens", "tiktoken"]}


@pytest.mark.parametrize("name", CSV)
def test_a_frame_has_the_fields_of_the_csv(name: str, tmp_path: Path) -> None:
    assert run_here(*CSV[name], LOG, "--csv", tmp_path / "rows.csv").returncode == 0
    frame = getattr(cachecost, name)(LOG).frame()
    written = pd.read_csv(tmp_path / "rows.csv")
    assert set(written.columns) - {"strategy"} <= {frame.index.name, *frame.columns}
    assert len(written) == len(frame) or name == "whatif", "the command knows today's models"
    assert all(written[column].tolist() == frame[column].tolist() for column in {"billed_usd", "line"} & set(written))


def test_a_replay_has_the_fields_of_the_csv(tmp_path: Path, results: dict[str, Any]) -> None:
    assert run_here("replay", LOG, "--strategy", "automatic", "--csv", tmp_path / "rows.csv").returncode == 0
    written = pd.read_csv(tmp_path / "rows.csv")
    frame = results["replay"].frame()
    assert set(written.columns) - {"format", "rank_from", "rank_to"} <= set(frame.columns)
    assert written["cost_usd"].tolist() == frame["cost_usd"].tolist()


def test_a_frame_of_nothing_has_its_columns(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    nothing = cachecost.bill(tmp_path / "empty")
    assert list(nothing.frame().columns)[: len(COLUMNS["bill"].split())] == COLUMNS["bill"].split()
    assert nothing.frame()["cost_usd"].sum() == nothing.rewrites()["cost_usd"].sum() == 0
    assert list(nothing.rewrites().columns) == list(cachecost.bill(LOG).rewrites().columns)
    assert list(cachecost.explain(TALK, "none").frame().columns) == FINDING_FIELDS.split()


def test_another_kind_of_money_is_refused(results: dict[str, Any]) -> None:
    with pytest.raises(cachecost.InputError, match=r"money: expected one of float, decimal; got 'decimals' \(did you"):
        results["bill"].frame(money="decimals")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_plot_is_a_figure_that_a_notebook_shows_at_half_its_pixels(name: str, results: dict[str, Any]) -> None:
    figure = results[name].plot()
    assert isinstance(figure, Figure)
    assert figure.texts
    picture, size = figure._repr_png_()  # type: ignore[attr-defined]
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == pytest.approx(size["width"] * 160 / 72, abs=2)


@pytest.mark.parametrize("name", COLUMNS)
def test_no_word_of_a_picture_leaves_it(name: str, results: dict[str, Any]) -> None:
    figure = results[name].plot()
    width, height = figure.get_size_inches() * figure.dpi
    figure.draw_without_rendering()
    for text in (text for axes in figure.axes for text in axes.texts):
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= width + 1, text.get_text()
        assert box.y0 >= -1 and box.y1 <= height + 1, text.get_text()


class _Page(HTMLParser):
    """Tags in order, and the styles they have."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.styles: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += [value for name, value in attrs if name == "style" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _colours(styles: list[str]) -> Iterator[str]:
    for style in styles:
        yield from re.findall(r"(?:^|;)(?:color|background[a-z-]*):([^;]*)", style)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_takes_the_pages_colours_and_leaks_no_style(name: str, results: dict[str, Any]) -> None:
    page = _Page()
    page.feed(results[name]._repr_html_())
    assert page.open == []
    assert set(page.tags) <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p"}
    assert page.attributes <= {"style", "scope"}
    assert set(_colours(page.styles)) <= {"inherit", "transparent"}


def test_names_are_text_and_never_markup(results: dict[str, Any]) -> None:
    assert "&lt;i&gt;mine&lt;/i&gt;" in results["compare"]._repr_html_()
    assert "&lt;auto&gt; &amp; cheap" in results["check"]._repr_html_()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_result_is_short_where_it_is_printed(name: str, results: dict[str, Any]) -> None:
    assert name in ("lint", "monthly") or re.fullmatch(r"<[A-Z]\w+ [^\n]{5,400}>", repr(results[name]))


def test_a_month_is_the_session_times_its_sessions_with_the_band_around_it(results: dict[str, Any]) -> None:
    result, month = results["compare"], results["monthly"]
    row = result.frame(money="decimal").loc["none"]
    one = month["none"]
    assert (one.usd, one.error) == (row["cost_usd"] * 1200, row["error_usd"] * 1200)
    assert (one.low, one.high) == (one.usd - one.error, one.usd + one.error)
    assert str(one) == f"${one.usd:,.0f} a month", "bills tell the length of each prompt: nothing is left to count"
    counted = cachecost.compare(cachecost.read(LOG), ["none"], tokens="tiktoken").monthly(40)["none"]
    assert str(counted) == f"${counted.usd:,.0f} ± ${counted.error:,.0f} a month"
    assert result.monthly(Decimal("0.5"), days=20)["none"].usd == row["cost_usd"] * 10
    assert result.monthly(0)["none"].usd == 0
    with pytest.raises(KeyError, match="nope"):
        month["nope"]


def test_a_month_under_a_hundred_dollars_has_cents(results: dict[str, Any]) -> None:
    assert re.fullmatch(r"\$\d+\.\d\d a month", str(results["replay"].monthly(1)["automatic"]))
    counted = cachecost.replay(cachecost.read(LOG), "automatic", tokens="tiktoken").monthly(1)["automatic"]
    assert re.fullmatch(r"\$\d+\.\d\d ± \$\d+\.\d\d a month", str(counted))


def test_a_strategy_with_refused_calls_has_no_month() -> None:
    log = cachecost.read(TALK, tools_tokens=900)
    result = cachecost.compare(log, ["none", {"name": "unknown", "preset": "automatic", "model": "claude-nope-9"}])
    month = result.monthly(10)
    assert [one.strategy for one in month.projections] == ["none"]
    assert month.left_out == ("unknown",)
    with pytest.raises(KeyError, match="unknown: has calls without a cost"):
        month["unknown"]
    assert "left out: unknown" in month._repr_html_()


def test_a_checks_months_are_those_of_its_scenarios(results: dict[str, Any]) -> None:
    checked: cachecost.CheckResult = results["check"]
    assert (checked.verdict, [one.strategy for one in checked.failures]) == ("fail", ["<auto> & cheap"])
    months = checked.monthly(2)
    assert list(months) == ["small"]
    assert months["small"]["<auto> & cheap"].usd > 0


def _complete(optimized: cachecost.OptimizeResult) -> Any:
    """USD of every way without a refused call."""
    frame = optimized.frame(money="decimal")
    return frame[frame["refused"] == 0]["cost_usd"]


def test_what_results_say_agrees(results: dict[str, Any]) -> None:
    explained, optimized, other = results["explain"], results["optimize"], results["whatif"]
    assert sum(explained.frame(money="decimal")["cost_usd"]) == explained.avoidable
    assert optimized.lower_bound <= optimized.cost == _complete(optimized).min()
    assert other.gains[0].saving == max(one.saving for one in other.gains)
    assert other["ttl=1h"].cost == other.frame(money="decimal")["cost_usd"]["ttl=1h"]
    validated = results["validate"]
    assert validated.score.exact_hits == int((validated.frame()["exact"] & (validated.frame()["kind"] == "hit")).sum())


def test_a_cache_without_breakpoints_has_a_plan_of_its_content(tmp_path: Path, results: dict[str, Any]) -> None:
    """The answer of the command."""
    log, plan = _clock_log(tmp_path), results["optimize_content"]
    found = json.loads(run_here("optimize", log, "--json").stdout)
    assert [change["name"] for change in found["best"]["changes"]] == ["volatile=last"]
    assert (plan.cost, plan.is_optimal) == (Decimal(found["best"]["cost_usd"]), found["proved_optimal"])
    assert plan.lower_bound == Decimal(found["lower_bound_usd"])
    assert plan.frame(money="decimal").loc["as recorded", "cost_usd"] == Decimal(found["strategies"]["as recorded"])
    assert plan.answer.startswith(found["best"]["words"])
    assert "volatile=last: put what changes" in plan._repr_html_()


def test_the_log_decides_the_model_of_calls_as_recorded() -> None:
    for function in (cachecost.explain, cachecost.optimize):
        with pytest.raises(cachecost.InputError, match="model: expected nothing: as recorded"):
            function(cachecost.read(LOG), model="claude-haiku-4-5")


def test_a_clean_request_has_an_empty_frame_with_its_columns() -> None:
    clean = cachecost.lint({**BODY, "system": "Be brief."})
    assert isinstance(clean, list)
    assert (len(clean), list(clean.frame().columns)) == (0, COLUMNS["lint"].split())
    assert "No findings" in clean._repr_html_()


def test_a_column_is_of_the_kind_that_its_name_says() -> None:
    rows = [
        {
            "first": "2026-03-07T10:00:00Z",
            "line": None,
            "part": None,
            "hit_rate": "0.5",
            "max_usd_limit": "1.5",
            "ok": True,
        },
        {"first": None, "line": 3, "part": {"calls": 2, "cost_usd": None}, "hit_rate": None, "max_usd_limit": None},
        {"first": "2026-03-07T11:00:00+01:00", "line": 4, "cause": "hit"},
    ]
    frame = frame_of(rows, columns=["first", "tokens"])
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        "first": "datetime64[ns, UTC]", "tokens": "Int64", "line": "Int64", "hit_rate": "float64",
        "part.calls": "Int64", "max_usd_limit": "float64", "ok": "object", "part.cost_usd": "float64",
        "cause": "category",
    }  # fmt: skip
    assert frame["first"][0] == frame["first"][2] and frame["first"].isna()[1]
    assert str(frame_of([{"timestamp": "8000-01-01T00:00:00Z"}])["timestamp"].dtype) == "datetime64[us, UTC]"
    assert frame_of([], index="strategy", columns=["strategy", "cost_usd"])["cost_usd"].sum() == 0
