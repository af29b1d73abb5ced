"""Reads and writes JSON by msgspec, in a fifth of the time, wherever the result equals that of Python's own json.

They differ in how they write a number with a fraction or an exponent, in whole numbers of more than 64 bits, in lone
surrogates and in NaN. Bytes with any of these, and invalid JSON, go to Python's own parser.

Most blocks of a conversation (texts, thinking, tool calls and their results) are made of such JSON, and keep it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from cachecost.base.digests import StoredBytes, keep_bytes, read_bytes
from cachecost.base.limits import OutOfLimits, check_depth, json_value
from cachecost.prompts.blocks import Block, compact, digest_of, encode_simple
from cachecost.prompts.request import BREAKPOINT, BareWord, NotAMessage, Write, block_of

Value = TypeVar("Value")


class Differs(Exception):
    """A number that the two write differently."""


def refuse_number(number: str) -> None:
    """A `float_hook` of msgspec. Raises Differs."""
    raise Differs(number)


DECODE = msgspec.json.Decoder(float_hook=refuse_number).decode
ENCODE: Write = msgspec.json.Encoder().encode


def load_with_writer(data: bytes, path: str) -> tuple[Any, Write]:
    """The value of `data`, and a function that writes its objects as `compact` does. Raises NotAMessage."""
    try:
        value = DECODE(data)
        check_depth(value, data)
    except (Differs, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OutOfLimits):
        return load(data, path), compact
    return value, ENCODE


ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Any escape of JSON; of halves of a surrogate pair the first and what goes with it, or the second alone."""
REPLACEMENT = rb"\ufffd"


def decode(decode: Callable[[bytes], Value], data: bytes) -> tuple[bytes, Value]:
    """`data` and the result of msgspec's `decode`. Raises what `decode` raises.

    If it rejects lone surrogates, they become the replacement character first. Both are three bytes of UTF-8, so blocks
    stay as long as they are (rule 19).
    """
    try:
        return data, decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\ud" not in data and b"\\uD" not in data:
            raise
        whole = ESCAPE.sub(lambda found: REPLACEMENT if found[3] or (found[1] and not found[2]) else found[0], data)
        if whole == data:
            raise
        return whole, decode(whole)


def load(data: bytes, path: str) -> Any:
    """Parse JSON as Python's own parser does (it keeps big integers and lone surrogates). Raises NotAMessage."""
    try:
        return json_value(data)
    except OutOfLimits as error:
        raise out_of_limits(path, error) from None
    except ValueError:
        raise NotAMessage(path, "UTF-8 JSON", "bytes that are not") from None


def out_of_limits(path: str, error: OutOfLimits) -> NotAMessage:
    """The error for a value at `path` beyond a limit."""
    return NotAMessage(path, error.expected, BareWord(error.got))


KINDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
SPECIAL = frozenset({BREAKPOINT, "citations", "source"})
"""Fields that make a block what only `block_of` can tell; so does a content of several blocks."""
TEXT_KEY, TEXT_OPENING, TEXT_CLOSING = b'"content":"', b'[{"type":"text","text":', b"}]"
"""What is around the text of a tool result where it stands in a block (rule 1)."""
_STORED: Any = Block.__dict__["content"]
WriteSimple = Callable[[Mapping[str, Any]], bytes | None]
"""Writes an object as `compact` does, or not at all."""
PACKED = (bytes, StoredBytes)
_decode = msgspec.json.Decoder().decode


class PackedBlock(Block, frozen=True):
    """A block as `block_of` makes it of its content, which it keeps as compact JSON (`keep_bytes`): objects take more
    memory.

    A copy with other fields has the content parsed, so that it is known to be something else (`packed_content`).
    """

    @property  # type: ignore[misc]
    def content(self) -> Mapping[str, Any] | None:
        """The content, parsed each time that somebody asks."""
        stored = _STORED.__get__(self)
        return _decode(read_bytes(stored)) if type(stored) in PACKED else stored  # type: ignore[no-any-return]

    def __replace__(self, **changes: Any) -> PackedBlock:
        return msgspec.structs.replace(self, **{"content": self.content, **changes})


def has_content(block: Block) -> bool:
    """Whether a block has its content. Nothing is parsed to tell."""
    return _STORED.__get__(block) is not None


def packed_content(block: Block) -> bytes | None:
    """The compact JSON from which all of a block follows by `block_of`; None where that is not known."""
    stored = _STORED.__get__(block)
    return read_bytes(stored) if type(stored) in PACKED else None


def plain_block(
    role: str, content: Mapping[str, Any], keep_content: bool = True, write: WriteSimple = encode_simple
) -> Block:
    """The block of one wire object, the same as that of `block_of`.

    `write` is faster where it is certain that it writes the object as `compact` does (exact_json.py).
    """
    kind: Any = content.get("type")
    inner = content.get("content")
    is_known = role and type(kind) is str and kind in KINDS and (inner is None or type(inner) is str)
    payload = write(content) if is_known and SPECIAL.isdisjoint(content) else None
    if payload is None:
        return block_of(role, content, keep_content)
    identity = _with_text_in_block(content, payload, write) if kind == "tool_result" else payload
    is_empty = kind == "text" and not content.get("text")
    make: Any = PackedBlock if keep_content else Block
    kept = keep_bytes(payload) if keep_content else None
    block: Block = make(kind, role, digest_of(role, kind, identity), len(payload), kept, is_empty_text=is_empty)
    return block


def _with_text_in_block(content: Mapping[str, Any], payload: bytes, write: WriteSimple) -> bytes:
    """The JSON of a tool result whose text stands in a block."""
    text = content.get("content")
    if text is None:
        return payload
    if [*content][-1] == "content":  # so no other key can come after it, and quotes in the text itself are escaped
        start = payload.rindex(TEXT_KEY) + len(TEXT_KEY) - 1
        return b"".join((payload[:start], TEXT_OPENING, payload[start:-1], TEXT_CLOSING, b"}"))
    whole = {**content, "content": [{"type": "text", "text": text}]}
    return write(whole) or compact(whole)
