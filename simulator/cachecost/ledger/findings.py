"""The findings of `cachecost explain`: every avoidable miss and write, with its cause, place and dollars."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.caches.causes import Cause
from cachecost.ledger.rows import ZERO, WarmReads
from cachecost.prompts.blocks import Layer


@dataclass(frozen=True, slots=True)
class Finding:
    """One call that paid more than it had to, for one cause.

    `call` counts from 1; `since` is the earlier call that it is compared with. `block` is the place of the first
    difference in the request (`system.1`, `messages.4.content.0`); `tokens` were paid for at more than the read price.
    `excerpt` is the text around the first character that differs, None without content.
    """

    code: str
    cause: Cause
    call: int
    layer: Layer
    block: str
    tokens: int
    cost: Decimal
    message: str
    fix: str
    since: int | None = None
    excerpt: str | None = None
    diagnostics: str = "unavailable"
    """Anthropic's word for it: model_changed, system_changed, tools_changed, messages_changed, else unavailable."""
    session: str = ""
    project: str = ""
    agent: str = ""
    timestamp: str | None = None
    file: str = ""
    line: int | None = None
    session_call: int | None = None
    """The number of the call within its session, from 1, by time; None without a session."""
    paid_again: Decimal = ZERO
    """USD above the price of a read that the tokens cost: what happened. `cost` is what its fix nets."""
    is_behind: bool = False
    """Whether the cause only shows once the causes before it are fixed; a replay of the log does not name it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a log costs, and what it would have cost with the fix of every finding.

    The findings' dollars add up to the difference, exactly: each is what its fix nets in a replay with the fix and
    with those before it, other costs of the fix included. `notes` are faults whose fix nets nothing.
    """

    calls: int
    cost: Decimal
    without: Decimal
    findings: list[Finding]
    strategy: str = ""
    token_source: str = ""
    error_margin: float = 0.0
    open_share: float = 1.0
    """The share of the avoidable dollars that rests on token counts and not on bills."""
    flips: list[str] = field(default_factory=list)
    """Assumptions under which the answer differs, each in a sentence."""
    warm: WarmReads = WarmReads()
    """Reads of what was cached before the recording began. They are no loss."""
    billed: Decimal | None = None
    """USD that were billed, where the calls have bills: then the findings are what the bills show."""
    not_explained: list[Finding] = field(default_factory=list)
    """Rewrites that the bills show and nothing explains; their dollars are not in `avoidable`."""
    notes: list[Finding] = field(default_factory=list)
    """What was paid again and no fix makes cheaper: their cost is 0."""
    lower_bound: Decimal | None = None
    """USD that the calls cost at least as the fixes would send them; None where only bills are known."""
    bounds_fixed_requests: bool = False
    """Whether the lower bound is for other requests than were sent: those that the fixes change them to."""

    @property
    def not_explained_usd(self) -> Decimal:
        return sum((finding.cost for finding in self.not_explained), ZERO)

    @property
    def necessary(self) -> Decimal | None:
        """USD of the bill that are neither avoidable nor unexplained; None without a bill."""
        return None if self.billed is None else self.billed - self.avoidable - self.not_explained_usd

    @property
    def avoidable(self) -> Decimal:
        return sum((finding.cost for finding in self.findings), ZERO)
