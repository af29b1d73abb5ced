"""All faults by name, the healthy logs that they are planted into, and pairs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from planted import (
    breakpoint_faults,
    message_faults,
    parameter_faults,
    recorded_faults,
    system_faults,
    time_faults,
    tool_faults,
)
from planted.fault import Fault
from planted.logs import (
    STRIPS,
    Log,
    agents,
    chat,
    fan_out,
    fan_out_with_tools,
    long_turn,
    loop,
    loop_with_one_breakpoint,
    one_shots,
)
from planted.recorded import recorded

_BASES: Mapping[str, Callable[[], Log]] = {
    "loop": loop,
    "loop with thinking": lambda: loop(thinking=12),
    "loop on sonnet": lambda: loop(model=STRIPS, thinking=12),
    "parallel tools": lambda: loop(parallel=3, lines=30),
    "chat": chat,
    "sub-agents": agents,
    "one-shots": one_shots,
    "one-shots with tools": fan_out_with_tools,
    "fan-out": fan_out,
    "long turn": long_turn,
    "loop with one breakpoint": loop_with_one_breakpoint,
    "recorded": lambda: recorded("claude-code.jsonl", recorded_faults.CALLS),
    "recorded, 56 minutes": lambda: recorded("claude-code-56-minutes.jsonl", recorded_faults.CALLS),
}


@cache
def base_of(name: str) -> Log:
    """A healthy log by its name; never changed."""
    return _BASES[name]()


FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in [
        *tool_faults.tools_of("loop"),
        *system_faults.system_of("loop"),
        *system_faults.system_of("chat", ", chat"),
        *message_faults.messages_of("loop"),
        *message_faults.messages_of("chat", ", chat"),
        message_faults.inserted_into("loop"),
        message_faults.inserted_into("chat", ", chat"),
        *message_faults.messages_of("loop on sonnet", ", thinking dropped"),
        *message_faults.more_messages_of("loop with thinking"),
        *message_faults.more_messages_of("loop on sonnet", ", on sonnet"),
        message_faults.COMPACTION,
        message_faults.FORK,
        *parameter_faults.parameters_of("loop"),
        *parameter_faults.OTHERS,
        *time_faults.FAULTS,
        *breakpoint_faults.missing_of("loop", "tools.0"),
        *breakpoint_faults.missing_of("chat", "system.0", ", chat"),
        *breakpoint_faults.placed_of("loop"),
        *breakpoint_faults.ONE_SHOTS,
        *recorded_faults.faults_of("recorded", first_is_long=True),
        *recorded_faults.faults_of("recorded, 56 minutes", first_is_long=False),
    ]
}
