"""What could be done instead of sending the next message as it is, each priced."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.next_message.billed_models import BilledModel
from cachecost.analysis.next_message.compaction import CompactionPrice, price_compaction
from cachecost.analysis.next_message.keep_alive import KeepAliveAdvice, advise_keep_alive
from cachecost.analysis.next_message.message import NextMessage, Price, next_message, price_of, usage_of
from cachecost.analysis.next_message.state import SUMMARY_TOKENS, SessionState
from cachecost.base.structs import replace, value
from cachecost.providers.quotes import Quote

NOW, COLD, MODEL, EFFORT = "now", "after the TTL", "another model", "another effort level"
MESSAGE_EFFORT = "another effort level, in a message"
COMPACT, PLAIN, DEFERRED = "after /compact", "tools added", "tools deferred"


@value
class NextAlternative:
    """One way to go on: the usage and USD of the next message, and what has to be paid before it (`first`).

    `note` says what the figures take for granted.
    """

    kind: str
    name: str
    usage: Price
    first: Price | None = None
    note: str = ""
    breaks_even_after: int | None = None

    @property
    def cost(self) -> Decimal | None:
        """USD of all of it."""
        own, first = self.usage.cost, self.first.cost if self.first else Decimal(0)
        return None if own is None or first is None else own + first


@value
class NextChoice:
    """The next message, what could be done instead, the compaction in detail, and the advice on keep-alives."""

    message: NextMessage
    alternatives: tuple[NextAlternative, ...]
    compaction: CompactionPrice | None
    keep_alive: KeepAliveAdvice | None


def choose_next(
    state: SessionState,
    prices: Quote | None,
    now: float,
    new_tokens: int | None = None,
    output_tokens: int = 0,
    models: Sequence[BilledModel] = (),
    tools_tokens: int | None = None,
) -> NextChoice:
    """Everything that is known of the next message at `now`.

    The ways to go on: as it is, after the TTL, other `models`, another effort level, /compact, more tools.
    `tools_tokens` is the size of the definitions that would be added (None: none would).
    """
    message = next_message(state, prices, now, new_tokens, output_tokens)
    compaction = price_compaction(state, prices, now, new_tokens, output_tokens)
    length = message.usage.total_input
    found = [NextAlternative(NOW, NOW, message.price, note="" if message.is_warm else "the cache has expired")]
    found.append(NextAlternative(COLD, COLD, message.cold, note="all of it is written again"))
    found += [_switched(state, model, length, output_tokens) for model in models]
    if state.cached_tokens and state.effort_layer and not state.is_automatic:
        found += _efforts(state, prices, now, length, output_tokens)
    if compaction is not None:
        found.append(_compacted(state, compaction))
    if tools_tokens is not None:
        found += _tools(state, prices, now, length, output_tokens, tools_tokens)
    return NextChoice(message, tuple(found), compaction, advise_keep_alive(state, prices, now))


def _switched(state: SessionState, model: BilledModel, length: int, output_tokens: int) -> NextAlternative:
    """Another model shares no cache; its tokens are taken to be as many."""
    other = replace(state, minimum_tokens=model.minimum_tokens, is_automatic=model.is_automatic, ttl_s=model.ttl_s)
    usage = price_of(usage_of(other, 0, length, output_tokens), model.quote)
    note = "another model reads nothing of this cache; tokens counted as on the present one"
    return NextAlternative(MODEL, f"with {model.model}", usage, note=note)


def _efforts(
    state: SessionState, prices: Quote | None, now: float, length: int, output_tokens: int
) -> list[NextAlternative]:
    """Another effort rewrites from the layer whose cache key has it (rule 2); one in a message rewrites nothing."""
    live = state.live_tokens(now)
    is_whole = state.effort_layer == "tools"
    usage = usage_of(state, 0 if is_whole else min(state.static_tokens, live), length, output_tokens)
    note = "all of it is written again" if is_whole else "the messages are written again"
    found = [NextAlternative(EFFORT, f"with {EFFORT}", price_of(usage, prices), note=note)]
    if state.accepts_message_effort:
        kept = price_of(usage_of(state, live, length, output_tokens), prices)
        found.append(NextAlternative(MESSAGE_EFFORT, f"with {MESSAGE_EFFORT}", kept, note="what is cached stays"))
    return found


def _compacted(state: SessionState, found: CompactionPrice) -> NextAlternative:
    last = "as long as this session's last one" if state.summary_tokens else f"of {SUMMARY_TOKENS:,} tokens"
    note = f"assumes a summary {last}"
    return NextAlternative(COMPACT, COMPACT, found.message, found.summary, note, found.breaks_even_after)


def _tools(
    state: SessionState, prices: Quote | None, now: float, length: int, output_tokens: int, tools: int
) -> list[NextAlternative]:
    """Tools stand at the beginning of a prompt; deferred ones come behind the conversation when they are loaded."""
    plain = price_of(usage_of(state, 0, length + tools, output_tokens), prices)
    deferred = price_of(usage_of(state, state.live_tokens(now), length + tools, output_tokens), prices)
    return [
        NextAlternative(PLAIN, f"{tools:,} tokens of tools added", plain, note="they come first: all is written again"),
        NextAlternative(DEFERRED, f"{tools:,} tokens of tools deferred", deferred, note="all of them loaded"),
    ]
