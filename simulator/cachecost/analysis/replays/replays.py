"""Steps replayed, sized by the recording's bills also where other content is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cachecost.analysis.replays.incremental import TrackedReplay
from cachecost.analysis.replays.priced import ChangedPrices, PricedSimulation
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, as_sent
from cachecost.base.errors import CannotEvaluate
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.results import CallRow
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import is_server_tool
from cachecost.providers.usage import Usage
from cachecost.simulation.call_preparer import CallPreparer
from cachecost.simulation.engine import AS_RECORDED, SimulatedCall, Simulation
from cachecost.simulation.workload import Workload

Progress = Callable[[str, int], None]
"""Called with what is replayed and how many calls that is."""


def quiet(what: str, calls: int) -> None:
    """No progress is shown."""


@dataclass(slots=True)
class Replays:
    """Replays steps under the setup of a workload.

    Where a step sends other content than was billed, its prompt has no bill. It gets one: the recorded bill, scaled by
    what the token counters make of both, so that the prices of two ways differ by what is sent and not by how it was
    counted. A reordered list of tools, for one, is as long as it was billed.
    """

    traffic: Workload
    progress: Progress = quiet
    recorded: list[ReplayStep] = field(default_factory=list)
    _sent: dict[int, Prompt | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorded = as_sent(self.traffic.calls)

    def rows(self, steps: Sequence[ReplayStep], what: str = AS_RECORDED) -> list[CallRow]:
        """The row of each step, in their order. Their causes are not looked for."""
        return self._rows(steps, what, Simulation)

    def recorded_rows(self) -> tuple[TrackedReplay, list[CallRow]]:
        """The recording as it was sent, as a replay that others can be derived from if these are only priced."""
        replay = TrackedReplay(self.traffic, self.recorded, self.preparer(self.recorded), explained=False)
        rows = [made.row for made in replay.run()]
        self.progress(AS_RECORDED, len(rows))
        return replay, rows

    def priced_rows(self, steps: Sequence[ReplayStep], what: str = "") -> list[CallRow]:
        """As `rows`, for those who ask only what calls cost."""
        return self._rows(steps, what, PricedSimulation)

    def _rows(self, steps: Sequence[ReplayStep], what: str, kind: type[Simulation]) -> list[CallRow]:
        simulation = self.traffic.simulation(preparer=self.preparer(steps), hosts=UnexplainedHosts(), kind=kind)
        rows = [simulation.row(step.call) for step in steps]
        self.progress(what, len(rows))
        return rows

    def simulate(self, steps: Sequence[ReplayStep]) -> list[SimulatedCall]:
        """The same with what the cache did."""
        simulation = self.simulation(steps)
        return [simulation.simulate(step.call) for step in steps]

    def by_call(self, steps: Sequence[ReplayStep], rows: Sequence[CallRow]) -> dict[int, CallRow]:
        """The rows by the recorded call that they stand for."""
        return {step.number: row for step, row in zip(steps, rows, strict=True) if step.number != NO_CALL}

    def cold(self) -> Replays:
        """The same replays with nothing cached before the first call; itself where nothing can be."""
        setup = self.traffic.setup
        if not setup.may_start_warm or setup.rules.assumptions.warm_start == "cold":
            return self
        return self.with_workload(self.traffic.with_assumptions({"warm_start": "cold"}))

    def with_workload(self, traffic: Workload) -> Replays:
        """The same calls on other ground."""
        return Replays(traffic, self.progress)

    def changed_rows(
        self,
        steps: Sequence[ReplayStep],
        earlier: TrackedReplay,
        what: str = "",
        kind: type[Simulation] = PricedSimulation,
    ) -> list[CallRow]:
        """As `priced_rows`, or as `rows` with another `kind` of simulation; of calls that an `earlier` replay also has,
        only those are made anew whose outcome can differ."""
        matches = earlier.match(steps)
        if matches is None:
            return self._rows(steps, what, kind)
        rows = list(ChangedPrices(earlier, steps, matches, kind).rows())
        self.progress(what, len(rows))
        return rows

    def simulation(self, steps: Sequence[ReplayStep]) -> Simulation:
        """A simulation of the steps that has learned from the bills."""
        return self.traffic.simulation(preparer=self.preparer(steps))

    def preparer(self, steps: Sequence[ReplayStep]) -> CallPreparer:
        """It has learned from the bills, also what they would be for other content.

        What was cached before the recording began is cached under every way to send it.
        """
        preparer = self.traffic.setup.preparer()
        if self.are_as_sent(steps):
            marked = {id(one.call): one.content for one in steps if one.call is not one.content}
            return preparer.with_contents(marked) if marked else preparer
        changed = [step for step in steps if not self._is_as_sent(step)]
        preparer = preparer.fork_for(step.content for step in changed)
        if self.traffic.setup.bills:
            for number, content, billed in self._changed_bills(changed, preparer):
                preparer.learn(number, content, billed)
            for step in changed:
                self._learn_breakpoints(step, preparer)
        return preparer

    def tracked_replay(self, steps: Sequence[ReplayStep]) -> TrackedReplay:
        """A replay of the steps that others can be derived from."""
        return TrackedReplay(self.traffic, steps, self.preparer(steps))

    def _changed_bills(self, steps: Sequence[ReplayStep], preparer: CallPreparer) -> Iterator[tuple[int, Call, Usage]]:
        """The bills of calls with other content than was sent, scaled to that."""
        for step in steps:
            sent = self.traffic.calls[step.number - 1]
            billed = sent.billed if isinstance(sent, RecordedCall) else None
            scaled = billed and self._scale_bill(billed, sent, step.content, preparer)
            if scaled:
                yield step.number, step.content, scaled

    def _learn_breakpoints(self, step: ReplayStep, preparer: CallPreparer) -> None:
        """The lengths up to the other breakpoints of a call, where bills tell them of the call as it was sent."""
        was, now = self._sent_prompt(self.traffic.calls[step.number - 1]), self._prompt(step.content, preparer)
        lengths = preparer.lengths
        if was is None or now is None or lengths is None or len(was.breakpoints) != len(now.breakpoints):
            return
        for before, after in zip(was.breakpoints[:-1], now.breakpoints[:-1], strict=True):
            billed = lengths.told(before.prefix)
            if billed is not None and lengths.told(after.prefix) is None:
                tokens = _scale(billed, before.prefix.tokens, after.prefix.tokens)
                lengths.learn_prefix(step.number, after.prefix, tokens)

    def are_as_sent(self, steps: Sequence[ReplayStep]) -> bool:
        """Whether the recorded calls among the steps have the content that was billed."""
        return all(map(self._is_as_sent, steps))

    def _is_as_sent(self, step: ReplayStep) -> bool:
        return step.number == NO_CALL or step.content is self.traffic.calls[step.number - 1]

    def _scale_bill(self, billed: Usage, sent: Call, content: Call, preparer: CallPreparer) -> Usage | None:
        """The bill of `sent` scaled to `content`: its length, and that up to its last breakpoint; None if unknown.

        How long the definitions of web tools are is a guess. Without them, a bill of the messages before tells more.
        """
        was, now = self._sent_prompt(sent), self._prompt(content, preparer)
        if was is None or now is None:
            return None
        if _web_tools(sent) != _web_tools(content) and preparer.lengths and preparer.lengths.tells_beginning(now):
            return None
        total = _scale(billed.total_input, was.total_tokens, now.total_tokens)
        cached = billed.read + billed.write if was.breakpoints and now.breakpoints else 0
        if not cached:
            return Usage(total)
        end = _scale(cached, was.breakpoints[-1].prefix.tokens, now.breakpoints[-1].prefix.tokens)
        return Usage(max(0, total - end), min(end, total))

    def _sent_prompt(self, call: Call) -> Prompt | None:
        """The prompt of a recorded call, rendered once."""
        if id(call) not in self._sent:
            self._sent[id(call)] = self._prompt(call, self.traffic.setup.preparer())
        return self._sent[id(call)]

    def _prompt(self, call: Call, preparer: CallPreparer) -> Prompt | None:
        """The prompt as the counter of its model sees it; None where that is not known."""
        try:
            if kept := preparer.prompt_as_sent(call):
                return kept
            rules = self.traffic.setup.rules_for(call)
            renderer = preparer.prompts.renderer(rules.generation)
            return renderer.render(call.request, sent_breakpoints(call.request).breakpoints, rules, call.workspace)
        except CannotEvaluate:
            return None


def _web_tools(call: Call) -> int:
    return sum(map(is_server_tool, call.request.system.blocks))


def _scale(billed: int, was: int, now: int) -> int:
    return billed if was == now or not was else round(billed * now / was)
