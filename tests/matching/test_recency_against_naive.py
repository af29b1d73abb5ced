"""The staircases against the same written plainly: every token of every prompt with its last touch, LRU as a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from trees import Tree

from cachecost.matching.recency import Recency

Token = tuple[tuple[str, ...], int]
"""The blocks up to and with its own, and its number in that."""


@dataclass
class Plain:
    """`touched` and `ready` by token; `order` has the least recently used first."""

    touched: dict[Token, float] = field(default_factory=dict)
    ready: dict[Token, tuple[float, float]] = field(default_factory=dict)
    order: list[Token] = field(default_factory=list)

    def state(self, token: Token, now: float, life_s: float) -> str:
        if token not in self.touched:
            return "absent"
        if now - self.touched[token] >= life_s:
            return "expired"
        readable_at, started = self.ready[token]
        return "unreadable" if now < readable_at or now <= started else "live"

    def send(self, blocks: tuple[str, ...], now: float, readable_at: float, life_s: float, most: int | None) -> int:
        tokens = tokens_of(blocks)
        states = [self.state(token, now, life_s) for token in tokens]
        for token, state in zip(tokens, states, strict=True):
            if state in ("absent", "expired"):
                self.ready[token] = (readable_at, now)
            elif state == "unreadable":
                self.ready[token] = min(self.ready[token], (readable_at, now))
            self.touched[token] = now
        self.order = [token for token in self.order if token not in tokens] + tokens[::-1]
        while most is not None and len(self.order) > most:
            del self.touched[self.order.pop(0)]
        return len(list(takewhile(lambda state: state == "live", states)))


def tokens_of(blocks: tuple[str, ...]) -> list[Token]:
    return [(blocks[:end], n) for end in range(1, len(blocks) + 1) for n in range(int(blocks[end - 1].split(":")[1]))]


BLOCKS = st.sampled_from(["a:1", "b:3", "c:7", "d:0", "e:0", "f:2"])
PROMPTS = st.lists(BLOCKS, min_size=1, max_size=6).map(tuple)
LIVES = st.sampled_from([5.0, 12.0, float("inf")])
CAPACITIES = st.sampled_from([None, 0, 1, 4, 11, 20, 40])
WAITS = st.sampled_from([0, 0, 0.5, 1, 3, 4, 5, 6, 12])
FIRST_TOKENS = st.sampled_from([0, 0, 0, 1, 4, 7, 20])


class RecencyAgainstPlain(RuleBasedStateMachine):
    """Conversations grow and fork, calls overlap, time passes: each token is read, kept and dead alike."""

    @initialize(life=LIVES, capacity=CAPACITIES)
    def start(self, life: float, capacity: int | None) -> None:
        self.life, self.capacity = life, capacity
        self.tree, self.recency, self.plain = Tree(), Recency(), Plain()
        self.now = 0.0
        self.sent: list[tuple[str, ...]] = [()]

    @rule(seconds=WAITS)
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(new=PROMPTS, data=st.data(), first_token=FIRST_TOKENS)
    def send(self, new: tuple[str, ...], data: st.DataObject, first_token: float) -> None:
        before = data.draw(st.sampled_from(self.sent))
        blocks = before[: data.draw(st.integers(0, len(before)))] + new[: data.draw(st.integers(0, 2))]
        self.sent.append(blocks)
        moments = (self.now, self.now + first_token, self.life, self.capacity)
        assert self.recency.send(self.tree.end(*blocks), *moments) == self.plain.send(blocks, *moments)
        assert self.recency.tokens == len(self.plain.order)

    @rule(data=st.data(), later=WAITS)
    def look(self, data: st.DataObject, later: float) -> None:
        blocks = data.draw(st.sampled_from(self.sent))
        if tokens := tokens_of(blocks):
            end, now = self.tree.end(*blocks), self.now + later
            assert self.recency.state(end, now, self.life) == self.plain.state(tokens[-1], now, self.life)


RecencyAgainstPlain.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestRecencyAgainstPlain = RecencyAgainstPlain.TestCase


@settings(max_examples=60)
@given(st.lists(st.tuples(PROMPTS, WAITS, FIRST_TOKENS), max_size=20), st.integers(0, 30))
def test_what_is_kept_never_exceeds_the_capacity(calls: list[tuple[tuple[str, ...], float, float]], most: int) -> None:
    tree, recency, now = Tree(), Recency(), 0.0
    for blocks, wait, first_token in calls:
        now += wait
        recency.send(tree.end(*blocks), now, now + first_token, 9.0, most)
        assert 0 <= recency.tokens <= most


def test_a_growing_conversation_is_one_chain_with_a_step_or_two() -> None:
    tree, recency = Tree(), Recency()
    for number in range(1, 200):
        recency.send(tree.end(*(f"{one}:3" for one in range(number))), number, number + 0.5, 300.0)
    (chain,) = recency._chains
    assert [(step.end, step.touched) for step in chain.steps] == [(597, 199), (594, 199)]
