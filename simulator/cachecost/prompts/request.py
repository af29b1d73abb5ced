"""The request: the simulator renders it, live mode sends it.

How a Messages API body is parsed block by block (identity, size, breakpoints: rules 1 and 19), and all requests that
the API rejects, in its words (rule 6), checked on the request as sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from cachecost.base.errors import nearest
from cachecost.base.structs import replace
from cachecost.prompts.blocks import NOTHING, THINKING, Block, Layer, Message, Part, Thread, compact, digest_of
from cachecost.providers.rules import ModelRules

TTL = Literal["5m", "1h"]
LAYERS = tuple(Layer)


class Breakpoint(msgspec.Struct, frozen=True):
    """A `cache_control` on a block: the `index`-th of its part, or of the message `node` ends with."""

    layer: Layer
    index: int
    ttl: TTL = "5m"
    node: Thread | None = None

    @property
    def block_key(self) -> tuple[Layer, int, int]:
        """The place without the TTL: layer, message number, block number."""
        return (self.layer, self.node.length if self.node else 0, self.index)

    @property
    def prompt_order(self) -> tuple[int, int, int]:
        """What breakpoints are sorted by, as their blocks stand in a prompt."""
        layer, length, index = self.block_key
        return LAYERS.index(layer), length, index


class MessageThread(msgspec.Struct, frozen=True):
    """The thread that a request belongs to (beta message-threads-2026-08-12).

    `id` is that of the thread ("": unknown), `breakpoints` how many the client sent in this request, `idle_s` the
    seconds since the thread's last request. Both numbers are 0 for a call with a bill, as it was not
    refused.
    """

    id: str
    breakpoints: int = 0
    idle_s: float = 0.0


class Request(msgspec.Struct, frozen=True, eq=False):
    """A Messages API request: shared content plus its own parameters.

    `params` holds every other body field as sent (tool_choice, thinking, output_config, speed,
    max_tokens, …). `automatic` is the TTL of a top-level `cache_control`, if there is one. `breakpoints`
    are its breakpoints in prompt order. `fault` is the API's answer to a body that it rejects for something
    only visible on the wire (a breakpoint on a sub-block …); such a request is never rendered.
    `deferred` are the tools, by name, that a `tool_reference` may load. `message_thread` is the thread in which it
    was sent; the request is whole nevertheless. `answering_model` is the model that answered it, as its bill shows:
    that one refuses none of its parameters.
    """

    model: str
    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    breakpoints: tuple[Breakpoint, ...] = ()
    automatic: TTL | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    fault: str | None = None
    deferred: Mapping[str, Block] = msgspec.field(default_factory=dict)
    message_thread: MessageThread | None = None
    answering_model: str = ""

    @property
    def params_id(self) -> int:
        """The same for the same parameters while these exist: their id, and 0 where there are none."""
        return id(self.params) if self.params else 0


def is_server_tool(block: Block) -> bool:
    """Whether a block of the system layer defines web search or web fetch, which are rendered there (rule 2)."""
    return block.kind == "tool" and not block.role


def writes(request: Request, breakpoint: Breakpoint) -> bool:
    """Whether the cache uses this breakpoint: on a definition of web search or web fetch it writes nothing."""
    return breakpoint.layer is not Layer.SYSTEM or not is_server_tool(request.system.blocks[breakpoint.index])


def place_as_sent(request: Request, breakpoint: Breakpoint) -> tuple[Layer, int, int]:
    """The place of a breakpoint in the request as sent: layer, message number from 1 (or 0), index."""
    index = breakpoint.index
    if breakpoint.node is not None:
        return Layer.MESSAGES, breakpoint.node.length, index
    if breakpoint.layer is Layer.TOOLS:
        return Layer.TOOLS, 0, index if request.tools.places is None else request.tools.places[index]
    layer = Layer.SYSTEM if writes(request, breakpoint) else Layer.TOOLS
    if request.system.places is not None:
        return layer, 0, request.system.places[index]
    served = sum(map(is_server_tool, request.system.blocks))  # the order as sent is unknown: server tools come last
    return layer, 0, index + len(request.tools.blocks) if index < served else index - served


def block_at(request: Request, breakpoint: Breakpoint) -> Block:
    """The block with the breakpoint `breakpoint`."""
    if breakpoint.layer is Layer.TOOLS:
        return request.tools.blocks[breakpoint.index]
    if breakpoint.layer is Layer.SYSTEM:
        return request.system.blocks[breakpoint.index]
    if breakpoint.node is None or breakpoint.node.message is None:
        raise ValueError(f"breakpoint={breakpoint!r}: a breakpoint in messages needs the node of its message")
    return breakpoint.node.message.blocks[breakpoint.index]


AFTER_5M = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
    "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
)

THREAD_NOT_FOUND = (
    "No thread state was found for the requested `previous_message_id`. "
    'Replay the full conversation with thread: {"type": "create"} to start a new Thread.'
)
"""The API's words of a 404."""
THREAD_BREAKPOINTS = (
    "thread: a maximum of {most} blocks with cache_control may be provided when `thread` is set -- the fourth marker "
    "slot is reserved for the marker the server places on the conversation's last cache-eligible block. Found {found}."
)


