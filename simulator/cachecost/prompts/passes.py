"""Calls that are several passes: the loop of server tools (rule 10), and compaction before an answer.

Where the API compacts, it first reads the prompt as sent to sum it up, and then answers what is left: tools, system
prompt and the summary. Each pass is charged (platform.claude.com, Compaction: `usage.iterations`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachecost.prompts.blocks import COMPACTION, Block, Layer, Message
from cachecost.prompts.request import TTL, Mark, Request

SECONDS_BETWEEN_PASSES = 0.001
"""A later pass starts once the one before it has begun to answer, however little later."""
LOOP_TTL: TTL = "5m"
"""The lifetime of the server's own marks, whatever the request's are."""


def is_server_result(block: Block) -> bool:
    """What a server tool returned: `web_search_tool_result` and the like, not the client's `tool_result`."""
    return block.kind.endswith("_tool_result")


def passes(request: Request, response: tuple[Block, ...]) -> list[Request]:
    """The request, then one more for each batch of server tool results in its response, and after each compaction.

    A later pass is the request with the answer so far, marked on each result where the request has
    any mark. Without server tools and compaction it is the request alone.
    """
    if len(response) < 2:
        return [request]
    return [request, *(_continued(request, response[:end]) for end in _batches(response))]


def pass_times(start: float, first_token_s: float, passes: int) -> list[tuple[float, float]]:
    """(start, seconds until the first token) of each pass of a call (rule 10).

    A later pass starts after the one before it has answered, so it reads what that wrote. Its own first token is not
    known: 0 (rule 11).
    """
    answered = start + first_token_s
    later = ((answered + number * SECONDS_BETWEEN_PASSES, 0.0) for number in range(1, passes))
    return [(start, first_token_s), *later]


def _batches(response: tuple[Block, ...]) -> Iterator[int]:
    """Where each run of server tool results and each summary ends, if anything was sampled after it."""
    for number, block in enumerate(response[:-1], 1):
        is_end = is_server_result(block) and not is_server_result(response[number])
        if is_end or block.kind == COMPACTION:
            yield number


def _continued(request: Request, answer: tuple[Block, ...]) -> Request:
    thread = request.thread.then(Message.of("assistant", answer))
    marks = request.marks
    if request.marks or request.automatic:
        results = (number for number, block in enumerate(answer) if is_server_result(block))
        marks = (*marks, *(Mark(Layer.MESSAGES, number, LOOP_TTL, thread) for number in results))
    return replace(request, thread=thread, marks=marks, automatic=None)
