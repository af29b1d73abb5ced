"""The cheapest rule that knows only the past: where breakpoints go, their TTLs, and keep-alives in every pause.

The optimum knows every later call; a client does not. So a rule is chosen among the primitives of a scenario that need
nothing but the request itself: from the cheapest built-in placement of such primitives, one part after the other is
replaced (static prefix, messages, TTLs, keep-alives) as long as the calls become cheaper. The choice itself has seen
these calls: it is the best rule for this log, and a guess for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product, starmap

from cachecost.analysis.optimum.plan_evaluator import (
    KnownPlaces,
    PlanEvaluator,
    PlanStep,
    build_call,
    rendered_breakpoints,
)
from cachecost.base.structs import replace
from cachecost.changes.steps import plan_pings
from cachecost.conversations.calls import Call
from cachecost.prompts.request import TTL, Request, refusal, sent_breakpoints
from cachecost.providers.usage import TTLS
from cachecost.strategies.changes.keepalive import KeepAlive
from cachecost.strategies.placements import (
    FirstN,
    Hint,
    Lag,
    LastMessage,
    LastTool,
    Placement,
    Primitive,
    SystemBlock,
    ThreadIndex,
    TurnBoundary,
    View,
)
from cachecost.strategies.presets import PLACEMENTS

LEADING = (
    "none",
    "automatic",
    "base",
    "system-only",
    "progressive",
    "rfc013-as-written",
    "lagging-tail",
    "claude-code",
)
MOST_CALLS = 600
"""Recordings with more calls are tried with the leading placements only."""


@dataclass(frozen=True, slots=True)
class PresetResult:
    """A placement on these calls: its breakpoints, their cost, and how many calls the API would refuse.

    `steps` is empty where they are not needed any more.
    """

    name: str
    steps: list[PlanStep]
    usd: Decimal
    refused: int = 0


def try_presets(
    evaluator: PlanEvaluator, progress: Callable[[str, int], None], kept: int | None = None
) -> list[PresetResult]:
    """Every built-in placement at 5m and at 1h; equal breakpoints are evaluated once.

    Only the `kept` cheapest without a refused call keep their steps; None: all do.
    """
    placements: list[tuple[str, Placement]] = []
    for agent in PLACEMENTS:
        is_left_out = len(evaluator.sent) > MOST_CALLS and agent.name not in LEADING
        for ttl in TTLS if not (agent.changes or agent.inquiry or is_left_out) else ():
            placement = replace(agent.placement, ttl=ttl)
            if ttl == agent.placement.ttl:
                placements.append((agent.name, placement))
            elif placement.primitives and placement.ttl_error() is None:
                placements.append((f"{agent.name}@{ttl}", placement))
    costs, found = PlacementCosts(evaluator), list[PresetResult]()
    for name, placement in placements:
        steps, refused = costs.place(placement)
        found.append(PresetResult(name, steps, costs.cost(steps), refused))
        progress("placements", len(placements))
        if kept is not None:
            best = {one.name for one in cheapest_first(found)[:kept]}
            found = [one if one.name in best else replace(one, steps=[]) for one in found]
    return found


class PlacementCosts:
    """Plans of placements on the calls of an evaluator, and their cost; equal plans are evaluated once."""

    def __init__(self, evaluator: PlanEvaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[tuple[PlanStep, ...], Decimal] = {}
        self._places = KnownPlaces()

    def place(self, placement: Placement) -> tuple[list[PlanStep], int]:
        """The calls that the API accepts with these breakpoints, and how many it would refuse."""
        trail, steps, refused = ThreadIndex(), list[PlanStep](), 0
        for sent in self._evaluator.sent:
            request = place_breakpoints(sent.call.request, placement, trail)
            if refusal(request, sent_breakpoints(request), sent.rules):
                refused += 1
            else:
                steps.append(PlanStep(sent, self._places.rendered_breakpoints(sent, request)))
        return steps, refused

    def cost(self, steps: Sequence[PlanStep]) -> Decimal:
        """USD, answers included."""
        key = tuple(steps)
        if key not in self._known:
            self._known[key] = self._evaluator.cost(steps)
        return self._known[key]


def cheapest_first(presets: Iterable[PresetResult]) -> list[PresetResult]:
    """The presets without a refused call, the cheapest first."""
    return sorted((one for one in presets if not one.refused), key=lambda one: one.usd)


def place_breakpoints(request: Request, placement: Placement, trail: ThreadIndex) -> Request:
    """The request with the breakpoints of the placement."""
    breakpoints, automatic = placement.place(View(request.thread, request.tools, request.system, trail))
    return replace(request, breakpoints=breakpoints, automatic=automatic)


def keep_alive_steps(evaluator: PlanEvaluator, steps: Sequence[PlanStep], habit: KeepAlive) -> list[PlanStep]:
    """The steps, and the keep-alives of each conversation, in order of start.

    A conversation is that of a session and agent; without a session's name, calls whose messages begin alike.
    """
    found: dict[tuple[object, ...], list[Call]] = {}
    for step in steps:
        call = build_call(step)
        named = (call.session, call.agent) if call.session else (call.request.thread.up_to(1),)
        found.setdefault((call.host, call.workspace, *named), []).append(call)
    pings = list[PlanStep]()
    for calls in found.values():
        for ping in plan_pings(calls, habit):
            if made := evaluator.render_extra(ping):
                pings.append(PlanStep(made, rendered_breakpoints(made, ping.request)))
    return sorted([*steps, *pings], key=lambda step: step.sent.start)


Primitives = tuple[Primitive, ...]
STATIC: tuple[Primitives, ...] = (
    (LastTool(), SystemBlock("last")),
    (SystemBlock("last"),),
    (LastTool(),),
    (LastTool(), SystemBlock("first"), SystemBlock("last")),
    (LastTool(), SystemBlock("last"), FirstN("any", 1)),
    (FirstN("any", 1),),
    (),
)
MOVING: tuple[Primitives, ...] = (
    (LastMessage(),),
    (TurnBoundary(1),),
    (Hint(1),),
    (Lag(1),),
    (LastMessage(), TurnBoundary(1)),
    (LastMessage(), Hint(1)),
    (LastMessage(), Lag(1)),
    (LastMessage(), Lag(15)),
    (),
)
"""The ends of tools, system and first message (often documents), and what moves along with the conversation: those that
serve most clients first. Lag(15) keeps a hit within a lookback of 20 blocks."""
TTL_PAIRS: tuple[tuple[TTL, TTL], ...] = (("5m", "5m"), ("1h", "5m"), ("1h", "1h"))
"""Of the static prefix and of the messages: a longer one must not come after a shorter one."""
MARGIN_S = 5.0
"""How long before the expiry a keep-alive is sent."""
TIMES = (1, 2, 3, 5, 8, 11)
"""How many keep-alives follow a call: no more have paid off at any price (12 reads at 0.1 cost more than a write)."""
MOST_ROUNDS = 3
FEW_CALLS, MANY_CALLS = 100, 600
"""Up to so many calls all rules are tried; with more, one part and the TTLs are replaced at a time; then one part."""


@dataclass(frozen=True, slots=True)
class OnlineRule:
    """A rule in parts: breakpoints of the static prefix and of the messages, the TTL of each, and keep-alives."""

    static: Primitives = ()
    moving: Primitives = ()
    ttls: tuple[TTL, TTL] = ("5m", "5m")
    keep_alive: KeepAlive | None = None

    @property
    def placement(self) -> Placement:
        """Its breakpoints, the static prefix first; those of the static prefix name their TTL where it differs."""
        of_static, of_moving = self.ttls
        own = None if of_static == of_moving else of_static
        static = tuple(replace(one, ttl=own) for one in self.static)
        return Placement((*static, *self.moving), of_moving)


@dataclass(frozen=True, slots=True)
class RuleResult:
    """A rule on these calls: its steps, keep-alives included, and their cost in USD."""

    rule: OnlineRule
    usd: Decimal
    steps: list[PlanStep] = field(default_factory=list)

    @property
    def keep_alives(self) -> int:
        return sum(step.sent.is_extra for step in self.steps)


def cheapest_rule(evaluator: PlanEvaluator, presets: Sequence[PresetResult], pings: bool) -> RuleResult:
    """The cheapest rule for these calls; `presets` are the built-in placements on them, `pings` allows keep-alives.

    The search starts from the cheapest placement that has the parts of a rule. Of rules of the same cost, the first of
    the lists above: both ends of the static prefix, which other conversations read, and the last message; nothing at
    all where no breakpoint pays off.
    """
    rules = {f"{agent.name}": rule_of(agent.placement) for agent in PLACEMENTS if not agent.changes}
    start = OnlineRule()
    for one in sorted(presets, key=lambda preset: preset.usd):
        rule = rules.get(one.name.partition("@")[0])
        if rule is not None and not one.refused:
            ttl: TTL = "1h" if one.name.endswith("@1h") else "5m"
            start = replace(rule, ttls=(ttl, ttl)) if "@" in one.name else rule
            break
    accepted = set.intersection(*(set(sent.rules.accepted_ttls) for sent in evaluator.sent))
    ttl_pairs = [pair for pair in TTL_PAIRS if accepted.issuperset(pair)]
    search = _RuleSearch(evaluator)
    best = search.result(start)
    # Where a breakpoint pays off depends on how long it is kept, so that both change together if that is not too slow.
    replaced: tuple[tuple[str, ...], ...] = (("static", "moving", "ttls"),)
    if len(evaluator.sent) > MANY_CALLS:
        replaced = (("moving",), ("static",), ("ttls",))
    elif len(evaluator.sent) > FEW_CALLS:
        replaced = (("moving", "ttls"), ("static", "ttls"))
    for _ in range(MOST_ROUNDS):
        before = best
        for parts in replaced:
            rule = best.rule
            variants = product(
                STATIC if "static" in parts else (rule.static,),
                MOVING if "moving" in parts else (rule.moving,),
                ttl_pairs if "ttls" in parts else (rule.ttls,),
            )
            best = search.best(best, starmap(OnlineRule, variants))
        if best is before:
            break
    rule = best.rule
    if not pings or not (rule.static or rule.moving):
        return best
    kept = [
        # Shortly before the shorter TTL ends.
        replace(rule, ttls=ttls, keep_alive=KeepAlive(every_s=ttl_s - MARGIN_S, times=times, whole=True))
        for ttls in dict.fromkeys((rule.ttls, *ttl_pairs))
        for ttl_s in [evaluator.sent[0].rules.ttl_s[ttls[1] if rule.moving else ttls[0]]]
        for times in TIMES
    ]
    return search.best(best, kept)


def rule_of(placement: Placement) -> OnlineRule | None:
    """A placement as a rule; None where it has other parts."""
    primitives = placement.primitives
    moving = {primitive for part in MOVING for primitive in part}
    known = moving.union(*STATIC)
    if not set(primitives) <= known or placement != Placement(primitives, placement.ttl):
        return None
    return OnlineRule(
        tuple(one for one in primitives if one not in moving),
        tuple(one for one in primitives if one in moving),
        (placement.ttl, placement.ttl),
    )


def is_always_legal(rule: OnlineRule) -> bool:
    """Whether the API accepts the rule's breakpoints on any request: never too many, nor 1h after 5m.

    A block some blocks before the end may be one of the first message, before its end.
    """
    may_come_before = FirstN("any", 1) in rule.static and any(isinstance(one, Lag) for one in rule.moving)
    placement = rule.placement
    return placement.most <= placement.slots and not (may_come_before and rule.ttls == ("1h", "5m"))


class _RuleSearch:
    def __init__(self, evaluator: PlanEvaluator) -> None:
        self._evaluator = evaluator
        self._costs = PlacementCosts(evaluator)

    def best(self, best: RuleResult, rules: Iterable[OnlineRule]) -> RuleResult:
        for rule in rules:
            found = self.result(rule)
            if found.steps and _rank(found) < _rank(best):
                best = found
        return best

    def result(self, rule: OnlineRule) -> RuleResult:
        """A rule on all calls; without steps where the API would refuse a call."""
        steps, refused = self._costs.place(rule.placement) if is_always_legal(rule) else ([], 1)
        if refused:
            return RuleResult(rule, Decimal("Infinity"))
        if rule.keep_alive is None:
            return RuleResult(rule, self._costs.cost(steps), steps)
        steps = keep_alive_steps(self._evaluator, steps, rule.keep_alive)
        return RuleResult(rule, self._evaluator.cost(steps), steps)


def _rank(result: RuleResult) -> tuple[Decimal, int, tuple[int, ...]]:
    """USD, then what is simplest: no keep-alives, and nothing at all or the breakpoints that serve most clients."""
    rule = result.rule
    is_nothing = not rule.static and not rule.moving
    parts = (_place(rule.moving, MOVING), _place(rule.static, STATIC), _place(rule.ttls, TTL_PAIRS))
    return result.usd, result.keep_alives, () if is_nothing else parts


def _place(part: object, order: Sequence[object]) -> int:
    return order.index(part) if part in order else len(order)