class SentBreakpoints(msgspec.Struct, frozen=True):
    """The breakpoints of a request with the automatic one resolved; `fault` is why that fails.

    `breakpoints` are those that the cache uses, in prompt order; `idle` ones only count for rejections (rule 6).
    """

    breakpoints: tuple[Breakpoint, ...]
    fault: str | None = None
    idle: tuple[Breakpoint, ...] = ()

    @property
    def every(self) -> tuple[Breakpoint, ...]:
        """All breakpoints that the API sees."""
        return (*self.idle, *self.breakpoints)


def sent_breakpoints(request: Request) -> SentBreakpoints:
    """The breakpoints that the API sees (rule 5).

    The automatic breakpoint is placed on the last block that can have one; a no-op if that has one with its TTL.
    """
    target = last_breakpoint_place(request, request.automatic) if request.automatic else None
    if target is None:
        return _heed(request, request.breakpoints)
    there = next((breakpoint for breakpoint in request.breakpoints if breakpoint.block_key == target.block_key), None)
    if there is None:
        return _heed(request, (*request.breakpoints, target))
    fault = (
        f"Top-level cache_control has ttl='{request.automatic}' but the target block already has "
        f"cache_control with ttl='{there.ttl}'"
    )
    return _heed(request, request.breakpoints, None if there.ttl == target.ttl else fault)


def _heed(request: Request, breakpoints: tuple[Breakpoint, ...], fault: str | None = None) -> SentBreakpoints:
    idle = tuple([breakpoint for breakpoint in breakpoints if not writes(request, breakpoint)])
    return SentBreakpoints(
        tuple([breakpoint for breakpoint in breakpoints if breakpoint not in idle]) if idle else breakpoints,
        fault,
        idle,
    )


def last_breakpoint_place(request: Request, ttl: TTL) -> Breakpoint | None:
    """A breakpoint on the last block that may have one: no thinking, no empty text."""
    for node in request.thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            if accepts_breakpoint(node.message.blocks[index]):
                return Breakpoint(Layer.MESSAGES, index, ttl, node)
    return _last_in(request.system, Layer.SYSTEM, ttl) or _last_in(request.tools, Layer.TOOLS, ttl)


def _last_in(part: Part, layer: Layer, ttl: TTL) -> Breakpoint | None:
    found = (index for index in range(len(part.blocks) - 1, -1, -1) if accepts_breakpoint(part.blocks[index]))
    return next((Breakpoint(layer, index, ttl) for index in found), None)


def accepts_breakpoint(block: Block) -> bool:
    """Whether this block may have a breakpoint: thinking and empty text may not."""
    return not block.is_thinking and not block.is_empty_text


