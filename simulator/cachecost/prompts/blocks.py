"""Blocks, messages and the two trees that share what calls share.

A `Thread` is the tree of *messages as sent*: one node per message, one child per continuation of the
conversation. A `Prefix` is the tree of *blocks as rendered*: its nodes are what the
cache knows, and two prompts share a node exactly when the cumulative digest of all blocks
and cache keys up to it is equal (rules 2 and 7). Both are interned, so equality is
identity and a call costs work for what is new in it. Most nodes have one child, which is kept without a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from json import JSONEncoder
from typing import Any, TypeVar

import msgspec

from cachecost.base.digests import blake2b

DIGEST_BYTES = 16
MOST_BEGUN = 256
"""Roles and kinds whose hashes are begun: kinds may be anything, but few are used."""
TOOL_RUNS = frozenset({"tool_use", "tool_result"})
THINKING = frozenset({"thinking", "redacted_thinking"})
COMPACT = JSONEncoder(separators=(",", ":"), ensure_ascii=False)
ENCODE = msgspec.json.Encoder().encode
"""Several times as fast. Where a value `is_simple` it writes the same, or rejects half of a surrogate pair."""
SIMPLE = frozenset({str, int, bool, type(None), msgspec.Raw})
"""Types that both encoders write alike; what is `Raw` is JSON already."""
NAMES = frozenset({str})
BYTES_PER_TOKEN = 4
COMPACTION = "compaction"
NO_COUNTS: Mapping[str, int] = {}
Folded = TypeVar("Folded")


class Layer(StrEnum):
    """The three layers of a prompt, in the order the provider hashes them."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


class Block(msgspec.Struct, frozen=True, eq=False):
    """One block of a prompt, without its breakpoint.

    `digest` is the identity: role, key order and all content but `cache_control`.
    `size` is the UTF-8 length of the compact JSON (rule 19). `content` is None where the
    recording has no content; then `counts` holds the counts taken from the content, by
    tokenizer name ("cl100k", "ctok-3", "ctok-4.7", "ctok-4.8"), and `prose` says which
    content kinds the tokenizer ratio is for, in which shares (`shares_in`). `tokens` is a stated count, for
    blocks that never had content (a scenario's static prefix, a synthetic conversation): it overrides any counter.
    """

    kind: str
    role: str
    digest: bytes
    size: int
    content: Mapping[str, Any] | None = None
    tokens: int | None = None
    counts: Mapping[str, int] = msgspec.field(default_factory=lambda: NO_COUNTS)
    prose: str = "text"
    has_image: bool = False
    has_citations: bool = False
    is_empty_text: bool = False
    brought: tuple[Mapping[str, Any], ...] = ()
    """Definitions of the deferred tools that it refers to, where content is kept: `size` and counts include them."""

    @property
    def is_thinking(self) -> bool:
        return self.kind in THINKING


