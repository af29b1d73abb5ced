"""Requests as their hosts receive them, rendered into one tree of prefixes for each tokenizer generation."""

from __future__ import annotations

from collections.abc import Callable

from cachecost.base.structs import replace, value
from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import TokenCounter
from cachecost.prompts.passes import passes
from cachecost.prompts.refusals import SentBreakpoints, sent_breakpoints
from cachecost.prompts.render import Prompt, Renderer
from cachecost.prompts.request import Request
from cachecost.prompts.translated import HostRequest, translate
from cachecost.providers.rules import ModelRules


@value
class PreparedRequest:
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
        more = sum(map(renderer.counter.block, sent.told.uncached))
        return [replace(prompt, total_tokens=prompt.total_tokens + more) for prompt in prompts]

    def renderer(self, generation: str) -> Renderer:
        """The renderer of a tokenizer generation. Raises CannotEvaluate if no counter can count its tokens."""
        renderer = self._renderers.get(generation)
        if renderer is None:
            renderer = self._renderers[generation] = Renderer(self._counter_for(generation))
        return renderer
