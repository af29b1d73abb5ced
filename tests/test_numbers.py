"""Rounding tables: rows on both sides of each edge."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base import formatting as numbers
from cachecost.base.times import LATEST, known_time

AMOUNTS = st.decimals(min_value="1e-9", max_value="1e9", allow_nan=False, places=9).filter(bool)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("24.10", "$24.10"),
        ("0.31", "$0.31"),
        ("0.0475", "$0.0475"),
        ("0.02", "$0.02"),
        ("0", "$0.00"),
        ("0E-20", "$0.00"),
        ("1234.5", "$1,234.50"),
        ("1234567.891", "$1,234,567.89"),
        ("0.59375", "$0.59"),
        ("1.63875", "$1.64"),
        ("0.125", "$0.13"),
        ("0.1", "$0.10"),
        ("0.0999", "$0.0999"),
        ("0.09995", "$0.10"),
        ("0.099949", "$0.0999"),
        ("0.01", "$0.01"),
        ("0.009994", "$0.00999"),
        ("0.00000012345", "$0.000000123"),
        ("1E-9", "$0.000000001"),
        ("-11.1", "−$11.10"),
        ("-0.0475", "−$0.0475"),
        ("999.995", "$1,000.00"),
        ("999.994", "$999.99"),
    ],
)
def test_dollars(amount: str, text: str) -> None:
    assert numbers.dollars(Decimal(amount)) == text


def test_unknown_is_not_zero() -> None:
    assert numbers.dollars(None) == numbers.tokens(None) == numbers.percent(None) == "–"
    assert numbers.dollars(Decimal(0)) == "$0.00"


@given(AMOUNTS)
def test_no_amount_above_zero_is_printed_as_zero_and_none_is_off_by_more_than_half_a_digit(amount: Decimal) -> None:
    printed = Decimal(numbers.dollars(amount).replace("$", "").replace(",", ""))
    assert printed > 0
    assert abs(printed - amount) <= max(Decimal("0.005") if amount >= Decimal("0.1") else 0, amount * Decimal("0.005"))


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0.4", "$0.40"),
        ("0.0873", "$0.087"),
        ("0.0996", "$0.10"),
        ("0.1", "$0.10"),
        ("0.005", "$0.005"),
        ("0", "$0.00"),
    ],
)
def test_rough_dollars(amount: str, text: str) -> None:
    assert numbers.rough_dollars(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0.59375", "$0.59375"), ("0.95", "$0.95"), ("2", "$2.00"), ("0.0475000", "$0.0475"), ("1234.5", "$1,234.50")],
)
def test_exact_dollars(amount: str, text: str) -> None:
    assert numbers.exact_dollars(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("1E-7", "0.0000001"),
        ("1E+3", "1000"),
        ("0.100", "0.1"),
        ("100", "100"),
        ("0", "0"),
        ("0E-12", "0"),
        ("-0.0", "0"),
        ("-1.50", "-1.5"),
        ("0.12345678901234567890123456789012345", "0.12345678901234567890123456789012345"),
    ],
)
def test_exact_has_all_digits_and_no_exponent(amount: str, text: str) -> None:
    assert numbers.exact(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (999, "999"),
        (1_000, "1.0k"),
        (1_249, "1.2k"),
        (1_250, "1.3k"),
        (9_949, "9.9k"),
        (9_950, "10k"),
        (310_400, "310k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (4_900_000, "4.90M"),
        (9_994_999, "9.99M"),
        (9_995_000, "10.0M"),
        (14_149_999, "14.1M"),
        (99_949_999, "99.9M"),
        (99_950_000, "100M"),
        (999_499_999, "999M"),
        (999_500_000, "1.00B"),
        (1_414_000_000_000, "1,414.00B"),
    ],
)
def test_tokens(count: int, text: str) -> None:
    assert numbers.tokens(count) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ("-0.3153", "−32%"),
        ("0.08", "+8%"),
        ("0", "0%"),
        ("0.031", "+3.1%"),
        ("0.03", "+3%"),
        ("0.0994", "+9.9%"),
        ("0.0995", "+10%"),
        ("0.00949", "+0.9%"),
        ("0.004", "+0.4%"),
        ("0.000449", "+0.04%"),
        ("0.98949", "+99%"),
        ("0.9951", "+99.5%"),
        ("0.9996", "+99.9%"),
        ("0.999999", "+99.9%"),
        ("1", "+100%"),
        ("1.000001", "+100.1%"),
        ("-0.9996", "−99.9%"),
        ("-1", "−100%"),
        ("12.345", "+1,235%"),
    ],
)
def test_percent(ratio: str, text: str) -> None:
    assert numbers.percent(Decimal(ratio), signed=True) == text


def test_percent_without_sign_and_of_a_float() -> None:
    assert numbers.percent(0.031) == "3.1%"
    assert numbers.percent(Decimal("-0.5")) == "−50%"


@pytest.mark.parametrize(
    ("ratio", "text"), [("-0.32", "32% less"), ("0.08", "8% more"), ("0", "the same"), (None, "not comparable")]
)
def test_compared(ratio: str | None, text: str) -> None:
    assert numbers.change_text(None if ratio is None else Decimal(ratio)) == text


@pytest.mark.parametrize(("ratio", "text"), [("2.84", "2.8 ×"), ("2", "2 ×"), ("14.6", "15 ×"), ("1234.5", "1,235 ×")])
def test_times(ratio: str, text: str) -> None:
    assert numbers.times(Decimal(ratio)) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1204, "1,204 calls")])
def test_counted(count: int, text: str) -> None:
    assert numbers.count_text(count, "call") == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 budgets hold"), (1, "1 budget holds"), (1204, "1,204 budgets hold")]
)
def test_a_verb_agrees_with_its_count(count: int, text: str) -> None:
    assert numbers.count_text(count, "budget", "hold") == text


def test_a_range_of_equal_texts_is_one_text() -> None:
    assert numbers.range_text("2", "6") == "2–6"
    assert numbers.range_text("$1.20", "$3.40", " to ") == "$1.20 to $3.40"
    assert numbers.range_text("2", "2") == "2"


def test_a_margin_has_its_sign_and_what_it_is_in_dollars() -> None:
    assert numbers.margin_text(0.059) == "±5.9%"
    assert numbers.margin_text(Decimal("0.059"), Decimal("0.777")) == "±5.9% → ±$0.78"
    assert numbers.margin_text(0.0, Decimal(0)) == ""


def test_change_is_none_where_it_means_nothing() -> None:
    assert numbers.change(Decimal(3), Decimal(4)) == Decimal("-0.25")
    assert numbers.change(Decimal(0), Decimal(4)) == -1
    assert numbers.change(Decimal(3), Decimal(0)) is None
    assert numbers.change(None, Decimal(4)) is None
    assert numbers.change(Decimal(3), None) is None


def test_decimal_points_stand_in_one_line() -> None:
    assert numbers.point_aligned(["$24.10", "$0.0475", "–"]) == ["$24.10  ", "$0.0475", "–"]
    assert numbers.point_aligned(["1.2k", "310k"]) == ["1.2k", "310k"]
    assert numbers.point_aligned([]) == []


@pytest.mark.parametrize(
    ("amounts", "cells"),
    [
        (["2.44", "0.04", "0.0207"], ["$2.44", "$0.04", "$0.02"]),
        (["0.0475", "0.0207", "0.02"], ["$0.0475", "$0.0207", "$0.0200"]),
        (["157.57", "0.004", "0"], ["$157.57", "<$0.01", "$0.00"]),
        (["1234.5", "-0.001"], ["$1,234.50", "−<$0.01"]),
        (["0.00182", "0.0192"], ["$0.0018", "$0.0192"]),
        ([None, "3"], ["–", "$3.00"]),
    ],
)
def test_a_column_of_dollars_has_one_precision(amounts: list[str | None], cells: list[str]) -> None:
    assert numbers.dollar_column([None if one is None else Decimal(one) for one in amounts]) == cells


@pytest.mark.parametrize(
    ("ratios", "cells"),
    [
        (["0.22", "-0.0612", "1.56"], ["+22%", "−6%", "+156%"]),
        (["0.075", "0.022"], ["+7.5%", "+2.2%"]),
        (["0.22", "0.003"], ["+22.0%", "+0.3%"]),
        (["0.22", "0.0003"], ["+22.0%", "+<0.1%"]),
        (["0.22", "0"], ["+22%", "0%"]),
        (["0.9996", "0.5"], ["+99.9%", "+50.0%"]),
        (["0.0004", None], ["+0.04%", "–"]),
        ([None], ["–"]),
    ],
)
def test_a_column_of_percentages_has_one_precision(ratios: list[str | None], cells: list[str]) -> None:
    shares = [None if one is None else Decimal(one) for one in ratios]
    assert numbers.percent_column(shares, signed=True) == cells


@pytest.mark.parametrize(
    ("counts", "cells"),
    [
        ([53_600_000, 2_550_000, 310_000, 950], ["53.6M", "2.6M", "310k", "950"]),
        ([72_000, 1_640], ["72k", "2k"]),
        ([1_640, 2_500], ["1.6k", "2.5k"]),
        ([None, 0], ["–", "0"]),
    ],
)
def test_a_column_of_tokens_has_one_precision_a_unit(counts: list[int | None], cells: list[str]) -> None:
    assert numbers.token_column(counts) == cells


@pytest.mark.parametrize(
    ("at", "expected"),
    [(0.0, 0.0), (LATEST - 1, LATEST - 1), (LATEST, None), (1e12, None), (-1e12, None), (None, None)],
)
def test_a_time_is_of_the_years_1_to_8999(at: float | None, expected: float | None) -> None:
    assert known_time(at) == expected
