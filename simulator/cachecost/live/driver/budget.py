"""What a call can cost: bounds on its tokens, its upper bound in dollars, a budget that is never exceeded, and doubts.

A proxy or a bug may report less usage than the API bills, so what cannot have been billed is not believed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Protocol

from cachecost.base.formatting import exact_dollars
from cachecost.prompts.request import BREAKPOINT
from cachecost.providers.prices import PriceBook, Prices, terms_of
from cachecost.providers.usage import ZERO, Usage

COUNT_SHARE, COUNT_TOKENS = 0.05, 200
"""Margin over count_tokens, which is documented as an estimate: 5% and 200 tokens."""
HIDDEN_TOKENS, BLOCK_TOKENS = 3_000, 60
"""Tokens that the API adds itself (most is the tool prompt, below 1,000 on every model), and around a block."""
MOST_TEXT_BYTES = 6
"""Bytes of text per token, at most: prose and code have 3 to 5. Fewer tokens than that are not believed."""
TEXTS = frozenset({"text", "content", "description", "thinking"})
"""Names of the strings in a prompt that a person or a model wrote."""


@dataclass(frozen=True, slots=True)
class TokenBounds:
    """The fewest and the most input tokens that a call can be billed; `source` is what the fewest come from."""

    least: int
    most: int
    source: str


def bounds_of_count(counted: int, body: Mapping[str, Any]) -> TokenBounds | None:
    """The bounds when count_tokens says `counted`; None if `body` has so much text that this cannot be true."""
    if counted < max(1, _least_tokens(body)):
        return None
    return TokenBounds(counted, from_count(counted), "counted before sending")


def bounds_of_bytes(body: Mapping[str, Any]) -> TokenBounds | None:
    """The bounds by size alone; None where the size does not limit the tokens."""
    most = from_bytes(body)
    return None if most is None else TokenBounds(max(1, _least_tokens(body)), most, "the least for so much text")


def _least_tokens(body: Mapping[str, Any]) -> int:
    blocks = _objects({name: body.get(name) for name in ("tools", "system", "messages")})
    texts = [text for block in blocks for name, text in block.items() if name in TEXTS and isinstance(text, str)]
    if isinstance(system := body.get("system"), str):
        texts.append(system)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // MOST_TEXT_BYTES


def from_count(counted: int) -> int:
    """The most tokens that can be billed when count_tokens says `counted`."""
    return counted + int(counted * COUNT_SHARE) + COUNT_TOKENS


def from_bytes(body: Mapping[str, Any]) -> int | None:
    """The most tokens that `body` can have, at one per byte. None where its bytes do not limit them."""
    blocks = list(_objects({name: body.get(name) for name in ("tools", "system", "messages")}))
    # blocks whose size in bytes says nothing about their tokens
    if any(block.get("type") in ("image", "document") for block in blocks):
        return None
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(text) + BLOCK_TOKENS * len(blocks) + HIDDEN_TOKENS


def unbounded_reason(body: Mapping[str, Any]) -> str | None:
    for tool in body.get("tools") or ():
        kind = str(tool.get("type") or "custom")
        # tools that the client runs. Others run in the API, possibly many times in one call, at separate prices
        if not kind.startswith(("custom", "bash_", "text_editor_", "computer_", "memory_")):
            return f"the tool '{tool.get('name')}' ({kind}) runs in the API, so its cost has no upper bound"
    if body.get("mcp_servers"):
        return "the API calls MCP servers, so the cost has no upper bound"
    edits = (body.get("context_management") or {}).get("edits") or ()
    if any(str(edit.get("type")).startswith("compact") for edit in edits):
        return "compaction by the API is billed separately, so the cost has no upper bound"
    if int(body["max_tokens"]) < 0:
        return "max_tokens is below 0"
    return None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """One answered call. `start` is seconds since the epoch, `first_token_s` seconds until its first token.

    `doubt`: why its usage cannot be what was billed ("": it can). `unknown_usd` then counts as spent in addition.
    """

    usage: Usage
    start: float
    first_token_s: float
    response: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""
    unknown_usd: Decimal = ZERO


class OverBudget(Exception):
    """The upper bound of the next call exceeds what is left of the budget; nothing was sent."""


class CallFailed(Exception):
    """The API refused a call, or its last retry failed; `status` is None where there was no answer."""

    def __init__(self, message: str, status: int | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Sender(Protocol):
    """Sends bodies within a budget that is never exceeded."""

    async def send(self, body: Mapping[str, Any]) -> AnsweredCall:
        """Send one Messages call. Raises OverBudget before, CallFailed after the last retry."""

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens by the count_tokens endpoint (free of charge). Raises CallFailed."""


