"""The ledger of a strategy: every call that it makes of some conversations, simulated and priced, and how many tokens
of conversation each call sends, whatever model it goes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call, date_call
from cachecost.conversations.model import Conversation
from cachecost.ledger.findings import margin
from cachecost.ledger.results import CallTimeline, Ledger
from cachecost.ledger.rows import CallRow, CallSize
from cachecost.prompts.blocks import Block, Part, Thread
from cachecost.prompts.render import TokenCounter
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import Progress, ReplaySetup, no_progress, ttl_names
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.registry import Strategy

if TYPE_CHECKING:
    from cachecost.strategies.spec import StrategySpec


def conversation_sizes(calls: Iterable[Call], counter: TokenCounter) -> list[CallSize]:
    """The size of each call, as sent; empty where `counter` cannot count one of their blocks.

    Calls share most of their threads, so sums of tokens up to each message are kept.
    """
    threads: dict[Thread, int] = {}
    parts: dict[int, tuple[Part, int]] = {}

    def count_blocks(blocks: Iterable[Block]) -> int:
        return sum(counter.block(block) for block in blocks)

    def count_thread(thread: Thread) -> int:
        return thread.fold(threads, 0, lambda tokens, message: tokens + count_blocks(message.blocks))

    def count_part(part: Part) -> int:
        if id(part) not in parts:
            parts[id(part)] = (part, count_blocks(part.blocks))
        return parts[id(part)][1]

    sizes = []
    try:
        for call in calls:
            thread = call.request.thread
            before = thread.compaction.parent if thread.compaction else None
            messages = count_thread(thread) - (count_thread(before) if before else 0)
            sizes.append(CallSize(messages, count_part(call.request.tools) + count_part(call.request.system)))
    except CannotEvaluate:
        return []
    return sizes


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
