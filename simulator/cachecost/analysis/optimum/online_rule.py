"""The cheapest rule that knows only the past: where breakpoints go, their TTLs, and keep-alives.

The optimum knows every later call; a client does not. So a rule is chosen among the primitives of a scenario that need
nothing but the request itself: from the cheapest built-in placement of such primitives, one part after the other is
replaced (static prefix, messages, TTLs, keep-alives) as long as the calls become cheaper. The choice itself has seen
these calls: it is the best rule for this log, and a guess for the next.

Keep-alives of a rule: sent in every pause, as a client that knows only the past sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    Breakpoints,
    KnownPlaces,
    PlanEvaluator,
    PlanStep,
    build_call,
    rendered_breakpoints,
)
from cachecost.analysis.optimum.presets import PresetResult, place_breakpoints
from cachecost.conversations.calls import Call, Call, derive_call
from cachecost.prompts.request import TTL, refusal, sent_breakpoints
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
)
from cachecost.strategies.presets import PLACEMENTS


def keep_alive_steps(evaluator: PlanEvaluator, steps: Sequence[PlanStep], habit: KeepAlive) -> list[PlanStep]:
    """The steps, and the keep-alives of each conversation, in order of start."""
    pings = [ping for conversation in _conversations(steps) for ping in _pings(evaluator, conversation, habit)]
    return sorted([*steps, *pings], key=lambda step: step.sent.start)


def _conversations(steps: Sequence[PlanStep]) -> list[list[PlanStep]]:
    """The steps of each session and agent; without a session's name, those whose messages begin alike."""
    found: dict[tuple[object, ...], list[PlanStep]] = {}
    for step in steps:
        call = step.sent.call
        named = (call.session, call.agent) if call.session else (call.request.thread.up_to(1),)
        found.setdefault((call.host, call.workspace, *named), []).append(step)
    return list(found.values())


def _pings(evaluator: PlanEvaluator, conversation: Sequence[PlanStep], habit: KeepAlive) -> Iterator[PlanStep]:
    sent: Call | None = None
    calls = iter(conversation)
    for planned in habit.plan_calls(map(_as_planned, conversation)):
        if planned.purpose != "ping":
            sent = next(calls).sent.call
        elif sent is not None and (made := _render_ping(evaluator, sent, planned)) is not None:
            yield PlanStep(made, rendered_breakpoints(made, planned.request))


def _as_planned(step: PlanStep) -> Call:
    call = build_call(step)
    return Call(call.request, call.start, host=call.host, workspace=call.workspace, is_batch=call.is_batch)


