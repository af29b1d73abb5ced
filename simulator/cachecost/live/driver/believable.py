"""Whether the usage of an answer can be what the API bills: a proxy or a bug may report less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.live.driver.ceiling import TokenBounds
from cachecost.live.driver.model import AnsweredCall
from cachecost.live.driver.money import ttls_of

MOST_TOKEN_BYTES = 64
"""Bytes of an answer per token of output, at most."""
GENERATED = ("text", "thinking", "partial_json")
"""What of a block is output; a signature is not."""


def find_doubts(sent: AnsweredCall, body: Mapping[str, Any], bounds: TokenBounds, readable: int) -> Iterator[str]:
    """Why its usage cannot be what was billed. `readable` are the tokens that earlier calls of the run may have cached;
    prompts of other runs begin with other words.
    """
    usage, ttls = sent.usage, ttls_of(body)
    if usage.total_input < bounds.least:
        yield f"{usage.total_input:,} input tokens, {bounds.least:,} {bounds.source}"
    if usage.read > readable:
        yield f"{usage.read:,} tokens read, {readable:,} written before"
    if usage.read and not ttls:
        yield f"{usage.read:,} tokens read without a breakpoint"
    if usage.write_5m and ttls == {"1h"}:
        yield f"{usage.write_5m:,} tokens written for 5m, every breakpoint has 1h"
    least = -(-_output_bytes(sent.response) // MOST_TOKEN_BYTES)
    if usage.output_tokens < least:
        yield f"{usage.output_tokens:,} output tokens, {least:,} the least for so much text"


def _output_bytes(response: Mapping[str, Any]) -> int:
    texts = [block.get(name, "") for block in response.get("content", ()) for name in GENERATED]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts if isinstance(text, str))
