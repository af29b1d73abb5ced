"""Actions by name: what changes between two calls of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Part, given_block
from cachecost.prompts.request import Breakpoint, Request

NEW_TOOL_TOKENS = 300
"""What a tool that no call of the recording has is taken to be long."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CHOICES = ("auto", "any", "none", "tool:NAME")
FORMATS = ("json", "text")
FORMS = ("model=MODEL", "effort=low", "tool_choice=any", "tools+=NAME", "tools-=NAME", "format=json")
SAME_OUTPUT = "answers are assumed to be as long as before"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """An action: the request as it is sent from then on, and what is assumed."""

    name: str
    change: Callable[[Request], Request]
    assumption: str = SAME_OUTPUT
    model: str = ""
    """The model that is switched to, if one is."""


def parse_actions(names: Sequence[str], calls: Sequence[Call]) -> list[SettingChange]:
    """The actions with these names. Raises InputError with all errors; CannotEvaluate for a tool of unknown name."""
    found, faults = list[SettingChange](), list[Fault]()
    for name in names:
        made = _switch(name, calls)
        if isinstance(made, str):
            faults.append(Fault("--action", made))
        else:
            found.append(made)
    if faults:
        raise InputError(faults)
    return found


def _switch(name: str, calls: Sequence[Call]) -> SettingChange | str:
    """The action, or what is wrong with its name."""
    for sign, make in (("tools+=", _add_tool), ("tools-=", _remove_tool)):
        if name.startswith(sign) and len(name) > len(sign):
            return make(name, name.removeprefix(sign), calls)
    kind, _, value = name.partition("=")
    makers: dict[str, Callable[[str, str], SettingChange | str]] = {
        "model": _model,
        "effort": _effort,
        "tool_choice": _choice,
        "format": _format,
    }
    if kind in makers and value:
        return makers[kind](name, value)
    return f"expected one of {', '.join(FORMS)}; got '{name}'{nearest(kind, makers)}"


def _model(name: str, value: str) -> SettingChange:
    return SettingChange(name, lambda request: replace(request, model=value), f"{SAME_OUTPUT}, and as many", value)


def _effort(name: str, value: str) -> SettingChange | str:
    if value not in EFFORTS:
        return f"{name}: expected one of {', '.join(EFFORTS)}; got '{value}'{nearest(value, EFFORTS)}"
    words = "answers at another effort are unknown and assumed to be as long as before: the cost of switching alone"
    return SettingChange(name, lambda request: _config(request, effort=value), words)


def _choice(name: str, value: str) -> SettingChange | str:
    kind, _, tool = value.partition(":")
    if kind not in ("auto", "any", "none") and not (kind == "tool" and tool):
        return f"{name}: expected one of {', '.join(CHOICES)}; got '{value}'{nearest(value, CHOICES)}"
    choice = {"type": "tool", "name": tool} if kind == "tool" else {"type": kind}
    return SettingChange(name, lambda request: _with_params(request, tool_choice=choice))


def _format(name: str, value: str) -> SettingChange | str:
    if value not in FORMATS:
        return f"{name}: expected one of {', '.join(FORMATS)}; got '{value}'{nearest(value, FORMATS)}"
    schema = {"type": "json_schema", "schema": {"type": "object"}} if value == "json" else None
    return SettingChange(name, lambda request: _config(request, format=schema))


def _with_params(request: Request, **more: Any) -> Request:
    params = {**request.params, **more}
    return replace(request, params={name: value for name, value in params.items() if value is not None})


def _config(request: Request, **more: Any) -> Request:
    config = {**(request.params.get("output_config") or {}), **more}
    return _with_params(request, output_config={name: value for name, value in config.items() if value is not None})


def _add_tool(name: str, tool: str, calls: Sequence[Call]) -> SettingChange:
    """One more tool at the end: as some call has it, else of an assumed length."""
    known = next((b for call in calls for b in call.request.tools.blocks if _name(b) == tool), None)
    block = known or given_block("tool", "", f"tool {tool}", NEW_TOOL_TOKENS)
    words = SAME_OUTPUT if known else f"the new tool is assumed to be {NEW_TOOL_TOKENS} tokens long; {SAME_OUTPUT}"
    parts: dict[Part, Part] = {}

    def change(request: Request) -> Request:
        tools = parts.setdefault(request.tools, Part((*request.tools.blocks, block)))
        return _with_tools(request, tools)

    return SettingChange(name, change, words)


def _remove_tool(name: str, tool: str, calls: Sequence[Call]) -> SettingChange | str:
    names = {_name(block) for call in calls for block in call.request.tools.blocks}
    if names == {None}:
        raise CannotEvaluate(f"--action {name}: the recording has no tool names")
    if tool not in names:
        known = sorted(filter(None, names))
        listed = ", ".join(known) or "none"
        return f"{name}: expected a tool of the recording ({listed}); got '{tool}'{nearest(tool, known)}"
    parts: dict[Part, Part] = {}

    def change(request: Request) -> Request:
        kept = tuple(block for block in request.tools.blocks if _name(block) != tool)
        return _with_tools(request, parts.setdefault(request.tools, Part(kept)))

    return SettingChange(name, change)


def _with_tools(request: Request, tools: Part) -> Request:
    """Other tools. A breakpoint on one that moved stays on it; on the last one, or on one that is gone, it is on
    the last.
    """
    breakpoints = [
        _move_breakpoint(breakpoint, request.tools.blocks, tools.blocks) for breakpoint in request.breakpoints
    ]
    unique = {breakpoint.block_key: breakpoint for breakpoint in breakpoints if breakpoint is not None}
    return replace(request, tools=tools, breakpoints=tuple(unique.values()))


def _move_breakpoint(breakpoint: Breakpoint, was: tuple[Block, ...], now: tuple[Block, ...]) -> Breakpoint | None:
    if breakpoint.layer is not Layer.TOOLS:
        return breakpoint
    if not now:
        return None
    index = (
        now.index(was[breakpoint.index])
        if breakpoint.index < len(was) - 1 and was[breakpoint.index] in now
        else len(now) - 1
    )
    return replace(breakpoint, index=index)


def _name(block: Block) -> str | None:
    name = (block.content or {}).get("name")
    return str(name) if name is not None else None
