"""When an entry becomes readable (rule 11): the share of a few attempts, never a verdict."""

from __future__ import annotations

from tools.probes.bodies import body_with_prefix, filler, prefix_words
from tools.probes.harness import Probe, ProbeRun
from tools.probes.model import ProbeAnswer

TRIES = 5
LATER_S = 3.0


async def _run(probe_run: ProbeRun) -> ProbeAnswer:
    """A call outputs one token, so its end is its first token. The second call follows at once, or a little later."""
    at_once = [await _read_after(probe_run, 0.0) for _ in range(TRIES)]
    later = [await _read_after(probe_run, LATER_S) for _ in range(TRIES)]
    after = sorted(gap for _, gap in at_once)
    words = (
        f"{_share(at_once)} read at once, {after[0]:.1f} to {after[-1]:.1f} s after the first token; "
        f"{_share(later)} read {LATER_S:g} s later than that"
    )
    return ProbeAnswer(f"{_share(at_once)} at once, {_share(later)} after {LATER_S:g} s", words)


async def _read_after(probe_run: ProbeRun, wait_s: float) -> tuple[bool, float]:
    """Whether the second call reads, and its start in seconds after the first token of the first."""
    body = body_with_prefix(f"{probe_run.fresh()} {filler(await prefix_words(probe_run))}", "5m")
    first = await probe_run.send(body)
    if not first.usage.write:
        raise probe_run.not_cached_error()
    await probe_run.wait(wait_s)
    second = await probe_run.send(body)
    return second.usage.read > 0, second.start - first.start - first.first_token_s


def _share(found: list[tuple[bool, float]]) -> str:
    return f"{sum(is_read for is_read, _ in found)} of {len(found)}"


VISIBILITY = Probe(
    "visibility_lag_s",
    "can an entry be read from the first token of the answer that wrote it?",
    _run,
    ((4 * TRIES, 400),),
    settles=4,
)
