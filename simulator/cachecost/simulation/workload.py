"""A workload: calls and the setup that they are replayed under, as often as an analysis needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.hosts import SimulatedHosts
from cachecost.conversations.calls import Call, date_call, name_call
from cachecost.conversations.logs import Logs, read_logs
from cachecost.prompts.blocks import Thread
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import host_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, ModelRules, OwnRules, RuleBook, data_date, supported_by
from cachecost.simulation.engine import AS_RECORDED, CallPreparer, Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import CALIBRATED, FILLER

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation
    from cachecost.scenario import Scenario
    from cachecost.strategies.registry import Strategy
    from cachecost.strategies.spec import StrategySpec

NO_ASSUMPTIONS: Mapping[str, object] = {}
LATER_S = 2.0**-10
"""About a millisecond: an entry can be read from the first token on."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Calls in the order they start, and their setup. `strategy` is the strategy that made them, or AS_RECORDED."""

    name: str
    calls: Sequence[Call]
    setup: ReplaySetup
    strategy: str = AS_RECORDED

    def simulation(
        self,
        cache: PrefixCache | None = None,
        preparer: CallPreparer | None = None,
        hosts: SimulatedHosts | None = None,
        kind: type[Simulation] = Simulation,
    ) -> Simulation:
        """A new simulation that has learned from the bills, or what `preparer` has learned; `kind` is what it makes
        of a call. Raises CannotEvaluate for an unknown counter."""
        return kind(self.setup, self.strategy, cache, preparer or self.setup.preparer(), hosts)

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts of the calls."""
        return frozenset(host_of(call.host, self.setup.host, call.request.model) for call in self.calls)

    def expect(self, replays: int) -> None:
        """An analysis expects so many replays more. Nobody is told, unless the workload is watched."""

    def require_support(self, command: str) -> None:
        """Check that `command` supports the caches of the calls.

        Raises CannotEvaluate for the first one that it does not, or where no call's rules are known.
        """
        unknown: dict[str, None] = {}
        some = False
        for host, model, day in dict.fromkeys((call.host, call.request.model, call.day) for call in self.calls):
            try:
                rules = self.setup.rules.rules(host_of(host, self.setup.host, model), model, day)
            except CannotEvaluate as error:
                unknown[str(error)] = None
                continue
            rules.require_support(command)
            some = True
        if unknown and not some:
            raise CannotEvaluate(f"{command} cannot evaluate any call: {'; '.join(unknown)}")

    def known_rules(self) -> list[ModelRules]:
        """The rules of each host, model and day of the calls that has some."""
        found: list[ModelRules] = []
        for host, model, day in dict.fromkeys((call.host, call.request.model, call.day) for call in self.calls):
            with suppress(CannotEvaluate):
                found.append(self.setup.rules.rules(host_of(host, self.setup.host, model), model, day))
        return found

    @property
    def finds_without_lookback(self) -> bool:
        """Whether all caches that are known find by themselves what was sent before, and one at least is known."""
        found = self.known_rules()
        return bool(found) and all(rules.finds_without_lookback for rules in found)

    def of_calls(self, calls: Sequence[Call], bills: Sequence[Call]) -> Workload:
        """These calls alone, with these bills of the recording."""
        setup = self.setup.with_recorded(bills, None) if self.setup.bills else self.setup
        return replace(self, calls=calls, setup=setup)

    def with_assumptions(self, assumptions: Mapping[str, object]) -> Workload:
        """The same calls with these assumptions over those of the setup. Raises InputError."""
        return replace(self, setup=self.setup.with_assumptions(assumptions))


def read_workload(logs: Logs | Path, setup: ReplaySetup, tokens: str | None = None) -> Workload:
    """The calls of a log, or of several, as they were sent, with their bills; `tokens` as in
    `ReplaySetup.with_recorded`.

    Raises InputError; CannotEvaluate where there is no call.
    """
    logs = Logs([logs]) if isinstance(logs, Path) else logs
    calls = list(read_logs(logs))
    if not calls:
        raise CannotEvaluate(f"{logs.name} contains no call")
    return recorded_workload(logs.name, calls, setup.with_recorded(calls, tokens))


def recorded_workload(name: str, calls: Sequence[Call], setup: ReplaySetup) -> Workload:
    """Recorded calls as they were sent. What their bills read and none of them wrote was cached before the first.

    A call whose answer had not begun when others wrote the same, as their bills show, has at least that time to first
    token.
    """
    setup = replace(setup, starts_warm=True)
    late = setup.preparer().late_answers if setup.bills is calls else {}
    if not late:
        return Workload(name, calls, setup)
    timed = []
    for number, call in enumerate(calls, 1):
        seconds = late.get(number)
        is_late = seconds is not None and seconds >= call.ready_s
        timed.append(replace(call, first_token_s=late[number] + LATER_S) if is_late else call)
    return Workload(name, timed, setup)


def scenario_setup(
    scenario: Scenario,
    folder: Path,
    bills: Sequence[Call],
    assumptions: Mapping[str, object] = NO_ASSUMPTIONS,
    own: OwnRules = NO_OWN_RULES,
    prices: PriceBook | None = None,
) -> ReplaySetup:
    """The setup of all strategies of a scenario, which start cold; `bills` are the calls of its recording.

    `assumptions` go over those of the scenario, and both over a user's rules, `own`. `prices` are those of the
    scenario, where they are loaded already. Raises InputError.
    """
    day = scenario.as_of or data_date(scenario.host)
    book = prices or PriceBook.load(folder / scenario.prices if scenario.prices else None, day)
    merged = assumptions_from({**own.assumptions, **scenario.rules, **assumptions})
    may_anchor = scenario.tokens in (None, CALIBRATED)
    return ReplaySetup(
        RuleBook(merged, day, own),
        book,
        scenario.host,
        FILLER if may_anchor else str(scenario.tokens),
        scenario.model,
        bills if may_anchor else (),
    )


def scenario_workloads(
    scenario: Scenario, folder: Path, assumptions: Mapping[str, object] = NO_ASSUMPTIONS, own: OwnRules = NO_OWN_RULES
) -> Iterator[Workload]:
    """The calls that each strategy of a scenario makes, under the scenario as written (not its variants); the calls
    as they were recorded, if it has no strategy.
    """
    from cachecost.scenario import load_conversations

    conversations, bills = load_conversations(scenario, folder)
    setup = scenario_setup(scenario, folder, bills, assumptions, own)
    for spec in scenario.strategies:
        yield plan_workload(spec, conversations, setup)
    if not scenario.strategies:
        yield workload_as_recorded(scenario, folder, bills, assumptions, own)


def workload_as_recorded(
    scenario: Scenario,
    folder: Path,
    calls: Sequence[Call],
    assumptions: Mapping[str, object] = NO_ASSUMPTIONS,
    own: OwnRules = NO_OWN_RULES,
) -> Workload:
    """The calls of a scenario's recording just as they were sent, breakpoints included."""
    bills = calls if any(call.billed for call in calls) else ()
    return Workload(scenario.name, calls, scenario_setup(scenario, folder, bills, assumptions, own))


