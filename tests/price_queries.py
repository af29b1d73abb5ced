"""Prices as tests ask for them: by day or moment, and by name of the tier or region."""

from __future__ import annotations

from datetime import date, datetime

from cachecost.providers.prices import CallTerms, PriceBook, Prices


def prices_of(
    book: PriceBook,
    host: str,
    model: str,
    day: date | None,
    tokens: int,
    *,
    regional: bool | None = None,
    moment: datetime | None = None,
    us: bool = False,
    **tiers: bool,
) -> Prices:
    """The prices of a prompt of `tokens`; `moment` wins over `day`, `tiers` are those with True."""
    region = "us" if us else {True: "regional", False: "global", None: ""}[regional]
    terms = CallTerms(tuple(name for name, holds in tiers.items() if holds), region)
    return book.quote(host, model, moment or day, terms).of(tokens)
