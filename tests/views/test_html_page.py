"""The HTML report: its figures, its anchors, the same bytes each time, and nothing that it would load."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_results import comparison, ledger, result, small, ten_arms
from html_page import Page

from cachecost.base.formatting import dollar_places, dollars
from cachecost.base.structs import replace
from cachecost.cli import cachecost
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.results import Assumption, BreakpointAt, CallTimeline, RunResult
from cachecost.prompts.blocks import Layer
from cachecost.views.run.page import run_page
from cachecost.views.run.report import run_object

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SESSION = ROOT / "scenarios" / "recordings" / "sessions" / "claude-code.jsonl"
MOST_BYTES = 1_000_000
WRITE = "import sys; from test_html_page import pictured_arms; from cachecost.views.run.page import run_page; "
WRITE += "sys.stdout.buffer.write(run_page(pictured_arms()).encode())"


@cache
def pictured_arms() -> RunResult:
    """Ten strategies with the timelines of their calls, and what is avoidable in the first."""
    made = ten_arms()
    main = made.comparisons[0]
    ledgers = [
        replace(
            each,
            timelines=[
                CallTimeline((BreakpointAt(27_000, "1h"), BreakpointAt(40_000, "5m")), (("text", 2),))
                for _ in each.rows
            ],
        )
        for each in main.ledgers
    ]
    found = [
        Finding(
            "CC301", "ttl_expired", call, Layer.TOOLS, "tools.0", 9_000, Decimal("0.25"), "6 min", "breakpoint at 1h"
        )
        for call in (3, 17)
    ]
    explanation = Explanation(60, Decimal(9), Decimal("8.5"), found, main.ledgers[0].strategy)
    return replace(
        made, comparisons=[replace(main, ledgers=ledgers), *made.comparisons[1:]], explanations=[explanation]
    )


@cache
def arms() -> tuple[str, Page]:
    text = run_page(pictured_arms())
    return text, Page(text)


@pytest.mark.slow
def test_the_same_bytes_in_any_process_and_hash_seed() -> None:
    text = arms()[0].encode()
    assert run_page(pictured_arms()).encode() == text
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parent))),
        "TZ": "Asia/Tokyo",
    }
    done = subprocess.run([sys.executable, "-c", WRITE], env=environment, capture_output=True, check=True)
    assert done.stdout == text


def test_every_anchor_leads_somewhere_and_every_id_is_one() -> None:
    page = arms()[1]
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert len(inside) > 20
    assert not set(inside) - set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    labels = [named["aria-labelledby"] for _, named in page.tags if "aria-labelledby" in named]
    assert labels
    assert set(labels) <= set(page.ids)


def test_it_loads_nothing() -> None:
    text, page = arms()
    assert {link for link in page.links if not link.startswith("#")} == {"data:,"}
    assert set(re.findall(r"url\((..?.?)", text)) <= {"#cu", "#pa"}
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_headings_in_order_and_landmarks() -> None:
    page = arms()[1]
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in zip(page.headings, page.headings[1:], strict=False))
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]
    assert page.all("html")[0]["lang"] == "en"
    assert next(named for name, named in page.tags if name == "a") == {"class": "skip", "href": "#main"}


def test_every_picture_has_words_and_a_table_behind_it() -> None:
    text, page = arms()
    pictures = page.all("svg")
    assert len(pictures) == 11 + 3
    assert all(named["role"] == "img" and named["aria-label"] for named in pictures)
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) == len(pictures)
    for figure in figures:
        assert "<figcaption>" in figure and "<details" in figure and "<table>" in figure
    assert text.count("<table") == text.count("<caption>")
    assert all(named.get("scope") in ("row", "col") for named in page.all("th"))


@pytest.mark.parametrize("made", [pictured_arms, small], ids=["ten arms", "three"])
def test_its_figures_are_those_of_result_json(made: object) -> None:
    shown: RunResult = made()  # type: ignore[operator]
    same_figures(Page(run_page(shown)), shown)


def same_figures(page: Page, shown: RunResult) -> None:
    parsed = run_object(shown)
    assert list(page.strategies) == [strategy["name"] for strategy in parsed["strategies"]]
    asked = [strategy["cost_per_inquiry_usd"] for strategy in parsed["strategies"]]
    places = dollar_places(Decimal(amount) for amount in asked if amount is not None)
    for strategy in parsed["strategies"]:
        row = page.strategies[strategy["name"]]
        known = strategy["errors"] < strategy["calls"]
        assert row["cost"] == (dollars(Decimal(strategy["cost_usd"])) if known else "–")
        assert row["calls"] == f"{strategy['calls']:,}"
        if strategy["cost_per_inquiry_usd"] is not None:
            assert row["question"] == dollars(Decimal(strategy["cost_per_inquiry_usd"]), places)


def test_first_comes_the_answer_then_the_saving() -> None:
    text, page = arms()
    assert page.figures["answer"] == pictured_arms().verdict
    assert page.figures["saving"].endswith("% less")
    order = [
        text.index(f'id="{name}"')
        for name in ("strips", "strategies", "dollars", "findings", "assumes", "variants")
        if f'id="{name}"' in text
    ]
    assert order == sorted(order)
    assert text.index('data-figure="answer"') < text.index('data-figure="saving"') < order[0]
    assert (
        text.index('id="published_figures"')
        < text.index('id="sure"')
        < text.index('id="rules"')
        < text.index('id="again"')
    )


def test_the_first_and_the_best_are_open_the_others_folded_away() -> None:
    text, page = arms()
    folded = [named["id"] for named in page.all("details") if named["class"] == "strip-of"]
    names = list(page.strategies)
    best = min((line for line in names if page.strategies[line]["vs_first"] != "✗"), key=lambda n: _cost(page, n))
    open_ = {f"strip-{names.index(name) + 1}" for name in ("structured output, no tools", best)}
    assert len(folded) == 10 and folded[4] == "more-strips" and not open_ & set(folded)
    assert all(f'<h3 id="{name}">' in text for name in open_)


def _cost(page: Page, name: str) -> Decimal:
    return Decimal(page.strategies[name]["cost"].lstrip("$"))


def test_a_column_says_call_layer_tokens_dollars_and_kinds() -> None:
    says = next(title for title in arms()[1].titles if title.startswith("call 5 "))
    assert "question 1" in says and "$" in says.splitlines()[0]
    assert re.search(r"^messages: 29k written 5m, 3 uncached · \$0\.11$", says, re.MULTILINE)
    assert "not read: 2 text" in says and "breakpoints at 27k (1h), 40k (5m)" in says
    assert says.endswith("tool choice changed")


def test_words_are_words_and_never_markup() -> None:
    evil = "<script>alert(1)</script> & \"co\" 'x' --ink {{ 7*7 }}"
    made = result(
        comparison([ledger(evil, 0.4), ledger("b", 0.2)]), question=evil, verdict=evil, assumptions=[Assumption(evil)]
    )
    text = run_page(made)
    assert "<script>alert" not in text
    assert list(Page(text).strategies) == [evil, "b"]
    assert text.count("<script>") == 1


def test_a_run_without_strategies_or_with_one_is_a_page() -> None:
    empty = Page(run_page(result(comparison([]))))
    assert empty.strategies == {} and not {link[1:] for link in empty.links if link[0] == "#"} - set(empty.ids)
    one = Page(run_page(result(comparison([ledger("only", 0.4)]), verdict="")))
    assert one.figures == {"saving": one.strategies["only"]["cost"]}


def test_light_and_dark_inks_stand_out() -> None:
    text = arms()[0]
    light, dark = re.findall(r":root \{[^}]*\}", text)[:2]
    for style in (light, light + dark):
        colours = dict(re.findall(r"--(\w+): (#\w+)", style))
        for ink in ("ink", "muted", "good", "bad"):
            for paper in ("paper", "panel"):
                assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
        for line in range(10):
            assert contrast(colours[f"line{line}"], colours["paper"]) >= 2, line
        assert contrast(colours["focus"], colours["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    high, low = sorted((_light(one), _light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _light(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.slow
def test_forty_nine_strategies_of_287_calls_make_a_light_page() -> None:
    timeline = CallTimeline(
        (BreakpointAt(21_000, "1h"), BreakpointAt(27_000, "1h")), (("thinking", 1), ("tool_use", 3), ("tool_result", 3))
    )
    ledgers = [ledger(f"an agent of some kind, {share}", share / 50, 287, asks=3 + share % 5) for share in range(49)]
    ledgers = [
        replace(
            each,
            timelines=[
                replace(timeline, breakpoints=(*timeline.breakpoints, _end(row.usage.total_input))) for row in each.rows
            ],
        )
        for each in ledgers
    ]
    shown = result(comparison(ledgers))
    text = run_page(shown)
    assert len(text.encode()) < MOST_BYTES
    same_figures(Page(text), shown)


def _end(tokens: int) -> BreakpointAt:
    return BreakpointAt(tokens - 3, "5m")


def test_replay_writes_a_page_of_a_recording(tmp_path: Path) -> None:
    done = CliRunner().invoke(cachecost, ["replay", str(SESSION), "--html", str(tmp_path / "a" / "page.html")])
    assert done.exit_code == 0, done.output
    content = (tmp_path / "a" / "page.html").read_bytes()
    page = Page(content.decode())
    assert len(content) < MOST_BYTES and list(page.strategies) == ["as recorded"]
    assert sum(title.startswith("call ") for title in page.titles) == 287
    assert not {link[1:] for link in page.links if link[0] == "#"} - set(page.ids)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["page.html"]


def test_what_was_billed_comes_before_what_is_simulated(tmp_path: Path) -> None:
    done = CliRunner().invoke(cachecost, ["replay", str(SESSION), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert page.figures["answer"].startswith("$5.17 billed; simulated $5.13, 0.8% less")
    assert page.figures["saving"] == "$5.17"
    assert text.index('data-billed="billed"') < text.index('data-strategy="as recorded"')


def test_error_margins_have_the_precision_of_the_costs() -> None:
    margins = {row["error_margin"] for row in arms()[1].strategies.values() if "error_margin" in row}
    assert all(re.fullmatch(r"±\$\d+\.\d\d|<\$0\.01|–", cell) for cell in margins), margins


def test_strategies_whose_calls_look_the_same_share_a_timeline() -> None:
    alike = [ledger(f"s{number}", 0.4) for number in range(9)]
    text = run_page(result(comparison([*alike, ledger("other", 0.8)])))
    page = Page(text)
    assert text.count('<figure class="strip">') == 2
    assert ">s0 and 8 others</h3>" in text
    rows = re.findall(r'data-strategy="([^"]*)"><th[^>]*><a href="#([^"]*)"', text)
    assert dict(rows) == {**{f"s{n}": "strip-1" for n in range(9)}, "other": "strip-10"}
    assert not {link[1:] for link in page.links if link[0] == "#"} - set(page.ids)


def test_what_scrolls_shows_that_it_does() -> None:
    style = arms()[0].split("</style>")[0]
    assert re.search(r"\.scroll \{[^}]*background-attachment: local, local, scroll, scroll", style)
    assert 'content: "scroll →"' in style


def test_replay_with_a_page_prints_the_same_json(tmp_path: Path) -> None:
    asked = ["replay", str(SESSION), "--json", "--strategy", "automatic", "--strategy", "none"]
    plain = CliRunner().invoke(cachecost, asked)
    page = CliRunner().invoke(cachecost, [*asked, "--html", str(tmp_path / "page.html")])
    assert plain.exit_code == page.exit_code == 0
    assert plain.stdout == page.stdout
    assert list(Page((tmp_path / "page.html").read_text()).strategies) == ["automatic", "none"]


def test_replay_of_refused_calls_is_a_page_that_says_so(tmp_path: Path) -> None:
    block = '{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}'
    blocks = ",".join([block] * 5)
    body = f'{{"model":"claude-opus-4-6","max_tokens":9,"messages":[{{"role":"user","content":[{blocks}]}}]}}'
    (tmp_path / "log.jsonl").write_text(f'{{"timestamp":"2026-03-07T10:00:00Z","request":{body}}}\n')
    done = CliRunner().invoke(cachecost, ["replay", str(tmp_path / "log.jsonl"), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "A maximum of 4 blocks with cache_control may be provided" in (tmp_path / "page.html").read_text()


def test_validate_writes_its_page_in_the_same_frame(tmp_path: Path) -> None:
    asked = ["validate", str(SESSION), "--tokens", "tiktoken", "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(cachecost, asked)
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "page.html").read_text())
    assert "exactly right" in page.figures["answer"]
    assert not {link[1:] for link in page.links if link[0] == "#"} - set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]


def whole(page: Page) -> None:
    """The frame that every page has."""
    assert not {link[1:] for link in page.links if link[0] == "#"} - set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]


def test_explain_writes_its_page(tmp_path: Path) -> None:
    done = CliRunner().invoke(cachecost, ["explain", str(SESSION), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "page.html").read_text())
    whole(page)
    key = {named["class"] for name, named in page.tags if name == "i"}
    assert {"read", "write_5m", "rewritten", "tick", "turn"} <= key and not {"write_1h", "asked"} & key
    assert sum(title.startswith("call ") for title in page.titles) == 287
    assert page.figures["answer"] == "$5.17 billed · $0.21 avoidable (4%) · $0.0395 not explained (0.8%) · 3 causes"


def test_optimize_writes_its_page(tmp_path: Path) -> None:
    messages = [{"role": ("user", "assistant")[at % 2], "content": f"{at} " + "word " * 3000} for at in range(5)]
    with (tmp_path / "log.jsonl").open("w") as log:
        for length in (1, 3, 5):
            body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": messages[:length]}
            log.write(json.dumps({"timestamp": f"2026-03-07T10:0{length}:00Z", "request": body}) + "\n")
    asked = ["optimize", str(tmp_path / "log.jsonl"), "--no-pings", "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(cachecost, asked)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "page.html").read_text()
    whole(Page(text))
    assert "lower bound for these prompts" in text and Page(text).figures["answer"] in " ".join(done.stdout.split())


def test_replay_json_imports_nothing_of_a_page() -> None:
    heavy = "{'jinja2', 'markupsafe', 'matplotlib', 'cachecost.views.html'}"
    asked = ["replay", str(SESSION), "--json"]
    code = f"import sys; from cachecost.cli import cachecost; cachecost({asked}, standalone_mode=False)"
    code += f"; sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]
