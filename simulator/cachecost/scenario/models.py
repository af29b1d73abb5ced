"""What a scenario file holds: one model a mapping; docstrings are the editor's and the reader's help."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator
from pydantic.config import JsonDict

from cachecost.base.errors import Fault
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.providers.hosts import AUTO_HOST, DEFAULT_HOST, host_of
from cachecost.scenario.assumed import AssumptionSpec
from cachecost.scenario.conversation_models import ConversationSource
from cachecost.scenario.field_types import (
    TOKEN_SOURCES,
    Day,
    Dollars,
    FolderName,
    HitRate,
    PriceSum,
    Rules,
    Share,
    Strict,
    Tokens,
    exactly_one,
)
from cachecost.strategies.spec import StrategySpec, check_printable

CLAIM = re.compile(r"(?:(.+?) \| )?(.+) (<|>|=|<=|>=) (.+)")
FIGURE = re.compile(r"\{(cost|question): ([^}]+)\}")
MOST_WORDS, MOST_FIGURES = 40, 2
QUOTED = re.compile("“[^”]*”|RFD [0-9]+")
NUMBER = re.compile(r"(?<![\w.])\$?\d[\d,.]*%?(?!\w)")
AS_RECORDED = "as recorded"
"""What a budget calls the calls just as they were sent."""


def _list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class PublishedFigureSpec(Strict):
    """A published figure, computed exactly for the scenario's model and day."""

    source: str
    """Who published it."""
    says: str
    """The figure as published."""
    tokens: Tokens | None = None
    """Number of tokens."""
    price: PriceSum | None = None
    """The price of a token: read, write_5m, write_1h, input or output, or a sum of them, as `write_5m - read`."""
    times: Tokens = 1
    """How many times it is paid."""
    saving: dict[Literal["read", "write_5m", "write_1h", "input"], Tokens] | None = None
    """Instead of a price: input tokens by class, whose cost is compared with that of the same tokens uncached."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, "price", "saving")
        if (self.price is None) != (self.tokens is None):
            raise ValueError("expected tokens with a price, and without one none")
        return self

    @property
    def terms(self) -> list[tuple[int, str]]:
        """The price as (sign, token class): `write_5m - read` is [(1, "write_5m"), (-1, "read")]."""
        words = ["+", *(self.price or "").split(" ")]
        return [(-1 if sign == "-" else 1, name) for sign, name in zip(words[::2], words[1::2], strict=True)]


def fits_verdict(text: str) -> bool:
    """Whether a text is short enough for a verdict: its words, and its numbers in figures, names apart."""
    return len(text.split()) <= MOST_WORDS and len(NUMBER.findall(QUOTED.sub("", text))) <= MOST_FIGURES


class ConclusionSpec(Strict):
    """The answer in the scenario's own words, said where it holds: at most 40 words and two figures."""

    say: str
    """Its text. `{cost: NAME}` is what a strategy costs, `{question: NAME}` one question through it."""
    holds: Annotated[list[str], Field(min_length=1)]
    """What must be true, each "A < B", "A > B" (by more than the error margin), "A = B" (within it), "A <= B" or
    "A >= B" of the costs of two strategies; with "VARIANT | " before it, in that variant."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for claim in self.claims:
            if claim is None:
                raise ValueError('expected claims such as "A < B"')
        if not fits_verdict(FIGURE.sub("$1", self.say)):
            raise ValueError(f"expected at most {MOST_WORDS} words and {MOST_FIGURES} figures")
        return self

    @property
    def claims(self) -> list[tuple[str, str, str, str] | None]:
        """(variant, strategy, sign, other strategy) of each claim; None for one that cannot be read."""
        found = [CLAIM.fullmatch(text) for text in self.holds]
        return [match and (match[1] or "", match[2], match[3], match[4]) for match in found]


class Budget(Strict):
    """Limits that `cachecost check` enforces for a strategy. A value equal to its limit passes."""

    strategy: str | None = None
    """The strategy it applies to, or `as recorded` for the calls as they were sent; null is every strategy."""
    max_cost_usd: Dollars | None = None
    """Maximum cost of all its calls, in dollars."""
    max_cost_per_call_usd: Dollars | None = None
    """Maximum average cost of a call, in dollars."""
    max_cost_per_turn_usd: Dollars | None = None
    """Maximum average cost of a human turn with all its calls, in dollars."""
    max_cost_per_inquiry_usd: Dollars | None = None
    """Maximum average cost of a tool's question, retries included, in dollars."""
    min_cache_hit_rate: HitRate | None = None
    """Minimum cache hit rate (tokens read ÷ input tokens), e.g. 90%."""
    max_regression: Share | None = None
    """Maximum increase of the cost over the baseline, e.g. 5%."""
    max_breakpoints: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of breakpoints in a call, the automatic one included."""
    min_lookback_margin: Annotated[int, Field(ge=0)] | None = None
    """Minimum number of lookback positions left behind what each call reads; 0 is the last position found."""
    no_write_never_read: bool = False
    """Fails when a call writes tokens that no later call reads. The last call of a conversation is exempt."""
    prefix_stable: Annotated[list[Literal["tools", "system", "messages"]], Field(min_length=1)] | None = None
    """Layers that must not change within a conversation; messages may grow."""

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set, by name, in the order of the fields."""
        named = {name: getattr(self, name) for name in Budget.model_fields if name != "strategy"}
        return {name: value for name, value in named.items() if value is not None and value is not False}

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if not self.limits:
            known = sorted(set(Budget.model_fields) - {"strategy"})
            raise ValueError(f"expected a limit: {', '.join(known[:-1])} or {known[-1]}; got none")
        return self


