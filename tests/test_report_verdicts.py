"""Each report's verdict, recomputed from its calls in plain Python: tokens × the prices of the price pages, and sums.

Nothing of the package is used. `tests/test_reports.py` holds that the committed reports are what the scenarios give.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPORTS = Path(__file__).parent.parent / "reports"
CLASSES = ("input", "read", "write_5m", "write_1h", "output")
OPUS = ("5", "0.50", "6.25", "10", "25")
SONNET = ("3", "0.30", "3.75", "6", "15")
PRICES = {
    "claude-opus-4-6": OPUS,
    "claude-sonnet-4": SONNET,
    "claude-sonnet-4-5": SONNET,
    "claude-sonnet-4-6": SONNET,
    "claude-haiku-4-5": ("1", "0.10", "1.25", "2", "5"),
}
"""USD per million tokens, in the order of CLASSES; Claude docs, Pricing, 2026-10-10."""
LONG = {
    "claude-opus-4-6": ("10", "1", "12.50", "20", "37.50"),
    "claude-sonnet-4-5": ("6", "0.60", "7.50", "12", "22.50"),
}
"""The same for prompts of more than 200,000 tokens, until 13 March 2026."""
LONG_UNTIL = "2026-03-13"
FIGURE = re.compile(r"(?<![\w.])\$?\d[\d,.]*\d?%?(?!\w)")
ASK = frozenset({"answer-inquiry", "every-provider"})
"""Reports whose verdict says what a question costs; the others say what the conversation does."""

Call = dict[str, str]


@cache
def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPORTS / name / "result.json").read_text(encoding="utf-8"))
    return found


@cache
def calls(name: str) -> dict[str, list[Call]]:
    """The calls of each strategy."""
    rows: dict[str, list[Call]] = defaultdict(list)
    with (REPORTS / name / "calls.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["strategy"]].append(row)
    return rows


def prompt(call: Call) -> int:
    return sum(int(call[name]) for name in CLASSES if name != "output")


def usd(call: Call, day: str) -> Decimal:
    is_long = prompt(call) > 200_000 and day < LONG_UNTIL and call["model"] in LONG
    prices = (LONG if is_long else PRICES)[call["model"]]
    return (
        sum((int(call[name] or 0) * Decimal(price) for name, price in zip(CLASSES, prices, strict=True)), Decimal(0))
        / 10**6
    )


def costs(name: str, day: str | None = None) -> dict[str, Decimal]:
    """The dollars of each strategy, on the report's day or on another."""
    on = day or result(name)["as_of"]
    return {strategy: sum((usd(call, on) for call in rows), Decimal(0)) for strategy, rows in calls(name).items()}


def per_question(name: str, day: str | None = None) -> dict[str, Decimal]:
    on = day or result(name)["as_of"]
    found = {}
    for strategy, rows in calls(name).items():
        asked = [call for call in rows if call["inquiry"]]
        found[strategy] = sum((usd(call, on) for call in asked), Decimal(0)) / len({call["inquiry"] for call in asked})
    return found


def less(cost: Decimal, base: Decimal) -> float:
    """How many percent less."""
    return float(100 * (1 - cost / base))


NAMES = sorted(path.parent.name for path in REPORTS.glob("*/calls.csv"))


