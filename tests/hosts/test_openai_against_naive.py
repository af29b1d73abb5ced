"""The engine against OpenAI's guide written plainly: conversations that grow, part, pause and change their mode."""

from __future__ import annotations

from datetime import date

from host_logs import body
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from naive_openai import Asked, NaiveOpenAI, Turn

from bodies import Body, marked, text
from cachecost.conversations.calls import Call
from cachecost.prompts.intake import Intake
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

DAY = date(2026, 11, 21)
RULES, PRICES = RuleBook(), PriceBook.load()
SIZES = st.sampled_from([60, 500, 1_023, 1_024, 1_500, 2_000])
PLACES = st.sets(st.integers(1, 9), max_size=6)


class Conversation(RuleBasedStateMachine):
    """One conversation after another on one host, in both modes; the two models see the same requests."""

    def __init__(self) -> None:
        super().__init__()
        self.naive = NaiveOpenAI()
        self.intake = Intake()
        self.engine = Simulation(ReplaySetup(RULES, PRICES, "openai", tokens="bytes"))
        self.now = 0.0
        self.named = 0
        self.developer: tuple[tuple[str, int], ...] = ()
        self.turns: tuple[Turn, ...] = ()
        self.told: tuple[object, object] = (None, None)

    def _block(self, size: int) -> tuple[str, int]:
        self.named += 1
        return str(self.named), size

    @initialize(sizes=st.lists(SIZES, max_size=2), first=SIZES)
    def begin(self, sizes: list[int], first: int) -> None:
        self.developer = tuple(map(self._block, sizes))
        self.turns = (Turn("user", (self._block(first),)),)

    @rule(answer=SIZES, asked=st.lists(SIZES, min_size=1, max_size=3))
    def go_on(self, answer: int, asked: list[int]) -> None:
        more = Turn("assistant", (self._block(answer),)), Turn("user", tuple(map(self._block, asked)))
        self.turns = (*self.turns, *more)

    @rule(size=SIZES)
    def extend_the_last_message(self, size: int) -> None:
        *before, last = self.turns
        self.turns = (*before, Turn(last.role, (*last.blocks, self._block(size))))

    @rule(kept=st.integers(0, 2), asked=SIZES)
    def part(self, kept: int, asked: int) -> None:
        self.turns = (*self.turns[: 2 * kept], Turn("user", (self._block(asked),)))

    @rule(seconds=st.sampled_from([1.0, 600.0, 1_798.0, 1_799.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def ask_without_breakpoints(self) -> None:
        self._ask(set(), is_tail=False, is_explicit=False)

    @rule(places=PLACES)
    def ask_with_a_tail(self, places: set[int]) -> None:
        """A breakpoint at the very end is the host's own, as without any."""
        self._ask(places, is_tail=True, is_explicit=False)

    @rule(places=PLACES, is_tail=st.booleans())
    def ask_in_explicit_mode(self, places: set[int], is_tail: bool) -> None:
        self._ask(places, is_tail, is_explicit=True)

    @rule(places=PLACES)
    def ask_with_breakpoints_alone(self, places: set[int]) -> None:
        self._ask(places, is_tail=False, is_explicit=False)

    def _ask(self, places: set[int], is_tail: bool, is_explicit: bool) -> None:
        self.now += 1
        blocks = len(Asked(self.developer, self.turns, (), False).blocks)
        breakpoints = tuple(sorted({place for place in places if place < blocks} | ({blocks} if is_tail else set())))
        is_implicit = not is_explicit and (not breakpoints or is_tail)
        self._call(Asked(self.developer, self.turns, breakpoints, is_implicit), is_explicit)

    def _call(self, asked: Asked, is_explicit: bool) -> None:
        model = "gpt-6.1-sol-explicit" if is_explicit else "gpt-6.1-sol"
        request = self.intake.body({**wire(asked), "model": model})
        usage = self.engine.row(Call(request, self.now, DAY)).usage
        self.told = (usage.read, usage.write, usage.input_tokens), self.naive.call(asked, self.now)

    @invariant()
    def both_say_the_same(self) -> None:
        assert self.told[0] == self.told[1]


def wire(asked: Asked) -> Body:
    """The request as a client of the Messages API writes it."""
    numbered = iter(range(1, len(asked.blocks) + 1))

    def blocks(sizes: tuple[tuple[str, int], ...]) -> list[Body]:
        made = [(text(size, name), next(numbered) in asked.breakpoints) for name, size in sizes]
        return [marked(one) if is_marked else one for one, is_marked in made]

    system = {"system": blocks(asked.developer)} if asked.developer else {}
    return body(*[{"role": turn.role, "content": blocks(turn.blocks)} for turn in asked.turns], **system)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