def plan_workload(
    spec: StrategySpec | str, conversations: Sequence[Conversation], setup: ReplaySetup, name: str = ""
) -> Workload:
    """The calls that a strategy makes of the conversations. `name` is that of the strategy if empty.

    Raises CannotEvaluate.
    """
    strategy = setup.build_strategy(spec)
    calls = [date_call(call) for call in plan_calls(strategy, conversations)]
    return Workload(name or strategy.name, calls, setup.for_strategy(strategy), strategy.name)


def plan_calls(strategy: Strategy, conversations: Sequence[Conversation], root: Thread | None = None) -> Iterator[Call]:
    """The calls of all conversations, in the order they start.

    The threads of one plan grow in one tree, and a conversation is planned when it begins: a placement sees what was
    sent before, and nothing of other strategies. `root` is for agents whose placements do not look at the tree; where
    it is not given, their threads grow in the tree of the recorded ones, so that what was rendered before is known.
    """
    if root is None and conversations and getattr(strategy, "shares_threads", False):
        first = conversations[0].root
        root = first if all(conversation.root is first for conversation in conversations) else None
    root = root or Thread()
    lead = getattr(strategy, "lead_s", 0.0)
    begins = sorted(
        (conversation.events[0].at - lead, number)
        for number, conversation in enumerate(conversations)
        if conversation.events
    )
    running: list[tuple[float, int, Call, Iterator[Call]]] = []
    while begins or running:
        if begins and (not running or begins[0][0] <= running[0][0]):
            _, number = heappop(begins)
            calls = iter(strategy.plan(replace(conversations[number], root=root)))
        else:
            _, number, call, calls = heappop(running)
            yield call
        if following := next(calls, None):
            conversation = conversations[number]
            if conversation.session or conversation.project or conversation.agent:
                following = name_call(following, conversation.session, conversation.project, conversation.agent)
            heappush(running, (following.start, number, following, calls))


class LeftOut(Counter[tuple[str, str]]):
    """The number of calls that were left out, by model and host."""

    def notes(self, command: str) -> Iterator[str]:
        """A line for each model and host; `command` is what does not support its cache ("explain")."""
        for (model, host), calls in self.items():
            which = f"{count_text(calls, 'call')} of {model} on {host}"
            yield (
                f"left out: {which}: {command} supports {supported_by(command)}; "
                "figures are of the other calls, and replay prices these"
            )


class SupportedCalls(NamedTuple):
    """A workload of calls whose caches a command supports, and the other calls."""

    workload: Workload
    left_out: LeftOut


def supported_calls(workload: Workload, command: str) -> SupportedCalls:
    """The workload without the calls, and their bills, of caches that `command` does not support.

    Calls without rules stay: a replay says why it cannot evaluate them. All keep their number in the log.
    Raises CannotEvaluate for the first call of such a cache where no other call can be evaluated.
    """
    known: dict[tuple[str | None, str, date | None], ModelRules | None] = {}

    def is_supported(call: Call) -> bool:
        """Whether the call's cache is not known to be one that is not."""
        key = call.host, call.request.model, call.day
        if key not in known:
            known[key] = None
            with suppress(CannotEvaluate):
                known[key] = workload.setup.rules_for(call)
        rules = known[key]
        return rules is None or rules.is_supported_by(command)

    kept, left_out = list[Call](), LeftOut()
    for number, call in enumerate(workload.calls, 1):
        if is_supported(call):
            kept.append(replace(call, number=call.number or number))
        else:
            left_out[call.request.model, host_of(call.host, workload.setup.host, call.request.model)] += 1
    if not left_out:
        return SupportedCalls(workload, left_out)
    if not any(rules.is_supported_by(command) for rules in known.values() if rules):
        workload.require_support(command)
    bills = [bill for bill in workload.setup.bills if is_supported(bill)]
    return SupportedCalls(workload.of_calls(kept, bills), left_out)
