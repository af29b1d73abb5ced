"""The staircases against the same written plainly: every token of every prompt with its last touch, LRU as a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from trees import Tree

from cachecost.caches.fixed_blocks import FROM_BEST, Recency, fits
from cachecost.prompts.blocks import Block
from cachecost.prompts.compare import first_difference, text_of

Token = tuple[object, int]
"""What stands before and with it, and its number in that."""


@dataclass
class Plain:
    """`touched` and `ready` by token; `order` has the least recently used first. Blocks of `step` tokens are whole."""

    step: int = 1
    touched: dict[Token, float] = field(default_factory=dict)
    ready: dict[Token, tuple[float, float]] = field(default_factory=dict)
    order: list[Token] = field(default_factory=list)

    def state(self, token: Token, now: float, ttl_s: float) -> str:
        if token not in self.touched:
            return "absent"
        if now - self.touched[token] >= ttl_s:
            return "expired"
        readable_at, started = self.ready[token]
        return "unreadable" if now < readable_at or now <= started else "live"

    def send(
        self,
        blocks: tuple[str, ...],
        now: float,
        readable_at: float,
        ttl_s: float,
        most: int | None,
        refreshes: bool = True,
    ) -> int:
        tokens, partial = whole_blocks(tokens_of(blocks), self.step)
        states = [self.state(token, now, ttl_s) for token in tokens]
        read = len(list(takewhile(lambda state: state == "live", states)))
        for place, (token, state) in enumerate(zip(tokens, states, strict=True)):
            if state == "unreadable":
                self.ready[token] = min(self.ready[token], (readable_at, now))
            elif place >= read:
                self.ready[token] = (readable_at, now)
            if refreshes or place >= read:
                self.touched[token] = now
        self.order = [token for token in self.order if token not in tokens] + tokens[::-1]
        while most is not None and len(self.order) + partial > most:
            del self.touched[self.order.pop(0)]
        return read


def tokens_of(blocks: tuple[str, ...]) -> list[Token]:
    """Of a text, a token is told from others by what of the text stands before it."""
    found: list[Token] = []
    for end, block in enumerate(blocks, 1):
        if block.startswith("="):
            found += [((*blocks[: end - 1], block[: n + 2]), 0) for n in range(len(block) - 1)]
        else:
            found += [(blocks[:end], n) for n in range(int(block.split(":")[1]))]
    return found


def whole_blocks(tokens: list[Token], step: int) -> tuple[list[Token], int]:
    """The tokens of whole blocks, each told from others by all up to the end of its block, and a partial one's room."""
    whole = len(tokens) - len(tokens) % step
    found: list[Token] = [(tuple(tokens[: n - n % step + step]), n) for n in range(whole)] if step > 1 else tokens
    return found, step if whole < len(tokens) else 0


def shared_characters(one: Block, other: Block) -> int:
    return first_difference(text_of(one), text_of(other))


BLOCKS = ["a:1", "b:3", "c:7", "d:0", "e:0", "f:2", "~s:4", "~t:1", "=", "=a", "=ab", "=abab", "=abba", "=b", "=ba"]
LIVES = [5.0, 12.0, float("inf")]
CAPACITIES = [None, 0, 1, 4, 11, 20, 40]
MOVED = [-1, 1, 32]
"""For MOST_MOVED: no fork makes way, hardly one does, all do."""
STEPS = [1, 1, 2, 4]
WAITS = [0, 0, 0.5, 1, 3, 4, 5, 6, 12]
FIRST_TOKENS = [0, 0, 0, 1, 4, 7, 20]


class Both:
    """The two models, asked the same."""

    def __init__(self, ttl_s: float, capacity: int | None, refreshes: bool = True, step: int = 1) -> None:
        self.ttl_s, self.refreshes = ttl_s, refreshes
        self.capacity = None if capacity is None else capacity - capacity % step
        self.tree, self.recency, self.plain = Tree(), Recency(step), Plain(step)
        self.now = 0.0

    def send(self, blocks: tuple[str, ...], first_token: float) -> None:
        moments = (self.now, self.now + first_token, self.ttl_s, self.capacity, self.refreshes)
        end = self.tree.end(*blocks)
        if not self.is_served(blocks):
            return
        assert self.recency.record_call(end, *moments, shared_characters) == self.plain.send(blocks, *moments)
        assert self.recency.tokens == len(self.plain.order)

    def is_served(self, blocks: tuple[str, ...]) -> bool:
        return self.capacity is None or fits(len(tokens_of(blocks)), self.capacity, self.recency.step)

    def look(self, blocks: tuple[str, ...], later: float) -> None:
        tokens = whole_blocks(tokens_of(blocks), self.plain.step)[0]
        if tokens and self.is_served(blocks):
            end, now = self.tree.end(*blocks), self.now + later
            states = [self.plain.state(token, now, self.ttl_s) for token in tokens]
            assert self.recency.state(end, now, self.ttl_s) == max(states, key=FROM_BEST.index)


