"""Prompts under one set of assumptions: each is rendered once for all strategies and breakpoints."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import Renderer
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import host_of
from cachecost.providers.own_rules import OwnRules
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.sweep.totals.plans import NotShared, PlannedRequest


@value
class PromptSetup:
    """What prompts depend on besides requests. `given` are the assumptions that the user set."""

    host: str
    day: date | None
    assumptions: Assumptions
    given: frozenset[str]
    own: OwnRules
    tokens: str


class BarePrompt(NamedTuple):
    """A prompt without its breakpoints: its length in tokens, and the prefixes that breakpoints may end, by their
    places' numbers.

    The same place is another prefix under another head, and where another human message leaves less thinking.
    """

    tokens: int
    prefixes: dict[int, Prefix]


class ModelPrompts:
    """The prompts for one model on one host in one workspace."""

    def __init__(self, rules: ModelRules, renderer: Renderer, workspace: str) -> None:
        self.rules = rules
        self.counter = renderer.counter
        self._renderer = renderer
        self._workspace = workspace
        self._bare: dict[int, BarePrompt] = {}
        self._prefixes: dict[tuple[Prefix, Thread | None], dict[int, Prefix]] = {}

    def prompt(self, sent: PlannedRequest) -> tuple[int, list[Prefix]]:
        """The length in tokens, and the prefixes that breakpoints end. Raises CannotEvaluate."""
        bare = self._bare.get(sent.content)
        if bare is not None:
            try:
                return bare.tokens, [bare.prefixes[place] for place in sent.places]
            except KeyError:
                pass
        made = self._renderer.render(sent.request, sent.breakpoints, self.rules, self._workspace)
        prefixes = self._prefixes.setdefault((made.head, sent.request.thread.human), {})
        self._bare[sent.content] = BarePrompt(made.total_tokens, prefixes)
        found = [breakpoint.prefix for breakpoint in made.breakpoints]
        prefixes.update(zip(sent.places, found, strict=True))
        return made.total_tokens, found


class PromptStore:
    """All prompts on one ground, in one tree a tokenizer generation."""

    def __init__(self, terms: ReplaySetup, book: RuleBook) -> None:
        self.setup = prompt_setup(terms, book)
        self._book = book
        self._terms = terms
        self._renderers: dict[str, Renderer] = {}
        self._sides: dict[tuple[str, str, str], ModelPrompts] = {}

    def side(self, host: str | None, model: str, workspace: str) -> ModelPrompts:
        """The prompts for a model in a workspace. Raises CannotEvaluate for one that is not known, Unusual."""
        key = (host_of(host, self.setup.host, model), model, workspace)
        if key not in self._sides:
            rules = self._book.rules(key[0], model)
            if not rules.uses_breakpoints:
                raise NotShared
            self._sides[key] = ModelPrompts(rules, self._renderer(rules.generation), workspace)
        return self._sides[key]

    def _renderer(self, generation: str) -> Renderer:
        if generation not in self._renderers:
            self._renderers[generation] = Renderer(self._terms.counter(generation))
        return self._renderers[generation]


def prompt_setup(terms: ReplaySetup, book: RuleBook) -> PromptSetup:
    assumptions = book.assumptions
    return PromptSetup(terms.host, book.as_of, assumptions, assumptions.given, book.own, terms.tokens)
