"""The same parameters in all calls of a conversation, and settings that its system prompt is rendered with (rule 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from cachecost.analysis.explain.fixes.fix import Fix, FixContext, MakeFixes, replaced, with_losses, with_part
from cachecost.analysis.replays.steps import PartPool, ReplayStep, ThreadChange
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Message, Thread
from cachecost.prompts.output_format import skills_asked
from cachecost.prompts.request import Request, block_of, is_server_tool

Parameter = tuple[Callable[[Call], Any], Callable[..., Call]]
"""How a parameter is read from a call, and how it is set."""


def same_parameter(parameter: Parameter, keeps_prices: bool = False, words: str = "") -> MakeFixes:
    """Fixes that send the first value of each conversation in all its calls, or the one that most calls have.

    `words` name that value, if it is one for all conversations.
    """
    read, put = parameter

    def make(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
        conversations = list(with_losses(context, losses).values())
        known: list[list[Any]] = []
        for pick in (first_value, most_common_value):
            values = [pick([read(step.call) for step in steps]) for steps in conversations]
            if values not in known:
                known.append(values)
                changed = [
                    step.with_change(partial(put, value=value))
                    for steps, value in zip(conversations, values, strict=True)
                    for step in steps
                ]
                named = words.format(values[0]) if len(set(map(repr, values))) == 1 else ""
                yield Fix(replaced(context.steps, changed), named, keeps_prices)

    return make


def first_value(values: Sequence[Any]) -> Any:
    return values[0]


def most_common_value(values: Sequence[Any]) -> Any:
    """The most frequent value, of equals the first."""
    counted = Counter(map(repr, values))
    most = max(counted.values())
    return next(one for one in values if counted[repr(one)] == most)


def first_other_value(values: Sequence[Any]) -> Any:
    """The first value that is not that of the first call."""
    return next((one for one in values if one != values[0]), values[0])


def body_field(*path: str) -> Parameter:
    """A field of the request's body, by its path."""

    def read(call: Call) -> Any:
        found: Any = call.request.params
        for name in path:
            found = (found or {}).get(name)
        return found

    def put(call: Call, value: Any) -> Call:
        if read(call) == value:
            return call
        params = _with_field(call.request.params, path, value)
        return replace(call, request=replace(call.request, params=params))

    return read, put


def _with_field(fields: Any, path: Sequence[str], value: Any) -> dict[str, Any]:
    """The fields with one set; None and empty ones are left out."""
    name, *rest = path
    made = dict(fields or {})
    made[name] = _with_field(made.get(name), rest, value) if rest else value
    return {key: one for key, one in made.items() if one is not None and one != {}}


MODEL: Parameter = (
    lambda call: call.request.model,
    lambda call, value: replace(call, request=replace(call.request, model=value)),
)
PLACE: Parameter = (
    lambda call: (call.workspace, call.host),
    lambda call, value: replace(call, workspace=value[0], host=value[1]),
)
STAY_ON = "stay on {} for the whole conversation, or start a side conversation for the other model"
CHOICE, THINKING, SPEED = body_field("tool_choice"), body_field("thinking"), body_field("speed")
EFFORT, FORMAT = body_field("output_config", "effort"), body_field("output_config", "format")


CITABLE = frozenset({"document", "search_result"})
"""Kinds of content on which citations are enabled: on all of a request, or on none."""
WEB_USE = frozenset({"server_tool_use", "web_search_tool_result", "web_fetch_tool_result"})
CODE_RESULT = "code_execution_tool_result"
_put_skills = body_field("container", "skills")[1]
_put_task_budget = body_field("output_config", "task_budget")[1]


class SystemSettings(NamedTuple):
    """The settings of a request. `web_tools` are the digests of their definitions."""

    web_tools: tuple[bytes, ...]
    has_citations: bool
    skills: Any
    task_budget: Any


class SettingWords(NamedTuple):
    """A setting in words: what it is, and how it is the same in all calls, switched on and switched off."""

    name: str
    on: str
    off: str


WORDS = (
    SettingWords(
        "web search or web fetch", "define the web tools from the first call on", "define no web tools in any call"
    ),
    SettingWords(
        "citations", "enable citations on all documents from the first call on", "enable citations in no call"
    ),
    SettingWords(
        "`container.skills`", "send the same skills from the first call on", "send no `container.skills` in any call"
    ),
    SettingWords(
        "`output_config.task_budget`", "set one task budget from the first call on", "set no task budget in any call"
    ),
)
"""In the order of `SystemSettings`."""


def settings_of(request: Request) -> SystemSettings:
    """The settings of a request."""
    return SystemSettings(
        tuple(block.digest for block in request.system.blocks if is_server_tool(block)),
        request.thread.has_citations or request.system.has_citations,
        skills_asked(request),
        (request.params.get("output_config") or {}).get("task_budget"),
    )


def changed_settings(before: Request, now: Request) -> list[str]:
    """What differs between the settings of two requests, and how: "citations were switched on"."""
    rows = zip(WORDS, settings_of(before), settings_of(now), strict=True)
    return [
        f"{words.name} {'changed' if old and new else 'switched on' if new else 'switched off'}"
        for words, old, new in rows
        if old != new
    ]