EXTRA = "{name}: Extra inputs are not permitted"
NO_SYSTEM_MESSAGES = "role 'system' is not supported on this model"
NO_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."
NO_EFFORT = "This model does not support the effort parameter."
NO_EFFORT_LEVEL = "output_config.effort: '{effort}' is not supported on {model}; it takes {levels}."
NO_THINKING = (
    '"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
    "to control thinking behavior."
)
NO_ADAPTIVE = "{kind} thinking is not supported on this model"
THINKING_OFF = "thinking.type: 'disabled' is not supported on {model} with effort '{effort}', only with {levels}."
NO_PARAMETER = "'{model}' does not support the `{name}` parameter."
NO_CHOICE = "tool_choice: type '{kind}' is not supported on {model}; it answers to 'auto' and 'none' only."
THINKING_AND_CHOICE = "Thinking may not be enabled when tool_choice forces tool use."
TOGETHER = "{one} is not supported with `{other}`"
RefusedParameter = tuple[str, str]
"""Its path in the body, and why: in the API's words where they are known."""


def refusal(
    request: Request, sent: SentBreakpoints, rules: ModelRules, prompt_tokens: int = 0, is_batch: bool = False
) -> str | None:
    """Why the API rejects this request (the first reason of the list); None if it answers.

    `prompt_tokens` is the rendered length; 0 where it is unknown (`--tokens bytes`).
    """
    parameter = next((words for _, words in refused_parameters(request, rules, is_batch)), None)
    if not rules.uses_breakpoints:
        return request.fault or parameter or too_long(prompt_tokens, rules)
    breakpoints = as_sent(request, sent)
    if len(breakpoints) > rules.maximum_breakpoints:
        most = rules.maximum_breakpoints
        return f"A maximum of {most} blocks with cache_control may be provided. Found {len(breakpoints)}."
    return (
        request.fault
        or lacking_feature(request, rules)
        or _refused_thread(request, rules)
        or _host_lacks(request, breakpoints, rules)
        or sent.fault
        or _ttl_order(request, breakpoints)
        or parameter
        or too_long(prompt_tokens, rules)
    )


def lacking_feature(request: Request, rules: ModelRules) -> str | None:
    """Why a request is refused for a feature that the host does not have: threads, on-demand compaction."""
    if not rules.accepts_threads and (request.message_thread or request.params.get("thread")):
        return EXTRA.format(name="thread")
    if not rules.accepts_compaction and request.params.get("compaction"):
        return EXTRA.format(name="compaction")
    return None


def refused_parameters(request: Request, rules: ModelRules, is_batch: bool = False) -> Iterator[RefusedParameter]:
    """The parameters that this model refuses, alone or together. None where a bill shows that it answered."""
    if request.answering_model == request.model:
        return
    params = request.params
    yield from _refused_messages(request.thread, rules)
    if not params:
        return
    yield from _refused_thinking(params, rules)
    name = rules.name or rules.model
    if params.get("speed") == "fast" and not rules.accepts_fast:
        yield "speed", NO_PARAMETER.format(model=name, name="speed")
    if params.get("inference_geo") and not rules.accepts_inference_geo:
        yield "inference_geo", NO_PARAMETER.format(model=name, name="inference_geo")
    forced = _forced(params)
    if forced and not rules.accepts_forced_choice:
        yield "tool_choice", NO_CHOICE.format(kind=forced, model=rules.model)
    elif forced and rules.uses_breakpoints and _kind(params, "thinking") == "enabled":
        yield "tool_choice", THINKING_AND_CHOICE
    yield from _refused_together(request, rules, is_batch)


