"""Cache diagnostics tell the earliest difference from the request that the client names."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_calls import START, Served

from bodies import Body, assistant, body, marked, text, tool, user
from cachecost.live.server.model import CallCharge, ClientCall, ModelAnswer
from cachecost.live.server.state import Meter, compare_requests
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import Request

INTAKE = Intake(keep_content=True)
SYSTEM, HELLO, SAID = text(400, "system"), text(200, "hello"), text(100, "said")
BEFORE = body(user(HELLO), assistant(SAID), tools=[tool(800)], system=[SYSTEM])


def told(before: Body, after: Body) -> Any:
    answer = compare_requests(request(before), request(after))
    return None if answer is None else answer["cache_miss_reason"]


def request(sent: Body) -> Request:
    return INTAKE.body(sent)


def on(**fields: Any) -> Body:
    return {**BEFORE, "messages": [*BEFORE["messages"], user(text(60, "more"))], **fields}


GREW = {**BEFORE, "messages": [user(HELLO), assistant(SAID, text(50, "and more"))]}
MOVED_BREAKPOINT = {
    **on(),
    "system": [marked(SYSTEM)],
    "messages": [*BEFORE["messages"], user(marked(text(60, "more")))],
}
UNNAMED = [
    {"max_tokens": 5},
    {"temperature": 0.5},
    {"metadata": {"user_id": "u"}},
    {"tool_choice": None},
    {"cache_control": {"type": "ephemeral"}},
]


@pytest.mark.parametrize("after", [BEFORE, on(), GREW, MOVED_BREAKPOINT, *(on(**fields) for fields in UNNAMED)])
def test_a_request_that_goes_on_has_no_reason(after: Body) -> None:
    assert told(BEFORE, after) is None


CHANGED = [
    ("model_changed", on(model="claude-opus-4-5", tools=[], system=[]), 800 + 400 + 300),
    ("tools_changed", on(tools=[tool(801)], system=[]), 800 + 400 + 300),
    ("tools_changed", on(tools=[tool(800), tool(900, "g")]), 400 + 300),
    ("tools_changed", on(tools=None), 800 + 400 + 300),
    ("system_changed", on(system=[SYSTEM, text(90, "new")]), 300),
    ("system_changed", on(system=[text(400, "other")], tool_choice={"type": "any"}), 400 + 300),
    ("messages_changed", on(messages=[user(HELLO), assistant(text(100, "other"))]), 100),
    ("messages_changed", on(messages=[user(HELLO)]), 100),
    ("messages_changed", on(messages=[user(text(200, "x"))]), 300),
]


@pytest.mark.parametrize(("kind", "after", "size"), CHANGED)
def test_the_earliest_difference_and_what_of_the_old_prompt_comes_after_it(kind: str, after: Body, size: int) -> None:
    assert told(BEFORE, after) == {"type": kind, "cache_missed_input_tokens": size // 4}


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"output_config": {"effort": "low"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"output_format": {"type": "json_schema", "schema": {}}},
        {"context_management": {"edits": []}},
        {"speed": "fast"},
    ],
)
def test_what_the_api_does_not_name_is_unavailable(fields: Body) -> None:
    assert told(BEFORE, on(**fields)) == {"type": "unavailable"}
    assert told(on(**fields), on(**fields)) is None


def diagnostics_of(meter: Meter, name: str, previous: str | None, workspace: str = "w") -> Any:
    """What the meter says of a call under this id, which names a previous one."""
    call = ClientCall(name, BEFORE, workspace, START, wants_diagnostics=True, previous=previous)
    charge = meter.charge(call, ModelAnswer([]))
    assert isinstance(charge, CallCharge)
    return charge.diagnostics


MISSING = {"cache_miss_reason": {"type": "previous_message_not_found"}}


def test_only_a_message_of_the_same_workspace_is_found() -> None:
    meter = Served().meter
    assert diagnostics_of(meter, "msg_1", None) is None
    assert diagnostics_of(meter, "msg_2", "msg_1", "other") == MISSING
    assert diagnostics_of(meter, "msg_3", "msg_2") == MISSING
    assert diagnostics_of(meter, "msg_4", "msg_1") is None


def test_the_oldest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.live.server.state.MOST_KEPT", 2)
    meter = Served().meter
    for number in range(3):
        diagnostics_of(meter, f"msg_{number}", None)
    assert diagnostics_of(meter, "msg_3", "msg_1") == MISSING
    assert diagnostics_of(meter, "msg_4", "msg_3") is None