@pytest.mark.parametrize("name", NAMES)
def test_every_strategy_costs_the_tokens_of_its_calls_times_their_prices(name: str) -> None:
    found = costs(name)
    stated = {line["name"]: line for line in result(name)["strategies"]}
    assert {strategy: Decimal(line["cost_usd"]) for strategy, line in stated.items()} == found
    assert {strategy: line["calls"] for strategy, line in stated.items()} == Counter(
        strategy for strategy, rows in calls(name).items() for _ in rows
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_is_read_in_ten_seconds(name: str) -> None:
    verdict = result(name)["verdict"]
    assert len(verdict.split()) <= 40
    assert len(FIGURE.findall(verdict.replace("RFD 033", ""))) <= 2
    page = (REPORTS / name / "report.md").read_text(encoding="utf-8")
    before, _, after = page.partition("## What the answer assumes")
    assert before.index("**") < before.index("| strategy |"), "the verdict, then the table"
    shown, _, _ = after.partition("<details")
    assumptions = [line for line in shown.splitlines() if line.startswith("- ")]
    assert 1 <= len(assumptions) <= 5
    assert not [line for line in assumptions if re.search(r"\. [A-Z“]", line)], "a sentence each"


@pytest.mark.parametrize(
    ("name", "winner", "base"),
    [
        ("agents-side-by-side", "claude-code-mixed-ttl", "claude-code"),
        ("answer-inquiry", "answer tool, auto", "structured output, no tools, thinking off"),
        ("compaction", "all but three results cleared in each turn", "never"),
        ("dont-break-the-cache", "full context", "no cache"),
        ("every-provider", "answer tool, auto", "structured output, no tools"),
        ("progressive-caching", "progressive", "system-only"),
        ("structured-finish", "one step, one schema", "two steps"),
        ("ttl", "1h", "5m"),
    ],
)
def test_the_verdict_has_the_costs_of_the_cheapest_and_of_the_compared_one(name: str, winner: str, base: str) -> None:
    found = costs(name)
    compared = [one["name"] for one in result(name)["strategies"] if not one["compared_apart"] and not one["errors"]]
    assert found[winner] <= Decimal("1.01") * min(found[one] for one in compared)
    assert result(name)["compare_to"] == base
    stated = per_question(name) if name in ASK else found
    figures = FIGURE.findall(result(name)["verdict"].replace("RFD 033", ""))
    assert {figure.strip("$.,") for figure in figures} == {shown(stated[winner]), shown(stated[base])}


def shown(dollars: Decimal) -> str:
    """As the reports round: to cents, and to a hundredth of one where the table has such small ones."""
    return f"{dollars:.2f}" if dollars >= Decimal("0.1") else f"{dollars:.4f}"


# --- what else the sentences say


def test_answer_inquiry_forcing_saves_nothing_and_neither_does_another_thinking() -> None:
    found, base = per_question("answer-inquiry"), "structured output, no tools, thinking off"
    rewriting = ("answer_inquiry, forced, thinking off", "answer_inquiry, forced", "answer tool, soft force")
    rewriting += ("answer tool, auto, thinking off", "forced, as RFD 033 claims, thinking off")
    assert all(0.96 < found[base] / found[name] < 1 for name in rewriting)
    assert found["answer tool, auto"] < found[base] / 9
    half = [found[f"forced, breakpoint before the question{tail}"] for tail in ("", ", thinking off")]
    assert all(found[base] / 5 < each < found[base] / 4 for each in half)


def test_answer_inquiry_how_much_of_it_is_the_price_of_long_prompts() -> None:
    """RFD 033 reckoned with 95,000 tokens a question, this session has more than twice that."""
    structured = "structured output, no tools, thinking off"
    that_day, since = (per_question("answer-inquiry", day)[structured] for day in (None, LONG_UNTIL))
    asked = [prompt(call) for call in calls("answer-inquiry")[structured] if call["inquiry"]]
    (short, *_), (shipped, *_) = (
        variant("answer-inquiry", start)["strategies"] for start in ("95,000 tokens", "shipped rules")
    )
    assert (round(less(since, that_day)), round(sum(asked) / len(asked), -3)) == (47, 232_000)
    assert Decimal(shipped["cost_per_inquiry_usd"]).quantize(Decimal("1E-9")) == since.quantize(Decimal("1E-9"))
    assert Decimal("0.59375") < Decimal(short["cost_per_inquiry_usd"]) < Decimal("0.60")  # 95,000 tokens × $6.25


def test_answer_inquiry_the_cheaper_model_sees_a_quarter_of_it() -> None:
    """Its prompts are cut to its window: 16 of them to the static prefix and the question."""
    asked = {
        name: [prompt(call) for call in rows if call["purpose"] == "inquiry"]
        for name, rows in calls("answer-inquiry").items()
    }
    whole = asked["structured output, no tools, thinking off"]
    warm, cold = asked["cheaper model, with cache hint"], asked["cheaper model, cold"]
    assert (round(sum(warm) / len(warm), -2), round(sum(whole) / len(whole), -2)) == (55_500, 232_400)
    assert sum(tokens < min(warm) + 1_000 for tokens in warm) == 16  # the static prefix and the question alone
    assert all(one < 0.9 * other for one, other in zip(cold, whole, strict=True) if one != other)


def variant(name: str, start: str) -> dict[str, Any]:
    (found,) = (each for each in result(name)["variants"] if each["variant"].startswith(start))
    return dict(found)


def variant_costs(name: str, start: str, prices: tuple[str, ...]) -> dict[str, Decimal]:
    """The dollars of each strategy in a variant without prompts of more than 200,000 tokens: sums × prices."""
    found = {}
    for line in variant(name, start)["strategies"]:
        usage = line["usage"]
        written = usage["cache_creation"]
        tokens = (usage["input_tokens"], usage["cache_read_input_tokens"], *written.values(), usage["output_tokens"])
        found[line["name"]] = (
            sum((n * Decimal(price) for n, price in zip(tokens, prices, strict=True)), Decimal(0)) / 10**6
        )
    return found


def test_compaction_at_the_prices_of_the_session_and_since() -> None:
    """43% less and 92% more; 69% and 6% with the price of long prompts, which alone the cleared session never paid."""
    name, never = "compaction", "never"
    turn, call = "all but three results cleared in each turn", "all but three results cleared in each call"
    since, that_day = costs(name), costs(name, "2026-03-07")
    found = [round(less(usd[arm], usd[never])) for usd in (since, that_day) for arm in (turn, call)]
    assert found == [43, -92, 69, -6]
    stated = {line["name"]: Decimal(line["cost_usd"]) for line in variant(name, "prices of 7 March")["strategies"]}
    assert {arm: usd for arm, usd in stated.items() if arm != call} == {
        arm: usd for arm, usd in that_day.items() if arm != call
    }
    assert round(less(stated[call], stated[never])) == found[3]  # its lookback ends elsewhere by the rules of that day
    assert [max(map(prompt, calls(name)[arm])) > 200_000 for arm in (never, turn, call)] == [True, False, False]


def test_ttl_an_hour_at_the_prices_since() -> None:
    since = costs("ttl", LONG_UNTIL)
    assert {line["name"]: Decimal(line["cost_usd"]) for line in variant("ttl", "shipped")["strategies"]} == since
    assert round(less(since["1h"], since["5m"])) == round(less(costs("ttl")["1h"], costs("ttl")["5m"])) == 11


def test_thinking_one_effort_is_the_cheapest_while_low_effort_saves_no_output() -> None:
    found, base = costs("thinking"), "one effort for all"
    output = {name: sum(int(call["output"]) for call in rows) for name, rows in calls("thinking").items()}
    assert min(found, key=lambda name: found[name]) == base
    assert f"“{base}” is the cheapest: ${found[base]:.2f}." in result("thinking")["verdict"]
    assert [round(-less(cost, found[base])) for cost in found.values()] == [0, 65, 9, 14]
    assert output["a lower effort every other turn"] == output[base] > output["thinking off every other turn"]


def test_two_or_four_breakpoints_tie_today_and_did_not_while_every_block_counted() -> None:
    name, two, four = "two-or-four-breakpoints", "two, system and last message", "four, with the last tool"
    today, long_turns, before = (
        costs(name),
        *(variant_costs(name, start, SONNET) for start in ("14 calls", "every tool block a position, as")),
    )
    shares = [round(less(usd[four], usd[two])) for usd in (today, long_turns, before)]
    assert shares == [0, 12, 35]
    assert f"cost the same: ${today[two]:.2f}. Four win only in long turns" in result(name)["verdict"]


def test_text_protocol_tools_nothing_is_saved_and_lost_sessions_cost() -> None:
    found, base, lost = costs("text-protocol-tools"), "declared tools", "the same, one session in ten turns lost"
    text = found["tools as text in the system prompt"]
    assert 0 < less(text, found[base]) < 1
    assert f"the same as declaring them: ${found[base]:.2f}." in result("text-protocol-tools")["verdict"]
    assert f"${found[lost]:.2f} with one lost" in result("text-protocol-tools")["verdict"]
