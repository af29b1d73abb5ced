"""Usage that an upstream reports instead of what it bills, and answers that do not fit the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from driver_fake import event

Usage = dict[str, Any]
INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def total(usage: Usage) -> int:
    return sum(usage[name] for name in INPUT)


def with_numbers(usage: Usage, change: Callable[[int], Any]) -> Usage:
    return {name: change(value) if isinstance(value, int) else None for name, value in usage.items()}


LIES: Mapping[str, Callable[[Usage], Any]] = {
    "empty": lambda usage: {},
    "null": lambda usage: None,
    "a list": lambda usage: [],
    "zeros": lambda usage: with_numbers(usage, lambda value: 0),
    "negative": lambda usage: with_numbers(usage, lambda value: -value),
    "negative read": lambda usage: {**usage, "cache_read_input_tokens": -(10**6)},
    "half": lambda usage: with_numbers(usage, lambda value: value // 2),
    "a tenth less": lambda usage: with_numbers(usage, lambda value: value * 9 // 10),
    "no writes": lambda usage: {**usage, "cache_creation_input_tokens": 0, "cache_creation": None},
    "all of it read": lambda usage: {"cache_read_input_tokens": total(usage), "output_tokens": 7},
    "text": lambda usage: with_numbers(usage, str),
    "floats": lambda usage: with_numbers(usage, lambda value: value + 0.5),
    "no output": lambda usage: {**usage, "output_tokens": 0},
    "only output": lambda usage: {"output_tokens": 7},
    "far too much": lambda usage: with_numbers(usage, lambda value: value * 10**6),
}
"""What is reported, by the honest usage of the call."""


def telling(lie: Callable[[Usage], Any]) -> Callable[[list[bytes]], list[bytes]]:
    """The events of an answer, with what `lie` makes of its usage at the start, and only output at the end."""

    def change(whole: list[bytes]) -> list[bytes]:
        start = json.loads(whole[0].split(b"data: ")[1])
        usage = lie(start["message"]["usage"])
        message = {**start["message"], "usage": usage}
        output = usage.get("output_tokens") if isinstance(usage, dict) else None
        last = event("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": output}})
        return [event("message_start", {"message": message}), *whole[1:4], last, whole[5]]

    return change


def start_again(whole: list[bytes]) -> list[bytes]:
    """A second message_start, with zeros."""
    zeros = telling(LIES["zeros"])(whole)[0]
    return [whole[0], zeros, *whole[1:]]


def fall_at_the_end(whole: list[bytes]) -> list[bytes]:
    """A message_delta whose counts are below those of the start."""
    usage = dict.fromkeys((*INPUT, "output_tokens"), 0)
    delta = {"stop_reason": "end_turn"}
    return [*whole[:4], event("message_delta", {"delta": delta, "usage": usage}), whole[5]]


def no_usage_at_the_end(whole: list[bytes]) -> list[bytes]:
    return [*whole[:4], event("message_delta", {"delta": {"stop_reason": "end_turn"}}), whole[5]]


def much_text(whole: list[bytes], deltas: int = 200, size: int = 1_000) -> list[bytes]:
    """An answer in many deltas, for the 7 tokens of output that the usage states."""
    delta = event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "x" * size}})
    return [*whole[:2], *[delta] * deltas, *whole[3:]]


def unknown_block(whole: list[bytes]) -> list[bytes]:
    return [whole[0], *whole[2:]]


ANSWERS: Mapping[str, Callable[[list[bytes]], list[bytes]]] = {
    **{name: telling(lie) for name, lie in LIES.items()},
    "a second start": start_again,
    "falling counts": fall_at_the_end,
    "no usage at the end": no_usage_at_the_end,
    "much text": much_text,
    "a block that did not begin": unknown_block,
}
COUNTS: Mapping[str, Callable[[int], Any]] = {
    "honest": int,
    "zero": lambda count: 0,
    "negative": lambda count: -count,
    "text": str,
    "a word": lambda count: "many",
    "far too few": lambda count: count // 20,
    "ten times": lambda count: count * 10,
}
"""What count_tokens says."""
