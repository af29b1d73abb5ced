"""Prices as tests ask for them: by day or moment, and by name of the tier or region."""

from __future__ import annotations

from datetime import UTC, date, datetime

from cachecost.providers.prices import CallMoment, CallTerms, PriceBook, Prices


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
    at = moment.astimezone(UTC) if moment and moment.tzinfo else moment
    when = CallMoment(day or at.date(), at) if at else day
    return book.quote(host, model, when, terms).of(tokens)
