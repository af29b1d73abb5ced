"""A bill in figures: the totals, the causes, and a row for each of what the bill is divided by.

`UnwrittenUsage` is that of calls that a client made and wrote into no transcript (compactions, titles), from its sums.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from cachecost.account.causes import Cause
from cachecost.analysis.bill.account import BillAccount, BilledRewrite, session_key
from cachecost.analysis.bill.call_prices import CallPrices, missing_output
from cachecost.analysis.bill.prompt_results import PromptResults, prompt_results
from cachecost.base.structs import replace
from cachecost.conversations.input_files import SKILL, BilledCall, SessionFile
from cachecost.providers.clients.settings import client_settings
from cachecost.providers.usage import (
    COST_CLASSES,
    NO_AMOUNTS,
    PER_TOKEN,
    SMALLEST_PART,
    ZERO,
    Prices,
    ToolUses,
    Usage,
    add_uses,
    call_amounts,
    plus,
    usage_of,
)

NO_TOKENS = (0, 0, 0, 0, 0)
RowKey = tuple[str, str]
"""What a row is for, and its project where that is part of it."""


@dataclass(frozen=True, slots=True)
class UnwrittenUsage:
    """What the unwritten calls of a session used on one model; `cost` in USD (None: no price is known)."""

    session: str
    model: str
    usage: Usage
    cost: Decimal | None


def find_unwritten(account: BillAccount) -> list[UnwrittenUsage]:
    """The unwritten usage of the sessions of an account that are in its period as a whole."""
    if not any(file.client_sums for file in account.files):
        return []
    counted = {id(call) for _, call in account.calls()}
    written: dict[tuple[str, str], TokenSum] = defaultdict(lambda: TokenSum(None))  # by session and model
    partly: set[str] = set()  # sessions with calls that are copies or not in the period
    for file in account.files:
        for call in file.calls:
            if id(call) not in counted:
                partly.add(call.session)
            for model, tokens in ((call.model, call.tokens), *call.extra):
                written[call.session, model or call.model].add(tokens, ())
    found: list[UnwrittenUsage] = []
    for file in account.files:
        session = file.calls[-1].session if file.calls else ""
        for model, tokens in file.client_sums.items() if session not in partly else ():
            rest = [one - known for one, known in zip(tokens, written[session, model].tokens, strict=True)]
            if any(rest) and min(rest) >= 0:
                usage, call = usage_of(rest), BilledCall(0, 0, model, NO_TOKENS, file.calls[-1].start)
                prices = account.prices.prices_of(call, model, 0)
                found.append(UnwrittenUsage(session, model, usage, prices.total_cost(usage) if prices else None))
    return found


def unwritten_cost(found: Sequence[UnwrittenUsage]) -> Decimal:
    return sum((one.cost or ZERO for one in found), ZERO)


@dataclass(slots=True)
class CauseTotal:
    """How often a cause occurred, and the tokens and USD that it cost."""

    cause: Cause
    times: int = 0
    tokens: int = 0
    cost: Decimal = ZERO

    def add(self, rewrite: BilledRewrite) -> None:
        self.times += 1
        self.tokens += rewrite.tokens
        self.cost += rewrite.cost or ZERO

    def move(self, other: dict[Cause, CauseTotal], tokens: int, cost: Decimal, is_new: bool) -> None:
        """Count tokens and USD in the causes of another row, and no longer in this one; `is_new` is another time."""
        total = other.setdefault(self.cause, CauseTotal(self.cause))
        total.times += is_new
        total.tokens, total.cost = total.tokens + tokens, total.cost + cost
        self.tokens, self.cost = self.tokens - tokens, self.cost - cost


@dataclass(slots=True)
class TokenSum:
    """Tokens of calls with the same prices; of one call where its answer says what it was charged."""

    prices: Prices | None
    charged: Decimal | None = None
    tokens: list[int] = field(default_factory=lambda: list(NO_TOKENS))
    uses: ToolUses = ()
    missing_output: int = 0
    """Output tokens that were not recorded, estimated."""

    def add(self, tokens: Sequence[int], uses: ToolUses) -> None:
        own = self.tokens
        own[0] += tokens[0]
        own[1] += tokens[1]
        own[2] += tokens[2]
        own[3] += tokens[3]
        own[4] += tokens[4]
        if uses:
            self.uses = add_uses(self.uses, uses)

    @property
    def usage(self) -> Usage:
        return usage_of(self.tokens, self.uses, self.charged)

    @property
    def amounts(self) -> Sequence[Decimal]:
        """USD by class, in the order of `COST_CLASSES`."""
        return call_amounts(self.usage, self.prices) or NO_AMOUNTS

    @property
    def cost(self) -> Decimal:
        return sum(self.amounts, ZERO)


@dataclass(slots=True)
class BillRow:
    """The calls of one session, project, day, model …, or the results of one tool: `key` says which.

    Where the calls differ in session, project or agent, that field is ""; `models`, and of a session, branch or version
    also `branches` and `versions`, are all that occur.
    """

    key: str
    session: str = ""
    project: str = ""
    agent: str = ""
    client: str = ""
    title: str = ""
    models: list[str] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    first: float | None = None
    last: float | None = None
    calls: int = 0
    """Of results: the calls in whose prompts they are."""
    unpriced: int = 0
    results: int = 0
    result_tokens: int = 0
    """The results of a tool, and their tokens where they were sent first (an estimate)."""
    partial_outputs: int = 0
    """Calls whose output tokens are those of an answer that was not complete."""
    causes: dict[Cause, CauseTotal] = field(default_factory=dict)
    _sums: dict[int, TokenSum] = field(default_factory=dict)
    charged_calls: int = 0
    """Calls whose answers say what they were charged; `charged` USD, `listed` at list prices (None: not all are
    known)."""
    charged: Decimal = ZERO
    listed: Decimal | None = ZERO
    _extra: list[Decimal] = field(default_factory=lambda: list(NO_AMOUNTS))

    def add(self, call: BilledCall, found: Prices | None, prices: CallPrices, is_sum_known: bool = False) -> None:
        """Count a call, whose prices are `found`. What it lacks is in the sum of its session, where that is known."""
        charged = call.charged_usd
        key = id(found if charged is None else call)
        total = self._sums.get(key)
        if total is None:
            total = self._sums[key] = TokenSum(found, charged)
        total.add(call.tokens, call.tool_uses)
        self.count(call, found)
        if charged is not None:
            listed = prices.prices_of(call, call.model, call.total_input)
            self.charged_calls += 1
            self.charged += charged
            self.listed = plus(self.listed, listed.total_cost(call.usage) if listed else None)
        if call.is_output_partial:
            self.partial_outputs += 1
            total.missing_output += 0 if is_sum_known else missing_output(call)

    def count(self, call: BilledCall, found: Prices | None) -> None:
        """Note that a call is in the row, whose prices are `found`."""
        self.calls += 1
        self.unpriced += found is None and call.charged_usd is None
        start = call.start
        if start is not None:
            self.first = start if self.first is None or start < self.first else self.first
            self.last = start if self.last is None or start > self.last else self.last
        if call.model not in self.models:
            self.models.append(call.model)

    def move(self, other: BillRow, call: BilledCall, found: Prices | None, tokens: Sequence[int]) -> None:
        """Count tokens of a call in another row, and no longer in this one; of what it was charged, their part."""
        key, charge = id(found), None
        if call.charged_usd is not None:
            key = id(call)
            parts = found.amounts(usage_of(tokens)) if found else NO_AMOUNTS
            charge = sum((part.quantize(SMALLEST_PART) for part in parts), ZERO)
            self._sums[key].charged = (self._sums[key].charged or ZERO) - charge
        self._sums[key].add([-count for count in tokens], ())
        total = other._sums.get(key)
        if total is None:
            total = other._sums[key] = TokenSum(found, charge)
        elif charge is not None:
            total.charged = (total.charged or ZERO) + charge
        total.add(tokens, ())

    def move_rewrite(
        self, again: BilledRewrite, prompt: PromptResults, rows: Mapping[str, BillRow], prices: CallPrices
    ) -> None:
        """Count what was paid again for results in their rows."""
        touched = set[str]()
        for name, start, end in prompt.unread(again.call, again.tokens):
            before, paid = (prices.rewrite_cost(again.call, at) or ZERO for at in (start, end))
            self.causes[again.cause].move(rows[name].causes, end - start, paid - before, name not in touched)
            touched.add(name)

    def add_passes(self, call: BilledCall, prices: CallPrices, model: str = "") -> None:
        """Count the passes that the usage of a call leaves out of its sums; of one `model` where it is named."""
        for served, amounts in prices.passes(call):
            if model in ("", served):
                self._add_amounts(amounts)

    def _add_amounts(self, amounts: Sequence[Decimal]) -> None:
        self._extra = [one + more for one, more in zip(self._extra, amounts, strict=True)]

    def add_row(self, other: BillRow) -> None:
        """Count the calls of another row."""
        for key, one in other._sums.items():
            total = self._sums.setdefault(key, TokenSum(one.prices, one.charged))
            total.add(one.tokens, one.uses)
            total.missing_output += one.missing_output
        self.charged_calls += other.charged_calls
        self.charged += other.charged
        self.listed = plus(self.listed, other.listed)
        self.calls += other.calls
        self.unpriced += other.unpriced
        self.partial_outputs += other.partial_outputs
        self._add_amounts(other._extra)
        self.first = min((at for at in (self.first, other.first) if at is not None), default=None)
        self.last = max((at for at in (self.last, other.last) if at is not None), default=None)
        self.models += [model for model in other.models if model not in self.models]

    def add_rewrite(self, rewrite: BilledRewrite) -> None:
        self.causes.setdefault(rewrite.cause, CauseTotal(rewrite.cause)).add(rewrite)

    @property
    def missing_output(self) -> int:
        """Output tokens of partial answers that were billed and not recorded, estimated from their text."""
        return sum(one.missing_output for one in self._sums.values())

    @property
    def missing_output_cost(self) -> Decimal:
        """The same in USD; in no other figure."""
        sums = self._sums.values()
        return sum(((one.missing_output * one.prices.output).scaleb(PER_TOKEN) for one in sums if one.prices), ZERO)

    @property
    def missing_output_margin(self) -> Decimal:
        """The error margin of `missing_output_cost` in USD."""
        return self.missing_output_cost * Decimal(str(client_settings().partial_output.margin))

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self._sums.values()), Usage())

    @property
    def cost_by_class(self) -> dict[str, Decimal]:
        """USD billed by class; they add up to `cost`."""
        parts = [self._extra, *(one.amounts for one in self._sums.values())]
        return {name: sum(amounts, ZERO) for name, amounts in zip(COST_CLASSES, zip(*parts, strict=True), strict=True)}

    @property
    def cost(self) -> Decimal:
        """USD billed: what answers say that they were charged, all others at list prices."""
        return sum((one.cost for one in self._sums.values()), sum(self._extra, ZERO))

    @property
    def saved_by_caching(self) -> Decimal:
        """USD less than without any caching; calls without a price cost nothing there."""
        saved = ZERO
        for one in self._sums.values():
            if one.prices is not None:
                usage = one.usage
                uncached = replace(usage, input_tokens=usage.total_input, read=0, write_5m=0, write_1h=0)
                saved += one.prices.total_cost(uncached)
            saved -= one.cost
        return saved

    @property
    def rewritten(self) -> Decimal:
        return sum((one.cost for one in self.causes.values()), ZERO)

    @property
    def necessary(self) -> Decimal:
        return self.cost - self.rewritten

    @property
    def hit_rate(self) -> Decimal | None:
        """Tokens read from the cache ÷ input tokens; None without input."""
        usage = self.usage
        return Decimal(usage.read) / usage.total_input if usage.total_input else None

    @property
    def ranked_causes(self) -> list[CauseTotal]:
        """The most expensive first."""
        return sorted(self.causes.values(), key=lambda one: (-one.cost, -one.tokens, one.cause))


@dataclass(frozen=True, slots=True)
class BillSummary:
    """The totals of a bill and its rows by `by`, the most expensive first; days and weeks in order of time."""

    by: str
    total: BillRow
    rows: list[BillRow]
    sessions: int
    unpriced: Mapping[str, int]
    """Calls that are not in the dollars, by reason."""
    unpriced_tokens: Mapping[str, int]
    """Theirs, of input and output, in the same order."""
    copies: int = 0
    warm_calls: int = 0
    warm_tokens: int = 0
    unwritten: Sequence[UnwrittenUsage] = ()
    """By session and model; not in the totals."""
    zone: tzinfo = UTC
    """Of the days, weeks and months."""
    estimates_output: bool = True
    """Whether what was not recorded of the output is estimated."""


NO_BRANCH, NO_PULL_REQUEST, NO_VERSION = (f"no {what} recorded" for what in ("branch", "pull request", "version"))
REST, NO_RESULTS = "everything else", "results not known"
"""The rows of what is no result of a tool, and of calls whose results are not known."""


def summarize(account: BillAccount, by: str = "session") -> BillSummary:
    """The summary of an account. Raises KeyError if `by` is none of `ROWS_BY`."""
    grouped, total = GroupedRows(account, by), BillRow("total")
    sessions, unpriced, tokens = set[str](), Counter[str](), Counter[str]()
    prices, unwritten = account.prices, find_unwritten(account)
    summed = {one.session for one in unwritten}
    for file, call, found in account.priced_calls():
        row = grouped.row(file, call)
        row.add(call, found, prices, call.session in summed)
        if by != "model":
            row.add_passes(call, prices)
        else:
            for model in dict.fromkeys(model or call.model for model, _ in call.extra):
                grouped.rows.setdefault((model, ""), BillRow(model)).add_passes(call, prices, model)
        sessions.add(session_key(file, call))
        if (found is None or call.extra) and call.charged_usd is None:
            unpriced.update(reasons := prices.why_unpriced(call))
            tokens.update(dict.fromkeys(reasons, call.usage.total_input + call.usage.output_tokens))
    for row in grouped.rows.values():
        total.add_row(row)
    for rewrite in account.rewrites:
        total.add_rewrite(rewrite)
        grouped.row(rewrite.file, rewrite.call).add_rewrite(rewrite)
    if by in RESULTS:
        grouped.move_results(RESULTS[by])
    warm = account.warm_calls, account.warm_tokens
    ranked = grouped.ranked()
    unread = unpriced, tokens, account.copies
    return BillSummary(by, total, ranked, len(sessions), *unread, *warm, unwritten, account.zone)


@dataclass(slots=True)
class GroupedRows:
    """The rows of a bill, by what they are for. Raises KeyError if `by` is none of `ROWS_BY`."""

    account: BillAccount
    by: str
    rows: dict[RowKey, BillRow] = field(default_factory=dict)
    _group: Callable[[SessionFile, BilledCall], RowKey] = field(init=False)
    _linked: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    """(time, pull request) of those that a session linked, by session."""

    def __post_init__(self) -> None:
        if self.by == "pr":
            for file in self.account.files:
                for session, at, name in file.pull_requests:
                    insort(self._linked[session], (at, name))
            self._group = self.pull_request
        else:
            self._group = self.period if self.by in PERIODS else GROUPS[self.by]

    def row(self, file: SessionFile, call: BilledCall) -> BillRow:
        """The row of a call."""
        first_file, first = self.account.original(file, call)
        by = self.by
        key = self._group(first_file, first) if by in AT_ITS_TIME else self._group(file, call)
        found = self.rows.get(key)
        if found is None:
            found = self.rows[key] = BillRow(
                key[0],
                session=key[0] if by == "session" else "",
                project=file.project if by == "session" else key[1],
                agent=key[0] if by == "agent" else "",
                client=file.client if by == "session" else "",
            )
        if by in NAMED:
            branch, version = first_file.branch(first), first.version
            found.branches += [branch] if branch and branch not in found.branches else []
            found.versions += [version] if version and version not in found.versions else []
        if by == "session" and not call.agent:
            found.project, found.title = file.project, file.title or found.title
        return found

    def period(self, _: SessionFile, call: BilledCall) -> RowKey:
        """The period of a call in the zone of the account."""
        if call.start is None:
            return "unknown", ""
        return datetime.fromtimestamp(call.start, self.account.zone).strftime(PERIODS[self.by]), ""

    def pull_request(self, _: SessionFile, call: BilledCall) -> RowKey:
        """The one that its session linked next, else last: calls lead to it, and what follows the last is about it."""
        links = self._linked.get(call.session, [])
        later = (name for at, name in links if call.start is not None and at >= call.start)
        return next(later, links[-1][1] if links else NO_PULL_REQUEST), ""

    def move_results(self, name_of: Callable[[str], str]) -> None:
        """Give results rows of their own, by what their tool is called here ("": nothing); what they cost leaves the
        row of their calls."""
        rest = self.rows.get((REST, ""), BillRow(REST))
        priced = {id(call): found for _, call, found in self.account.priced_calls()}
        rewrites = {id(one.call): one for one in self.account.rewrites}
        for file in self.account.files:
            for call, prompt in prompt_results(file, name_of):
                if id(call) not in priced:
                    continue
                rows = {name: self.rows.setdefault((name, ""), BillRow(name)) for name in prompt.totals}
                for name, tokens in prompt.tokens(call).items():
                    rest.move(rows[name], call, priced[id(call)], tokens)
                    rows[name].count(call, priced[id(call)])
                for name, size in prompt.added:
                    rows[name].results += 1
                    rows[name].result_tokens += size
                if again := rewrites.get(id(call)):
                    rest.move_rewrite(again, prompt, rows, self.account.prices)

    def ranked(self) -> list[BillRow]:
        """The most expensive first, what is left over last; periods in order of time."""
        if self.by in PERIODS:
            return sorted(self.rows.values(), key=lambda row: row.key)
        left_over = (REST, NO_RESULTS)
        return sorted(self.rows.values(), key=lambda row: (row.key in left_over, -row.cost, row.first or 0.0, row.key))


GROUPS: Mapping[str, Callable[[SessionFile, BilledCall], RowKey]] = {
    "session": lambda file, call: (session_key(file, call), ""),
    "project": lambda file, call: (file.project, file.project),
    "branch": lambda file, call: (file.branch(call) or NO_BRANCH, file.project),
    "model": lambda file, call: (call.model, ""),
    "version": lambda file, call: (f"{file.client} {call.version}" if call.version else NO_VERSION, ""),
    "agent": lambda file, call: (call.agent_type or ("sub-agent" if call.agent else "main thread"), ""),
    **dict.fromkeys(("server", "skill", "tool"), lambda file, call: (REST if file.results else NO_RESULTS, "")),
}
"""What rows can be made by, besides periods and pull requests. A branch is one of a project."""
NAMED = ("session", "branch", "version")
"""Rows that say their branches and versions."""
AT_ITS_TIME = ("branch", "version", "pr")
"""Of copies of a call, the first decides: the others say what was so when the session was resumed."""
RESULTS: Mapping[str, Callable[[str], str]] = {
    "server": lambda tool: tool.split("__")[1] if tool.startswith("mcp__") else "",
    "skill": lambda tool: tool.removeprefix(SKILL) if tool.startswith(SKILL) else "",
    "tool": lambda tool: "Skill" if tool.startswith(SKILL) else tool,
}
"""Rows that results have, by what their tool is called: mcp__SERVER__TOOL, or "Skill NAME"."""
PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
"""Periods in the zone of the account; weeks are those of ISO 8601."""
ROWS_BY = ("session", "project", "branch", "pr", *PERIODS, "model", "version", "agent", *RESULTS)
