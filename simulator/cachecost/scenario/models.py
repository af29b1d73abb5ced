"""What a scenario file holds: one model a mapping; docstrings are the editor's and the reader's help.

Types of values say how each is checked, and its JSON schema; the schema of the file and the list of defaults are made
of the models.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from datetime import date
from decimal import ROUND_DOWN, Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from typing_extensions import TypeAliasType

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_TOKENS, is_amount, is_number
from cachecost.base.yaml_text import PlacedValue, Schema, SourcePlace, Way, faults_of, show_value
from cachecost.conversations.distributions import SCHEMA as DISTRIBUTION_SCHEMA
from cachecost.conversations.distributions import (
    Distribution,
    SyntheticForks,
    SyntheticInquiries,
    SyntheticPauses,
    SyntheticSizes,
    SyntheticSpec,
    parse_distribution,
)
from cachecost.providers.hosts import AUTO_HOST, DEFAULT_HOST, host_of
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import TOKEN_CLASSES
from cachecost.strategies.spec import CONFIG, DerivedModel, StrategySpec, check_printable

STEPS = 100
"""Steps between the ends of a range, about: the precision of a break-even where no `step` is given."""
ROUND_STEPS = (Decimal(5), Decimal(2), Decimal(1))


def _checked(is_right: Callable[[Any], object], expected: str, convert: Callable[[Any], Any]) -> BeforeValidator:
    """A validator: a value that `is_right` is converted, any other raises ValueError."""

    def check(value: Any) -> Any:
        if is_right(value):
            return convert(value)
        raise ValueError(f"expected {expected}; got {show_value(value)}")

    return BeforeValidator(check)


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _exact(value: Any) -> int | Decimal:
    return value if isinstance(value, int) else Decimal(str(value))


Number = Annotated[int | Decimal, _checked(is_number, "a number", _exact), WithJsonSchema({"type": "number"})]
Paths = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
PathOrPaths = Annotated[
    Paths,
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=str | Paths),
]


class AssumptionSpec(BaseModel):
    """Something that the answer takes for granted. With `set`, it is tried at other values."""

    model_config = CONFIG

    name: Annotated[str, Field(min_length=1), AfterValidator(check_printable)]
    """What is assumed, in a few words, e.g. retry rate of the answer tool."""
    set: PathOrPaths | None = None
    """What it stands for: a dotted path in this file, or several that change together. Strategies are named by their
    number from 0 or by their name: strategies.answer tool, auto.inquiry.retry_rate."""
    range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    """The lowest and the highest value it may have. Both ends are simulated, and where they give another answer, the
    value at which it changes is searched for."""
    values: Annotated[list[Any], Field(min_length=1)] | None = None
    """Instead of a range: other values to simulate, such as names of models."""
    step: Number | None = None
    """How precisely the break-even is searched for; null is about a hundredth of the range, and at least 1 for whole
    numbers."""
    why: str = ""
    """Why it is assumed, and how well it is known."""
    source: str = ""
    """Where the value comes from."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = [name for name in ("range", "values") if getattr(self, name) is not None]
        if self.set is None and given:
            raise ValueError(f"expected set with {given[0]}; got none")
        if self.set is not None and len(given) != 1:
            raise ValueError(f"expected range or values with set; got {' and '.join(given) or 'neither'}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"range: expected the lower end first; got {self.range[0]} and {self.range[1]}")
        if self.step is not None and (self.range is None or self.step <= 0):
            raise ValueError("step: expected a number above 0, with a range")
        return self

    @property
    def tried(self) -> Sequence[Any]:
        """The values that are simulated: the ends of the range, or those listed; nothing without `set`."""
        return [plain(end) for end in self.range] if self.range is not None else self.values or []

    @property
    def precision(self) -> int | Decimal:
        """The step of the search for a break-even; of whole numbers a whole number."""
        assert self.range is not None
        if self.step is not None:
            return self.step
        step = (Decimal(self.range[1]) - self.range[0]) / STEPS  # down to 1, 2 or 5 times a power of ten
        unit = Decimal(1).scaleb(step.adjusted())
        times = (step / unit).quantize(Decimal(1), ROUND_DOWN)
        step = next(each for each in ROUND_STEPS if each <= times) * unit
        return max(1, int(step)) if all(isinstance(end, int) for end in self.range) else step


def plain(number: int | Decimal) -> int | float:
    """A number as YAML has it."""
    return number if isinstance(number, int) else float(number)


def load_strategy(path: Path) -> StrategySpec:
    """The strategy in a file. Raises InputError with every error of it, each at its line."""
    placed = yaml_text.read(path)
    if not isinstance(placed.value, dict):
        fault = placed.fault((), f"expected a strategy, a mapping with a name; got {show_value(placed.value)}")
        raise InputError([*placed.faults, fault])
    try:
        spec = StrategySpec.model_validate(placed.value)
    except ValidationError as error:
        raise InputError([*placed.faults, *faults_of(error, placed, StrategySpec.model_json_schema())]) from None
    if placed.faults:
        raise InputError(placed.faults)
    return spec


SHIPPED = "shipped"
TOKEN_SOURCES = Literal["calibrated", "tiktoken", "bytes", "ctok", "native", "count_tokens"]
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


def _command(value: Any) -> tuple[str, ...]:
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:  # a quote or an escape that does not end
        raise ValueError(f"expected a command as a shell splits it; got {show_value(value)}: {error}") from None
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words) and words[0]:
        return tuple(words)
    raise ValueError(f"expected a command, as text or as a list of words; got {show_value(value)}")


