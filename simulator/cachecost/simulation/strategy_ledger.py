"""The ledger of a strategy: every call that it makes of some conversations, simulated and priced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.base.structs import replace
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call, date_call
from cachecost.conversations.model import Conversation
from cachecost.ledger.margin import margin
from cachecost.ledger.results import CallRow, Ledger
from cachecost.ledger.timelines import CallTimeline
from cachecost.simulation.conversation_sizes import conversation_sizes
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import Progress, ReplaySetup, no_progress, ttl_names
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.plan import Strategy

if TYPE_CHECKING:
    from cachecost.strategies.spec import StrategySpec

LowerBound = Callable[[Sequence[Call], ReplaySetup], Decimal]
"""USD that no choice of breakpoints and TTLs can go below for these calls."""


def replay_strategy(
    spec: StrategySpec | str,
    conversations: Conversation | Sequence[Conversation],
    setup: ReplaySetup,
    progress: Progress = no_progress,
    find_lower_bound: LowerBound | None = None,
    with_timelines: bool = False,
    measured: bool = False,
    explains: bool = True,
) -> Ledger:
    """Every call that a strategy makes of the conversations, in the order they start. Raises CannotEvaluate.

    `with_timelines` keeps the prompt timeline of each call, `measured` how much of the conversation each call sends.
    If not `explains`, the cause of each call is unknown, which takes half the time.
    """
    sessions = [conversations] if isinstance(conversations, Conversation) else list(conversations)
    strategy = setup.build_strategy(spec)
    own = setup.for_strategy(strategy)
    hosts = None if explains else UnexplainedHosts()
    simulation = Simulation(own, strategy.name, preparer=own.preparer(), hosts=hosts)
    calls: list[Call] | None = [] if find_lower_bound or measured else None
    rows, timelines, is_bounded = _simulate(simulation, strategy, sessions, own, progress, with_timelines, calls)
    models = setup.models(sessions)
    lower_bound = None
    if find_lower_bound and calls is not None and is_bounded and not any(row.error for row in rows):
        lower_bound = find_lower_bound(calls, own)
    counters = [setup.counter(rules.generation) for rules in models]
    notes = list(
        dict.fromkeys([*(note for session in sessions for note in strategy.notes(session)), *simulation.notes])
    )
    source = "; ".join(dict.fromkeys(counter.source for counter in counters))
    error_margin = margin(rows, max((counter.error_margin for counter in counters), default=0.0))
    sizes = conversation_sizes(calls or (), counters[0]) if measured and counters else []
    return Ledger(strategy.name, rows, notes, source, error_margin, lower_bound, timelines, ttl_names(models), sizes)


def _simulate(
    simulation: Simulation,
    strategy: Strategy,
    conversations: Sequence[Conversation],
    setup: ReplaySetup,
    progress: Progress,
    with_timelines: bool,
    calls: list[Call] | None,
) -> tuple[list[CallRow], list[CallTimeline], bool]:
    """The rows of the calls, where `with_timelines` their timelines, and whether all their caches use breakpoints.

    The calls are added to `calls`, if these are wanted: a long plan is not kept for nothing.
    """
    rows: list[CallRow] = []
    timelines: list[CallTimeline] = []
    use_breakpoints = True
    for number, planned in enumerate(plan_calls(strategy, conversations), 1):
        call: Call = date_call(planned)
        if call.output and not setup.counts_answers:
            call = replace(call, output=())
        if calls is not None:
            calls.append(call)
        simulated = simulation.simulate(call)
        rows.append(simulated.row)
        use_breakpoints &= simulated.rules is None or simulated.rules.uses_breakpoints
        if with_timelines:
            timelines.append(simulated.timeline)
        progress(strategy.name, number)
    return rows, timelines, use_breakpoints
