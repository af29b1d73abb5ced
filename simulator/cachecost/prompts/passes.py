"""Calls with several passes: the server tool loop (rule 10), and compaction before an answer.

When the API compacts, it first reads the prompt as sent to summarize it, then answers the rest: tools, system prompt
and summary. Each pass is charged (platform.claude.com, Compaction: `usage.iterations`).
"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.base.structs import replace
from cachecost.prompts.blocks import COMPACTION, Block, Layer, Message
from cachecost.prompts.request import TTL, Breakpoint, Request

SECONDS_BETWEEN_PASSES = 0.001
"""A later pass starts once the one before it has begun to answer, however little later."""
LOOP_TTL: TTL = "5m"
"""The TTL of the server's own breakpoints."""


def is_server_result(block: Block) -> bool:
    """Whether a server tool returned this block (`web_search_tool_result` …), not the client (`tool_result`)."""
    return block.kind.endswith("_tool_result")


def passes(request: Request, response: tuple[Block, ...]) -> list[Request]:
    """The request, then one more for each batch of server tool results and each compaction in its response.

    A later pass is the request with the answer so far, with a breakpoint on each result if the request has
    any. Without server tools and compaction it is the request alone.
    """
    if len(response) < 2:
        return [request]
    return [request, *(_continue_request(request, response[:end]) for end in _batches(response))]


def pass_times(start: float, first_token_s: float, passes: int) -> list[tuple[float, float]]:
    """(start, seconds until the first token) of each pass of a call (rule 10).

    A later pass starts after the previous one has answered, so it reads what that wrote. The time of its own first
    token is unknown: 0 (rule 11).
    """
    answered = start + first_token_s
    later = ((answered + number * SECONDS_BETWEEN_PASSES, 0.0) for number in range(1, passes))
    return [(start, first_token_s), *later]


def _batches(response: tuple[Block, ...]) -> Iterator[int]:
    """The end of each run of server tool results and each summary, if anything was sampled after it."""
    for number, block in enumerate(response[:-1], 1):
        is_end = is_server_result(block) and not is_server_result(response[number])
        if is_end or block.kind == COMPACTION:
            yield number


def _continue_request(request: Request, answer: tuple[Block, ...]) -> Request:
    thread = request.thread.then(Message.of("assistant", answer))
    breakpoints = request.breakpoints
    if request.breakpoints or request.automatic:
        results = (number for number, block in enumerate(answer) if is_server_result(block))
        breakpoints = (*breakpoints, *(Breakpoint(Layer.MESSAGES, number, LOOP_TTL, thread) for number in results))
    return replace(request, thread=thread, breakpoints=breakpoints, automatic=None)