Budgets = Annotated[list[Budget], BeforeValidator(_list, json_schema_input_type=Budget | list[Budget])]


class Variant(Strict):
    """The same question with another day, model or assumption: its keys are merged over the scenario's."""

    name: Annotated[str, AfterValidator(check_printable)]
    """Its name in the report."""
    as_of: Day = None
    """Another day."""
    host: str | None = None
    """Another host."""
    model: str | None = None
    """Another model."""
    tokens: TOKEN_SOURCES | None = None
    """Another way to count tokens."""
    conversation: dict[str, Any] | None = None
    """Changes to the conversation, e.g. {head: {tools: {tokens: 40_000}}}."""
    rules: Rules | None = None
    """Other assumptions of the rulebook."""
    prices: str | None = None
    """Another price file."""


WITHOUT_COMMAND = ("model", "strategies")
"""Keys that a scenario must have unless its conversation has a command."""
REQUIRED_WITHOUT_COMMAND: JsonDict = {
    "if": {"properties": {"conversation": {"required": ["command"]}}, "required": ["conversation"]},
    "else": {"required": list(WITHOUT_COMMAND)},
}


class Scenario(Strict):
    """A question about what prompt caching costs, with all that its answer depends on."""

    format: Literal[1]
    """The format of this file."""
    name: FolderName
    """Name of the scenario and of its report's folder."""
    question: str = ""
    """The question it answers, for the report."""
    as_of: Day = None
    """Rules and prices of this day; shipped is the date of the shipped rule data."""
    host: str = DEFAULT_HOST
    """The host that serves the model; without it, or with auto, that of the model's maker."""
    model: str = ""
    """The model's id; with a command, it may be left out: it is the model of the first call."""
    tokens: TOKEN_SOURCES | None = None
    """How tokens are counted; null is calibrated (calibrated on the bill) if the recording has usage, else tiktoken."""
    conversation: ConversationSource
    """The conversation that every strategy is to send."""
    strategies: Annotated[list[StrategySpec], Field(min_length=1)] = []
    """What is compared: names of presets, or your own strategies. With a command, it may be left out: budgets are
    then about the calls as recorded."""
    compare_to: str | None = None
    """The strategy that the others are compared to; null is the first."""
    question_about: list[str] = []
    """The strategies that the question asks about, by name: the verdict says first what each of them costs."""
    conclusion: list[ConclusionSpec] = []
    """The answer in words, for each way that it may turn out: the first that holds is the verdict. Without one, the
    verdict says what is the cheapest."""
    assumptions: list[AssumptionSpec] = []
    """What the answer takes for granted: the report says which of it would change the answer, and at which value."""
    rules: Rules = {}
    """Assumptions of the rulebook, where sources differ; the others keep their defaults."""
    prices: str | None = None
    """A file with your own prices, which override the public ones; relative to the scenario's folder."""
    variants: list[Variant] = []
    """The same question with other days, models or assumptions."""
    published_figures: list[PublishedFigureSpec] = []
    """Published figures, computed exactly."""
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    """Dotted paths in this file, each with the values that `cachecost sweep` tries."""
    budget: Budgets = []
    """Limits that `cachecost check` enforces: one mapping or a list."""

    model_config = ConfigDict(json_schema_extra=REQUIRED_WITHOUT_COMMAND)

    _loaded_variants: tuple[tuple[str, Scenario], ...] = PrivateAttr(default=())
    _placed: PlacedValue | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _host_of_model(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("host", AUTO_HOST) != AUTO_HOST:
            return data
        return {**data, "host": host_of(None, AUTO_HOST, str(data.get("model") or ""))}

    @property
    def first(self) -> str:
        """The name of the strategy that all are compared with; `as recorded` where there is none."""
        if not self.strategies:
            return AS_RECORDED
        return self.compare_to or self.strategies[0].name

    @property
    def all_variants(self) -> list[tuple[str, Scenario]]:
        """("", the scenario as written), then (name, scenario with its changes) of each variant."""
        return [("", self), *self._loaded_variants]

    def budget_place(self, number: int, limit: str) -> SourcePlace:
        """Where a limit of the `number`-th budget (from 0) is written; of a scenario without a file, nowhere."""
        placed = self._placed or PlacedValue(None, {(): SourcePlace(self.name)})
        way: Way = ("budget", number) if ("budget", number) in placed.places else ("budget",)
        return placed.place((*way, limit))

    def fault(self, way: Way, message: str) -> Fault:
        """`message` about the value at `way`, at its line where the scenario came from a file."""
        placed = self._placed or PlacedValue(None, {(): SourcePlace(self.name)})
        return placed.fault(way, message)
