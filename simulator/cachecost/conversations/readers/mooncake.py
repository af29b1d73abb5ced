"""Mooncake traces: arrival times, prompt lengths and shared prompt blocks, without content.

JSON Lines in order of arrival, `{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46,
…]}`: milliseconds since the trace began, tokens, and an id for each 512 tokens of the prompt, the last one for the
remainder. An id stands for its block and all before it. (kvcache-ai/Mooncake, FAST25-release: README and traces of
February 2025; read 2026-11.) Some tools omit the id of a last block that is not full: that block is then never shared.

Each id becomes a message of one block with a given token count, so requests with the same ids share their thread. The
block size is not in the file, so other sizes are refused, and so are rows with further fields: the tools that write
them give the same fields another meaning. All calls are of "mooncake-trace", a model of the hosts vllm and sglang.

Limits: a prompt that continues has another id in place of a last block that was not full, so a breakpoint on that
block is never found again, only one before it; and each 512 tokens are a position of the lookback. An engine with
smaller blocks may read up to 511 tokens more. Answers get ids of their own, so no later call reads them.
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
BLOCK_TOKENS = 512
"""The block size of the published traces. It is not part of the format."""


def sniff(head: bytes) -> str | None:
    is_trace = set(top_keys(head)) == {"timestamp", "input_length", "output_length", "hash_ids"}
    return "its first line has only hash_ids, lengths and a timestamp" if is_trace else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in order, until the first error; then the rest is only checked. Raises InputError with every error."""
    faults: list[Fault] = []
    trace = _MooncakeTrace()
    line = None
    for line in json_lines(path, faults, warn):
        call = trace.call(line)
        if not faults:
            yield call
    if line is None and not faults:
        faults.append(Fault(str(path), "is empty; expected a Mooncake trace, one request per line"))
    if faults:
        raise InputError(faults)


class _MooncakeTrace:
    """What the lines so far have in common with the next: the tree of prompts, and a message for each id."""

    def __init__(self) -> None:
        self._root = Thread()
        self._messages: dict[tuple[int, int], Message] = {}
        self._arrived = 0.0

    def call(self, line: JsonObject) -> Call:
        """The call of a line. What others had before of its prompt costs a look-up an id."""
        before, thread = len(line.faults), self._root
        tokens: int = line.get(
            "input_length", "a whole number from 1", lambda value: type(value) is int and value > 0, 1
        )
        ids = line.wholes("hash_ids")
        whole, rest = divmod(tokens, BLOCK_TOKENS)
        if len(line.faults) == before and len(ids) not in (whole, whole + bool(rest)):
            wanted = f"{whole + bool(rest)} ids, one per {BLOCK_TOKENS} of {tokens} tokens"
            line.fault("hash_ids", f"expected {wanted}; got {len(ids)}")
        if len(line.faults) == before:
            for id_ in ids[:whole]:
                thread = thread.then(self._message(id_, BLOCK_TOKENS))
            if rest and len(ids) > whole:
                thread = thread.then(self._message(ids[-1], rest))
            elif rest:
                thread = thread.then(_message_of_size(f"line {line.line}", rest))
        at: float = line.get(
            "timestamp",
            "milliseconds since the trace began",
            lambda value: type(value) in (int, float) and 0 <= value < LATEST * 1000,
            self._arrived,
        )
        if at < self._arrived:
            line.fault(
                "timestamp", f"expected {self._arrived:.15g} or later (lines are in order of arrival); got {at:.15g}"
            )
        self._arrived = max(self._arrived, at)
        output = line.whole("output_length", required=True) or 0
        answer = given_block("text", "assistant", f"answer {line.line}", output)
        line.refuse_unknown_keys()
        return Call(Request(MODEL, thread), at / 1000, response=(answer,), line=line.line or 0)

    def _message(self, id_: int, tokens: int) -> Message:
        """The message of an id. One that ends two prompts at different lengths is not the same block in both."""
        message = self._messages.get((id_, tokens))
        if message is None:
            name = str(id_) if tokens == BLOCK_TOKENS else f"{id_}:{tokens}"
            message = self._messages[id_, tokens] = _message_of_size(name, tokens)
        return message


def _message_of_size(name: str, tokens: int) -> Message:
    return Message.of("user", (given_block("text", "user", name, tokens),))
