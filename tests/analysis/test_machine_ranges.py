"""Ranges of reads on hosts whose machines have a cache each: what they take in, and how often they hold."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from bodies import RULES
from cachecost.analysis.fidelity.holdout import is_held_out
from cachecost.analysis.fidelity.machine_ranges import MachineRanges
from cachecost.analysis.fidelity.read_ranges import ReadBounds
from cachecost.analysis.fidelity.validation import Validation
from cachecost.base.structs import replace
from cachecost.ledger.results import Judgement
from cachecost.prompts.blocks import Layer, Prefix, given_block
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.simulation.setup import ReplaySetup

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings" / "traffic" / "openai"
GPT_5 = {"latest": 0.79, "older": 0.15, "none": 0.06}


def on_a_grid(shares: dict[str, float]) -> ModelRules:
    return replace(RULES, matching="grid", minimum_tokens=1024, step_tokens=128, machine_shares=shares)


class Sent:
    """Prompts that each go on from the one before, of the lengths given."""

    def __init__(self, *lengths: int) -> None:
        self.root = Prefix(None, Layer.MESSAGES, None, 0)
        self.prompts: list[Prompt] = []
        node = self.root
        for number, length in enumerate(lengths):
            node = node.then(given_block("text", "user", str(number), 0), Layer.MESSAGES, length - node.tokens)
            self.prompts.append(Prompt(node, self.root, (), 0, 0, node.tokens, ("", "", "")))

    def range_of_last(self, rules: ModelRules, most: int) -> ReadBounds | None:
        machines = MachineRanges()
        for prompt in self.prompts[:-1]:
            machines.add(prompt)
        return machines.range_of(self.prompts[-1], AS_COUNTED, rules, most)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (GPT_5, (1408, 2432)),  # the oldest that reaches the minimum
        ({"latest": 0.9, "older": 0.05, "none": 0.05}, (2432, 2432)),
        ({"latest": 0.89, "older": 0.0, "none": 0.11}, (0, 2432)),
        ({}, None),
    ],
)
def test_the_range_takes_in_the_fewest_places_that_make_up_nine_tenths(
    shares: dict[str, float], expected: tuple[int, int] | None
) -> None:
    sent = Sent(500, 1420, 1700, 2500, 3000)
    found = sent.range_of_last(on_a_grid(shares), 2432)
    assert (found and (found.least, found.most)) == expected


def test_what_is_read_nowhere_has_no_range() -> None:
    assert Sent(500, 3000).range_of_last(on_a_grid(GPT_5), 0) is None


def test_it_holds_as_often_as_the_shares_say() -> None:
    """Calls that come to a machine at random, as the shares say, each with all that came before."""
    random, rules, held, calls = Random(1), on_a_grid(GPT_5), 0, 4_000
    for _ in range(calls):
        lengths = sorted(random.sample(range(1100, 9000), 6))
        reads = [length // 128 * 128 for length in lengths[:-1]]
        place = random.choices(list(GPT_5), list(GPT_5.values()))[0]
        read = {"latest": reads[-1], "older": random.choice(reads[:-1]), "none": 0}[place]
        found = Sent(*lengths).range_of_last(rules, reads[-1])
        held += found is not None and found.hold(read, 0)
    assert 0.85 <= held / calls <= 0.95


def judged(*rows: Path) -> list[Judgement]:
    found = Validation(rows, ReplaySetup(RuleBook(), PriceBook.load(), "openai")).fidelity().judgements
    return [one for one in found if one.host == "openai"]


def shares_in_range(files: list[Path]) -> tuple[int, int]:
    ranged = [one.holds for one in judged(*files) if one.bounds is not None and one.coverage < 1]
    return sum(ranged), len(ranged)


def test_how_often_the_range_holds_in_the_recordings() -> None:
    """Of calls that were fitted and of those that were held out; few, so they are counted and not called 90%."""
    files = sorted(RECORDINGS.glob("*.jsonl"))
    told: dict[bool, Any] = {
        held_out: shares_in_range([path for path in files if is_held_out(path.name) is held_out])
        for held_out in (False, True)
    }
    assert told == {False: (11, 13), True: (6, 8)}
