"""How far a breakpoint looks back, and whether a run of tool_use or tool_result is one position (lookback_runs)."""

from __future__ import annotations

from collections.abc import Sequence

from tools.probes.bodies import ASK, Body, filler, prefix_words, text, tool, user, with_breakpoint
from tools.probes.harness import Probe, ProbeRun, ask_repeatedly
from tools.probes.model import ProbeAnswer, RoundResult, Unsettled

FURTHEST = 40
"""The longest window that can be found, in positions."""
TESTS = 9
"""The most distances tried: both sides of the assumed limit, then bisection."""


class _Base:
    """A written prefix, and bodies that continue it, each with other blocks so that they do not share entries."""

    def __init__(self, start: str, head: str) -> None:
        self._head = text(f"{start} {head}")
        self._number = 0

    def body(self) -> Body:
        return self._of([user(with_breakpoint(self._head, "5m"))])

    def further(self, distance: int) -> Body:
        """A body with a breakpoint `distance` text blocks after the prefix, and none on it."""
        self._number += 1
        blocks = [text(f"Part {self._number}, {number}.") for number in range(1, distance)]
        return self._of([user(self._head, *blocks, text(f"{ASK} {self._number}", "5m"))])

    def after_tools(self, parallel: int) -> Body:
        """A body with a breakpoint on the last result of `parallel` parallel tool calls."""
        self._number += 1
        ids = [f"toolu_{self._number:02d}x{number:04d}" for number in range(parallel)]
        uses = [{"type": "tool_use", "id": one, "name": "note", "input": {}} for one in ids]
        results: list[Body] = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]
        last = with_breakpoint(results[-1], "5m")
        return self._of(
            [user(self._head), {"role": "assistant", "content": uses}, user(*results[:-1], last)],
        )

    @staticmethod
    def _of(messages: Sequence[Body]) -> Body:
        return {"tools": [tool("Takes a note.")], "messages": list(messages)}


async def _write_prefix(probe_run: ProbeRun) -> _Base:
    base = _Base(probe_run.fresh(), filler(await prefix_words(probe_run)))
    if not (await probe_run.send(base.body())).usage.write:
        raise probe_run.not_cached_error()
    await probe_run.settle()
    return base


async def _reads(probe_run: ProbeRun, base: _Base, body: Body) -> bool:
    """Whether the body reads the prefix; if not, the prefix must still exist. Raises Unsettled."""
    if (await probe_run.send(body)).usage.read:
        return True
    await probe_run.settle()
    if not (await probe_run.send(base.body())).usage.read:
        raise Unsettled("the prefix could no longer be read")
    return False


async def _window(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _window_once)


async def _window_once(probe_run: ProbeRun) -> RoundResult:
    """The largest distance in blocks at which the prefix is read; the window includes the breakpoint's own position."""
    base = await _write_prefix(probe_run)
    reached, missed = 0, FURTHEST
    guesses = [probe_run.priced.lookback - 1, probe_run.priced.lookback]
    while missed - reached > 1:
        between = [guess for guess in guesses if reached < guess < missed]
        distance = between[0] if between else (reached + missed) // 2
        if await _reads(probe_run, base, base.further(distance)):
            reached = distance
        else:
            missed = distance
    words = f"a breakpoint {reached} blocks after an entry reads it, one {missed} blocks after it does not"
    if missed == FURTHEST:
        return RoundResult(
            None, f"a breakpoint {reached} blocks after an entry reads it; longer distances were not tried", True
        )
    return RoundResult(reached + 1, words)


async def _runs(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _runs_once)


async def _runs_once(probe_run: ProbeRun) -> RoundResult:
    """`many` calls are beyond the window if either run is counted by blocks, `some` only if both are."""
    base = await _write_prefix(probe_run)
    window = probe_run.priced.lookback
    many, some = window + 2, window // 2 + 1
    if await _reads(probe_run, base, base.further(many)):
        return RoundResult(
            None, f"a breakpoint {many} text blocks after an entry reads it: the window is larger than {window}", True
        )
    one_call = await _reads(probe_run, base, base.after_tools(1))
    over_many = await _reads(probe_run, base, base.after_tools(many))
    over_some = await _reads(probe_run, base, base.after_tools(some))
    words = f"over {many} parallel calls and their results {_word(over_many)}, over {some} {_word(over_some)}"
    if not one_call:
        return RoundResult(None, "the lookback does not reach over even one call and its result")
    if over_some and not over_many:
        return RoundResult(None, f"{words}: only one of the two kinds of runs counts as one position")
    return RoundResult("collapsed" if over_many else "counted", words)


def _word(reads: bool) -> str:
    return "it reads" if reads else "it reads nothing"


WINDOW = Probe(
    "lookback",
    "how many positions does a breakpoint look back, including its own?",
    _window,
    ((3 * (1 + 2 * TESTS), 1600),),
    settles=3 * (1 + TESTS),
)
RUNS = Probe(
    "lookback_runs",
    "does a run of tool_use or tool_result blocks count as one lookback position?",
    _runs,
    ((24, 1200), (6, 6000)),
    settles=15,
    switch="lookback_runs",
)
