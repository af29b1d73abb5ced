"""The minimum cacheable prefix, by bisection; a call shows each side of the limit.

A prefix ends at a breakpoint on the last system block. The tail after it is the same in all these bodies, and is
derived from the first call that was cached. From then on, a call's total input gives the prefix, cached or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.probes.bodies import ASK, FILLER, Body, filler, text, user, words_for
from tools.probes.harness import Probe, ProbeRun
from tools.probes.model import ProbeAnswer, Unsettled

LONGEST = 4352
"""The most tokens tried: the largest published minimum, and a margin."""
PADS = 24
TRIES = 60
ABOVE = 40
"""Tokens by which the first attempt exceeds the assumed minimum, since its size is not exact."""


@dataclass(slots=True)
class MinimumBounds:
    """The bounds so far: a prefix of `low` tokens is not cached, one of `high` is. `body` is the one at `high`.

    `tail` is the number of billed tokens after the breakpoint; `excess` is count_tokens minus the bill (mostly 0).
    """

    low: int
    high: int
    tail: int
    body: Body
    excess: int = 0


async def _run(probe_run: ProbeRun) -> ProbeAnswer:
    edge = await _bracket(probe_run)
    guesses = [probe_run.priced.minimum, probe_run.priced.minimum - 1]
    while edge.high - edge.low > 1:
        between = [guess for guess in guesses if edge.low < guess < edge.high]
        target = between[0] if between else (edge.low + edge.high) // 2
        if not await _narrow(probe_run, edge, target):
            explanation = (
                f"{edge.low} tokens are not cached and {edge.high} are; no text of {target} tokens could be made"
            )
            return ProbeAnswer(None, explanation)
    return await _prove_minimum(probe_run, edge)


async def _prove_minimum(probe_run: ProbeRun, edge: MinimumBounds) -> ProbeAnswer:
    """The minimum, if what was written at it can be read."""
    await probe_run.settle()
    read = (await probe_run.send(edge.body)).usage.read
    explanation = (
        f"{edge.high} tokens are cached (read again: {read}), {edge.low} are not; {edge.tail} follow the breakpoint"
    )
    return ProbeAnswer(edge.high if read else None, explanation)


async def _bracket(probe_run: ProbeRun) -> MinimumBounds:
    """The first prefix that is cached, and the longest before it that was not. Raises Unsettled."""
    low, prefix = 0, probe_run.priced.minimum + ABOVE
    while True:
        prefix = min(prefix, LONGEST)
        words = await words_for(probe_run, prefix)
        body = _body(probe_run.fresh(), words, 1)
        usage = (await probe_run.send(body)).usage
        if cached := usage.read + usage.write:
            excess = await probe_run.count(body) - usage.total_input
            return MinimumBounds(max(0, low - usage.input_tokens), cached, usage.input_tokens, body, excess)
        if prefix == LONGEST:
            raise Unsettled(f"nothing was cached, not even of {usage.total_input} tokens")
        low, prefix = usage.total_input, 2 * prefix


async def _narrow(probe_run: ProbeRun, edge: MinimumBounds, target: int) -> bool:
    """Send a prefix of `target` tokens and move the bound that it shows. False: no such text was found."""
    body = await _body_of_size(probe_run, target + edge.tail + edge.excess)
    if body is None:
        return False
    usage = (await probe_run.send(body)).usage
    prefix = usage.total_input - edge.tail
    if not edge.low < prefix < edge.high:
        raise Unsettled(f"a prefix of {target} tokens by count_tokens was billed as {prefix}")
    if usage.write:
        edge.high, edge.body = prefix, body
    else:
        edge.low = prefix
    return True


async def _body_of_size(probe_run: ProbeRun, total: int) -> Body | None:
    """A body of `total` tokens by count_tokens: words, then a pad in small steps. None: not found in TRIES attempts."""
    start, pad = probe_run.fresh(), 1
    words = await words_for(probe_run, total)
    for _ in range(TRIES):
        body = _body(start, words, pad)
        over = await probe_run.count(body) - total
        if not over:
            return body
        is_near = -PADS < over < 0 and pad < PADS
        words, pad = (words, pad + 1) if is_near else (_fewer(words, over), 1)
    return None


def _fewer(words: int, over: int) -> int:
    """Words for a text that has `over` tokens too many, or too few. The steps err on the small side."""
    fewer = max(1, over // 2) if over > 0 else -max(1, -over // len(FILLER))
    return max(0, words - fewer)


def _body(start: str, words: int, pad: int) -> Body:
    """A system prompt of two blocks; the second, with the breakpoint, is adjusted without changing the first."""
    fine = " ".join(["a"] * ((pad + 1) // 2)) + ("b" if pad % 2 == 0 else "")
    return {"system": [text(f"{start} {filler(words)}"), text(fine, "5m")], "messages": [user(text(ASK))]}


MINIMUM = Probe(
    "minimum",
    "what is the minimum number of tokens of a cached prefix?",
    _run,
    ((22, 400),),
    settles=1,
    reaches=LONGEST + 400,
)
