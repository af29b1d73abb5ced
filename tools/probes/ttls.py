"""TTLs: whether they are in the cache key (ttl_in_key), what refreshes entries (shallow_breakpoints), how long they
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.probes.bodies import ASK, Body, body_with_prefix, filler, prefix_words, text, user
from tools.probes.harness import Probe, ProbeRun, ask_repeatedly, combine_rounds
from tools.probes.layers import NEAR
from tools.probes.model import ProbeAnswer, RoundResult, Unsettled

SETS = 2
"""Rounds of probes that wait for minutes, which run in parallel."""
TOUCHED, DEAD = 0.66, 1.4
"""As a share of the TTL: when an entry is read again, and when it has expired unless that refreshed it."""
TOLERANCE_S = 10.0
AGES = (-TOLERANCE_S, TOLERANCE_S, 3 * TOLERANCE_S, 9 * TOLERANCE_S)
"""Seconds relative to the assumed TTL at which entries are looked for, each by its own call."""


async def _ttl_in_key(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _ttl_in_key_once)


async def _ttl_in_key_once(probe_run: ProbeRun) -> RoundResult:
    found = [await _read_across(probe_run, written, asked) for written, asked in (("5m", "1h"), ("1h", "5m"))]
    words = f"written with 5m, a 1h breakpoint reads {found[0]}; written with 1h, a 5m breakpoint reads {found[1]}"
    values = {bool(read) for read in found}
    return RoundResult(not values.pop() if len(values) == 1 else None, words)


async def _read_across(probe_run: ProbeRun, written: str, asked: str) -> int:
    """Tokens that a breakpoint with one TTL reads of an entry with the other."""
    head = f"{probe_run.fresh()} {filler(await prefix_words(probe_run))}"
    await _write_prefix(probe_run, body_with_prefix(head, written))
    await probe_run.settle()
    if not (await probe_run.send(body_with_prefix(head, written))).usage.read:
        raise Unsettled(f"an entry written with {written} was not read by a breakpoint with the same TTL")
    await probe_run.settle()
    return (await probe_run.send(body_with_prefix(head, asked))).usage.read


async def _write_prefix(probe_run: ProbeRun, body: Body) -> float:
    """Write a fresh prefix; returns the start of the call."""
    sent = await probe_run.send(body)
    if not sent.usage.write:
        raise probe_run.not_cached_error()
    return sent.start


@dataclass(frozen=True, slots=True)
class TwoBreakpointPrefix:
    """A prefix with two breakpoints: shallow after the system text, deep after the first block of the message."""

    head: str

    def body(self, shallow: bool, deep: bool) -> Body:
        blocks = text(filler(40), "5m" if deep else None), text(ASK)
        return {"system": [text(self.head, "5m" if shallow else None)], "messages": [user(*blocks)]}

    def alone(self) -> Body:
        """Looks for the shallow entry only."""
        return body_with_prefix(self.head, "5m", f"{ASK} Only that.")


async def _shallow(probe_run: ProbeRun) -> ProbeAnswer:
    """Three prefixes per set, written with both breakpoints and read again after 2/3 of their TTL.

    The first is read with both breakpoints, the others with the deep one. When an unread shallow entry has expired, the
    third is sent with both. Which ones have a shallow entry then?
    """
    head = filler(await prefix_words(probe_run))
    sets = [[TwoBreakpointPrefix(f"{probe_run.fresh()} {head}") for _ in range(3)] for _ in range(SETS)]
    every = [one for prefixes in sets for one in prefixes]
    starts = [await _write_prefix(probe_run, one.body(True, True)) for one in every]
    ttl_s = probe_run.priced.ttl_s
    await probe_run.until(starts[0] + TOUCHED * ttl_s)
    for one in every:
        await _deep_read(probe_run, one, shallow=any(one is prefixes[0] for prefixes in sets))
    await probe_run.until(starts[-1] + DEAD * ttl_s)
    return combine_rounds([await _find_survivors(probe_run, *prefixes) for prefixes in sets])


async def _deep_read(probe_run: ProbeRun, one: TwoBreakpointPrefix, shallow: bool) -> None:
    usage = (await probe_run.send(one.body(shallow, True))).usage
    if not usage.read or usage.write:
        raise Unsettled(f"the deep entry should be read, and {usage.read} tokens were read, {usage.write} written")


async def _find_survivors(
    probe_run: ProbeRun, touched: TwoBreakpointPrefix, untouched: TwoBreakpointPrefix, late: TwoBreakpointPrefix
) -> RoundResult:
    refreshed = await _is_alive(probe_run, touched)
    uncached = await _is_alive(probe_run, untouched)
    await _deep_read(probe_run, late, shallow=True)
    await probe_run.settle()
    written = await _is_alive(probe_run, late)
    words = (
        f"after {DEAD:g} TTLs the shallow entry is {_word(refreshed)} if its breakpoint was sent at {TOUCHED:g}, "
        f"{_word(uncached)} if only the deep breakpoint was, and {_word(written)} once both were sent late"
    )
    readings = {(True, True): "rewrite", (True, False): "refresh", (False, False): "ignore"}
    return RoundResult(None if uncached else readings.get((refreshed, written)), words)


async def _is_alive(probe_run: ProbeRun, one: TwoBreakpointPrefix) -> bool:
    return (await probe_run.send(one.alone())).usage.read > 0


def _word(lives: bool) -> str:
    return "alive" if lives else "gone"


async def _ttl(probe_run: ProbeRun) -> ProbeAnswer:
    """Prefixes written together, each looked for once, at different ages."""
    head = filler(await prefix_words(probe_run))
    ages = [probe_run.priced.ttl_s + age for age in AGES]
    starts = []
    bodies = [[body_with_prefix(f"{probe_run.fresh()} {head}", "5m") for _ in range(SETS)] for _ in ages]
    for of_age in bodies:
        starts.append([await _write_prefix(probe_run, body) for body in of_age])
    return _bracket_ttl([await _look_for(probe_run, *one) for one in zip(bodies, starts, ages, strict=True)])


async def _look_for(
    probe_run: ProbeRun, bodies: Sequence[Body], starts: Sequence[float], age: float
) -> tuple[float, float, list[bool]]:
    """The least and the largest actual age, and which entries were found."""
    found, looked = [], []
    for body, start in zip(bodies, starts, strict=True):
        await probe_run.until(start + age)
        sent = await probe_run.send(body)
        looked.append(sent.start - start)
        found.append(sent.usage.read > NEAR)
    return min(looked), max(looked), found


def _bracket_ttl(seen: Sequence[tuple[float, float, list[bool]]]) -> ProbeAnswer:
    """The answer is "between x and y s" if all were found up to x, and none from y on."""
    words = "; ".join(f"at {low:.1f}-{high:.1f} s {sum(found)} of {len(found)} read" for low, high, found in seen)
    words += "; ages count from the start of the writing call, which is too short to tell its start from its end"
    there = [all(found) for *_, found in seen]
    alive = sum(there)
    is_clear = there == sorted(there, reverse=True) and not any(any(found) for *_, found in seen[alive:])
    if not is_clear or not 0 < alive < len(seen):
        return ProbeAnswer(None, words, 0, SETS)
    return ProbeAnswer(f"between {seen[alive - 1][0]:.0f} and {seen[alive][1]:.0f} s", words, SETS, SETS)


TTL_IN_KEY = Probe(
    "ttl_in_key",
    "can an entry written with one TTL be read by a breakpoint with the other?",
    _ttl_in_key,
    ((18, 400),),
    settles=12,
    uses_1h=True,
    switch="ttl_in_key",
)
SHALLOW_BREAKPOINTS = Probe(
    "shallow_breakpoints",
    "what happens to a breakpoint before the hit whose entry has expired?",
    _shallow,
    ((10 * SETS, 500),),
    settles=SETS,
    lives=DEAD + 0.1,
    switch="shallow_breakpoints",
)
TTL_LENGTH = Probe(
    "ttl",
    "how long after the start of its call does a 5m entry expire?",
    _ttl,
    ((2 * SETS * len(AGES), 400),),
    settles=int(AGES[-1] // 5) + 1,
    lives=1.0,
)
