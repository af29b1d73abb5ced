"""What is sent of a request: its Messages API body, its passes, and its prompts in the terms of each host.

A call has several passes where the server runs its own tools (rule 10), and where the API compacts: it first reads the
prompt as sent to summarize it, then answers the rest (tools, system prompt and summary). Each pass is charged
(platform.claude.com, Compaction: `usage.iterations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.blocks import COMPACTION, Block, Layer, Message, Part, is_server_result
from cachecost.prompts.render import Prompt, Renderer, TokenCounter
from cachecost.prompts.request import BREAKPOINT, TTL, Breakpoint, Request, SentBreakpoints, sent_breakpoints
from cachecost.prompts.translated import HostRequest, translate
from cachecost.providers.rules import ModelRules

Body = dict[str, Any]


def body_of(request: Request) -> Body:
    """The body that parses back to `request`: same blocks, breakpoints and parameters.

    Server tools, which are rendered at the start of the system layer (rule 2), are listed among the tools again. Raises
    CannotEvaluate for a block whose content is not known.
    """
    placed = {breakpoint.block_key: breakpoint.ttl for breakpoint in request.breakpoints}
    messages = [(node, node.message) for node in [*request.thread.back()][::-1] if node.message]
    system = list(_part(request.system, Layer.SYSTEM, placed))
    theirs, texts = ([item for block, item in system if bool(block.role) is is_text] for is_text in (False, True))
    # the deferred tools that messages refer to, each once, in the order of the references
    brought = (tool for _, message in messages for block in message.blocks for tool in block.brought)
    deferred = {str(tool.get("name")): dict(tool) for tool in brought}
    body: Body = {"model": request.model, **request.params}
    if tools := [*(item for _, item in _part(request.tools, Layer.TOOLS, placed)), *theirs, *deferred.values()]:
        body["tools"] = tools
    if texts:
        body["system"] = texts
    body["messages"] = []
    for node, message in messages:
        blocks = enumerate(message.blocks)
        content = [_wire_block(block, placed.get((Layer.MESSAGES, node.length, index))) for index, block in blocks]
        config = {"output_config": {"effort": message.effort}} if message.effort else {}
        body["messages"].append({"role": message.role, "content": content, **config})
    if request.automatic:
        body[BREAKPOINT] = breakpoint_of(request.automatic)
    return body


def breakpoint_of(ttl: TTL) -> Mapping[str, str]:
    """A `cache_control` with this TTL; the API's default is five minutes."""
    return {"type": "ephemeral", "ttl": ttl} if ttl == "1h" else {"type": "ephemeral"}


Placed = Mapping[tuple[Layer, int, int], TTL]


def _part(part: Part, layer: Layer, placed: Placed) -> Iterator[tuple[Block, Body]]:
    for index, block in enumerate(part.blocks):
        yield block, _wire_block(block, placed.get(Breakpoint(layer, index).block_key))


def _wire_block(block: Block, ttl: TTL | None) -> Body:
    if block.content is None:
        raise CannotEvaluate(f"a {block.kind} block of {block.size} bytes has no content, so it cannot be sent")
    return {**block.content, BREAKPOINT: breakpoint_of(ttl)} if ttl else dict(block.content)


SECONDS_BETWEEN_PASSES = 0.001
"""A later pass starts once the one before it has begun to answer, however little later."""
LOOP_TTL: TTL = "5m"
"""The TTL of the server's own breakpoints."""


def passes(request: Request, response: tuple[Block, ...]) -> list[Request]:
    """The request, then one more for each run of server tool results and each summary in its response, if anything was
    sampled before it and after it: a result that a response begins with is that of a call in an earlier one.

    A later pass is the request with the answer so far, with a breakpoint on each result if the request has
    any. Without server tools and compaction it is the request alone.
    """
    found, is_sampled = [request], False
    for end, (block, after) in enumerate(pairwise(response), 1):
        is_sampled = is_sampled or not is_server_result(block.kind)
        is_result = is_sampled and is_server_result(block.kind) and not is_server_result(after.kind)
        if not is_result and block.kind != COMPACTION:
            continue
        thread, breakpoints = request.thread.then(Message.of("assistant", response[:end])), request.breakpoints
        if request.breakpoints or request.automatic:
            results = (number for number, one in enumerate(response[:end]) if is_server_result(one.kind))
            breakpoints = (*breakpoints, *(Breakpoint(Layer.MESSAGES, number, LOOP_TTL, thread) for number in results))
        found.append(replace(request, thread=thread, breakpoints=breakpoints, automatic=None))
    return found


def pass_times(start: float, first_token_s: float, passes: int) -> list[tuple[float, float]]:
    """(start, seconds until the first token) of each pass of a call (rule 10).

    A later pass starts after the previous one has answered, so it reads what that wrote. The time of its own first
    token is unknown: 0 (rule 11).
    """
    answered = start + first_token_s
    later = ((answered + number * SECONDS_BETWEEN_PASSES, 0.0) for number in range(1, passes))
    return [(start, first_token_s), *later]


class PreparedRequest(msgspec.Struct, frozen=True):
    """A request as its host receives it, and the breakpoints that the host sees."""

    told: HostRequest
    breakpoints: SentBreakpoints


class HostPrompts:
    """The prompts of all hosts of a replay. `counter_for` gives the counter of a tokenizer generation."""

    def __init__(self, counter_for: Callable[[str], TokenCounter]) -> None:
        self._counter_for = counter_for
        self._renderers: dict[str, Renderer] = {}

    def prepare_request(self, request: Request, rules: ModelRules) -> PreparedRequest:
        """`request` as the host of `rules` receives it."""
        told = translate(request, rules)
        return PreparedRequest(told, sent_breakpoints(told.request))

    def render_prompts(
        self, sent: PreparedRequest, response: tuple[Block, ...], rules: ModelRules, workspace: str
    ) -> list[Prompt]:
        """One prompt for each pass; a host that ran server tools made several. Raises CannotCount."""
        renderer, looks_at = self.renderer(rules.generation), sent.told.looks_at
        requests = passes(sent.told.request, response) if rules.uses_breakpoints else [sent.told.request]
        breakpoints = [sent.breakpoints.breakpoints, *[sent_breakpoints(one).breakpoints for one in requests[1:]]]
        prompts = [
            renderer.render(one, of_one, rules, workspace, looks_at)
            for one, of_one in zip(requests, breakpoints, strict=True)
        ]
        if not sent.told.uncached:
            return prompts
        more = sum(map(renderer.count, sent.told.uncached))
        return [replace(prompt, total_tokens=prompt.total_tokens + more) for prompt in prompts]

    def renderer(self, generation: str) -> Renderer:
        """The renderer of a tokenizer generation. Raises CannotEvaluate if no counter can count its tokens."""
        renderer = self._renderers.get(generation)
        if renderer is None:
            renderer = self._renderers[generation] = Renderer(self._counter_for(generation), may_be_billed=True)
        return renderer
