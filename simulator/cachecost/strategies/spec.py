"""A strategy as a scenario writes it: a preset's name, or a mapping that starts from one or from nothing.

Options left out keep the preset's values. The pydantic models are derived from dataclasses: an option's type, default
and description are written once, and reach the JSON Schema for editors. Breakpoints and changes are chosen by name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic_core import PydanticUndefined, core_schema, to_jsonable_python

from cachecost.base.errors import nearest
from cachecost.base.formatting import inert
from cachecost.base.limits import MOST_TOKENS
from cachecost.base.structs import replace
from cachecost.base.yaml_text import one_of, show_value
from cachecost.providers.assumptions import read_assumptions
from cachecost.strategies.agent import Agent, InquiryOptions
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.context import Compaction, Deduplicate, OutputCap, Prune, Reread, Truncate
from cachecost.strategies.changes.keepalive import Adapt, CallRetries, KeepAlive, PreWarm, RouteAsides, WarmBeforeFanOut
from cachecost.strategies.changes.messages import (
    Attachments,
    FinalAnswer,
    Reminder,
    Repairs,
    SessionResume,
    ToolAnswers,
    Unprompted,
)
from cachecost.strategies.changes.prefix import DateInSystem, SplitSystem, SwitchAt, TextTools
from cachecost.strategies.changes.subagents import FanOut, SubAgents
from cachecost.strategies.placements import PRIMITIVES, SHORTHANDS, Primitive
from cachecost.strategies.presets import PRESETS
from cachecost.strategies.registry import Strategy, find_strategy, names

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


CHANGES: dict[str, type[AgentChange]] = {
    "adapt": Adapt,
    "attachments": Attachments,
    "compaction": Compaction,
    "date_in_system": DateInSystem,
    "deduplicate": Deduplicate,
    "fan_out": FanOut,
    "final_answer": FinalAnswer,
    "keep_alive": KeepAlive,
    "pre_warm": PreWarm,
    "prune": Prune,
    "reminder": Reminder,
    "repairs": Repairs,
    "reread": Reread,
    "retries": CallRetries,
    "route_asides": RouteAsides,
    "session_resume": SessionResume,
    "split_system": SplitSystem,
    "sub_agents": SubAgents,
    "switch": SwitchAt,
    "text_tools": TextTools,
    "tool_answers": ToolAnswers,
    "tool_output_cap": OutputCap,
    "truncate": Truncate,
    "unprompted": Unprompted,
    "warm_before_fan_out": WarmBeforeFanOut,
}


CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def derive_model(
    of: type, name: str, types: Mapping[Any, Any] | None = None, only: Collection[str] | None = None
) -> type[BaseModel]:
    """The model of a mapping whose keys are the fields of the dataclass `of`, or those of them in `only`.

    The docstring below a field is its description. `types` replaces the type of a field, by the field's name or by the
    type itself. A name that pydantic uses, such as `schema`, becomes an alias.
    """
    hints, docs, replaced = get_type_hints(of), attribute_docs(of), types or {}
    options: dict[str, Any] = {}
    for option in fields(of):
        if only is None or option.name in only:
            taken = hasattr(BaseModel, option.name)
            kind = replaced.get(option.name, replaced.get(hints[option.name], hints[option.name]))
            default = ... if option.default is MISSING else option.default
            field = Field(default, alias=option.name if taken else None, description=docs.get(option.name))
            options[f"{option.name}_" if taken else option.name] = kind, field
    return create_model(name, __config__=CONFIG, __doc__=cleandoc(of.__doc__ or ""), **options)


def attribute_docs(of: type) -> dict[str, str]:
    """The docstring below each field of a class; none where the source is not at hand."""
    try:
        body = ast.parse(dedent(getsource(of))).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: cleandoc(doc.value.value)
        for field, doc in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str)
    }


def given_options(model: BaseModel) -> dict[str, Any]:
    """The options that are set, by the names of the dataclass's fields."""
    named = {name: field.alias or name for name, field in type(model).model_fields.items()}
    return {option: getattr(model, name) for name, option in named.items() if name in model.model_fields_set}