def _refused_messages(thread: Thread, rules: ModelRules) -> Iterator[RefusedParameter]:
    if thread.system is not None and not rules.accepts_system_messages:
        yield f"messages.{thread.system.length - 1}.role", NO_SYSTEM_MESSAGES
    if thread.setting is not None and not rules.accepts_message_effort:
        path = f"messages.{thread.setting.length - 1}.output_config"
        yield path, EXTRA.format(name=path)
    last = thread.message
    is_prefill = last is not None and last.role == "assistant" and [one.kind for one in last.blocks[-1:]] == ["text"]
    if is_prefill and not rules.accepts_prefill:  # a paused server tool goes on from its own block
        yield f"messages.{thread.length - 1}.role", NO_PREFILL


def _refused_thinking(params: Mapping[str, Any], rules: ModelRules) -> Iterator[RefusedParameter]:
    kind, effort = _kind(params, "thinking"), _inner(params, "output_config", "effort")
    efforts, kinds, off = rules.accepted_efforts, rules.accepted_thinking, rules.efforts_without_thinking
    if effort and efforts is not None and effort not in efforts:
        levels = ", ".join(efforts)
        words = NO_EFFORT_LEVEL.format(effort=effort, model=rules.model, levels=levels) if efforts else NO_EFFORT
        yield "output_config.effort", words
    if kind and kinds is not None and kind not in kinds:
        yield "thinking", (NO_ADAPTIVE if kind == "adaptive" else NO_THINKING).format(kind=kind)
    elif kind == "disabled" and off is not None and effort and effort not in off:
        yield "thinking", THINKING_OFF.format(model=rules.model, effort=effort, levels=", ".join(off))


def _refused_together(request: Request, rules: ModelRules, is_batch: bool) -> Iterator[RefusedParameter]:
    params, forced = request.params, _forced(request.params)
    output_format = _inner(params, "output_config", "format") or params.get("output_format")
    has = {
        "stream": params.get("stream"),
        "thinking.type: enabled": _kind(params, "thinking") == "enabled",
        "output_config.format": output_format,
        "tool_choice.type: any": forced == "any",
        "tool_choice.type: tool": forced == "tool",
        "batch": is_batch,
        "citations": output_format and (request.thread.has_citations or request.system.has_citations),
    }
    for path, one, is_set, excluded in (
        ("max_tokens", "max_tokens: 0", params.get("max_tokens") == 0, rules.prewarming_excludes),
        ("speed", "speed: fast", params.get("speed") == "fast", rules.fast_excludes),
        ("output_config.format", "output_config.format", output_format, rules.format_excludes),
    ):
        yield from ((path, TOGETHER.format(one=one, other=name)) for name in excluded if is_set and has.get(name))


def _inner(params: Mapping[str, Any], name: str, inner: str) -> Any:
    value = params.get(name)
    return value.get(inner) if isinstance(value, Mapping) else None


def _kind(params: Mapping[str, Any], name: str) -> Any:
    return _inner(params, name, "type")


def _forced(params: Mapping[str, Any]) -> str | None:
    """The type of a forced tool choice; None: the model chooses."""
    kind = _kind(params, "tool_choice")
    return kind if kind in ("any", "tool") else None


def _refused_thread(request: Request, rules: ModelRules) -> str | None:
    thread = request.message_thread
    if thread is None:
        return None
    if thread.breakpoints > rules.thread_breakpoints:
        return THREAD_BREAKPOINTS.format(most=rules.thread_breakpoints, found=thread.breakpoints)
    return THREAD_NOT_FOUND if thread.idle_s > rules.thread_held_s else None


def _host_lacks(request: Request, breakpoints: tuple[Breakpoint, ...], rules: ModelRules) -> str | None:
    """A feature that this host's model does not have: top-level `cache_control`, or a TTL."""
    if request.automatic and not rules.accepts_automatic:
        return "cache_control: Extra inputs are not permitted"
    for breakpoint in breakpoints:
        if breakpoint.ttl not in rules.accepted_ttls:
            kind = block_at(request, breakpoint).kind
            return (
                f"{wire_path(request, breakpoint)}.{kind}.cache_control.ephemeral.ttl: Extra inputs are not permitted"
            )
    return None


