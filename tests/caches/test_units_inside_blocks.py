"""Fixed units that end inside a block: what two prompts begin with is a unit of its own from then on (DeepSeek)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from trees import Tree, rules

from cachecost.base.structs import replace
from cachecost.caches.fixed_units import FixedUnitCache
from cachecost.prompts.blocks import Block
from cachecost.prompts.compare import first_difference, text_of
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


class Characters:
    """Each character of a text is a token."""

    name, source, error_margin = "characters", "characters", 0.0

    def block(self, block: Block) -> int:
        return len(text_of(block))

    def shared(self, one: Block, other: Block) -> int:
        return first_difference(text_of(one), text_of(other))

    def hidden(self, request: Request, rules: ModelRules) -> object:
        raise AssertionError("nothing is rendered here")


class CountedCharacters(Characters):
    def __init__(self) -> None:
        self.counts = 0

    def shared(self, one: Block, other: Block) -> int:
        self.counts += 1
        return super().shared(one, other)


UNITS = rules(matching="units")


def reads_of(*prompts: tuple[str, ...]) -> list[int]:
    """What calls a minute apart read."""
    tree, cache = Tree(), FixedUnitCache()
    made = [counted(tree, blocks) for blocks in prompts]
    return [cache.call(prompt, UNITS, 60.0 * number).read for number, prompt in enumerate(made)]


def counted(tree: Tree, blocks: tuple[str, ...]) -> Prompt:
    return replace(tree.prompt(*blocks), counter=Characters())


def plain_reads(prompts: tuple[tuple[str, ...], ...]) -> list[int]:
    """The same with whole token lists: a unit is the end of a prompt, or of what two prompts begin with."""
    units: set[tuple[str, ...]] = set()
    sent: list[tuple[str, ...]] = []
    found = []
    for blocks in prompts:
        tokens = tokens_of(blocks)
        read = [unit for unit in units if tokens[: len(unit)] == unit]
        found.append(max((sum(token != END for token in unit) for unit in read), default=0))
        shared = max((common(tokens, other) for other in sent), default=0)
        sent.append(tokens)
        units |= {tokens, tokens[:shared]}
    return found


END = "end"


def tokens_of(blocks: tuple[str, ...]) -> tuple[str, ...]:
    """A token is told from others by what of its text stands before it; where a block ends, the template goes on."""
    return tuple(token for block in blocks for token in (*(block[: end + 1] for end in range(1, len(block))), END))


def common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return first_difference(one, other)


def test_the_third_prompt_reads_what_the_first_two_begin_with() -> None:
    assert reads_of(("=documentA",), ("=documentB",), ("=documentC", "=more")) == [0, 0, 8]


TEXTS = st.sampled_from(["=a", "=ab", "=abc", "=abd", "=b", "=ba"])


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=8))
@settings(max_examples=200, deadline=None)
def test_random_prompts_read_what_whole_lists_of_tokens_say(prompts: list[list[str]]) -> None:
    sent = tuple(map(tuple, prompts))
    assert reads_of(*sent) == plain_reads(sent)


def test_texts_are_counted_once_a_call_however_many_units_a_block_has() -> None:
    """A count tokenizes both texts: prompts that part at 100 places would take 100 counts a call."""
    tree, cache, counter, text = Tree(), FixedUnitCache(), CountedCharacters(), "a" * 200
    for number in range(100):
        prompt = replace(tree.prompt(f"={text[: 2 * number]}b{text[2 * number :]}"), counter=counter)
        cache.call(prompt, UNITS, 60.0 * number)
    assert 0 < counter.counts <= 100
