"""report.md: what it says, and that Markdown reads it as meant."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

import pytest
from fake_results import comparison, ledger, result, row, small, ten_arms, wholly_refused
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cachecost.base.structs import replace
from cachecost.ledger.results import Ledger
from cachecost.providers.usage import Usage
from cachecost.views.run.report import report_markdown
from cachecost.views.tables.output import escape_comment, escape_markdown, markdown_table, short
from cachecost.views.tables.table import build_table
from goldens import Golden

PICTURES = ("dollars.svg", "cumulative.svg", "question.svg")


def test_ten_arms(golden: Golden) -> None:
    golden.check(report_markdown(ten_arms(), PICTURES))


def test_three_strategies(golden: Golden) -> None:
    golden.check(report_markdown(small(), PICTURES))


@pytest.mark.parametrize(
    "shown",
    [
        result(comparison([])),
        result(comparison([Ledger("idle", [])])),
        result(comparison([wholly_refused("a", "no")])),
        result(comparison([ledger("a")]), about="", verdict="", question="", assumptions=[], versions={}),
    ],
    ids=["no strategy", "no calls", "all refused", "no words"],
)
def test_odd_results(golden: Golden, shown: object) -> None:
    text = report_markdown(shown)  # type: ignore[arg-type]
    assert "\n\n\n" not in text
    golden.check(text)


def test_order_is_answer_comparison_why_how_sure_where() -> None:
    text = report_markdown(ten_arms(), PICTURES)
    places = [
        text.index(part)
        for part in (
            "# answer-inquiry",
            "*What does a question",
            "**A question asked",
            "| strategy | calls",
            "](dollars.svg)",
            "## What one question costs",
            "## Dollars, call after call",
            "## Where the dollars go",
            "## Variants side by side",
            "## Published figures, exactly",
            "## How sure",
            "## Run it again",
        )
    ]
    assert places == sorted(places)


def test_every_table_row_has_the_cells_of_its_head() -> None:
    tables = _tables(report_markdown(ten_arms(), PICTURES))
    assert len(tables) == 8
    for rows in tables:
        assert {len(cells) for cells in rows} == {len(rows[0])}
        assert rows[0][0] in ("strategy", "variant", "source")


def test_layers_and_output_add_up_to_the_cost() -> None:
    rows = [row("a", 1, Usage(input_tokens=2_000_000, output_tokens=400_000))]
    layers = _tables(report_markdown(result(comparison([Ledger("a", rows)]))))[1]
    assert layers == [
        ["strategy", "tools", "system", "messages", "output", "cost"],
        ["a", "$2.50", "$1.25", "$6.25", "$10.00", "$20.00"],
    ]


def test_dollars_that_no_layer_has_are_shown() -> None:
    rows = [row("a", 1, Usage(input_tokens=2_000_000), cost_by_layer={})]
    layers = _tables(report_markdown(result(comparison([Ledger("a", rows)]))))[1]
    assert layers[0] == ["strategy", "tools", "system", "messages", "not in a layer", "output", "cost"]
    assert layers[1] == ["a", "$0.00", "$0.00", "$0.00", "$10.00", "$0.00", "$10.00"]


def test_dust_of_a_division_is_no_column() -> None:
    third = row("a", 1, Usage(input_tokens=1_000_000))
    parts = dict.fromkeys(third.cost_by_layer, Decimal(5) / 3)
    layers = _tables(report_markdown(result(comparison([Ledger("a", [replace(third, cost_by_layer=parts)])]))))[1]
    assert "not in a layer" not in layers[0]


def test_pictures_that_are_not_there_are_not_linked() -> None:
    assert "![" not in report_markdown(ten_arms())
    assert report_markdown(small(), PICTURES).count("](") == 3


def test_the_command_that_makes_it_again() -> None:
    assert "```sh\ncachecost run scenarios/answer-inquiry.yaml\n```" in report_markdown(small())
    assert "```sh\ncachecost run my.yaml --set a=1\n```" in report_markdown(
        small(), again="cachecost run my.yaml --set a=1"
    )


@pytest.mark.parametrize(
    "words",
    [
        "a | b",
        "*a* and **b**",
        "_a_ and answer_inquiry and __init__",
        "<b>a</b> &lt; b",
        "[a](b) ![c](d)",
        "`code` and \\ and ~~gone~~",
        "$5 (−$4) is not $x$",
        "two\nlines",
        "“quoted”, ±3% → –",
    ],
)
def test_words_stay_words(words: str) -> None:
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"{escape_markdown(words)}\n")
    assert html == f"<p>{_html(' '.join(words.split()))}</p>\n"
    cell = _tables(markdown_table(build_table("", ["a", "b"], [[words, "x"]])))[0][1]
    assert cell == [" ".join(words.split()), "x"]


def test_a_name_with_a_pipe_breaks_no_table() -> None:
    for rows in _tables(report_markdown(result(comparison([ledger("a | b"), ledger("c")])), PICTURES)):
        assert rows[1][0] == "a | b"


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _tables(text: str) -> list[list[list[str]]]:
    """The plain words of every table's cells, as Markdown reads them."""
    tables: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and token.level == 4 + (len(tables) < 0):
            tables[-1][-1].append(_plain(token))
    return tables


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [])


REFERENCES = [
    "@team, @org/team and @dependabot merge",
    "name@example.org and mailto:name@example.org",
    "https://a.example/x, ftp://b.example, javascript://c and www.d.example",
    "#12, org/repo#12, GH-12, gh-12, !12, &12, %12, %milestone, #fix, ~bug",
    "deadbeef1, 0123456789abcdef0123456789abcdef01234567 and org/repo@deadbeef1",
    "/close",
    "@_x @-y",
]
LINKED = re.compile(
    r"@[\w-]|://|\bwww\.|\b(?:GH|gh)-\d|[#!&%]\w|~\w|^/\w|\b(?=[0-9]*[a-f])[0-9a-f]{7,40}\b", re.MULTILINE
)


@pytest.mark.parametrize("words", REFERENCES)
def test_a_comment_refers_to_nobody(words: str) -> None:
    """What a forge looks for is neither in the text of the comment nor in what is rendered; it reads as before."""
    comment = escape_comment(words)
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"{comment}\n")
    text = unescape(re.sub(r"</?p>\n?", "", shown))
    assert LINKED.search(words)
    assert not LINKED.search(text)
    assert not re.search(r"@[\w-]|://|\bwww\.", comment)
    assert not comment.startswith("/")
    assert text.replace("\u200b", "") == words


@pytest.mark.parametrize(
    "words", ["cost $5.20 → $7 (+43%) in calls 2–6", "fs_read_file is new (1,200 tokens)", "a/b.py:12"]
)
def test_a_comment_without_references_is_as_anywhere(words: str) -> None:
    assert escape_comment(words) == escape_markdown(words)


def test_long_words_and_texts_lose_their_middle() -> None:
    assert short("a" * 80) == "a" * 80
    assert short("a" * 41 + "b" * 40) == "a" * 39 + "…" + "b" * 39
    assert len(short("word " * 5_000)) == 599
    assert short("see " + "x" * 5_000 + ": $5") == "see " + "x" * 39 + "…" + "x" * 38 + ":" + " $5"
