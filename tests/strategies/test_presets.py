"""What every preset must keep to in tokens and dollars, and where those breakpoint that no recording tells of.

What holds for breakpoints alone (markable, in order, within the slots, work for what is new) is in
test_every_strategy.py.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import pytest
from small_talks import SIX_CALLS, conversation, spelled

from cachecost.base.structs import replace
from cachecost.conversations.calls import date_call
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, ThreadRewrite
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Message, Part, given_block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.keepalive import Adapt
from cachecost.strategies.placements import MAXIMUM_BREAKPOINTS, LastTool, Placement, SystemBlock
from cachecost.strategies.presets import PLACEMENTS, PRESETS
from slow_cases import mostly_slow

MODEL = "claude-sonnet-4-5"
PRICES = PriceBook.load(None, None)
START = 1_772_442_000.0
"""2026-03-02, a day for which there are rules."""
TERMS = ReplaySetup(RuleBook(), PRICES, tokens="bytes", model=MODEL)
OVERFLOWING = {"rfc013-list-system", "continue-systemAndTools", "llama-index-cache-idx"}
TOO_MANY = "A maximum of 4 blocks with cache_control may be provided. Found "
every_preset = pytest.mark.parametrize("name", mostly_slow(sorted(PRESETS), 30))


def block(role: str, name: str, tokens: int, kind: str = "text") -> Block:
    return given_block(kind, role, name, tokens)


def turn(number: int, at: float) -> list[Event]:
    """A human message, a call with two tools, one with none."""
    results = (block("user", f"r{number}", 700, "tool_result"), block("user", f"s{number}", 300, "tool_result"))
    used = (block("assistant", f"u{number}", 40, "tool_use"), block("assistant", f"v{number}", 40, "tool_use"))
    return [
        Human(at, (block("user", f"h{number}", 600),)),
        Reply(at + 1, (block("assistant", f"t{number}", 100, "thinking"), *used)),
        Results(at + 9, results),
        Reply(at + 10, (block("assistant", f"a{number}", 200),)),
    ]


def long_talk(turns: int = 8, pause: float = 400.0) -> Conversation:
    """Eight turns with a document, a reminder, a rewind, and pauses beyond both TTLs."""
    attached = Human(START, (block("user", "file", 2000, "document"), block("user", "go", 20)))
    events: list[Event] = [attached, Reply(START + 1, (block("assistant", "gone", 30),))]
    for number in range(turns):
        events += turn(number, START + pause * number + 10 + (4000 if number > 6 else 0))
        if number == 3:
            reminder = Message.of("user", (block("user", "reminder", 150),))
            events.append(ThreadRewrite(events[-1].at, 99, (reminder,), "insertion"))
        if number == 5:
            events.append(ThreadRewrite(events[-1].at + 1, 14, (), "edit"))
    tools = Part(tuple(block("", f"tool {n}", 600, "tool") for n in range(3)))
    system = Part(tuple(block("system", f"system {n}", size) for n, size in enumerate((50, 1500, 900))))
    return Conversation("long", tuple(events), MODEL, tools, system)


def rows_of(agent: Agent, session: Conversation | None = None) -> list[CallRow]:
    """A ledger of an agent that need not be registered."""
    simulation = Simulation(TERMS.for_strategy(agent), agent.name)
    return [simulation.row(date_call(call)) for call in agent.plan(session or long_talk())]


@cache
def marked(name: str) -> list[CallRow]:
    return rows_of(PRESETS[name])


def as_asked(rows: list[CallRow]) -> list[CallRow]:
    """Without the calls that only keep an entry alive."""
    return [row for row in rows if row.purpose != "ping"]


@cache
def uncached(name: str) -> list[CallRow]:
    """The same agent without breakpoints: nothing else differs."""
    agent = PRESETS[name]
    changes = tuple(change for change in agent.changes if not isinstance(change, Adapt))
    return rows_of(replace(agent, placement=Placement(), changes=changes))


@every_preset
def test_nothing_is_refused_but_where_the_preset_says_so(name: str) -> None:
    """Numbers of breakpoints and the order of TTLs, as the API checks them. Refused with over 4 breakpoints: three,
    and only so.
    """
    errors = [row.error for row in marked(name) if row.error]
    assert all(error.startswith(TOO_MANY) for error in errors)
    assert bool(errors) == (name in OVERFLOWING)
    agent = PRESETS[name]
    assert ("refused (400)" in agent.what) == (name in OVERFLOWING) == (agent.placement.slots > MAXIMUM_BREAKPOINTS)


@every_preset
def test_every_token_is_read_written_or_uncached(name: str) -> None:
    for row, bare in zip(as_asked(marked(name)), uncached(name), strict=True):
        if row.error is None:
            assert row.usage.total_input == bare.usage.total_input == bare.usage.input_tokens
            assert row.usage.output_tokens == bare.usage.output_tokens


@every_preset
def test_no_preset_costs_more_than_the_write_premium(name: str) -> None:
    """At most 25% (5m) or 100% (1h) over sending everything uncached; and most cost far less."""
    premium = Decimal(2) if "1h" in ttls(PRESETS[name]) else Decimal("1.25")
    pairs = [(row, bare) for row, bare in zip(as_asked(marked(name)), uncached(name), strict=True) if row.error is None]
    for row, bare in pairs:
        assert row.cost.total - row.cost.output <= premium * bare.cost.input
    if name != "none" and len(pairs) > 5:
        assert sum(row.cost.total for row, _ in pairs) < sum(bare.cost.total for _, bare in pairs)


def ttls(agent: Agent) -> set[str]:
    """Every TTL that it breakpoints with; what adapts uses both."""
    adapted = {"5m", "1h"} if any(isinstance(change, Adapt) for change in agent.changes) else set()
    return adapted | {agent.placement.ttl_of(primitive) for primitive in agent.placement.primitives}


@every_preset
def test_a_preset_gives_the_same_ledger_again(name: str) -> None:
    assert rows_of(PRESETS[name]) == marked(name)


@every_preset
def test_its_ttls_are_legal_and_it_says_what_it_does(name: str) -> None:
    agent = PRESETS[name]
    assert agent.placement.ttl_error() is None
    assert 10 < len(agent.what) <= 160 and "\n" not in agent.what


def test_each_name_is_given_once() -> None:
    assert len({agent.name for agent in PLACEMENTS}) == len(PLACEMENTS)


def test_the_premium_is_a_bound_that_a_wrong_price_would_break() -> None:
    """The first call of an agent that breakpoints its end pays nearly all of it."""
    first, bare = marked("progressive")[0], uncached("progressive")[0]
    assert Decimal("1.2") < (first.cost.total - first.cost.output) / bare.cost.input <= Decimal("1.25")


TAIL = ("1.0", "3.1", "5.0", "7.0", "9.1", "11.0")
LAST_TWO = ("1.0", "2.2 3.1", "4.1 5.0", "6.0 7.0", "8.1 9.1", "10.1 11.0")
USERS = ("1.0", "1.0 3.1", "3.1 5.0", "5.0 7.0", "7.0 9.1", "9.1 11.0")


def after(head: str, rows: tuple[str, ...]) -> list[str]:
    return [f"{head} {row}".strip() for row in rows]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-code-2.1.148", after("system.0 system.1", LAST_TWO)),
        ("claude-code-2.1.203", after("system.0 system.1", USERS)),
        ("claude-code-fork", after("system.0 system.1", ("", "2.2", "4.1", "6.0", "8.1", "10.1"))),
        ("cline-legacy", after("system.1", USERS)),
        ("cline-sdk", ["1.0", "1.0", "1.0", "7.0", "9.1", "11.0"]),
        ("roo-code", after("system.1", USERS)),
        ("roo-code-vertex", after("system.1", ("1.0", "1.0", "", "7.0", "7.0 9.1", "9.1 11.0"))),
        ("goose", after("tools.1 system.1", USERS)),
        ("goose-bedrock", after("system.1", TAIL)),
        ("openhands", after("system.0", TAIL)),
        ("opencode", after("system.0 system.1", LAST_TWO)),
        ("pi", after("tools.1 system.0 system.1", TAIL)),
        ("qwen-code-0.15", after("tools.1 system.1", ("1.0", "", "", "7.0", "9.1", "11.0"))),
        ("crush", after("tools.1 system.1", LAST_TWO)),
        ("continue-systemOnly", ["system.0 system.1"] * 6),
        ("continue-optimized", ["tools.1 system.0 system.1"] * 6),
        (
            "zed",
            after("system.1@1h", ("1.0", "3.1", "5.0", "6.0 7.0", "6.0 8.1 9.1", "8.1 10.1 11.0")),
        ),
        ("zed-auto", ["tools.1@1h system.1@1h auto"] * 6),
        ("llmproc-0.7", ["1.0", "1.0 3.0", "3.0 4.0 5.0", "5.0 6.0 7.0", "7.0 9.0", "9.0 10.0 11.0"]),
        ("langchain-middleware-js", ["", *["tools.1 system.1 auto"] * 5]),
        ("litellm-injection-user", after("system.1", ("1.0", "1.0 3.1", *["1.0 3.1 5.0"] * 4))),
        ("llama-index-cache-idx-2", after("system.1", ("1.0", *["1.0 2.2"] * 5))),
        ("strands-tools", after("tools.1 system.1", TAIL)),
        ("crewai", ["system.1 1.0"] * 6),
        ("vercel-ai-gateway-auto", ["system.1"] * 6),
        ("first-block", ["system.0"] * 6),
        ("trpc-auto", ["tools.1", "2.2", "4.1", "6.0", "8.1", "10.1"]),
        ("freeze-at-4", ["1.0"] * 6),
        ("system-and-n", after("tools.1 system.1", LAST_TWO)),
        ("rfc013-budget", [""] * 6),
        ("rfc013-adaptive", after("tools.1 system.1", ("1.0", "1.0 3.1", "3.1 5.0", "5.0 7.0", "7.0 9.1", "9.1 11.0"))),
    ],
)
def test_a_preset_breakpoints_these_blocks(name: str, expected: list[str]) -> None:
    assert [spelled(call.request) for call in PRESETS[name].plan(conversation(*SIX_CALLS))] == expected


def test_trpc_falls_back_to_what_there_is() -> None:
    session = conversation(*SIX_CALLS[:2])
    bare = replace(session, tools=Part())
    assert [spelled(call.request) for call in PRESETS["trpc-auto"].plan(bare)] == ["system.1"]


def test_a_frozen_agent_pays_for_its_tail_again_and_again() -> None:
    """The same prompts: one breakpoint that moves with the end reads what four that stand cannot."""
    rows = [rows_of(PRESETS[name], long_talk(40, pause=30.0)) for name in ("freeze-at-4", "mini-swe-agent")]
    frozen, moving = (sum(row.cost.total - row.cost.output for row in each) for each in rows)
    assert frozen > Decimal("2.5") * moving


def test_the_head_of_pydantic_ai_stays_where_slots_run_out() -> None:
    placement = replace(PRESETS["pydantic-ai"].placement, slots=2)
    calls = Agent(name="x", placement=placement).plan(conversation(*SIX_CALLS))
    assert {spelled(call.request) for call in calls} == {"tools.1@1h system.1"}
    assert placement.primitives[:2] == (LastTool(ttl="1h"), SystemBlock("last"))
