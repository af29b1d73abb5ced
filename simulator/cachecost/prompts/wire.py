"""Parses a Messages API body block by block: identity, size, breakpoints (rules 1 and 19)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from cachecost.base.errors import nearest
from cachecost.base.structs import value
from cachecost.prompts.blocks import THINKING, Block, Message, compact, digest_of
from cachecost.prompts.request import TTL

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


@value
class ParsedMessage:
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
    inner = () if kind == "text" else tuple(_sub_blocks(bare))
    one_text = kind == "tool_result" and isinstance(bare.get("content"), str)
    return Block(
        kind,
        role,
        digest_of(role, kind, write(_one_shape(bare)) if one_text else payload),
        len(payload),
        content=bare if keep_content else None,
        has_image=kind == "image" or any(sub.get("type") == "image" for sub in inner),
        has_citations=_cites(bare) or any(map(_cites, inner)),
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


def _one_shape(bare: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**bare, "content": [{"type": "text", "text": bare["content"]}]}


def _sub_blocks(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (sub for _, sub in _paths_inside(content, ""))


def _paths_inside(content: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sub-blocks of a block's content or of its source, each with its path."""
    source = content.get("source")
    of_source = source.get("content") if isinstance(source, Mapping) else None
    for name, inner in (("content", content.get("content")), ("source.content", of_source)):
        if isinstance(inner, list):
            yield from ((f"{path}.{name}.{n}", sub) for n, sub in enumerate(inner) if isinstance(sub, Mapping))


def _cites(content: Mapping[str, Any]) -> bool:
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
        above = _fault_at(subs)
        return ttl or inner, above or _fault_inside(last, inside) or (breakpoint_fault(last, inside) if inner else None)
    return ttl, _fault_at(subs)


def _fault_at(subs: Iterable[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Why the API rejects these sub-blocks: neither they nor anything inside them may have a breakpoint."""
    for inside, sub in subs:
        if ttl_of(sub.get(BREAKPOINT), inside):
            return _fault_of_point(sub, inside) or f"{inside}.{BREAKPOINT}: {NOT_PERMITTED}"
        if fault := _fault_inside(sub, inside):
            return fault
    return None


def _fault_inside(content: Mapping[str, Any], path: str) -> str | None:
    """Why the API rejects the inside of a sub-block: a breakpoint two or more levels deep."""
    return _fault_at(_paths_inside(content, path))


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
    body: object,
    keep_content: bool,
    number: int,
    deferred: Mapping[str, Block] | None = None,
    write: Write = compact,
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
