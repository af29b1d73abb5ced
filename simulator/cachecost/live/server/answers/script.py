"""Answers from a script: a YAML file with the assistant's replies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cachecost.base import yaml_text
from cachecost.base.errors import InputError
from cachecost.base.yaml_text import PlacedValue, faults_of, show_kind
from cachecost.live.server.answers.blocks import Item, stop_reason, text, thinking, tool_use
from cachecost.live.server.model import ApiError, ClientCall, ModelAnswer

END = "end of script"


class _Part(BaseModel):
    """The base of all mappings of a script: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ScriptTool(_Part):
    """One call of a tool."""

    tool: str = Field(min_length=1)
    input: dict[str, Any] = {}


class ScriptError(_Part):
    """An error that the server answers instead."""

    status: int = Field(ge=400, le=599)
    type: str = "api_error"
    message: str = "as the script says"


class ScriptReply(_Part):
    """One answer: `thinking`, then `text`, then `tool` with its `input`, or `tools`; or an `error` instead.

    `first_token_s` and `seconds` are simulated seconds until the first token and until the end; `repeat` is how often
    the reply is given.
    """

    thinking: str | None = None
    text: str | None = None
    tool: str | None = None
    input: dict[str, Any] | None = None
    tools: list[ScriptTool] = []
    error: ScriptError | None = None
    first_token_s: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    repeat: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        says = self.text is not None or self.tool is not None or bool(self.tools)
        if says == (self.error is not None):
            raise ValueError("expected a text, a tool, tools, or an error alone")
        if self.input is not None and self.tool is None:
            raise ValueError("expected a tool with its input")
        return self

    def calls(self) -> list[ScriptTool]:
        first = [ScriptTool(tool=self.tool, input=self.input or {})] if self.tool is not None else []
        return [*first, *self.tools]


class ScriptFile(_Part):
    """The whole file. `then` says what follows the last reply: a placeholder, that reply again, or all again."""

    format: Literal[1]
    replies: list[ScriptReply] = Field(min_length=1)
    then: Literal["end", "last", "repeat"] = "end"


@dataclass(frozen=True, slots=True)
class _ScriptStep:
    """One reply, and the errors before it, one for each attempt."""

    reply: ScriptReply | None
    errors: tuple[ScriptError, ...]


class ScriptAnswerer:
    """The `turn`-th call of a conversation gets the `turn`-th reply, retried or not.

    An error takes no turn: the first attempt gets it (`x-stainless-retry-count` 0), and the second attempt the error
    right after it. So the same call always gets the same answer.
    """

    def __init__(self, script: ScriptFile) -> None:
        self._steps = _steps(script.replies)
        self._then = script.then

    @classmethod
    def load(cls, path: Path) -> ScriptAnswerer:
        """The script at `path`. Raises InputError with all its faults."""
        return cls.from_values(yaml_text.read(path))

    @classmethod
    def from_values(cls, placed: PlacedValue) -> ScriptAnswerer:
        """The script that these values are. Raises InputError with all its faults."""
        faults = list(placed.faults)
        if not isinstance(placed.value, dict):
            faults.append(placed.fault((), f"expected a mapping; got {show_kind(placed.value)}"))
        else:
            try:
                script = ScriptFile.model_validate(placed.value)
            except ValidationError as error:
                faults += faults_of(error, placed, ScriptFile.model_json_schema())
        if faults:
            raise InputError(sorted(faults, key=lambda fault: (fault.line or 0, fault.column or 0)))
        return cls(script)

    def answer(self, asked: ClientCall) -> ModelAnswer | ApiError:
        steps = self._steps
        replies = [step for step in steps if step.reply is not None]
        if asked.turn < len(steps):
            step = steps[asked.turn]
        elif self._then == "end" or not replies:
            step = _ScriptStep(None, ())
        else:
            step = replies[-1] if self._then == "last" else steps[asked.turn % len(steps)]
        if asked.retry < len(step.errors):
            error = step.errors[asked.retry]
            return ApiError(error.status, error.type, error.message)
        reply = step.reply
        if reply is None:
            return ModelAnswer([text(END)])
        content: list[Item] = [thinking(reply.thinking)] if reply.thinking is not None else []
        content += [text(reply.text)] if reply.text is not None else []
        calls = enumerate(reply.calls())
        content += [tool_use(asked.body, asked.turn, call.tool, call.input, number) for number, call in calls]
        return ModelAnswer(content, stop_reason(content), reply.first_token_s, reply.seconds)


def _steps(replies: list[ScriptReply]) -> list[_ScriptStep]:
    """One step per reply; errors belong to the reply after them."""
    steps: list[_ScriptStep] = []
    errors: list[ScriptError] = []
    for reply in replies:
        if reply.error is not None:
            errors += [reply.error] * reply.repeat
            continue
        steps += [_ScriptStep(reply, tuple(errors)), *[_ScriptStep(reply, ())] * (reply.repeat - 1)]
        errors = []
    return [*steps, _ScriptStep(None, tuple(errors))] if errors else steps