@dataclass(frozen=True, slots=True)
class CallPricing:
    book: PriceBook
    host: str = "anthropic"

    def cost(self, body: Mapping[str, Any], usage: Usage, day: date) -> Decimal:
        """Dollars of an answered call. Raises CannotEvaluate."""
        return self._prices(body, usage.total_input, day).total_cost(usage)

    def worst(self, body: Mapping[str, Any], tokens: int, day: date) -> Decimal:
        """The upper bound of a call of at most `tokens` of input, in USD. Raises CannotEvaluate.

        All input is priced at the most expensive class that the body allows, with all the output it may have.
        """
        tiers, ttls = [self._prices(body, length, day) for length in (0, tokens)], ttls_of(body)
        names = ["input", *(["write_5m"] if ttls else []), *(["write_1h"] if "1h" in ttls else [])]
        highest: Decimal = max(getattr(prices, name) for prices in tiers for name in names)
        output = max(prices.output for prices in tiers)
        most: Decimal = (tokens * highest + int(body["max_tokens"]) * output).scaleb(-6)
        return most

    def _prices(self, body: Mapping[str, Any], tokens: int, day: date) -> Prices:
        return self.book.quote(self.host, body["model"], day, terms_of(body, False)).of(tokens)


def ttls_of(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(ttls_of, value))
    if not isinstance(value, Mapping):
        return set()
    breakpoint = value.get(BREAKPOINT)
    own = {str(breakpoint.get("ttl") or "5m")} if isinstance(breakpoint, Mapping) else set()
    return own.union(*(ttls_of(inner) for name, inner in value.items() if name != BREAKPOINT))


@dataclass(frozen=True, slots=True)
class Reservation:
    number: int
    dollars: Decimal


class OverBilled(Exception):
    """A bill above the call's upper bound: the run stops at once."""


class DollarBudget:
    """`limit` dollars for a whole run. What is spent and what is reserved never exceed it.

    `reserve` has no `await` between its check and its update, so parallel calls cannot both take the last dollars.
    """

    def __init__(self, limit: Decimal, spent: Decimal = ZERO, unknown: Decimal = ZERO) -> None:
        self.limit = limit
        self.billed = spent
        self.unknown = unknown
        """Upper bound of attempts whose bill is unknown."""
        self._reserved: dict[int, Decimal] = {}
        self._number = 0
        self._freed = asyncio.Event()

    @property
    def spent_usd(self) -> Decimal:
        """Dollars that were billed or may have been."""
        return self.billed + self.unknown

    @property
    def remaining_usd(self) -> Decimal:
        return self.limit - self.spent_usd - sum(self._reserved.values(), ZERO)

    async def reserve(self, dollars: Decimal) -> Reservation:
        """Reserve `dollars`; waits for running calls if they may free enough. Raises OverBudget."""
        while dollars > self.remaining_usd:
            if not self._reserved or dollars > self.limit - self.spent_usd:
                limit, remaining = exact_dollars(self.limit), exact_dollars(max(self.remaining_usd, ZERO))
                raise OverBudget(f"the next call may cost {exact_dollars(dollars)}; {remaining} of {limit} is left")
            self._freed.clear()
            await self._freed.wait()
        self._number += 1
        self._reserved[self._number] = dollars
        return Reservation(self._number, dollars)

    def settle(self, reservation: Reservation, billed: Decimal, unknown: Decimal = ZERO) -> None:
        """The call was billed, perhaps with `unknown` more dollars. Raises OverBilled above the reservation."""
        self.release(reservation)
        self.billed += billed
        self.unknown += unknown
        if billed > reservation.dollars:
            raise OverBilled(
                f"a call was billed {exact_dollars(billed)}, above its upper bound of "
                f"{exact_dollars(reservation.dollars)}; stopped because other calls could exceed their bounds too"
            )

    def keep(self, reservation: Reservation) -> None:
        """The attempt's bill is unknown: its upper bound counts as spent."""
        self.release(reservation)
        self.unknown += reservation.dollars

    def release(self, reservation: Reservation) -> None:
        """The attempt was not billed, or its bill is known."""
        del self._reserved[reservation.number]
        self._freed.set()


def find_doubts(sent: AnsweredCall, body: Mapping[str, Any], bounds: TokenBounds, readable: int) -> Iterator[str]:
    """Why its usage cannot be what was billed. `readable` are the tokens that earlier calls of the run may have cached;
    prompts of other runs begin with other words.
    """
    usage, ttls = sent.usage, ttls_of(body)
    if usage.total_input < bounds.least:
        yield f"{usage.total_input:,} input tokens, {bounds.least:,} {bounds.source}"
    if usage.read > readable:
        yield f"{usage.read:,} tokens read, {readable:,} written before"
    if usage.read and not ttls:
        yield f"{usage.read:,} tokens read without a breakpoint"
    if usage.write_5m and ttls == {"1h"}:
        yield f"{usage.write_5m:,} tokens written for 5m, every breakpoint has 1h"
    size = 0
    generated = ("text", "thinking", "input")  # what of a block is output; a signature is not
    for value in (block.get(name) for block in sent.response.get("content", ()) for name in generated):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""
        size += len(text.encode("utf-8", "surrogatepass"))
    least = -(-size // 64)  # bytes of an answer per token of output, at most
    if usage.output_tokens < least:
        yield f"{usage.output_tokens:,} output tokens, {least:,} the least for so much text"
