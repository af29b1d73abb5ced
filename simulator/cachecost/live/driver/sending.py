"""Sends calls within a budget: reserve the upper bound, send, settle by the bill, retry if that may help."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import Any

import httpx2
from anthropic import AsyncAnthropic

from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import exact_dollars
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.live.clock import Clock
from cachecost.live.driver.budget import (
    AnsweredCall,
    CallFailed,
    CallPricing,
    DollarBudget,
    OverBilled,
    Reservation,
    TokenBounds,
    bounds_of_bytes,
    bounds_of_count,
    find_doubts,
    unbounded_reason,
)
from cachecost.live.driver.journal import Journal
from cachecost.live.driver.wire import AttemptFailed, Wire, bound_answer
from cachecost.providers.usage import ZERO

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
"""Without a `retry-after`: 0.5 s, doubled each time, at most a minute."""
JITTER = 0.25
"""The random share of a wait, so that parallel calls do not retry together."""
AGAIN = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `most` retries of a call; waits are drawn from `seed`, so the same run waits the same."""

    most: int = 4
    seed: str = ""

    def wait(self, fault: AttemptFailed, retry: int, label: str, now: float) -> float | None:
        """Seconds to wait before the `retry`-th retry (from 1) of a call; None: do not retry."""
        header = fault.headers.get("x-should-retry")
        is_worth_it = fault.status is None or fault.status in AGAIN or fault.status >= 500
        if fault.status is not None and header in ("true", "false"):
            is_worth_it = header == "true"
        if retry > self.most or not is_worth_it:
            return None
        asked = asked_for(fault.headers, now)
        if asked is not None:
            return asked if asked <= 900.0 else None  # a call is not retried if the server asks for a longer wait
        wait = min(FIRST_WAIT_S * 2.0 ** (retry - 1), LONGEST_WAIT_S)
        drawn = int.from_bytes(blake2b(f"{self.seed}/{label}/{retry}".encode(), digest_size=4).digest()) / 2**32
        return wait * (1 - JITTER * drawn)


def asked_for(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds, or a date) ask for; None where they do not."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if seconds == seconds else None
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    zoned = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.fromtimestamp(now, UTC)).total_seconds())


class BudgetedSender:
    """A Sender. Calls may be sent in parallel; each reserves the most it can cost.

    `cached` are the tokens that calls of the same run may have cached before.
    """

    def __init__(
        self,
        wire: Wire,
        pricing: CallPricing,
        budget: DollarBudget,
        clock: Clock,
        retries: RetryPolicy,
        journal: Journal | None = None,
        cached: int = 0,
    ) -> None:
        self.budget, self.pricing = budget, pricing
        self._wire, self._clock, self._retries, self._journal = wire, clock, retries, journal
        self._cached = cached
        """With all tokens of attempts that are under way or whose bill is unknown."""

    async def send(self, body: Mapping[str, Any], label: str = "") -> AnsweredCall:
        """Send one call. Raises OverBudget before an attempt, CallFailed after the last, OverBilled at once."""
        bounds = await self._bounds(body)
        try:
            worst = self.pricing.worst(body, bounds.most, day_of(self._clock.now()))
        except CannotEvaluate as error:
            raise CallFailed(f"not sent: {error}", None, "unpriced") from None
        for retry in range(self._retries.most + 1):
            reservation = await self.budget.reserve(worst)
            try:
                return await self._attempt(body, label, retry, reservation, bounds)
            except AttemptFailed as fault:
                await self._wait(fault, retry + 1, label)
        raise AssertionError("the last retry is not waited for")

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens by the count_tokens endpoint. Raises CallFailed."""
        for retry in range(self._retries.most + 1):
            try:
                return await self._wire.count(body, retry)
            except AttemptFailed as fault:
                await self._wait(fault, retry + 1, "count_tokens")
        raise AssertionError("the last retry is not waited for")

    async def _bounds(self, body: Mapping[str, Any]) -> TokenBounds:
        """The input tokens of a call, counted by the API, else by size. Raises CallFailed if they have no bound."""
        if why := unbounded_reason(body):
            raise CallFailed(f"not sent: {why}", None, "unbounded")
        try:
            counted = await self.count(body)
        except CallFailed as fault:
            if fault.status in (401, 403):
                raise
            bounds, why = bounds_of_bytes(body), f"failed, and the size of images gives no token count ({fault})"
        else:
            why = f"says {counted:,}, too few for so much text, and the size of images gives no token count"
            bounds = bounds_of_count(counted, body) or bounds_of_bytes(body)
        if bounds is None:
            raise CallFailed(f"not sent: count_tokens {why}", None, "unbounded")
        return bounds

    async def _attempt(
        self, body: Mapping[str, Any], label: str, retry: int, reservation: Reservation, bounds: TokenBounds
    ) -> AnsweredCall:
        """One attempt. In any case its reservation is settled, or stays charged."""
        if self._journal:
            self._journal.on_reserved(label, retry, reservation.dollars)
        self._cached += bounds.most
        try:
            sent = await self._wire.post(body, retry)
        except AttemptFailed as fault:
            if fault.is_billable:
                self.budget.keep(reservation)
                if self._journal:
                    self._journal.on_lost(label, retry, fault, reservation.dollars, body)
            else:
                self.budget.release(reservation)
                if self._journal:
                    self._journal.on_released(label, retry, fault)
                self._cached -= bounds.most
            raise
        except BaseException:
            self.budget.keep(reservation)
            raise
        try:
            dollars = self.pricing.cost(body, sent.usage, day_of(sent.start))
        except CannotEvaluate as error:
            self.budget.keep(reservation)
            raise OverBilled(f"a bill that cannot be priced: {error}") from None
        doubts = "; ".join(find_doubts(sent, body, bounds, self._cached - bounds.most))
        if doubts:
            most = reservation.dollars
            doubt = f"the usage is not believed ({doubts}), so {exact_dollars(most)} counts as spent"
            sent = replace(sent, doubt=doubt, unknown_usd=max(ZERO, most - dollars))
        else:
            self._cached += sent.usage.write - bounds.most
        self.budget.settle(reservation, dollars, sent.unknown_usd)
        if self._journal:
            self._journal.on_answered(label, retry, sent, dollars, body)
        return sent

    async def _wait(self, fault: AttemptFailed, retry: int, label: str) -> None:
        """Wait before the next attempt. Raises CallFailed if there is none."""
        wait = self._retries.wait(fault, retry, label, self._clock.now())
        if wait is None:
            raise CallFailed(str(fault), fault.status, fault.kind) from None
        await self._clock.sleep(wait)


TIMEOUT_S = 300.0
"""Seconds without a byte after which an answer is given up."""


@asynccontextmanager
async def sender_to(
    key: str,
    base_url: str | None,
    pricing: CallPricing,
    budget: DollarBudget,
    clock: Clock,
    retries: RetryPolicy,
    journal: Journal | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    betas: tuple[str, ...] = (),
    timeout_s: float = TIMEOUT_S,
    cached: int = 0,
) -> AsyncIterator[BudgetedSender]:
    """A BudgetedSender while the body runs. `base_url` None is the API itself; tests give a `transport`.

    Redirects are not followed: they would carry the key elsewhere.
    """
    timeout = httpx2.Timeout(timeout_s, connect=10.0)
    hooks = {"response": [bound_answer]}
    async with (
        httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False, event_hooks=hooks) as http,
        AsyncAnthropic(api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http) as client,
    ):
        yield BudgetedSender(Wire(client, clock.now, betas), pricing, budget, clock, retries, journal, cached)
