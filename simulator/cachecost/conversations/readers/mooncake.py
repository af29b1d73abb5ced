"""Mooncake traces: who asked when, how long the prompt was, and which of its blocks others had too. No content.

JSON Lines in order of arrival, `{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46,
…]}`: milliseconds since the trace began, tokens, and an id for each 512 tokens of the prompt, the last one for what
is left. An id stands for its block and all before it, numbered anew by the publisher. (kvcache-ai/Mooncake,
FAST25-release: README and traces of February 2025; read 2026-11.) Some tools leave out the id of a last block that
is not full: that block is then never shared.

Conversion: each id is a message of one block with a given token count, so requests with the same ids share their
thread. The answer is one block too, with the tokens of `output_length`. Nothing was billed. The trace names no
model, so all calls are of "mooncake-trace", a model of the hosts vllm and sglang alone. It has no breakpoints,
tools, system prompt or roles, no sessions and no day: `start` counts seconds from its beginning. Of other sizes of
blocks it says nothing, so they are refused, and so are rows with further fields: the tools that write them mean
something else by the same ones.

Limits: a prompt that goes on has another id in the place of a last block that was not full, so a breakpoint on that
block is never found again, only one before it; and each 512 tokens are a position of the lookback. What two prompts
have in common is told in whole ids: an engine with smaller blocks may read up to 511 tokens more. Answers come back
as ids of their own, so none is found that the engine itself wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.base.times import LATEST
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject, json_lines
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.request import Request

MODEL = "mooncake-trace"
KEYS = {"timestamp", "input_length", "output_length", "hash_ids"}
BLOCK_TOKENS = 512
"""The block size of the published traces. It is not part of the format."""


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a Mooncake trace; None if they do not."""
    return "its first line has only hash_ids, lengths and a timestamp" if set(top_keys(head)) == KEYS else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in order, until the first error; then the rest is only checked. There is no content to keep.

    Raises InputError with every error, each with its line. An incomplete last line is skipped, with a note to `warn`.
    """
    faults: list[Fault] = []
    trace = _MooncakeTrace()
    for line in json_lines(path, faults, warn):
        call = trace.call(line)
        if not faults:
            yield call
    if not trace.lines and not faults:
        faults.append(Fault(str(path), "is empty; expected a Mooncake trace, one request per line"))
    if faults:
        raise InputError(faults)


class _MooncakeTrace:
    """What the lines so far have in common with the next: the tree of prompts, and a message for each id."""

    def __init__(self) -> None:
        self.lines = 0
        self._root = Thread()
        self._messages: dict[tuple[int, int], Message] = {}
        self._arrived = 0.0

    def call(self, line: JsonObject) -> Call:
        self.lines += 1
        thread = self._thread(line)
        at: float = line.get("timestamp", "milliseconds since the trace began", _is_moment, self._arrived)
        if at < self._arrived:
            line.fault(
                "timestamp", f"expected {self._arrived:.15g} or later (lines are in order of arrival); got {at:.15g}"
            )
        self._arrived = max(self._arrived, at)
        start = at / 1000
        answer = given_block(
            "text", "assistant", f"answer {line.line}", line.whole("output_length", required=True) or 0
        )
        line.refuse_unknown_keys()
        return Call(Request(MODEL, thread), start, response=(answer,), line=line.line or 0)

    def _thread(self, line: JsonObject) -> Thread:
        """The prompt. What others had before costs a look-up an id."""
        before = len(line.faults)
        tokens: int = line.get("input_length", "a whole number from 1", _is_length, 1)
        ids = line.wholes("hash_ids")
        whole, rest = divmod(tokens, BLOCK_TOKENS)
        if len(line.faults) == before and len(ids) not in (whole, whole + bool(rest)):
            wanted = f"{whole + bool(rest)} ids, one per {BLOCK_TOKENS} of {tokens} tokens"
            line.fault("hash_ids", f"expected {wanted}; got {len(ids)}")
        if len(line.faults) > before:
            return self._root
        thread = self._root
        for id_ in ids[:whole]:
            thread = thread.then(self._message(id_, BLOCK_TOKENS))
        if rest:
            thread = thread.then(
                self._message(ids[-1], rest) if len(ids) > whole else _message_of_size(f"line {line.line}", rest)
            )
        return thread

    def _message(self, id_: int, tokens: int) -> Message:
        """The message of an id. One that ends two prompts at different lengths is not the same block in both."""
        message = self._messages.get((id_, tokens))
        if message is None:
            name = str(id_) if tokens == BLOCK_TOKENS else f"{id_}:{tokens}"
            message = self._messages[id_, tokens] = _message_of_size(name, tokens)
        return message


def _message_of_size(name: str, tokens: int) -> Message:
    return Message.of("user", (given_block("text", "user", name, tokens),))


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_moment(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LATEST * 1000
