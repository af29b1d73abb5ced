"""The library: `read` a recording, `replay` it under a strategy, `compare` strategies, in a notebook or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.conversations.sessions import read_talks
from cachecost.faults import CannotEvaluate
from cachecost.findings import Explanation
from cachecost.ledger import Comparison, Ledger
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date, switches_from
from cachecost.scenario import head_parts
from cachecost.scenario.models import Head
from cachecost.strategies.spec import StrategySpec
from cachecost.terms import Terms

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

StrategyLike = str | Mapping[str, Any]
"""A preset's name, or a mapping as a scenario writes it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A log of calls: the conversations found in it, and the calls with their bills."""

    name: str
    conversations: list[Conversation]
    calls: list[LoggedCall]

    @property
    def model(self) -> str | None:
        """No one model: each conversation has its own."""
        return None


def read(path: str | Path, *, tools_tokens: int = 0, system_tokens: int = 0) -> Conversation | Recording:
    """What is recorded at `path`, in whatever known format: a conversation, or a log of calls.

    Where a conversation has no tools or no system prompt, `tools_tokens` and `system_tokens` stand in
    for them. Raises InputError with every fault of the file.
    """
    conversations, calls = read_talks(Path(path))
    if calls or len(conversations) != 1:
        return Recording(Path(path).stem, conversations, calls)
    return _with_head(conversations[0], tools_tokens, system_tokens)


def _with_head(conversation: Conversation, tools_tokens: int, system_tokens: int) -> Conversation:
    head = Head.model_validate(
        {
            "tools": {"tokens": tools_tokens} if tools_tokens else None,
            "system": {"tokens": system_tokens} if system_tokens else None,
        }
    )
    tools, system = head_parts(head)
    return replace(
        conversation,
        tools=tools if tools_tokens else conversation.tools,
        system=system if system_tokens else conversation.system,
    )


def replay(recorded: Conversation | Recording, strategy: StrategyLike = "automatic", **terms: Any) -> Ledger:
    """What each call uses and costs under `strategy`.

    `terms`: model (that of the recording if left out), as_of (a date or "2026-03-07"; that of the
    shipped data), host, tokens, rules ({switch: value}), prices (a file). Raises CannotEvaluate.
    """
    return terms_of(recorded, **terms).ledger(_spec(strategy), _talks(recorded))


def compare(recorded: Conversation | Recording, strategies: Sequence[StrategyLike], **terms: Any) -> Result:
    """The same for several strategies, the first one to compare with. `terms` as in `replay`."""
    shared = terms_of(recorded, **terms)
    ledgers = [shared.ledger(_spec(strategy), _talks(recorded)) for strategy in strategies]
    rules = {name: str(value) for name, value in shared.rules.items()}
    day = shared.day or data_date(shared.host)
    return Result(Comparison("", shared.host, shared.model or "", day, rules, ledgers, ledgers[0].strategy))


def explain(path: str | Path, *, tokens: str | None = None, readings: bool = False, **terms: Any) -> Explanation:
    """What the log at `path` pays more than it must: each cause, its place and its dollars, which add up exactly.

    `terms`: host, as_of, rules, prices as in `replay`. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.explain.explaining import explained
    from cachecost.traffic import recorded

    rules, prices, host = _ground(**terms)
    return explained(recorded(Path(path), rules, prices, host, tokens), readings)


def _ground(
    *,
    as_of: date | str | None = None,
    host: str = "anthropic",
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> tuple[RuleBook, PriceBook, str]:
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    return RuleBook(switches_from(rules or {}), day), PriceBook.load(Path(prices) if prices else None, day), host


def _talks(recorded: Conversation | Recording) -> Sequence[Conversation]:
    return recorded.conversations if isinstance(recorded, Recording) else [recorded]


def terms_of(
    recorded: Conversation | Recording,
    *,
    model: str | None = None,
    as_of: date | str | None = None,
    host: str = "anthropic",
    tokens: str = "tiktoken",
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> Terms:
    """The terms of a comparison. Raises CannotEvaluate where no model is named anywhere."""
    chosen = model or recorded.model
    bills = recorded.calls if isinstance(recorded, Recording) else []
    if chosen is None and not bills:
        raise CannotEvaluate(f"{recorded.name} names no model: say model='claude-…'")
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of or (None if bills else data_date(host))
    book = PriceBook.load(Path(prices) if prices else None, day)
    return Terms(chosen, day, book, host, tokens, rules or {}, bills=bills)


def _spec(strategy: StrategyLike) -> StrategySpec:
    return StrategySpec.model_validate(strategy if isinstance(strategy, str) else dict(strategy))


@dataclass(frozen=True, slots=True)
class Result:
    """Strategies side by side: `frame()` as numbers, `plot()` as a picture, as a table in a notebook."""

    comparison: Comparison

    def __getitem__(self, strategy: str) -> Ledger:
        """The ledger of a strategy by its name."""
        return next(ledger for ledger in self.comparison.ledgers if ledger.strategy == strategy)

    def frame(self) -> pd.DataFrame:
        """One row a strategy: calls, tokens by class (int), dollars (Decimal), dollars of one question."""
        import pandas as pd

        return pd.DataFrame([_sums(ledger) for ledger in self.comparison.ledgers]).set_index("strategy")

    def plot(self) -> Figure:
        """Dollars by token class, a bar a strategy."""
        from cachecost.views.bar_charts import dollars_figure
        from cachecost.views.summary import summarise

        return dollars_figure(summarise(self.comparison))

    def _repr_html_(self) -> str:
        return self.frame().to_html()


def _sums(ledger: Ledger) -> dict[str, Any]:
    usage = ledger.usage
    return {
        "strategy": ledger.strategy,
        "calls": len(ledger.rows),
        "read": usage.read,
        "write_5m": usage.write_5m,
        "write_1h": usage.write_1h,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cost_usd": ledger.cost.total,
        "question_usd": ledger.per_inquiry(),
        "refused": ledger.errors,
    }