class DerivedModel:
    """Metadata of an `Annotated` type: the value is written as a mapping of the dataclass's fields.

    `make` turns the options that are set into the value; left out, it is the dataclass. `types` and `only` are those
    of `derive_model`.
    """

    def __init__(
        self,
        of: type,
        name: str,
        types: Mapping[Any, Any] | None = None,
        only: Collection[str] | None = None,
        make: Callable[..., Any] | None = None,
    ) -> None:
        self.model = derive_model(of, name, types, only)
        self._make = make or of

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda model: self._make(**given_options(model)),
            handler.generate_schema(self.model),
            serialization=core_schema.plain_serializer_function_ser_schema(to_jsonable_python),
        )


Chosen = TypeVar("Chosen")


class OptionRow(NamedTuple):
    name: str
    what: str
    options: str


@dataclass(frozen=True, eq=False)
class OptionTable(Generic[Chosen]):
    """Frozen dataclasses by name, and `shorthands`: names for one with its options, that take those in `kept` only."""

    what: str
    types: Mapping[str, type[Chosen]]
    shorthands: Mapping[str, Chosen]
    kept: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return sorted({*self.types, *self.shorthands})

    def parse(self, value: Any, whole: type[Chosen]) -> Chosen:
        """`name` or `{name: {option: value}}`. Raises ValueError."""
        if isinstance(value, whole):
            return value
        entry = {value: None} if isinstance(value, str) else value
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise ValueError(f"expected the name of {self.what}, or one name with its options; got {show_value(value)}")
        name = next(iter(entry))
        if name not in self.names:
            raise ValueError(one_of(self.names, name))
        options = getattr(self._with_options(name).model_validate(dict(entry)), name)
        given = options.model_dump(exclude_unset=True) if options else {}
        try:
            return replace(self.shorthands[name], **given) if name in self.shorthands else self.types[name](**given)
        except ValueError as error:
            raise ValueError(f"{name}.{error}") from None

    def list_options(self) -> list[OptionRow]:
        """Each name with the first sentence of what it does, and its options with their defaults."""
        rows = []
        for name, model in ((name, self.options(name)) for name in self.names):
            text = " ".join((model.__doc__ or "").split("\n\n")[0].split())
            options = []
            for key, default in ((key, field.default) for key, field in model.model_fields.items()):
                shown = str(default).lower() if isinstance(default, bool) else str(default)
                options.append(f"{key} {'unset' if default is None or default is PydanticUndefined else shown}")
            rows.append(OptionRow(name, text.partition(". ")[0].rstrip("."), ", ".join(options)))
        return rows

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what `parse` takes."""
        options = {name: self.options(name).model_json_schema() for name in self.names}
        entry = {"type": "object", "properties": options, "additionalProperties": False}
        return {"anyOf": [{"enum": self.names}, {**entry, "minProperties": 1, "maxProperties": 1}]}

    @cache  # noqa: B019 - tables live as long as the program
    def options(self, name: str) -> type[BaseModel]:
        chosen: Any = type(self.shorthands[name]) if name in self.shorthands else self.types[name]
        return derive_model(chosen, name, only=None if name in self.types else self.kept)

    @cache  # noqa: B019
    def _with_options(self, name: str) -> type[BaseModel]:
        entry: dict[str, Any] = {name: (self.options(name) | None, None)}
        return create_model(name, __config__=CONFIG, **entry)


BREAKPOINTS: OptionTable[Primitive] = OptionTable("a breakpoint", PRIMITIVES, SHORTHANDS, kept=("ttl",))
CHANGES_TABLE: OptionTable[AgentChange] = OptionTable("a change", CHANGES, {})


class PresetBreakpoints(list[Primitive]):
    """The breakpoints of a preset, which may be more than a request takes: agents choose by priority."""


def _parse_breakpoints(value: Any, listed: ValidatorFunctionWrapHandler) -> Any:
    """A preset's name stands for its breakpoints."""
    if not isinstance(value, str):
        return listed(value)
    found = find_strategy(value)
    if not isinstance(found, Agent):
        raise ValueError(f"'{value}' belongs to another package: its breakpoints cannot be used")
    return PresetBreakpoints(found.placement.primitives)