class RecencyAgainstPlain(RuleBasedStateMachine):
    """Conversations grow and fork, calls overlap, time passes: each token is read, kept and dead alike."""

    @initialize(
        life=st.sampled_from(LIVES),
        capacity=st.sampled_from(CAPACITIES),
        moved=st.sampled_from(MOVED),
        refreshes=st.booleans(),
        step=st.sampled_from(STEPS),
    )
    def start(self, life: float, capacity: int | None, moved: int, refreshes: bool, step: int) -> None:
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr("cachecost.caches.fixed_blocks.MOST_MOVED", moved)
        self.both = Both(life, capacity, refreshes, step)
        self.sent: list[tuple[str, ...]] = [()]

    def teardown(self) -> None:
        self.patched.undo()

    @rule(seconds=st.sampled_from(WAITS))
    def wait(self, seconds: float) -> None:
        self.both.now += seconds

    @rule(
        data=st.data(),
        new=st.lists(st.sampled_from(BLOCKS), max_size=4).map(tuple),
        first_token=st.sampled_from(FIRST_TOKENS),
    )
    def send(self, data: st.DataObject, new: tuple[str, ...], first_token: float) -> None:
        before = data.draw(st.sampled_from(self.sent[::-1]))
        self.sent.append(before[: len(before) - data.draw(st.integers(0, len(before)))] + new)
        self.both.send(self.sent[-1], first_token)

    @rule(data=st.data(), later=st.sampled_from(WAITS))
    def look(self, data: st.DataObject, later: float) -> None:
        self.both.look(data.draw(st.sampled_from(self.sent)), later)


RecencyAgainstPlain.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestRecencyAgainstPlain = RecencyAgainstPlain.TestCase


@pytest.mark.parametrize("refreshes", [True, False])
@pytest.mark.parametrize("moved", MOVED)
def test_many_long_ways(moved: int, refreshes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the machine above, evenly spread: trees with forks of forks, which it seldom gets to."""
    monkeypatch.setattr("cachecost.caches.fixed_blocks.MOST_MOVED", moved)
    for seed in range(120):
        chance = Random(seed)
        both = Both(chance.choice(LIVES), chance.choice(CAPACITIES), refreshes, chance.choice(STEPS))
        sent = [("a:1", "b:3")]
        for _ in range(25):
            before = chance.choice(sent[-6:])
            fork = len(before) - chance.choice([0, 0, 0, 1, 2, 3])
            sent.append((*before[: max(0, fork)], *chance.choices(BLOCKS, k=chance.randint(0, 3)))[:12])
            both.now += chance.choice(WAITS)
            both.send(sent[-1], chance.choice(FIRST_TOKENS))
            both.look(chance.choice(sent), chance.choice(WAITS))


def test_a_growing_conversation_is_one_chain_with_a_step_or_two() -> None:
    tree, recency = Tree(), Recency()
    for number in range(1, 200):
        recency.record_call(tree.end(*(f"{one}:3" for one in range(number))), number, number + 0.5, 300.0)
    (chain,) = recency._chains
    assert [(step.end, step.touched) for step in chain.steps] == [(597, 199), (594, 199)]


@pytest.mark.parametrize("beside", [1, 5])
def test_side_calls_make_way_so_that_all_of_them_leave_one_chain(beside: int) -> None:
    tree, recency = Tree(), Recency()
    for number in range(1, 60):
        so_far = [f"{one}:3" for one in range(number)]
        for _ in range(2):
            recency.record_call(
                tree.end(*so_far, *[f"side{one}:3" for one in range(beside)]), number, number + 0.5, 300.0
            )
        recency.record_call(tree.end(*so_far), number, number + 0.5, 300.0)
    assert {chain.parent.number for chain in recency._chains if chain.parent} == {0}
    assert len(recency._queued) == len(recency._chains)
