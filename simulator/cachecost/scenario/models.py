"""What a scenario file holds: one model a mapping; docstrings are the editor's and the reader's help."""

from __future__ import annotations

import re
import shlex
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from typing_extensions import TypeAliasType

from cachecost.base.errors import Fault
from cachecost.base.limits import MOST_TOKENS, is_amount
from cachecost.base.schema_errors import show_value
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.conversations.branching import SyntheticForks
from cachecost.conversations.distributions import SCHEMA as DISTRIBUTION_SCHEMA
from cachecost.conversations.distributions import Distribution, parse_distribution
from cachecost.conversations.synthetic import SyntheticInquiries, SyntheticPauses, SyntheticSizes, SyntheticSpec
from cachecost.ledger.results import TOKEN_CLASSES
from cachecost.scenario.assumed import AssumptionSpec
from cachecost.strategies.derived_models import CONFIG, DerivedModel
from cachecost.strategies.spec import StrategySpec, check_printable

SHIPPED = "shipped"
AS_RECORDED = "as recorded"
"""What a budget calls the calls just as they were sent."""
TOKEN_SOURCES = Literal["calibrated", "tiktoken", "bytes", "ctok", "count_tokens"]
HUNDRED = Decimal(100)
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
PRICE = re.compile(rf"(?:{'|'.join(TOKEN_CLASSES)})(?: [-+] (?:{'|'.join(TOKEN_CLASSES)}))*")


def _day(value: Any) -> date | None:
    if value is None or value == SHIPPED or isinstance(value, date):
        return None if value == SHIPPED else value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"expected a day like 2026-03-07, or {SHIPPED}; got {show_value(value)}") from None


def _folder_name(value: Any) -> str:
    if isinstance(value, str) and FOLDER_NAME.fullmatch(value):
        return value
    raise ValueError(f"expected letters, digits, '-', '_' and '.' (it names a folder); got {show_value(value)}")


def _dollars(value: Any) -> Decimal:
    if is_amount(value):
        return Decimal(str(value))
    raise ValueError(f"expected dollars, a number from 0; got {show_value(value)}")


def _share(value: Any) -> Decimal:
    """`5%` as 0.05. A bare number is a fault: 5 could mean 5 % or 500 %."""
    match = PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match:
        return Decimal(match[1]) / HUNDRED
    raise ValueError(f"expected a percentage like 5%; got {show_value(value)}")


def _cache_hit_rate(value: Any) -> Decimal:
    share = _share(value)
    if share > 1:
        raise ValueError(f"expected at most 100%; got {show_value(value)}")
    return share


def _price(value: Any) -> str:
    if isinstance(value, str) and PRICE.fullmatch(value):
        return value
    classes = ", ".join(TOKEN_CLASSES)
    raise ValueError(f"expected prices of {classes}, joined by ' - ' or ' + '; got {show_value(value)}")


def _command(value: Any) -> tuple[str, ...]:
    """The words of a command: of a text as a POSIX shell splits it."""
    words = _split(value) if isinstance(value, str) else value
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words) and words[0]:
        return tuple(words)
    raise ValueError(f"expected a command, as text or as a list of words; got {show_value(value)}")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quote or an escape that does not end
        raise ValueError(f"expected a command as a shell splits it; got {show_value(text)}: {error}") from None


def _list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Day = Annotated[
    date | None,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"const": SHIPPED}, {"type": "string", "format": "date"}, {"type": "null"}]}),
]
FolderName = Annotated[
    str, BeforeValidator(_folder_name), WithJsonSchema({"type": "string", "pattern": f"^{FOLDER_NAME.pattern}$"})
]
Dollars = Annotated[Decimal, BeforeValidator(_dollars), WithJsonSchema({"type": "number", "minimum": 0})]
Share = Annotated[
    Decimal, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
HitShare = Annotated[
    Decimal, BeforeValidator(_cache_hit_rate), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
PriceSum = Annotated[str, BeforeValidator(_price), WithJsonSchema({"type": "string", "pattern": f"^{PRICE.pattern}$"})]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Command = Annotated[
    tuple[str, ...],
    PlainValidator(_command),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Spread = TypeAliasType(
    "Spread", Annotated[Distribution, PlainValidator(parse_distribution), WithJsonSchema(DISTRIBUTION_SCHEMA)]
)
RULES = "assumptions of the rulebook"
Rules = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "title": RULES})]


class Strict(BaseModel):
    """A mapping of a file: unknown keys are errors, and no value is converted."""

    model_config = CONFIG


class ToolsHead(Strict):
    """Tool definitions that the recording lacks."""

    tokens: Tokens
    """Tokens of all definitions together."""
    count: Tokens = 1
    """How many tools there are."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.tokens < self.count:
            raise ValueError(f"expected at least a token a tool; got {self.tokens} for {self.count} tools")
        return self


class SystemHead(Strict):
    """A system prompt that the recording lacks: `tokens` of one block, or the tokens of each of its `blocks`."""

    tokens: Tokens | None = None
    """Tokens of its one block."""
    blocks: Annotated[list[Tokens], Field(min_length=1)] | None = None
    """Tokens of each block, first to last."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one(self, "tokens", "blocks")
        return self


class Head(Strict):
    """The static prefix of every call: tools and system prompt. Used where the recording has none."""

    tools: ToolsHead | None = None
    """Tool definitions."""
    system: SystemHead | None = None
    """The system prompt."""


