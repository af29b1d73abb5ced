"""What a scenario file says of its conversation: one model a mapping; see models.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cachecost.conversations.branching import SyntheticForks
from cachecost.conversations.distributions import Distribution
from cachecost.conversations.synthetic import SyntheticInquiries, SyntheticPauses, SyntheticSizes, SyntheticSpec
from cachecost.scenario.field_types import Command, Spread, Strict, Tokens, exactly_one
from cachecost.strategies.derived_models import DerivedModel


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
