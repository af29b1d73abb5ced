"""An answer cut to `max_tokens`.

A token has at least one byte, so an answer with at most that many bytes fits. A longer one is measured by the meter, as
the growth of a prompt that the answer is added to: a few tokens more than the answer alone, so what is billed never
exceeds `max_tokens`. Whole blocks are taken while they fit; then a text is cut, and other blocks are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cachecost.live.server.message import encode_json
from cachecost.live.server.model import ModelAnswer

Blocks = Sequence[Mapping[str, Any]]
Count = Callable[[Mapping[str, Any]], int]


def within(answer: ModelAnswer, model: str, most: int, count: Count) -> ModelAnswer:
    """`answer`, cut to `most` tokens. Raises what `count` raises."""
    if most == 0:
        return replace(answer, content=(), stop_reason="max_tokens", seconds=answer.first_token_s)
    if sum(len(encode_json(block)) for block in answer.content) <= most:
        return answer
    measure = _Measure(model, count)
    if measure.tokens(answer.content) <= most:
        return answer
    return replace(answer, content=_fitting(answer.content, most, measure), stop_reason="max_tokens")


class _Measure:
    """Tokens of blocks as the meter counts them."""

    def __init__(self, model: str, count: Count) -> None:
        self._model = model
        self._count = count
        self._bare = self._of([])

    def tokens(self, blocks: Blocks) -> int:
        return self._of(blocks) - self._bare

    def _of(self, blocks: Blocks) -> int:
        said = [{"role": "assistant", "content": [dict(block) for block in blocks]}] if blocks else []
        asks: list[Mapping[str, Any]] = [{"role": "user", "content": "?"}]
        return self._count({"model": self._model, "messages": asks + said})


def _fitting(blocks: Blocks, most: int, measure: _Measure) -> list[Mapping[str, Any]]:
    taken: list[Mapping[str, Any]] = []
    for block in blocks:
        if measure.tokens([*taken, block]) <= most:
            taken.append(block)
            continue
        if block.get("type") == "text" and (text := _longest(block, taken, most, measure)):
            taken.append({"type": "text", "text": text})
        break
    return taken


def _longest(block: Mapping[str, Any], taken: Blocks, most: int, measure: _Measure) -> str:
    """The longest prefix of a text that fits, by bisection."""
    text, low, high = str(block["text"]), 0, len(block["text"])
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure.tokens([*taken, {"type": "text", "text": text[:middle]}]) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[:low]
