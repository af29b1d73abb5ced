"""Written and never read, against a model that follows every block of every entry."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bodies import Engine, assistant, body, marked, text, user
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome
from cachecost.ledger.unread import UnreadTracker, UnreadWrites
from cachecost.prompts.blocks import Prefix
from cachecost.providers.prices import Prices

PRICES = Prices(Decimal("0.3"), Decimal("3.75"), Decimal(6), Decimal(3), Decimal(15))
DEARER = replace(PRICES, write_5m=Decimal(5), input=Decimal(4))


class ConversationState:
    """Calls with bodies of 2,000-byte blocks, fed to `UnreadTracker` as they come."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.unread = UnreadTracker()
        self.calls = 0

    def call(self, *blocks: Any, at: float | None = None, prices: Prices = PRICES) -> Outcome:
        self.calls += 1
        outcome = self.engine.call(body(user(*blocks)), at)
        self.unread.add(self.calls, outcome, prices)
        return outcome


A, B, C = text(2000, "a"), text(2000, "b"), text(2000, "c")


def test_a_write_that_the_next_call_reads_is_not_wasted() -> None:
    conversation = ConversationState()
    conversation.call(marked(A))
    assert conversation.unread.of(1).tokens == 2000
    conversation.call(A, marked(B))
    assert conversation.unread.of(1) == UnreadWrites()
    assert conversation.unread.of(2).tokens == 2000


def test_what_it_cost_is_the_write_price_and_what_it_lost_is_what_that_is_above_the_input_price() -> None:
    conversation = ConversationState()
    conversation.call(marked(A, "1h"), marked(B))
    hour, five = Decimal(2000 * 6).scaleb(-6), Decimal("7500").scaleb(-6)
    assert conversation.unread.total == UnreadWrites(4000, hour + five, hour + five - Decimal(4000 * 3).scaleb(-6))


def test_a_read_of_the_first_half_leaves_the_second_wasted() -> None:
    conversation = ConversationState()
    conversation.call(marked(A), marked(B))
    conversation.call(marked(A), C)
    assert conversation.unread.of(1).tokens == 2000
    assert list(conversation.unread) == [(1, conversation.unread.of(1))]


def test_what_two_parallel_calls_write_is_read_once() -> None:
    conversation = ConversationState()
    conversation.call(marked(A), at=10)
    conversation.call(marked(A), at=10)
    conversation.call(marked(A), at=20)
    assert (conversation.unread.of(1).tokens, conversation.unread.of(2).tokens) == (2000, 0)


def test_an_entry_that_expired_was_written_in_vain() -> None:
    conversation = ConversationState()
    conversation.call(marked(A), at=0)
    conversation.call(marked(A), at=300)
    conversation.call(marked(A), at=301)
    assert (conversation.unread.of(1).tokens, conversation.unread.of(2).tokens) == (2000, 0)


def test_each_call_has_its_own_prices() -> None:
    conversation = ConversationState()
    conversation.call(marked(A), at=0)
    conversation.call(marked(A), at=300, prices=DEARER)
    assert conversation.unread.total == UnreadWrites(4000, Decimal("0.0175"), Decimal("0.0035"))


class Naive:
    """Every entry lists, block by block, which call paid for it; a hit breakpoints all of them as used."""

    def __init__(self) -> None:
        self.entries: dict[Prefix, list[tuple[int, int, int]]] = {}
        self.paid: dict[int, dict[int, int]] = {}
        self.used: set[tuple[int, int]] = set()

    def add(self, call: int, outcome: Outcome) -> None:
        start = outcome.hit.depth if outcome.hit else 0
        before = self.entries[outcome.hit] if outcome.hit else []
        self.used |= {(payer, depth) for payer, depth, _ in before}
        for breakpoint in outcome.breakpoints:
            blocks = [(call, node.depth, _size(node)) for node in _path(breakpoint.prefix) if node.depth > start]
            if blocks:
                self.entries[breakpoint.prefix] = before + blocks
                self.paid.setdefault(call, {}).update({depth: size for _, depth, size in blocks})
            else:
                self.entries.setdefault(breakpoint.prefix, before[: breakpoint.prefix.depth])

    def tokens(self, call: int) -> int:
        return sum(size for depth, size in self.paid.get(call, {}).items() if (call, depth) not in self.used)


def _path(prefix: Prefix) -> list[Prefix]:
    nodes, node = [], prefix
    while node is not None:
        if node.block is not None:
            nodes.append(node)
        node = node.parent
    return nodes[::-1]


def _size(node: Prefix) -> int:
    assert node.parent is not None
    return node.tokens - node.parent.tokens


CALL = st.tuples(
    st.lists(st.sampled_from("ab"), min_size=1, max_size=8),
    st.sets(st.integers(0, 7), max_size=4),
    st.booleans(),
    st.sampled_from([0, 1, 100, 290, 310]),
)


@given(st.lists(CALL, min_size=1, max_size=12))
def test_it_agrees_with_the_naive_model(calls: list[tuple[list[str], set[int], bool, int]]) -> None:
    engine, unread, naive, now = Engine(), UnreadTracker(), Naive(), 0.0
    for number, (names, breakpoints, hour, pause) in enumerate(calls, 1):
        now += pause
        blocks = [text(700, f"{name}{place}") for place, name in enumerate(names)]
        ttl = "1h" if hour else "5m"
        sent = [marked(block, ttl) if place in breakpoints else block for place, block in enumerate(blocks)]
        outcome = engine.call(body(user(*sent), assistant(text(50, "z"))), now)
        unread.add(number, outcome, PRICES)
        naive.add(number, outcome)
    found = [unread.of(number).tokens for number in range(1, len(calls) + 1)]
    assert found == [naive.tokens(number) for number in range(1, len(calls) + 1)]
    assert unread.total == unread.of_all(range(1, len(calls) + 1))


def test_a_long_conversation_costs_the_same_for_each_call() -> None:
    """Work is counted, not time: a call looks up one entry and leaves one, however long the prompt is."""
    conversation, blocks = ConversationState(), []
    for number in range(60):
        blocks = [*blocks, text(1100, f"{number}-")]
        conversation.call(*blocks[:-1], marked(blocks[-1]))
    assert len(conversation.unread._entries) == 60
    assert [call for call, _ in conversation.unread] == [60]