Breakpoint = Annotated[
    Primitive, PlainValidator(lambda value: BREAKPOINTS.parse(value, Primitive)), WithJsonSchema(BREAKPOINTS.schema())
]
Breakpoints = Annotated[
    list[Breakpoint],
    WrapValidator(_parse_breakpoints),
    WithJsonSchema({"anyOf": [{"enum": sorted(PRESETS)}, {"type": "array", "items": BREAKPOINTS.schema()}]}),
]
ChangeSpec = Annotated[
    AgentChange,
    PlainValidator(lambda value: CHANGES_TABLE.parse(value, AgentChange)),
    WithJsonSchema(CHANGES_TABLE.schema()),
]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Name = Annotated[str, Field(min_length=1)]
ABOUT_THE_REPORT = ("leaves_out", "ranked", "described_in")
"""Keys that change no request: how the strategy is compared."""


INQUIRY = DerivedModel(
    InquiryOptions,
    "InquirySpec",
    {
        "model": Name | None,
        "system_tokens": Tokens | None,
        "breakpoints": Annotated[
            Literal["same", "none", "hint"] | list[Breakpoint],
            AfterValidator(lambda value: tuple(value) if isinstance(value, list) else value),
        ],
        "retry_rate": Annotated[float, Field(ge=0, le=1)],
        "tool_tokens": Tokens,
        "answer_tokens": Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None,
        "thinking_tokens": Annotated[int, Field(ge=0, le=MOST_TOKENS)],
        "window_tokens": Tokens | None,
    },
    make=dict,
)


def check_printable(name: str) -> str:
    """A name that tables can show. Raises ValueError."""
    if inert(name) == name:
        return name
    raise ValueError(f"expected one line without control characters; got '{inert(name)}'")


def _check_preset(value: Any) -> Any:
    if isinstance(value, str):
        find_strategy(value)
    return value


def _check_rules(value: Any) -> Any:
    problems = read_assumptions(value)[1] if isinstance(value, dict) else {}
    if problems:
        raise ValueError("; ".join(problems.values()))
    return value