def as_sent(request: Request, sent: SentBreakpoints) -> tuple[Breakpoint, ...]:
    """All breakpoints in the order of the request as sent."""
    if not sent.idle:
        return sent.breakpoints
    places = {breakpoint: place_as_sent(request, breakpoint) for breakpoint in sent.every}
    return tuple(sorted(sent.every, key=lambda one: (LAYERS.index(places[one][0]), *places[one][1:])))


def _ttl_order(request: Request, breakpoints: tuple[Breakpoint, ...]) -> str | None:
    seen_5m = False
    for breakpoint in breakpoints:
        if breakpoint.ttl == "1h" and seen_5m:
            return f"{wire_path(request, breakpoint)}.cache_control.ttl: {AFTER_5M}"
        seen_5m = seen_5m or breakpoint.ttl == "5m"
    return None


def wire_path(request: Request, breakpoint: Breakpoint) -> str:
    """The path of a breakpoint in the request as sent, as the API writes it: `messages.0.content.4`, `system.1`,
    `tools.3`.
    """
    layer, message, index = place_as_sent(request, breakpoint)
    return f"messages.{message - 1}.content.{index}" if message else f"{layer}.{index}"


def too_long(tokens: int, rules: ModelRules) -> str | None:
    """Why a prompt of this length is refused; None: it fits the context window."""
    if tokens <= rules.context_window:
        return None
    return f"prompt is too long: {tokens} tokens > {rules.context_window} maximum"


ROLES = ("user", "assistant", "system")
PROVIDER_TOOLS = ("web_search_", "web_fetch_")
"""Server tools whose definition stands at the head of the system layer (rule 2)."""
BREAKPOINT = "cache_control"
CACHE_POINT = "cachePoint"
"""A block of Bedrock's Converse, where it may not stand."""
NOT_PERMITTED = "Extra inputs are not permitted"
Write = Callable[[Mapping[str, Any]], bytes]
"""Writes an object as the compact JSON of rule 19."""


class NotAMessage(Exception):
    """A body that is not a Messages request: the `path` within it, what was expected, what was found."""

    def __init__(self, path: str, expected: str, got: object, hint: str = "") -> None:
        super().__init__(f"{path}: expected {expected}; got {show_found(got)}{hint}")
        self.path = path


class BareWord(str):
    """A found value that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show_found(value: object) -> str:
    """A value as an error shows it: short, and never a whole prompt."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…'"


class ParsedMessage(msgspec.Struct, frozen=True):
    """A parsed message with its breakpoints and errors.

    `breakpoints` are (block index, TTL); `faults` the API's rejections, with `{n}` for the message number.
    """

    message: Message
    breakpoints: tuple[tuple[int, TTL], ...] = ()
    faults: tuple[str, ...] = ()


def ttl_of(breakpoint: object, path: str) -> TTL | None:
    """The TTL of a `cache_control` value; None for no breakpoint. Raises NotAMessage."""
    if breakpoint is None:
        return None
    if not isinstance(breakpoint, Mapping) or breakpoint.get("type") != "ephemeral":
        raise NotAMessage(f"{path}.{BREAKPOINT}", '{"type": "ephemeral"}', breakpoint)
    ttl = breakpoint.get("ttl") or "5m"
    if ttl not in ("5m", "1h"):
        raise NotAMessage(f"{path}.{BREAKPOINT}.ttl", "'5m' or '1h'", ttl)
    return cast("TTL", ttl)


