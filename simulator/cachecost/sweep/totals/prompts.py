"""Prompts under one reading of the rules: each rendered once, whoever sends it with whatever marks."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import Renderer
from cachecost.providers.assumptions import Switches
from cachecost.providers.own_rules import OwnRules
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.replay.setup import ReplaySetup
from cachecost.sweep.totals.plans import Sent, Unusual


@value
class Ground:
    """What prompts depend on besides requests. `given` are the switches that a user asked for."""

    host: str
    day: date | None
    switches: Switches
    given: frozenset[str]
    own: OwnRules
    tokens: str


class Bare(NamedTuple):
    """A prompt without its marks: its length in tokens, and the prefixes that marks may end, by their places' numbers.

    The same place is another prefix under another head, and where another human message leaves less thinking.
    """

    tokens: int
    prefixes: dict[int, Prefix]


class Side:
    """The prompts for one model on one host in one workspace."""

    def __init__(self, rules: ModelRules, renderer: Renderer, workspace: str) -> None:
        self.rules = rules
        self.counter = renderer.counter
        self._renderer = renderer
        self._workspace = workspace
        self._bare: dict[int, Bare] = {}
        self._prefixes: dict[tuple[Prefix, Thread | None], dict[int, Prefix]] = {}

    def prompt(self, sent: Sent) -> tuple[int, list[Prefix]]:
        """The length in tokens, and the prefixes that marks end. Raises CannotEvaluate."""
        bare = self._bare.get(sent.content)
        if bare is not None:
            try:
                return bare.tokens, [bare.prefixes[place] for place in sent.places]
            except KeyError:
                pass
        made = self._renderer.render(sent.request, sent.marks, self.rules, self._workspace)
        prefixes = self._prefixes.setdefault((made.head, sent.request.thread.human), {})
        self._bare[sent.content] = Bare(made.total_tokens, prefixes)
        found = [mark.prefix for mark in made.marks]
        prefixes.update(zip(sent.places, found, strict=True))
        return made.total_tokens, found


class Reading:
    """All prompts on one ground, in one tree a tokenizer generation."""

    def __init__(self, terms: ReplaySetup, book: RuleBook) -> None:
        self.ground = ground_of(terms, book)
        self._book = book
        self._terms = terms
        self._renderers: dict[str, Renderer] = {}
        self._sides: dict[tuple[str, str, str], Side] = {}

    def side(self, host: str | None, model: str, workspace: str) -> Side:
        """The prompts for a model in a workspace. Raises CannotEvaluate for one that is not known, Unusual."""
        key = (host or self.ground.host, model, workspace)
        if key not in self._sides:
            rules = self._book.rules(key[0], model)
            if not rules.speaks_marks:
                raise Unusual
            self._sides[key] = Side(rules, self._renderer(rules.generation), workspace)
        return self._sides[key]

    def _renderer(self, generation: str) -> Renderer:
        if generation not in self._renderers:
            self._renderers[generation] = Renderer(self._terms.counter(generation))
        return self._renderers[generation]


def ground_of(terms: ReplaySetup, book: RuleBook) -> Ground:
    switches = book.switches
    return Ground(terms.host, book.as_of, switches, switches.given, book.own, terms.tokens)