def _render_ping(evaluator: PlanEvaluator, sent: Call, ping: Call) -> BareCall | None:
    """The keep-alive as the provider sees it; None where the API refuses it."""
    call = derive_call(sent, ping.request, ping.start, ping.output_tokens, "ping")
    found = evaluator.render_call(replace(call, is_batch=False), is_extra=True)
    return found if isinstance(found, BareCall) else None


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
TTLS: tuple[tuple[TTL, TTL], ...] = (("5m", "5m"), ("1h", "5m"), ("1h", "1h"))
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

    Of rules of the same cost, the first of the lists above: both ends of the static prefix, which other conversations
    read, and the last message; nothing at all where no breakpoint pays off.
    """
    search = _RuleSearch(evaluator)
    best = search.result(_start(presets))
    for _ in range(MOST_ROUNDS):
        before = best
        for variants in _steps_for(len(evaluator.sent)):
            best = search.best(best, variants(best.rule))
        if best is before:
            break
    return search.best(best, _with_keep_alives(best.rule, evaluator)) if pings else best


def _start(presets: Sequence[PresetResult]) -> OnlineRule:
    """The cheapest built-in placement that has the parts of a rule; no breakpoints at all where there is none."""
    rules = {f"{agent.name}": rule_of(agent.placement) for agent in PLACEMENTS if not agent.changes}
    for one in sorted(presets, key=lambda preset: preset.usd):
        rule = rules.get(one.name.partition("@")[0])
        if rule is not None and not one.refused:
            ttl: TTL = "1h" if one.name.endswith("@1h") else "5m"
            return replace(rule, ttls=(ttl, ttl)) if "@" in one.name else rule
    return OnlineRule()


def rule_of(placement: Placement) -> OnlineRule | None:
    """A placement as a rule; None where it has other parts."""
    known = {primitive for part in (*STATIC, *MOVING) for primitive in part}
    if not set(placement.primitives) <= known or placement != Placement(placement.primitives, placement.ttl):
        return None
    static = tuple(one for one in placement.primitives if not _moves(one))
    moving = tuple(filter(_moves, placement.primitives))
    return OnlineRule(static, moving, (placement.ttl, placement.ttl))


def _moves(primitive: Primitive) -> bool:
    return any(primitive in moving for moving in MOVING)


def is_always_legal(rule: OnlineRule) -> bool:
    """Whether the API accepts the rule's breakpoints on any request: never too many, nor 1h after 5m.

    A block some blocks before the end may be one of the first message, before its end.
    """
    may_come_before = FirstN("any", 1) in rule.static and any(isinstance(one, Lag) for one in rule.moving)
    placement = rule.placement
    return placement.most <= placement.slots and not (may_come_before and rule.ttls == ("1h", "5m"))


def _other_moving(rule: OnlineRule) -> Iterator[OnlineRule]:
    return (replace(rule, moving=moving) for moving in MOVING)


def _other_static(rule: OnlineRule) -> Iterator[OnlineRule]:
    return (replace(rule, static=static) for static in STATIC)


def _other_ttls(rule: OnlineRule) -> Iterator[OnlineRule]:
    return (replace(rule, ttls=ttls) for ttls in TTLS)


def _joint_moving(rule: OnlineRule) -> Iterator[OnlineRule]:
    """Messages and TTLs together: where a breakpoint pays off depends on how long it is kept."""
    return (other for moved in _other_moving(rule) for other in _other_ttls(moved))


def _joint_static(rule: OnlineRule) -> Iterator[OnlineRule]:
    return (other for moved in _other_static(rule) for other in _other_ttls(moved))


def _all(rule: OnlineRule) -> Iterator[OnlineRule]:
    return (OnlineRule(static, moving, ttls) for static in STATIC for moving in MOVING for ttls in TTLS)


def _steps_for(calls: int) -> tuple[Callable[[OnlineRule], Iterator[OnlineRule]], ...]:
    """What is replaced at a time: all of a rule, or so much of it that many calls do not take too long."""
    if calls <= FEW_CALLS:
        return (_all,)
    return (_joint_moving, _joint_static) if calls <= MANY_CALLS else (_other_moving, _other_static, _other_ttls)


def _with_keep_alives(rule: OnlineRule, evaluator: PlanEvaluator) -> Iterator[OnlineRule]:
    """The rule with each TTL, and keep-alives shortly before the shorter TTL ends."""
    if not rule.static and not rule.moving:
        return
    ttl_s = evaluator.sent[0].rules.ttl_s
    for ttls in dict.fromkeys((rule.ttls, *TTLS)):
        every_s = ttl_s[ttls[1] if rule.moving else ttls[0]] - MARGIN_S
        for times in TIMES:
            yield replace(rule, ttls=ttls, keep_alive=KeepAlive(every_s=every_s, times=times, whole=True))


class _RuleSearch:
    """Evaluates rules on the calls of an evaluator; equal plans are evaluated once."""

    def __init__(self, evaluator: PlanEvaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[tuple[Breakpoints, ...], Decimal] = {}
        self._places = KnownPlaces()

    def best(self, best: RuleResult, rules: Iterable[OnlineRule]) -> RuleResult:
        """The cheapest of `best` and these rules."""
        for rule in rules:
            found = self.result(rule)
            if found.steps and _rank(found) < _rank(best):
                best = found
        return best

    def result(self, rule: OnlineRule) -> RuleResult:
        """A rule on all calls; without steps where the API would refuse a call."""
        steps = self._steps(rule.placement) if is_always_legal(rule) else None
        if steps is None:
            return RuleResult(rule, Decimal("Infinity"))
        if rule.keep_alive is not None:
            steps = keep_alive_steps(self._evaluator, steps, rule.keep_alive)
            return RuleResult(rule, self._evaluator.cost(steps), steps)
        breakpoints = tuple(step.breakpoints for step in steps)
        if breakpoints not in self._known:
            self._known[breakpoints] = self._evaluator.cost(steps)
        return RuleResult(rule, self._known[breakpoints], steps)

    def _steps(self, placement: Placement) -> list[PlanStep] | None:
        trail, steps = ThreadIndex(), list[PlanStep]()
        for sent in self._evaluator.sent:
            request = place_breakpoints(sent.call.request, placement, trail)
            if refusal(request, sent_breakpoints(request), sent.rules):
                return None
            steps.append(PlanStep(sent, self._places.rendered_breakpoints(sent, request)))
        return steps


def _rank(result: RuleResult) -> tuple[Decimal, int, tuple[int, ...]]:
    """USD, then what is simplest: no keep-alives, and nothing at all or the breakpoints that serve most clients."""
    rule = result.rule
    is_nothing = not rule.static and not rule.moving
    parts = (_place(rule.moving, MOVING), _place(rule.static, STATIC), _place(rule.ttls, TTLS))
    return result.usd, result.keep_alives, () if is_nothing else parts


def _place(part: object, order: Sequence[object]) -> int:
    return order.index(part) if part in order else len(order)