def estimate_tokens(block: Block) -> int:
    """Tokens of a block by its length alone, as agents and the API's comparison of requests estimate them."""
    return block.tokens if block.tokens is not None else -(-block.size // BYTES_PER_TOKEN)


def is_server_result(kind: str) -> bool:
    """Whether a server tool returned a block of this kind (`web_search_tool_result` …), and not the client."""
    return kind.endswith("_tool_result")


def compact(content: Mapping[str, Any]) -> bytes:
    """The compact JSON of rule 19: no spaces, non-ASCII kept, key order kept."""
    return encode_simple(content) or COMPACT.encode(content).encode("utf-8", "surrogatepass")


def encode_simple(value: Any) -> bytes | None:
    """The compact JSON of a value of which it is certain without Python's own encoder, which is slow; else None."""
    try:
        return ENCODE(value) if is_simple(value) else None
    except (ValueError, RecursionError):  # half of a surrogate pair, too many digits or levels
        return None


def is_simple(value: Any) -> bool:
    """Whether a value consists of what both encoders write alike: numbers with an exponent they do not."""
    kind = type(value)
    if kind is dict:
        if not NAMES.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list:
        return kind in SIMPLE or (kind is float and (0.001 <= abs(value) < 1e15 or value == 0))
    return SIMPLE.issuperset(map(type, value)) or all(map(is_simple, value))


def digest_of(role: str, kind: str, payload: bytes) -> bytes:
    """Identity of a block: 16 bytes over role, kind and payload."""
    return digesting(role, kind, payload).digest()


def digesting(role: str, kind: str, payload: bytes) -> blake2b:
    """The unfinished hash of `digest_of`, to be continued."""
    hashed = _begun_digest(role, kind).copy()
    hashed.update(payload)
    return hashed


@lru_cache(MOST_BEGUN)
def _begun_digest(role: str, kind: str) -> blake2b:
    """The hash of what all blocks of a role and a kind begin with; it is copied, and not continued itself."""
    return blake2b(b"%b\0%b\0" % (role.encode(), kind.encode()), digest_size=DIGEST_BYTES)


def given_block(kind: str, role: str, name: str, tokens: int, content: Mapping[str, Any] | None = None) -> Block:
    """A block with a stated token count and a name, mostly without text, e.g. of a scenario's static prefix."""
    digest = digest_of(role, kind, b"given:" + name.encode())
    return Block(kind, role, digest, tokens * 4, content=content, tokens=tokens)


class Message(msgspec.Struct, frozen=True, eq=False):
    """One message as sent: a role and its blocks, without breakpoints."""

    role: str
    blocks: tuple[Block, ...]
    digest: bytes = b""
    is_human: bool = False
    has_image: bool = False
    has_citations: bool = False
    has_thinking: bool = False
    has_compaction: bool = False
    effort: str = ""
    """The effort that it sets from here on (`output_config` of a system message); "" sets none."""

    @classmethod
    def of(cls, role: str, blocks: tuple[Block, ...], effort: str = "") -> Message:
        """Build a message. A *human* message is a user message that is not only tool results."""
        is_human = has_image = has_citations = has_thinking = has_compaction = False
        for block in blocks:
            kind = block.kind
            is_human = is_human or kind != "tool_result"
            has_image = has_image or block.has_image
            has_citations = has_citations or block.has_citations
            has_thinking = has_thinking or kind in THINKING
            has_compaction = has_compaction or kind == COMPACTION
        return cls(
            role,
            blocks,
            message_digest(f"{role} {effort}" if effort else role, blocks),
            role == "user" and is_human,
            has_image,
            has_citations,
            has_thinking,
            has_compaction,
            effort,
        )


EMPTY_MESSAGE = blake2b(digest_size=DIGEST_BYTES, person=b"message")


def message_digest(role: str, blocks: Sequence[Block]) -> bytes:
    """Identity of a message: 16 bytes over its role and its blocks."""
    hashed = EMPTY_MESSAGE.copy()
    digests = blocks[0].digest if len(blocks) == 1 else b"".join([block.digest for block in blocks])
    hashed.update(role.encode() + digests)
    return hashed.digest()


class Thread:
    """A message and all before it, as sent. The root has no message and length 0.

    `human` is the node of the last human message at or before this one (None: there is none),
    `compaction` that of the last message with a compaction block; the API ignores everything before it. `system` is
    that of the first system message, `setting` that of the first that sets an effort.
    `beginning` is the node of the first message, what `up_to(1)` is (of the root: itself).
    """

    __slots__ = (
        *("_first", "_others", "beginning", "blocks", "compaction", "has_citations", "has_image", "has_thinking"),
        *("human", "length", "message", "parent", "setting", "system"),
    )

    def __init__(self, parent: Thread | None = None, message: Message | None = None) -> None:
        self.parent = parent
        self.message = message
        self._first: Thread | None = None
        self._others: dict[bytes, Thread] | None = None
        self.length: int = 0
        self.blocks: int = 0
        self.has_image = self.has_citations = self.has_thinking = False
        self.compaction: Thread | None = None
        self.human: Thread | None = None
        self.system: Thread | None = None
        self.setting: Thread | None = None
        self.beginning: Thread = self
        if parent is not None and message is not None:
            self.length = parent.length + 1
            self.blocks = parent.blocks + len(message.blocks)
            self.has_image = parent.has_image or message.has_image
            self.has_citations = parent.has_citations or message.has_citations
            self.has_thinking = parent.has_thinking or message.has_thinking
            self.compaction = self if message.has_compaction else parent.compaction
            self.human = self if message.is_human else parent.human
            self.system = parent.system or (self if message.role == "system" else None)
            self.setting = parent.setting or (self if message.effort else None)
            self.beginning = parent.beginning if parent.length else self

    @property
    def message_blocks(self) -> tuple[Block, ...]:
        """The blocks of the last message."""
        return self.message.blocks if self.message else ()

    def then(self, message: Message) -> Thread:
        """The thread continued by `message`: the same object for the same content."""
        first = self._first
        if first is None:
            first = self._first = Thread(self, message)
        if first.message is message or (first.message is not None and first.message.digest == message.digest):
            return first
        if self._others is None:
            self._others = {}
        child = self._others.get(message.digest)
        if child is None:
            child = self._others[message.digest] = Thread(self, message)
        return child

    def saying(self, role: str, blocks: tuple[Block, ...]) -> Thread:
        """The thread continued by a message of these blocks; a repeated message is not created twice."""
        first = self._first.message if self._first is not None else None
        if self._first is not None and first is not None and first.blocks is blocks and first.role == role:
            return self._first
        return self.then(Message.of(role, blocks))

    def fold(self, known: dict[Thread, Folded], start: Folded, step: Callable[[Folded, Message], Folded]) -> Folded:
        """`start`, stepped on by each message, first to last. `known` has what came out for threads that were folded
        before, and is added to: only new messages cost work.
        """
        new: list[tuple[Thread, Message]] = []
        node = self
        while node not in known and node.message is not None and node.parent is not None:
            new.append((node, node.message))
            node = node.parent
        found = known.get(node, start)
        for node, message in reversed(new):
            found = known[node] = step(found, message)
        return found

    @property
    def root(self) -> Thread:
        """The node before the first message."""
        return self.beginning.parent or self

    @property
    def is_fork(self) -> bool:
        """Whether the conversation has more than one continuation."""
        return bool(self._others)

    def back(self) -> Iterator[Thread]:
        """This node and its ancestors, latest first, without the root."""
        node: Thread | None = self
        while node is not None and node.message is not None:
            yield node
            node = node.parent

    def up_to(self, length: int) -> Thread:
        """The first `length` messages, or all if there are fewer."""
        node = self
        while node.length > length and node.parent is not None:
            node = node.parent
        return node

    def common(self, other: Thread) -> Thread:
        """The last common node of two threads, at the earliest the root. Costs work only for what they do not share."""
        one, two = self.up_to(other.length), other.up_to(self.length)
        while one is not two and one.parent is not None and two.parent is not None:
            one, two = one.parent, two.parent
        return one

    def messages(self) -> list[Message]:
        """All messages, first to last. Costs the whole length: only for the wire and for tests."""
        return [node.message for node in self.back() if node.message is not None][::-1]


class Part:
    """The blocks of the tools or system layer. Compared by identity: intern with `Parts`.

    `places` are the indices that the blocks had in the request as sent, where these differ from the rendered order: of
    a tool among all `tools`, of a system block among all of `system`. None: tools in order, server tools last.
    """

    __slots__ = ("blocks", "digest", "has_citations", "places")

    def __init__(self, blocks: tuple[Block, ...] = (), places: tuple[int, ...] | None = None) -> None:
        self.blocks = blocks
        self.places = places
        self.digest = b"".join(block.digest for block in blocks)
        self.has_citations = any(block.has_citations for block in blocks)


NOTHING = Part()


class Prefix:
    """A prefix that may be cached: one rendered block and everything before it, cache keys included.

    `tokens` are cumulative, `depth` counts blocks from 1, `position` counts lookback steps with
    runs of tool_use and of tool_result collapsed to one (rule 9). A cache key is a node without block:
    it adds no depth and no position, only hidden prompt tokens.
    """

    __slots__ = ("_first", "_others", "block", "depth", "layer", "parent", "position", "tokens")

    def __init__(self, parent: Prefix | None, layer: Layer, block: Block | None, tokens: int) -> None:
        self.parent = parent
        self.layer = layer
        self.block = block
        self._first: Prefix | None = None
        self._others: dict[bytes, Prefix] | None = None
        self.tokens, self.depth, self.position = tokens, 0, 0
        if parent is not None:
            self.tokens += parent.tokens
            self.depth, self.position = parent.depth, parent.position
        if block is not None:
            before = parent.block if parent is not None else None
            self.depth += 1
            self.position += not (block.kind in TOOL_RUNS and before is not None and before.kind == block.kind)

    @property
    def is_of_assistant(self) -> bool:
        """Whether its last block is one of an answer."""
        return self.layer is Layer.MESSAGES and self.block is not None and self.block.role == "assistant"

    def then(self, block: Block, layer: Layer, tokens: int) -> Prefix:
        """The prefix continued by `block`; `tokens` are those that the block adds, frame included."""
        first = self._first
        if first is None:
            first = self._first = Prefix(self, layer, block, tokens)
        known = first.block
        if known is block or (known is not None and known.digest == block.digest):
            return first
        return self._other(block.digest, layer, block, tokens)

    def children(self) -> Iterator[Prefix]:
        """The prefixes that are one block or cache key longer, the oldest first."""
        if self._first is not None:
            yield self._first
        if self._others is not None:
            yield from self._others.values()

    def cache_key(self, cache_key: bytes, layer: Layer, hidden_tokens: int) -> Prefix:
        """The start of `layer` under `cache_key`, with the hidden prompt tokens there.

        Their number is part of the key: the length of a prefix never depends on which call came first.
        """
        return self._other(b"salt:%d:%b" % (hidden_tokens, cache_key), layer, None, hidden_tokens)

    def _other(self, key: bytes, layer: Layer, block: Block | None, tokens: int) -> Prefix:
        if self._others is None:
            self._others = {}
        child = self._others.get(key)
        if child is None:
            child = self._others[key] = Prefix(self, layer, block, tokens)
        return child


WHOLE = 10_000
"""All shares of a block together."""


@lru_cache(maxsize=4096)
def shares_in(prose: str) -> Mapping[str, int]:
    """The share of each kind, of `WHOLE`. What is no list of shares is a kind alone, which may be any word: who uses it
    knows the kinds.
    """
    pairs = [part.partition(":") for part in prose.split(",")]
    shares = {kind: int(share) for kind, _, share in pairs if share.isdecimal() and len(share) <= len(str(WHOLE))}
    return shares if len(shares) == len(pairs) and sum(shares.values()) == WHOLE else {prose: WHOLE}


def main_kind(prose: str) -> str:
    """The kind with the largest share."""
    shares = shares_in(prose)
    return max(sorted(shares), key=shares.__getitem__)


def write_shares(shares: Mapping[str, int]) -> str:
    """The only kind whose share is not 0, or all such kinds with their shares, in the order given."""
    some = {kind: share for kind, share in shares.items() if share}
    return next(iter(some)) if len(some) == 1 else ",".join(f"{kind}:{share}" for kind, share in some.items())
