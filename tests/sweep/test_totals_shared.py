"""What cells share adds up to what each ledger says alone, to the last digit, in whatever order they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.conversations.distributions import SyntheticInquiries, SyntheticPauses, SyntheticSpec, synthetic
from cachecost.conversations.model import (
    Aside,
    Conversation,
    Event,
    Human,
    Inquiry,
    Reply,
    Results,
    Switch,
    ThreadRewrite,
)
from cachecost.conversations.sessions import read_conversations
from cachecost.ledger.results import Ledger
from cachecost.prompts.blocks import NOTHING, Message, Thread
from cachecost.prompts.request import Request, block_of, text_block
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.placements import PRIMITIVES
from cachecost.strategies.registry import names
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.totals import SharedTotals, Totals, are_plain

MODELS = ("claude-opus-4-6", "claude-sonnet-4-5", "claude-haiku-5-5")
DAY = date(2026, 11, 1)
PRICES = PriceBook.load()
RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
MIXED: list[dict[str, Any]] = [
    {
        "name": "an hour's head",
        "breakpoints": [{"last_tool": {"ttl": "1h"}}, {"last_system": {"ttl": "1h"}}, "last_message"],
    },
    {"name": "refused", "breakpoints": [{"last_n": {"role": "any", "n": 2}}, {"lag": {"ttl": "1h"}}]},
    {"name": "forks", "breakpoints": ["fork_point"]},
    {"name": "one end, two lives", "breakpoints": [{"last_n": {"n": 1}}, {"automatic": {"ttl": "5m"}}]},
    {"name": "elsewhere", "preset": "progressive", "model": "claude-haiku-5-5"},
    {"name": "as counted", "preset": "progressive", "rules": {"lookback_runs": "counted"}},
    {"name": "thinks", "preset": "automatic", "thinking": {"type": "enabled", "budget_tokens": 2_000}},
    {"name": "pings", "preset": "progressive", "changes": [{"keep_alive": {}}]},
]


def specs() -> list[str | StrategySpec]:
    """Every preset under each TTL, where it has one, and some of no preset's."""
    own = [StrategySpec.model_validate(told) for told in MIXED]
    hours = [StrategySpec.model_validate({**told, "ttl": "1h"}) for told in MIXED if told["name"] != "refused"]
    lasting = [f"{name}@{ttl}" for name in ("automatic", "base", "progressive") for ttl in ("5m", "1h")]
    return [*names(), *lasting, *own, *hours]


def totals_of(ledger: Ledger) -> Totals:
    return Totals(len(ledger.rows), ledger.errors, ledger.usage, ledger.cost.total)


def assert_equal(
    shared: SharedTotals, spec: str | StrategySpec, conversations: Sequence[Conversation], terms: ReplaySetup
) -> bool:
    """Whether what is shared told it at all; what it told must be right."""
    found = shared.totals(spec, terms)
    if found is None:
        return False
    wanted = totals_of(replay_strategy(spec, conversations, terms))
    assert found == wanted, (spec, terms.model)
    assert str(found.cost_usd) == str(wanted.cost_usd)
    return True