def block_of(role: str, content: Mapping[str, Any], keep_content: bool = True, write: Write = compact) -> Block:
    """The block of one wire object, without breakpoints. `content` is as sent, in key order; `write` works like
    `compact`.
    """
    kind = str(content.get("type") or "tool") if role else "tool"
    bare = _without_breakpoints(content)
    payload = write(bare)
    inner = () if kind == "text" else tuple((sub for _, sub in _paths_inside(bare, "")))
    one_text = kind == "tool_result" and isinstance(bare.get("content"), str)
    return Block(
        kind,
        role,
        digest_of(
            role, kind, write({**bare, "content": [{"type": "text", "text": bare["content"]}]}) if one_text else payload
        ),
        len(payload),
        content=bare if keep_content else None,
        has_image=kind == "image" or any(sub.get("type") == "image" for sub in inner),
        has_citations=cites_sources(bare) or any(map(cites_sources, inner)),
        is_empty_text=kind == "text" and not bare.get("text"),
    )


def text_block(role: str, text: str, keep_content: bool = True) -> Block:
    """The block equal to a string content (rule 1)."""
    return block_of(role, {"type": "text", "text": text}, keep_content)


def _without_breakpoints(content: Mapping[str, Any]) -> Mapping[str, Any]:
    bare = {key: value for key, value in content.items() if key != BREAKPOINT} if BREAKPOINT in content else content
    inner = bare.get("content")
    if isinstance(inner, list) and any(isinstance(sub, Mapping) and BREAKPOINT in sub for sub in inner):
        bare = {**bare, "content": [_without_breakpoints(sub) if isinstance(sub, Mapping) else sub for sub in inner]}
    source = bare.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("content"), list):
        bare = {**bare, "source": _without_breakpoints(source)}
    return bare


