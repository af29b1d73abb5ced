"""A sender for a base URL and a key, and its client, which is closed afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from anthropic import AsyncAnthropic

from cachecost.live.clock import Clock
from cachecost.live.driver.money import Budget, Pricing
from cachecost.live.driver.retrying import Retries
from cachecost.live.driver.sender import BudgetedSender, Watcher
from cachecost.live.driver.wire import Wire

TIMEOUT_S = 300.0
"""Seconds without a byte after which an answer is not waited for any longer."""


@asynccontextmanager
async def sender_to(
    key: str,
    base_url: str | None,
    pricing: Pricing,
    budget: Budget,
    clock: Clock,
    retries: Retries,
    watcher: Watcher | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    betas: tuple[str, ...] = (),
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[BudgetedSender]:
    """A BudgetedSender while the body runs. `base_url` None is the API itself; tests give a `transport`.

    Redirects are not followed: they would carry the key elsewhere.
    """
    timeout = httpx2.Timeout(timeout_s, connect=10.0)
    async with (
        httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False) as http,
        AsyncAnthropic(api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http) as client,
    ):
        yield BudgetedSender(Wire(client, clock.now, betas), pricing, budget, clock, retries, watcher)