class StrategySpec(BaseModel):
    """A way to send the conversation: a preset by name, or a mapping."""

    model_config = CONFIG

    name: Annotated[str, Field(min_length=1), AfterValidator(check_printable)]
    """Its name in tables. Left out, the preset's name."""
    preset: Annotated[str, BeforeValidator(_check_preset)] | None = None
    """The strategy to start from (`cachecost strategies` lists them)."""
    breakpoints: Breakpoints | None = None
    """Where cache_control goes, in order of priority; or the name of a preset whose breakpoints to use."""
    ttl: Literal["5m", "1h"] | None = None
    """TTL of the breakpoints that name none."""
    slots: Annotated[int, Field(ge=0)] | None = None
    """Maximum breakpoints in a request, the automatic one included. The API refuses more than 4."""
    trim: Literal["priority", "oldest_message"] | None = None
    """Which breakpoints go when slots run out: the last in order, or the oldest in messages first."""
    inquiry: Annotated[dict[str, Any], INQUIRY] | None = None
    """How a tool's questions are asked. Without it (and without a preset that asks) they are left out."""
    model: Name | None = None
    """The model of the main thread, instead of the scenario's."""
    thinking: Literal["off"] | dict[str, Any] | None = None
    """Thinking of the main thread: off, or as the Messages API spells it. Left out, the recording's."""
    params: dict[str, Any] = {}
    """Main thread parameters that override the recording's, as the Messages API spells them; null removes one."""
    changes: list[ChangeSpec] = []
    """What the agent does to the conversation or to its calls besides placing breakpoints, in this order."""
    rules: Annotated[dict[str, str | bool | int | float], BeforeValidator(_check_rules)] = {}
    """Assumptions of the rulebook for this strategy alone."""
    leaves_out: str = ""
    """What its requests leave out of the conversation, in words for the report, e.g. the oldest messages of questions.
    It is then compared apart and never the cheapest, unless `ranked: true`. A strategy that sends less than 90% of the
    conversation that the compared one sends in the same calls is compared apart without this."""
    described_in: str = ""
    """Where somebody describes this way of sending, for a column of the report, e.g. RFD 033."""
    ranked: bool | None = None
    """Whether it may be the cheapest though it sends less of the conversation (true: that is what the scenario asks
    about), or never (false); null decides by what it sends."""

    @model_validator(mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            find_strategy(value)
            return {"name": value, "preset": value}
        if isinstance(value, dict) and "name" not in value and isinstance(value.get("preset"), str):
            return {"name": value["preset"], **value}
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> StrategySpec:
        if not self.model_fields_set - {"name", *ABOUT_THE_REPORT}:
            near = nearest(self.name, names())
            expected = "preset or breakpoints in addition to the name, or `breakpoints: []` for no caching"
            raise ValueError(f"expected {expected}; got neither{near}")
        self.resolve()
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        mapping = handler.resolve_ref_schema(handler(core))
        name = {"anyOf": [{"enum": sorted(PRESETS)}, {"type": "string"}], "description": "A preset by its name."}
        return {"anyOf": [name, {key: value for key, value in mapping.items() if key != "required"}]}

    def resolve(self) -> Agent | Strategy:
        """The preset with what is given here, under this name. Raises ValueError where that makes no sense."""
        base = find_strategy(self.preset) if self.preset else Agent(name=self.name)
        if not isinstance(base, Agent):
            if self.model_fields_set - {"name", "preset", *ABOUT_THE_REPORT} or self.name != base.name:
                raise ValueError(f"'{base.name}' belongs to another package: it takes no options and no other name")
            return base
        if self.inquiry is not None and base.inquiry_by_host:
            raise ValueError(f"'{base.name}' chooses how questions are asked: it takes no inquiry")
        primitives = None if self.breakpoints is None else tuple(self.breakpoints)
        placed: dict[str, Any] = {"primitives": primitives, "ttl": self.ttl, "slots": self.slots, "trim": self.trim}
        placement = replace(base.placement, **{name: value for name, value in placed.items() if value is not None})
        inquiry = base.inquiry
        if self.inquiry is not None:
            inquiry = replace(inquiry or InquiryOptions(), **self.inquiry)
        self._must_fit(placement.slots)
        sides = [inquiry.placement(placement)] if inquiry else []
        for fault in filter(None, (each.ttl_error() for each in [placement, *sides])):
            raise ValueError(fault)
        thinking = {"type": "disabled"} if self.thinking == "off" else self.thinking
        return replace(
            base,
            name=self.name,
            placement=placement,
            inquiry=inquiry,
            model=self.model or base.model,
            params={**base.params, **({} if thinking is None else {"thinking": thinking}), **self.params},
            changes=tuple(self.changes) if "changes" in self.model_fields_set else base.changes,
            rules={**base.rules, **self.rules},
        )

    def _must_fit(self, slots: int) -> None:
        """Raises ValueError for a list of more breakpoints than a request takes, which would silently lose its last,
        unless it is said which of them go.
        """
        if self.model_fields_set & {"trim", "slots"} or isinstance(self.breakpoints, PresetBreakpoints):
            return
        own = (self.inquiry or {}).get("breakpoints", "same")
        lists = {"breakpoints": self.breakpoints or (), "inquiry.breakpoints": () if isinstance(own, str) else own}
        for what, breakpoints in lists.items():
            if len(breakpoints) > slots:
                kept = f"`trim: priority` to send the first {slots} that apply, or `trim: oldest_message`"
                problem = f"expected at most {slots}, the limit of a request; got {len(breakpoints)} (or add {kept})"
                raise ValueError(f"{what}: {problem}")
