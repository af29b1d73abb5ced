"""Changes compose with any placement: what is said otherwise, and what they cannot be given."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pydantic import ValidationError
from small_talks import MODEL, SIX_CALLS, conversation, fingerprint

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply
from cachecost.prompts.blocks import estimate_tokens, given_block
from cachecost.prompts.request import text_block
from cachecost.strategies.agent import Agent, InquiryOptions
from cachecost.strategies.changes.base import AgentChange, EvenSampler, placeholder_for
from cachecost.strategies.changes.prefix import SwitchAt
from cachecost.strategies.placements import LastMessage, Placement
from cachecost.strategies.registry import build
from cachecost.strategies.spec import BREAKPOINTS, CHANGES, CHANGES_TABLE, StrategySpec

OTHER = "claude-haiku-4-5"


def calls(*changes: AgentChange, model: str | None = None, session: Conversation | None = None) -> list[Call]:
    agent = Agent(name="a", changes=changes, model=model)
    return list(agent.plan(session or conversation(*SIX_CALLS, params={"thinking": {"type": "adaptive"}})))


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ({}, [MODEL] * 6),
        ({"turn": 1}, [OTHER] * 6),
        ({"turn": 2}, [MODEL] * 3 + [OTHER] * 3),
        ({"turn": 3}, [MODEL] * 5 + [OTHER]),
        ({"turn": 2, "every": 1}, [MODEL] * 3 + [OTHER] * 2 + [MODEL]),
        ({"turn": 4}, [MODEL] * 6),
    ],
)
def test_from_a_turn_on_another_model(options: dict[str, int], models: list[str]) -> None:
    change = SwitchAt(**options, model=OTHER if options else None)
    assert [call.request.model for call in calls(change)] == models


def test_a_chosen_model_wins_over_the_one_that_all_run_on() -> None:
    models = [call.request.model for call in calls(SwitchAt(model=OTHER), model="claude-sonnet-4-6")]
    assert models == ["claude-sonnet-4-6"] * 3 + [OTHER] * 3
    back = [call.request.model for call in calls(SwitchAt(model=OTHER, every=1), model="claude-sonnet-4-6")]
    assert back == ["claude-sonnet-4-6"] * 3 + [OTHER] * 2 + ["claude-sonnet-4-6"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (SwitchAt(effort="low"), {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        (SwitchAt(thinking="off"), {"thinking": {"type": "disabled"}}),
        (SwitchAt(thinking=4096), {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
    ],
)
def test_from_a_turn_on_other_parameters(change: SwitchAt, expected: dict[str, object]) -> None:
    params = [call.request.params for call in calls(change)]
    assert params == [{"thinking": {"type": "adaptive"}}] * 3 + [expected] * 3


@dataclass(frozen=True, slots=True)
class Twice(AgentChange):
    """Says everything in two conversations, the second a second later."""

    def apply_to(self, session: Conversation, facts: object) -> tuple[Conversation, Conversation]:
        later = Conversation("later", (Human(9, SIX_CALLS[0].blocks), Reply(9.5, ())), MODEL)
        return session, later


def test_conversations_beside_each_other_are_planned_in_time() -> None:
    assert [call.start for call in calls(Twice())] == [1, 3, 5, 7, 9, 9.5, 11]


def test_changes_apply_in_the_order_they_are_named() -> None:
    assert len(calls(Twice(), Twice())) == 6 + 3 * 1
    spec = StrategySpec.model_validate({"preset": "base", "changes": [{"switch": {"turn": 3, "model": OTHER}}]})
    assert [call.request.model for call in build(spec).plan(conversation(*SIX_CALLS))][-1] == OTHER


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("swich", "got 'swich' (did you mean 'switch'?)"),
        ({"switch": {"turns": 3}}, "turns"),
        ({"switch": {"turn": 0}}, "switch.turn=0: expected at least 1, the first human message"),
        ({"fan_out": {"step_s": -5.0}}, "fan_out.step_s=-5.0: expected no less than 0 seconds"),
        ({"switch": {"effort": "banana"}}, "effort"),
        ({"switch": {}, "other": {}}, "expected the name of a change, or one name with its options; got a mapping"),
    ],
)
def test_what_is_no_change_is_told(value: object, why: str) -> None:
    with pytest.raises(ValidationError) as error:
        StrategySpec.model_validate({"name": "x", "changes": [value]})
    assert why in str(error.value.errors())


def test_a_rate_is_a_share() -> None:
    @dataclass(frozen=True, slots=True)
    class Sometimes(AgentChange):
        error_rate: float = 0.5

    assert Sometimes(error_rate=1.0).error_rate == 1.0
    with pytest.raises(ValueError, match=r"error_rate=1\.5: expected a share from 0 to 1"):
        Sometimes(error_rate=1.5)


@pytest.mark.parametrize(("rate", "n", "expected"), [(0, 10, 0), (0.05, 40, 2), (0.5, 4, 2), (1, 3, 3), (0.1, 5, 1)])
def test_a_rate_is_spread_evenly(rate: float, n: int, expected: int) -> None:
    happens = EvenSampler(rate)
    assert sum(happens() for _ in range(n)) == expected


def test_a_block_instead_of_another_is_the_same_each_time() -> None:
    block = given_block("tool_result", "user", "a long file", 5000)
    assert estimate_tokens(block) == 5000
    short = placeholder_for(block, "cleared", 12)
    assert (short.kind, short.role, short.tokens, estimate_tokens(short)) == ("tool_result", "user", 12, 12)
    assert short.digest == placeholder_for(block, "cleared", 12).digest
    assert short.digest not in (block.digest, placeholder_for(block, "cut", 12).digest)


def test_questions_are_asked_with_the_head_of_their_time() -> None:
    """After a switch, side calls are sent as the main thread is."""
    asked = Inquiry(9.2, text_block("user", "really?"), text_block("assistant", "yes"))
    session = conversation(*SIX_CALLS[:-1], asked, SIX_CALLS[-1])
    agent = Agent(
        name="a", changes=(SwitchAt(model=OTHER, effort="low"),), inquiry=InquiryOptions(through="structured_output")
    )
    (side,) = (call for call in agent.plan(session) if call.purpose == "inquiry")
    assert (side.request.model, side.request.params["output_config"]["effort"]) == (OTHER, "low")


def test_every_change_and_breakpoint_is_listed_with_its_options() -> None:
    changes = {row.name: row for row in CHANGES_TABLE.list_options()}
    assert sorted(changes) == sorted(CHANGES)
    assert changes["switch"].options == "turn 2, model unset, effort unset, thinking unset, every 0, output_share 1.0"
    assert all(row.what for row in (*changes.values(), *BREAKPOINTS.list_options()))


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_every_change_leaves_a_plan_in_order_and_says_nothing_twice(name: str) -> None:
    """With its defaults, on a conversation with parallel tools: calls in time order, the same each time."""
    agent = Agent(name="a", placement=Placement((LastMessage(),)), changes=(CHANGES[name](),))
    session = conversation(*SIX_CALLS)
    plans = [list(agent.plan(session)) for _ in range(2)]
    starts = [call.start for call in plans[0]]
    assert starts == sorted(starts)
    assert [fingerprint(call) for call in plans[0]] == [fingerprint(call) for call in plans[1]]
    assert len(plans[0]) >= 1