SPREADS = {Distribution: Spread, Distribution | None: Spread | None}
SHARE = Annotated[float, Field(ge=0, le=1)]
SIZES = DerivedModel(SyntheticSizes, "Sizes", SPREADS)
PAUSES = DerivedModel(SyntheticPauses, "Pauses", SPREADS)
INQUIRIES = DerivedModel(SyntheticInquiries, "Inquiries", {**SPREADS, "rate": SHARE})
TURNS = Annotated[tuple[Tokens, ...], Field(strict=False)]
FORKS = DerivedModel(SyntheticForks, "Forks", {**SPREADS, "after": TURNS, "rate": SHARE})
SYNTHETIC = DerivedModel(
    SyntheticSpec,
    "Synthetic",
    {
        **SPREADS,
        "turns": Tokens,
        "sizes": Annotated[SyntheticSizes, SIZES],
        "pauses": Annotated[SyntheticPauses, PAUSES],
        "inquiries": Annotated[SyntheticInquiries, INQUIRIES] | None,
        "forks": Annotated[SyntheticForks, FORKS] | None,
    },
    only=("seed", "turns", "calls", "tools", "sizes", "pauses", "inquiries", "forks"),
)


class Thinking(Strict):
    """The API's `thinking` parameter."""

    type: Literal["enabled", "adaptive", "disabled"]
    """Manual, adaptive or none."""
    budget_tokens: Tokens | None = None
    """Token budget of manual thinking."""


class OutputConfig(Strict):
    """The API's `output_config` parameter."""

    effort: str | None = None
    """Effort, as the API spells it; null is the model's default."""


class Params(Strict):
    """Parameters of the main thread's requests; they override those of the recording."""

    thinking: Thinking | None = None
    """Thinking; null leaves it as recorded."""
    output_config: OutputConfig | None = None
    """Output configuration; null leaves it as recorded."""
    speed: Literal["standard", "fast"] | None = None
    """Speed; null leaves it as recorded."""


class ConversationSource(Strict):
    """The conversation that every strategy sends: a `recording`, a `synthetic` one, or what a `command` sends."""

    recording: str | None = None
    """Path of a recording, relative to the scenario's folder, or its URL (s3://, gs://, az://, https://)."""
    synthetic: Annotated[SyntheticSpec, SYNTHETIC] | None = None
    """A synthetic conversation, generated from numbers."""
    command: Command | None = None
    """A command that runs your agent, split into words but not run by a shell: what it sends is the recording.
    {turn} in a word runs it once per turn; otherwise it reads the turns from its standard input, a line each."""
    answers: str | Annotated[list[dict[str, Any]], Field(min_length=1)] = "agent"
    """What answers the command: agent[:N[:TOOL,…]], script:FILE or recording:FILE relative to the scenario's folder,
    or the replies of a script."""
    folder: str | None = None
    """Where the command runs, relative to the scenario's folder; null is the project's folder."""
    env: dict[str, str] = {}
    """More environment variables of the command."""
    timeout: Annotated[float, Field(gt=0)] = 60.0
    """Seconds after which a run of the command is ended."""
    runs: Literal[1, 2] = 2
    """Runs of the command: what the second sends otherwise is not deterministic. 1 does not look for it."""
    content: Literal["keep", "digest"] = "keep"
    """What `check --update` keeps of what the command sends: the content, or digests of it."""
    from_turn: Tokens = 1
    """Begin at this human turn, 1 being the first: what was said before is in no prompt."""
    turns: Tokens | list[str] | None = None
    """Only N human turns from there; null is all. With a command: what a person says, a text per turn."""
    pause_factor: Annotated[float, Field(ge=0)] = 1.0
    """Every pause before a human message is this many times as long."""
    head: Head = Head()
    """Tools and system prompt that the recording lacks."""
    params: Params = Params()
    """Request parameters; they override the recorded ones."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one(self, "recording", "synthetic", "command")
        return self


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
        _exactly_one(self, "price", "saving")
        if (self.price is None) != (self.tokens is None):
            raise ValueError("expected tokens with a price, and without one none")
        return self

    @property
    def terms(self) -> list[tuple[int, str]]:
        """The price as (sign, token class): `write_5m - read` is [(1, "write_5m"), (-1, "read")]."""
        words = ["+", *(self.price or "").split(" ")]
        return [(-1 if sign == "-" else 1, name) for sign, name in zip(words[::2], words[1::2], strict=True)]


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
    min_cache_hit_rate: HitShare | None = None
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
    host: str = "anthropic"
    """The host that serves the model."""
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

    _readings: tuple[tuple[str, Scenario], ...] = PrivateAttr(default=())
    _placed: PlacedValue | None = PrivateAttr(default=None)

    @property
    def first(self) -> str:
        """The name of the strategy that all are compared with; `as recorded` where there is none."""
        if not self.strategies:
            return AS_RECORDED
        return self.compare_to or self.strategies[0].name

    @property
    def readings(self) -> list[tuple[str, Scenario]]:
        """("", the scenario as written), then (name, scenario with its changes) of each variant."""
        return [("", self), *self._readings]

    def budget_place(self, number: int, limit: str) -> SourcePlace:
        """Where a limit of the `number`-th budget (from 0) is written; of a scenario without a file, nowhere."""
        placed = self._placed or PlacedValue(None, {(): SourcePlace(self.name)})
        way: Way = ("budget", number) if ("budget", number) in placed.places else ("budget",)
        return placed.place((*way, limit))

    def fault(self, way: Way, message: str) -> Fault:
        """`message` about the value at `way`, at its line where the scenario came from a file."""
        placed = self._placed or PlacedValue(None, {(): SourcePlace(self.name)})
        return placed.fault(way, message)


def _exactly_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        known = f"{', '.join(names[:-1])} or {names[-1]}"
        none = "neither" if len(names) == 2 else "none"
        raise ValueError(f"expected {known}; got {' and '.join(given) or none}")