Day = Annotated[
    date | None,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"const": SHIPPED}, {"type": "string", "format": "date"}, {"type": "null"}]}),
]
FolderName = Annotated[
    str,
    _checked(_matches(FOLDER_NAME), "letters, digits, '-', '_' and '.' (it names a folder)", str),
    WithJsonSchema({"type": "string", "pattern": f"^{FOLDER_NAME.pattern}$"}),
]
Dollars = Annotated[
    Decimal,
    _checked(is_amount, "dollars, a number from 0", lambda value: Decimal(str(value))),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Share = Annotated[
    Decimal, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
HitRate = Annotated[
    Decimal, BeforeValidator(_cache_hit_rate), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
PriceSum = Annotated[
    str,
    _checked(_matches(PRICE), f"prices of {', '.join(TOKEN_CLASSES)}, joined by ' - ' or ' + '", str),
    WithJsonSchema({"type": "string", "pattern": f"^{PRICE.pattern}$"}),
]
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


def exactly_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        known = f"{', '.join(names[:-1])} or {names[-1]}"
        none = "neither" if len(names) == 2 else "none"
        raise ValueError(f"expected {known}; got {' and '.join(given) or none}")


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
        exactly_one(self, "tokens", "blocks")
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
    cwd: str | None = None
    """Where the command runs, relative to the scenario's folder; null is the project's folder."""
    env: dict[str, str | None] = {}
    """More environment variables of the command; null passes on the variable of this name."""
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
        exactly_one(self, "recording", "synthetic", "command")
        return self


CLAIM = re.compile(r"(?:(.+?) \| )?(.+) (<|>|=|<=|>=) (.+)")
FIGURE = re.compile(r"\{(cost|question): ([^}]+)\}")
MOST_WORDS, MOST_FIGURES = 40, 2
QUOTED = re.compile("“[^”]*”|RFD [0-9]+")
NUMBER = re.compile(r"(?<![\w.])\$?\d[\d,.]*%?(?!\w)")
AS_RECORDED = "as recorded"
"""What a budget calls the calls just as they were sent."""


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


Budgets = Annotated[
    list[Budget],
    BeforeValidator(
        lambda value: [value] if isinstance(value, dict) else value, json_schema_input_type=Budget | list[Budget]
    ),
]


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


DIALECT = "https://json-schema.org/draft/2020-12/schema"
NUMBERS = {"integer": "^-?[0-9][0-9_]*$", "number": "^-?[0-9][0-9_]*(\\.[0-9_]+)?$"}
"""Editors read 21_000 as text, so a number's schema allows such text too."""


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file (draft 2020-12)."""
    document = {"$schema": DIALECT, **Scenario.model_json_schema()}
    return _for_editors(document)  # type: ignore[no-any-return]


def schema_text() -> str:
    """The text of `scenarios/scenario.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _for_editors(part: Any) -> Any:
    """`part` with underscored numbers allowed, the assumptions of the rulebook listed, and no document-up titles."""
    if isinstance(part, list):
        return [_for_editors(item) for item in part]
    if isinstance(part, float) and part.is_integer():  # which of both pydantic writes depends on its version
        return int(part)
    if not isinstance(part, dict):
        return part
    inner = {key: _for_editors(value) for key, value in part.items()}
    title = inner.pop("title") if isinstance(inner.get("title"), str) else ""
    if title == RULES:
        truths, assumptions = {"true": True, "false": False}, {}
        for row in assumption_rows():
            values = [truths.get(reading.value, reading.value) for reading in row.readings]
            kind_of: Schema = {"enum": values} if row.number is None else {"type": "number"}
            assumptions[row.name] = {**kind_of, "description": row.about}
        return {**inner, "properties": assumptions, "additionalProperties": False}
    kind = inner.get("type")
    is_open = "const" not in inner and "enum" not in inner
    if not (isinstance(kind, str) and kind in NUMBERS and is_open):
        return inner
    about: dict[str, Any] = {key: inner.pop(key) for key in ("description", "default") if key in inner}
    return {"anyOf": [inner, {"type": "string", "pattern": NUMBERS[kind]}], **about}


def explain_defaults() -> str:
    """Every key of a scenario with its meaning and, as YAML, its default; comments where there is none."""
    title = "# Every key of a scenario with its default. Keys that are commented out have no default, or are off.\n"
    return "\n".join([title, *_explain_fields(Scenario)]) + "\n"


def _explain_fields(model: type[BaseModel]) -> Iterator[str]:
    """The fields of a mapping, each below its docstring."""
    for name, field in model.model_fields.items():
        yield f"# {' '.join((field.description or '').split())}"
        inner, written = _inner_model(field.annotation, *field.metadata), field.alias or name
        must_be_given = field.is_required() or (model is Scenario and name in WITHOUT_COMMAND)
        default = None if must_be_given else field.get_default(call_default_factory=True)
        if inner and (isinstance(default, BaseModel) or is_dataclass(default)):
            yield f"{written}:"
            yield from (f"  {line}" for line in _explain_fields(inner))
        else:
            shipped = model is Scenario and name == "as_of"
            value = SHIPPED if shipped else json.dumps(default, ensure_ascii=False, default=str)
            yield f"# {written}:  must be given" if must_be_given else f"{written}: {value}"
            yield from (f"#   {line}" for line in (_explain_fields(inner) if inner else ()))


def _inner_model(*annotations: Any) -> type[BaseModel] | None:
    """The model that a field's value, or each item of it, is document of."""
    for annotation in annotations:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
        found = annotation.model if isinstance(annotation, DerivedModel) else _inner_model(*get_args(annotation))
        if found:
            return found
    return None