def same_settings(conversations: Sequence[Sequence[ReplayStep]]) -> Iterator[tuple[list[list[ReplayStep]], str]]:
    """The conversations with one value of each setting in all their calls: one that a call has, if all calls can be
    sent so; and that in words. As they are where no setting changes."""
    sent = [[settings_of(step.call.request) for step in steps] for steps in conversations]
    varying = {index for values in sent for index in range(len(WORDS)) if len({repr(one[index]) for one in values}) > 1}
    if not varying:
        yield list(map(list, conversations)), ""
        return
    changed, known = _SettingsChange(conversations), list[list[SystemSettings]]()
    for pick in (first_value, most_common_value, itemgetter(-1), first_other_value):
        wanted = [pick(values) for values in sent]
        if wanted in known or not changed.can_send(wanted):
            continue
        known.append(wanted)
        rows = ((WORDS[index], any(one[index] for one in wanted)) for index in sorted(varying))
        yield changed.conversations(wanted), "; ".join(words.on if is_on else words.off for words, is_on in rows)


class _SettingsChange:
    """Changes the settings of conversations to values that their calls have; blocks are as some call sent them."""

    def __init__(self, conversations: Sequence[Sequence[ReplayStep]]) -> None:
        self._conversations = conversations
        self._parts = PartPool()
        self._tools: dict[tuple[bytes, ...], tuple[Block, ...]] = {}
        self._as_sent: dict[tuple[bool, bytes], Block] = {}
        self._threads = {on: ThreadChange(partial(self._with_citations, on=on)) for on in (True, False)}
        self._uses = [self._scan(steps) for steps in conversations]

    def _scan(self, steps: Sequence[ReplayStep]) -> SystemSettings:
        """What the messages of a conversation use. Remembers each document as it was sent, cited or not."""
        kinds, cited, seen = set[str](), False, set[Thread]()
        for step in steps:
            request = step.call.request
            tools = tuple(block for block in request.system.blocks if is_server_tool(block))
            self._tools[tuple(block.digest for block in tools)] = tools
            for node in request.thread.back():
                if node in seen or node.message is None:
                    break
                seen.add(node)
                for block in node.message.blocks:
                    kinds.add(block.kind)
                    cited = cited or (
                        block.role == "assistant" and isinstance((block.content or {}).get("citations"), list)
                    )
                    for on in (True, False) if block.kind in CITABLE else ():
                        if block.has_citations is on:
                            self._as_sent.setdefault((on, _cited(block, False).digest), block)
        uses_skills = any(kind.endswith(CODE_RESULT) for kind in kinds)
        return SystemSettings((b"",) if kinds & WEB_USE else (), cited, uses_skills, None)

    def can_send(self, wanted: Sequence[SystemSettings]) -> bool:
        """Whether each conversation has what its messages use: results of web search, citations, results of code."""
        pairs = [pair for both in zip(wanted, self._uses, strict=True) for pair in zip(*both, strict=True)]
        return all(setting or not is_used for setting, is_used in pairs)

    def conversations(self, wanted: Sequence[SystemSettings]) -> list[list[ReplayStep]]:
        """All conversations, each with the settings that are wanted for it."""
        return [
            [step.with_change(partial(self._put, wanted=one)) for step in steps]
            for steps, one in zip(self._conversations, wanted, strict=True)
        ]

    def _put(self, call: Call, wanted: SystemSettings) -> Call:
        call = _put_task_budget(_put_skills(call, value=wanted.skills), value=wanted.task_budget)
        now = settings_of(call.request)
        if now.has_citations != wanted.has_citations:
            change = self._threads[wanted.has_citations]
            breakpoints = tuple(
                one if one.node is None else replace(one, node=change.of(one.node)) for one in call.request.breakpoints
            )
            call = replace(
                call, request=replace(call.request, thread=change.of(call.request.thread), breakpoints=breakpoints)
            )
        if now.web_tools != wanted.web_tools:
            others = (block for block in call.request.system.blocks if not is_server_tool(block))
            call = with_part(call, Layer.SYSTEM, self._parts.of((*self._tools[wanted.web_tools], *others)))
        return call

    def _with_citations(self, message: Message, on: bool) -> Message:
        blocks = list(message.blocks)
        for index, block in enumerate(blocks):
            if block.has_citations is not on and block.content is not None:
                blocks[index] = self._as_sent.get((on, _cited(block, False).digest)) or _cited(block, on)
        return message if tuple(blocks) == message.blocks else Message.of(message.role, tuple(blocks))


def _cited(block: Block, on: bool) -> Block:
    if block.content is None:
        return block
    content = _with_citations(block.content, on)
    return block if content == block.content else block_of(block.role, content)


def _with_citations(content: Mapping[str, Any], on: bool) -> dict[str, Any]:
    made = dict(content)
    if content.get("type") in CITABLE:
        made.pop("citations", None)
        made |= {"citations": {"enabled": True}} if on else {}
    if isinstance(inner := content.get("content"), list):
        made["content"] = [_with_citations(one, on) if isinstance(one, Mapping) else one for one in inner]
    return made
