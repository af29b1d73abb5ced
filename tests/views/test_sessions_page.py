"""The page of `bill`: complete in itself, the same figures as the text, and fit for any window."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from html_page import Page, opened, probed

from bill_sessions import MAIN, SMALL, account_in, list_prices, write_sessions
from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.advice import Advice
from cachecost.analysis.bill.summary import summarize
from cachecost.analysis.bill.timeline import session_account
from cachecost.views.bill.page import HEIGHT, StackedBar, bar_parts, bill_page, days_chart

WIDTHS = """(view, root) => ({
  page: [root.scrollWidth, root.clientWidth],
  wide: [...view.document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, svg") &&
    one.getBoundingClientRect().right > root.clientWidth + 1).map((one) => one.outerHTML.slice(0, 80)),
})"""
KEYS = """(view, root) => {
  const strip = view.document.querySelectorAll(".strip")[1], picture = strip.querySelector("svg");
  const said = () => strip.querySelector("output").textContent.split(" · ")[0];
  const press = (key) => picture.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true }));
  return ["ArrowRight", "ArrowRight", "End", "Home"].map((key) => { press(key); return said(); });
}"""


@pytest.fixture
def account(tmp_path: Path) -> BillAccount:
    return account_in(write_sessions(tmp_path))


@pytest.fixture
def text(account: BillAccount) -> str:
    return bill_page(account, "cachecost bill sessions --html bill.html")


def test_it_loads_nothing_and_every_link_leads_somewhere(text: str) -> None:
    page = Page(text)
    assert {link for link in page.links if not link.startswith("#")} == {"data:,"}
    assert not {link[1:] for link in page.links if link.startswith("#")} - set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1 and all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))


def test_the_answer_comes_first(text: str) -> None:
    figures = Page(text).figures
    assert figures["answer"] == "$0.85 in 2 sessions and 16 calls; $0.34 of it was necessary."
    assert figures["saving"] == "$0.51"
    assert "$0.34 necessary + $0.51 rewritten = $0.85" in text
    assert "List prices of the API" in text


def test_every_session_has_a_row_and_the_expensive_ones_a_picture(text: str) -> None:
    assert text.count('<figure class="strip">') == 3
    assert 'id="session-1">1e0816ef · work/api</h3>' in text and "<b>1e0816f0 · play/api</b>" in text
    assert text.count("<rect ") == 2 + 14 + 2, "days, calls of the first, calls of the second"
    assert re.search(r"^idle for 13 min; ", text, re.MULTILINE)


def test_a_session_is_a_prompt_timeline_with_its_rewritten_dollars_above(text: str) -> None:
    first = text[text.index('id="session-1"') : text.index('id="session-2"')]
    assert "rewritten</span>" in first and 'class="rewritten" d="M' in first
    key = re.findall(r'<li><i class="(\w+)"></i>([^<]*)</li>', text[text.index('id="timelines"') :])
    assert dict(key)["rewritten"] == "dollars rewritten" and dict(key)["turn"] == "human turn"
    assert {kind for kind, _ in key} <= {"read", "write_5m", "write_1h", "input", "rewritten", "turn"}
    for kind in ("read", "write_5m", "write_1h", "input"):
        assert (kind in dict(key)) == (f'class="s-{kind}"' in text[text.index('id="timelines"') :])


def test_no_word_of_a_person_or_model_is_in_it(text: str) -> None:
    for words in ("Fix it.", "Why does", "Hello?", "Search the code.", "never shown", "A summary."):
        assert words not in text


def test_it_is_the_same_each_time(account: BillAccount, text: str) -> None:
    assert bill_page(account, "cachecost bill sessions --html bill.html") == text


def test_one_session_alone(tmp_path: Path) -> None:
    text = bill_page(session_account(account_in(write_sessions(tmp_path)), SMALL), "cachecost bill")
    assert "$0.22 in 1 session and 2 calls" in text and "The session, call by call" in text and MAIN[:8] not in text


def test_no_sessions_at_all() -> None:
    page = Page(bill_page(account_for([], list_prices()), "cachecost bill"))
    assert page.figures == {
        "answer": "$0.00 in 0 sessions and 0 calls; nothing was spent re-caching what was already cached."
    }
    assert "causes" not in page.ids and "days" not in page.ids and "timelines" not in page.ids


def test_foreign_names_are_text(tmp_path: Path) -> None:
    account = account_in(write_sessions(tmp_path))
    for file in account.files:
        file.project = "/home/<img src=x>\x1b[31m"
    text = bill_page(account, "cachecost bill")
    assert "<img" not in text and "\x1b" not in text and "&lt;img src=x&gt;\\u001b[31m" in text


def test_what_to_change_has_a_table(account: BillAccount) -> None:
    change = Advice("x", "a <change>", "set it", Decimal("0.1"), assumption="it works")
    text = bill_page(account, "cachecost bill", advice=[change])
    assert '<th scope="row" class="word">a &lt;change&gt;</th><td>$0.10</td>' in text
    assert '<td class="word">set it; assumes that it works</td>' in text and 'href="#changes"' in text
    assert "changes" not in Page(bill_page(account, "cachecost bill")).ids


def test_days_have_no_holes_and_add_up(account: BillAccount) -> None:
    total = summarize(account).total
    chart = days_chart(account, total)
    assert chart is not None
    assert [bar.says.partition(":")[0] for bar in chart.bars] == ["2026-03-02", "2026-03-03"]
    assert sum(sum(bar.parts) for bar in chart.bars) == total.cost


def test_the_bars_of_a_chart_are_painted_from_the_top_down() -> None:
    parts = [(Decimal(1), Decimal(3)), (Decimal(2), Decimal(0)), (Decimal(0), Decimal(0))]
    bars = [StackedBar(each, "") for each in parts]
    assert [(colour, path) for colour, path, _ in bar_parts(bars, Decimal(4))] == [
        ("rewritten", f"M0 {HEIGHT}V0H1V100H2V200H3V{HEIGHT}z"),
        ("read", f"M0 {HEIGHT}V150H1V100H2V200H3V{HEIGHT}z"),
    ]


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_its_window(text: str, tmp_path: Path, width: int) -> None:
    assert json.loads(probed(text, tmp_path, WIDTHS, width)) == {"page": [width, width], "wide": []}


def test_arrows_walk_through_the_bars(text: str, tmp_path: Path) -> None:
    assert json.loads(probed(text, tmp_path, KEYS)) == ["call 1", "call 2", "call 14", "call 1"]


def test_a_browser_has_no_complaint(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bill.html"
    path.write_text(text, encoding="utf-8")
    _, logged = opened(path, "--dump-dom")
    assert "CONSOLE" not in logged, logged
