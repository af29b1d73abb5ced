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
    faults: list[Fault] = []
    root, messages, arrived, line = Thread(), dict[tuple[int, int], Message](), 0.0, None
    for line in json_lines(path, faults, warn):
        thread = _prompt_of(line, root, messages)
        expected = "milliseconds since the trace began"
        at: float = line.get(
            "timestamp", expected, lambda it: type(it) in (int, float) and 0 <= it < LATEST * 1000, arrived
        )
        if at < arrived:
            line.fault("timestamp", f"expected {arrived:.15g} or later (lines are in order of arrival); got {at:.15g}")
        arrived = max(arrived, at)
        answer = given_block(
            "text", "assistant", f"answer {line.line}", line.whole("output_length", required=True) or 0
        )
        line.refuse_unknown_keys()
        if not faults:
            yield Call(Request(MODEL, thread), at / 1000, response=(answer,), line=line.line or 0)
    if line is None and not faults:
        faults.append(Fault(str(path), "is empty; expected a Mooncake trace, one request per line"))
    if faults:
        raise InputError(faults)


def _prompt_of(line: JsonObject, thread: Thread, messages: dict[tuple[int, int], Message]) -> Thread:
    """The prompt of a line. What others had before of it costs a look-up an id: `messages` are those of ids before, by
    their lengths, too: one that ends two prompts at different lengths is not the same block in both."""
    before = len(line.faults)
    tokens: int = line.get("input_length", "a whole number from 1", lambda value: type(value) is int and value > 0, 1)
    ids = line.wholes("hash_ids")
    whole, rest = divmod(tokens, BLOCK_TOKENS)
    if len(line.faults) == before and len(ids) not in (whole, whole + bool(rest)):
        wanted = f"{whole + bool(rest)} ids, one per {BLOCK_TOKENS} of {tokens} tokens"
        line.fault("hash_ids", f"expected {wanted}; got {len(ids)}")
    if len(line.faults) > before:
        return thread
    for number, id_ in enumerate(ids):
        size = BLOCK_TOKENS if number < whole else rest
        message = messages.get((id_, size))
        if message is None:
            name = str(id_) if size == BLOCK_TOKENS else f"{id_}:{size}"
            message = messages[id_, size] = _message_of_size(name, size)
        thread = thread.then(message)
    return thread.then(_message_of_size(f"line {line.line}", rest)) if rest and len(ids) == whole else thread


def _message_of_size(name: str, tokens: int) -> Message:
    return Message.of("user", (given_block("text", "user", name, tokens),))