def told() -> Conversation:
    """A conversation that thinks, shows an image, forks and is rewritten, asks, assumptions and has a call beside
    it.
    """
    said = [text_block("user", "Look. " * 400), text_block("user", "Go on. " * 300), text_block("user", "Again. " * 50)]
    image = block_of("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})
    thought = block_of("assistant", {"type": "thinking", "thinking": "Hm. " * 200, "signature": "x"})
    use = block_of("assistant", {"type": "tool_use", "id": "t1", "name": "look", "input": {}})
    back = block_of("user", {"type": "tool_result", "tool_use_id": "t1", "content": "seen " * 500})
    answer = text_block("assistant", "Done. " * 100)
    aside = Request(MODELS[0], Thread().then(Message.of("user", (said[2],))), params={"max_tokens": 10})
    events: list[Event] = [
        Human(0, (said[0],)),
        Reply(0, (thought, use), 2.0, 40),
        Inquiry(5, text_block("user", "Sure?"), text_block("assistant", "true"), tool_use="t1"),
        Results(9, (back,)),
        Reply(10, (thought, answer)),
        Aside(12, aside, Reply(12, (answer,))),
        Human(200, (said[1], image)),
        Reply(200, (answer,), None, 7),
        ThreadRewrite(400, 3, (Message.of("assistant", (answer,)), Message.of("user", (said[2],))), "fork"),
        Reply(400, (thought, answer)),
        Switch(500, MODELS[1], NOTHING, NOTHING, {"thinking": {"type": "enabled", "budget_tokens": 1_024}}),
        Human(3_000, (said[0],)),
        Reply(3_000, (answer,)),
    ]
    params = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
    return Conversation("told", tuple(events), MODELS[0], params=params)


def made(seed: int, asks: bool, tools: int) -> Conversation:
    inquiries = SyntheticInquiries(rate=0.5, batch=2) if asks else None
    pauses = SyntheticPauses(turn=400, loop=20, first_token=3)
    heads = {"head_tools": (900, 5_000), "head_system": (300, 2_000)}
    spec = SyntheticSpec(seed, turns=4, calls=3, tools=tools, pauses=pauses, inquiries=inquiries, **heads)
    return synthetic(replace(spec, model=MODELS[0]))


def recorded(name: str) -> list[Conversation]:
    return read_conversations(RECORDINGS / f"{name}.jsonl", "auto", lambda words: None)[0]


TALKS: dict[str, Callable[[], list[Conversation]]] = {
    "told": lambda: [told()],
    "told twice": lambda: [told(), replace(told(), name="again", host="bedrock", workspace="other")],
    "made": lambda: [made(1, False, 1)],
    "asks": lambda: [made(2, True, 12), made(3, True, 1)],
    "jp": lambda: recorded("jp-17653152345"),
    "sessions": lambda: recorded("sessions/claude-code"),
}
cells = st.tuples(
    st.sampled_from(specs()),
    st.sampled_from([*MODELS, None]),
    st.sampled_from(["bytes", "tiktoken"]),
    st.fixed_dictionaries(
        {
            "shallow_breakpoints": st.sampled_from(["rewrite", "refresh", "ignore"]),
            "lookback_runs": st.sampled_from(["by_date", "collapsed", "counted"]),
            "ttl_in_key": st.sampled_from([False, False, True]),
            "thinking_rendered_at": st.sampled_from(["messages", "tools"]),
            "tool_choice_invalidation": st.sampled_from(["rendered_class", "any_change", "never"]),
            "early_eviction_probability": st.sampled_from([0.0, 0.0, 0.5]),
        }
    ),
    st.sampled_from([DAY, date(2026, 8, 1)]),
)


@given(name=st.sampled_from(sorted(TALKS)), asked=st.lists(cells, min_size=1, max_size=8))
@settings(max_examples=15)
def test_cells_add_up_to_their_ledgers(name: str, asked: list[Any]) -> None:
    conversations = TALKS[name]()
    shared = SharedTotals(conversations)
    for spec, model, tokens, rules, day in asked:
        assert_equal(
            shared,
            spec,
            conversations,
            ReplaySetup(RuleBook(assumptions_from(rules), day), PRICES, tokens=tokens, model=model),
        )


@pytest.mark.parametrize("name", ["made", "asks"])
def test_every_preset_is_told_by_what_is_shared(name: str) -> None:
    """All but those that look at what was paid, or whose prompts depend on who sends first."""
    conversations = TALKS[name]()
    shared = SharedTotals(conversations)
    plain = [
        spec
        for spec in specs()
        if not assert_equal(
            shared, spec, conversations, ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="bytes", model=MODELS[0])
        )
    ]
    assert [spec if isinstance(spec, str) else spec.name for spec in plain] == PLAIN


PLAIN = ["adaptive", "one end, two lives", "pings", "one end, two lives", "pings"]


def test_questions_without_tools_share_what_is_computed_once() -> None:
    """They begin as calls with tools do, but for hidden tokens: each call is as long as it would be alone."""
    conversations = TALKS["asks"]()
    shared = SharedTotals(conversations)
    terms = ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="tiktoken", model=MODELS[0])
    assert assert_equal(shared, "structured output, no tools", conversations, terms)
    assert assert_equal(shared, "structured output, same tools", conversations, terms)


def test_blocks_of_one_digest_and_two_lengths_are_replayed() -> None:
    """Which of them a prefix is as long as is up to who sends it first."""
    (conversation,) = TALKS["made"]()
    first = conversation.events[0]
    assert isinstance(first, Human)
    longer = replace(first.blocks[0], tokens=9_999)
    conversations = [
        conversation,
        replace(conversation, name="again", events=(replace(first, blocks=(longer,)), *conversation.events[1:])),
    ]
    assert not are_plain(conversations)
    assert (
        SharedTotals(conversations).totals(
            "automatic", ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="bytes", model=MODELS[0])
        )
        is None
    )


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans, structures and readings are made anew once they were dropped, and tell the same."""
    conversations = TALKS["made"]()
    monkeypatch.setattr("cachecost.sweep.totals.MOST_CALLS", 20)
    monkeypatch.setattr("cachecost.sweep.totals.MOST_READINGS", 1)
    shared = SharedTotals(conversations)
    for rules in ({}, {"lookback_runs": "counted"}, {}):
        for name in ("automatic", "progressive", "automatic"):
            terms = ReplaySetup(RuleBook(assumptions_from(rules), DAY), PRICES, tokens="bytes", model=MODELS[0])
            assert assert_equal(shared, name, conversations, terms)
    assert len(shared._plans._known) == len(shared._tables) == len(shared._prompt_stores) == 1


def test_placements_that_see_forks_say_so() -> None:
    """A tree that others grew in, too, shows them forks that their own conversations never had."""
    conversations = TALKS["asks"]()
    shared = SharedTotals(conversations)
    terms = ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="bytes", model=MODELS[0])
    own = [StrategySpec.model_validate(told) for told in MIXED]
    for spec in ("answer_inquiry, forced", *own, "rfc013-fork-aware", "rfc013-tree"):
        assert_equal(shared, spec, conversations, terms)
    assert [name for name, kind in PRIMITIVES.items() if kind.sees_forks] == ["fork_point"]