def _paths_inside(content: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sub-blocks of a block's content or of its source, each with its path."""
    source = content.get("source")
    of_source = source.get("content") if isinstance(source, Mapping) else None
    for name, inner in (("content", content.get("content")), ("source.content", of_source)):
        if isinstance(inner, list):
            yield from ((f"{path}.{name}.{n}", sub) for n, sub in enumerate(inner) if isinstance(sub, Mapping))


def cites_sources(content: Mapping[str, Any]) -> bool:
    citations = content.get("citations")
    return isinstance(citations, Mapping) and citations.get("enabled") is True


def bringing(block: Block, content: Mapping[str, Any], deferred: Mapping[str, Block]) -> Block:
    """`block` with the deferred tools that it refers to: their definitions enter the prompt there (rule 1).

    (In six recorded calls with Anthropic's tool search the definitions were not billed: bills correct that.)
    """
    brought = [deferred[name] for name in references(content) if name in deferred]
    if not brought:
        return block
    return replace(
        block,
        digest=digest_of(block.role, block.kind, b"".join([block.digest, *(tool.digest for tool in brought)])),
        size=block.size + sum(tool.size for tool in brought),
        brought=tuple(tool.content for tool in brought if tool.content is not None),
    )


def answer_blocks(
    items: Iterable[Mapping[str, Any]], deferred: Mapping[str, Block], keep_content: bool = True
) -> tuple[Block, ...]:
    """The blocks of an answer, as the next call will send them again."""
    return tuple(bringing(block_of("assistant", item, keep_content), item, deferred) for item in items)


def references(value: object) -> Iterator[str]:
    """Names of the tools in `tool_reference` blocks anywhere inside, in order."""
    if isinstance(value, Mapping):
        if value.get("type") == "tool_reference":
            yield str(value.get("tool_name"))
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def own_breakpoint(content: Mapping[str, Any], path: str) -> tuple[TTL | None, str | None]:
    """(TTL, error) of one wire object: its own breakpoint, or one lifted from its last sub-block."""
    ttl = ttl_of(content.get(BREAKPOINT), path)
    if content.get("type") == "text":
        return ttl, None
    subs = list(_paths_inside(content, path))
    if subs and content.get("type") in ("tool_result", "document"):
        inside, last = subs.pop()
        inner = ttl_of(last.get(BREAKPOINT), inside)
        fault = _fault_at(subs) or _fault_at(_paths_inside(last, inside))
        return ttl or inner, fault or (breakpoint_fault(last, inside) if inner else None)
    return ttl, _fault_at(subs)


def _fault_at(subs: Iterable[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Why the API rejects these sub-blocks: neither they nor anything inside them may have a breakpoint."""
    for inside, sub in subs:
        if ttl_of(sub.get(BREAKPOINT), inside):
            return _fault_of_point(sub, inside) or f"{inside}.{BREAKPOINT}: {NOT_PERMITTED}"
        if fault := _fault_at(_paths_inside(sub, inside)):  # two or more levels deep
            return fault
    return None


def _fault_of_point(content: Mapping[str, Any], path: str) -> str | None:
    """Amazon's words for a cache point in a tool result."""
    return f"{path}: extraneous key [{CACHE_POINT}] is not permitted" if content.get("type") == CACHE_POINT else None


def breakpoint_fault(content: Mapping[str, Any], path: str) -> str | None:
    """Why this object cannot have its breakpoint, in the API's words; None if it can."""
    if fault := _fault_of_point(content, path):
        return fault
    kind = content.get("type")
    if kind in THINKING:
        return f"{path}.{kind}.{BREAKPOINT}: {NOT_PERMITTED}"
    if kind == "text" and not content.get("text"):
        return f"{path}.text: {BREAKPOINT} cannot be set for empty text blocks"
    if content.get("defer_loading") is True:
        return (
            f"Tool '{content.get('name')}' cannot have both defer_loading=true and {BREAKPOINT} set. "
            "Tools with defer_loading cannot use prompt caching."
        )
    return None


def content_blocks(content: object, path: str) -> list[Mapping[str, Any]]:
    """The wire objects of a `content`: a string is one text block. Raises NotAMessage."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise NotAMessage(path, "a string or an array of blocks", content)
    for number, item in enumerate(content):
        if not isinstance(item, Mapping):
            raise NotAMessage(f"{path}.{number}", "a block object", item)
        if not isinstance(item.get("type"), str):
            raise NotAMessage(f"{path}.{number}.type", "the block's type", item.get("type"))
    return content


def parse_message(
    body: object, keep_content: bool, number: int, deferred: Mapping[str, Block] | None = None, write: Write = compact
) -> ParsedMessage:
    """One element of `messages`. Raises NotAMessage with the path `messages.N…`.

    `deferred` are the tools, by name, that a `tool_reference` in the message may load (rule 1); `write` works like
    `compact`.
    """
    path = f"messages.{number}"
    if not isinstance(body, Mapping):
        raise NotAMessage(path, "a message object", body)
    role = body.get("role")
    if role not in ROLES:
        raise NotAMessage(f"{path}.role", "one of assistant, system, user", role, nearest(str(role), ROLES))
    items = content_blocks(body.get("content"), f"{path}.content")
    blocks = tuple(block_of(role, item, keep_content, write) for item in items)
    if deferred:
        blocks = tuple(bringing(block, item, deferred) for block, item in zip(blocks, items, strict=True))
    breakpoints, faults = collect_breakpoints(items, f"{path}.content")
    config = body.get("output_config")
    effort = config.get("effort") if isinstance(config, Mapping) else None
    return ParsedMessage(
        Message.of(role, blocks, str(effort) if effort else ""),
        breakpoints,
        tuple(fault.replace(path + ".", "messages.{n}.", 1) for fault in faults),
    )


def collect_breakpoints(items: Sequence[Mapping[str, Any]], path: str) -> tuple[tuple[tuple[int, TTL], ...], list[str]]:
    """The breakpoints on wire objects as (index, TTL), and their errors."""
    breakpoints: list[tuple[int, TTL]] = []
    faults: list[str] = []
    for number, item in enumerate(items):
        ttl, fault = own_breakpoint(item, f"{path}.{number}")
        if fault:
            faults.append(fault)
        if ttl:
            breakpoints.append((number, ttl))
            if fault := breakpoint_fault(item, f"{path}.{number}"):
                faults.append(fault)
    return tuple(breakpoints), faults
