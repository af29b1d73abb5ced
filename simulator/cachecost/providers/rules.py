"""What the cache of one (host, model) does on one day.

The facts are rows of `rules/HOST.toml`: dated, sourced, no constants here. Reading them costs a few
milliseconds, once, when the first model is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date
from typing import Any

from cachecost.facts import fact
from cachecost.faults import CannotEvaluate
from cachecost.providers.own_rules import NO_OWN_RULES, OwnRules
from cachecost.providers.rulefile import Catalogue, Model, catalogue
from cachecost.providers.switches import Switches, read_switches, switches_from

__all__ = ["HiddenTokens", "ModelRules", "RuleBook", "Switches", "data_date", "read_switches", "switches_from"]

DEFAULT_HOST = "anthropic"
COPIED = (
    "minimum_tokens",
    "keeps_thinking",
    "accepts_forced_choice",
    "default_effort",
    "context_window",
    "standard_context_window",
    "scope",
    "lookback_positions",
    "maximum_marks",
    "ttl_s",
)
"""Rules that are a field of ModelRules under the same name."""
WHERE_STATED = ("accepts_automatic", "accepted_ttls")
"""Such rules that a host may leave out: the field has a default."""


@fact
class HiddenTokens:
    """Fitted and published sizes of what the provider adds (rule 4), in tokens."""

    tool_prompt: Mapping[str, int] = field(default_factory=dict)
    """Tool-use system prompt by tool choice class: auto, any, tool. A refused class is absent."""
    frame_const: int = 0
    frame_turn: int = 0
    forced_tail: Mapping[str, int] = field(default_factory=dict)
    """How many of the forced choice's extra tokens come after the last block, by class: any, tool."""
    thinking_prefix: int = 0
    thinking_tail: int = 0
    adaptive_prefix: int = 0
    """As `thinking_prefix`, where the thinking type is adaptive."""
    adaptive_tail: int = 0


@fact
class ModelRules:
    """Every rule of one (host, model, day), resolved. Tokens are tokens of this model.

    `model` is the id behind an alias. `context_window` is what the API took at most that day, with the
    1M beta header where one was needed; `standard_context_window` is what it took without. `retired`
    is the first day on which the host no longer served the model: its last rules hold on. `day` is
    the day asked for. `endpoint` is the one that the id names ("us", "global"), where ids name one.
    """

    host: str
    model: str
    generation: str
    minimum_tokens: int
    keeps_thinking: bool
    accepts_forced_choice: bool
    default_effort: str | None
    context_window: int
    collapses_runs: bool
    scope: str
    lookback_positions: int = 20
    maximum_marks: int = 4
    ttl_s: Mapping[str, float] = field(default_factory=lambda: {"5m": 300.0, "1h": 3600.0})
    hidden: HiddenTokens = HiddenTokens()
    switches: Switches = Switches()
    standard_context_window: int = 0
    retired: date | None = None
    day: date | None = None
    accepts_automatic: bool = True
    """False: a top-level `cache_control` is a 400."""
    accepted_ttls: tuple[str, ...] = ("5m", "1h")
    """A mark with another TTL is a 400."""
    endpoint: str = ""

    def pool(self, workspace: str) -> str:
        """Who shares entries with a call of `workspace` (rule 7): that workspace, or all of the host."""
        return f"{self.host}/{workspace}" if self.scope == "workspace" else f"{self.host}/"


class RuleBook:
    """The dated rows of all hosts and models, with `switches` and `as_of` applied, and `own` minimums over them."""

    def __init__(
        self, switches: Switches | None = None, as_of: date | None = None, own: OwnRules = NO_OWN_RULES
    ) -> None:
        self.switches = switches or Switches()
        self.as_of = as_of
        self.own = own
        self._known: dict[tuple[str, str, date | None], ModelRules] = {}

    def rules(self, host: str, model: str, day: date | None = None) -> ModelRules:
        """Rules of `model` (id or alias) on `host` on `day`; `as_of` wins over `day`.

        Without either, the date of the shipped data decides. Raises CannotEvaluate for an unknown
        host or model (naming the nearest), for a day before its release and for a rule that no row states.
        """
        key = (host, model, self.as_of or day)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._resolve(*key)
        return found

    def _resolve(self, host: str, name: str, day: date | None) -> ModelRules:
        book = catalogue(host)
        model = book.model(name)
        when = day or book.data_date
        if when < model.released:
            raise CannotEvaluate(f"{model.id} has no rules on {when}: they start on {model.released}")
        rules = ModelRules(
            host=host,
            model=model.id,
            generation=model.generation,
            collapses_runs=self._collapses(book, model, when),
            hidden=_hidden(book, model, when),
            switches=self.switches.on(host),
            retired=model.retired,
            day=when,
            endpoint=model.endpoint,
            **{name: book.value(model, name, when) for name in COPIED},
            **_stated(book, model, when),
        )
        minimum = self.own.minimum(host, model.id, when)
        return rules if minimum is None else replace(rules, minimum_tokens=minimum)

    def _collapses(self, book: Catalogue, model: Model, day: date) -> bool:
        reading = self.switches.lookback_runs
        return bool(book.value(model, "collapses_runs", day)) if reading == "by_date" else reading == "collapsed"


def _stated(book: Catalogue, model: Model, day: date) -> dict[str, Any]:
    """The rules that only some hosts state, where this one does."""
    stated = {name: book.value(model, name, day) for name in WHERE_STATED if name in book.rules}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}


def _hidden(book: Catalogue, model: Model, day: date) -> HiddenTokens:
    frame, thinking, adaptive = (
        book.value(model, name, day) for name in ("frame", "thinking_tokens", "adaptive_tokens")
    )
    return HiddenTokens(
        book.value(model, "tool_prompt", day),
        frame["const"],
        frame["turn"],
        book.value(model, "forced_tail", day),
        thinking["prefix"],
        thinking["tail"],
        adaptive["prefix"],
        adaptive["tail"],
    )


def data_date(host: str = DEFAULT_HOST) -> date:
    """The date of the shipped rule data."""
    return catalogue(host).data_date
