"""Faults planted into recordings without content: other digests, other blocks, other times."""

from __future__ import annotations

from planted.breakpoint_faults import no_breakpoint, no_message_breakpoint, place_before
from planted.fault import Fault, both, changed, last_message, put, since
from planted.logs import Body, append_block, bare, place, place_last
from planted.parameter_faults import FORMAT, models
from planted.recorded import block_of
from planted.time_faults import paused

FIRST = 8
"""The call that is different."""
CALLS = 14
MODELS = ("claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219")


def new_block(name: str, size: int, kind: str = "text") -> Body:
    return block_of(kind, name.encode().hex().ljust(32, "0")[:32], size)


def edit_system(body: Body, call: int) -> None:
    _other(body["system"][1], "system")


def edit_system_each_time(body: Body, call: int) -> None:
    _other(body["system"][1], f"system {call}")


def edit_result(body: Body, _: int) -> None:
    _other(body["messages"][2]["content"][0], "result")


def _other(block: Body, name: str) -> None:
    """Another block of the same kind and size."""
    block |= new_block(name, block["size"], block["type"])


def send_system(body: Body, _: int) -> None:
    append_block(body, last_message(FIRST), new_block("system", body["system"][1]["size"]))


def send_system_each_time(body: Body, call: int) -> None:
    for number in range(2, call + 1):
        append_block(body, last_message(number), new_block(f"system {number}", body["system"][1]["size"]))


def send_result(body: Body, _: int) -> None:
    block = body["messages"][2]["content"][0]
    append_block(body, last_message(FIRST), new_block("result", block["size"], block["type"]))


def insert(body: Body, _: int) -> None:
    said = [
        {"role": "assistant", "content": [new_block("said", 300)]},
        {"role": "user", "content": [new_block("ok", 90)]},
    ]
    body["messages"][3:3] = said


def send_inserted(body: Body, _: int) -> None:
    append_block(body, last_message(FIRST), new_block("said", 300))
    append_block(body, last_message(FIRST), new_block("ok", 90))


def drop_exchange(body: Body, _: int) -> None:
    del body["messages"][1:3]


def enclose(body: Body, _: int) -> None:
    content = body["messages"][last_message(FIRST)]["content"]
    content += [new_block(f"enclosed {number}", 60) for number in range(30)]
    place_last(body)


def remind(body: Body, call: int) -> None:
    body["messages"][-1]["content"] = [*bare(body["messages"][-1]["content"]), place(new_block(f"remind {call}", 200))]


def remind_and_place(body: Body, call: int) -> None:
    remind(body, call)
    body["messages"][-1]["content"][-2] |= {"cache_control": {"type": "ephemeral"}}


def remind_after(body: Body, call: int) -> None:
    remind_and_place(body, call)
    del body["messages"][-1]["content"][-1]["cache_control"]


def as_before(body: Body, _: int) -> None:
    """For the last call the breakpoint of the call before is enough."""
    no_message_breakpoint(body, 0)
    body["messages"][-3]["content"][-1] |= {"cache_control": {"type": "ephemeral"}}


def faults_of(base: str, first_is_long: bool) -> list[Fault]:
    """A short first message is not worth a breakpoint."""
    system, messages, second = "system.0", "messages.0.content.0", "messages.2.content.0"
    at, once = (FIRST,), (FIRST, FIRST + 1)
    many = tuple(range(4, CALLS + 1))
    begin = since(FIRST, enclose)
    last = changed((CALLS,), as_before)

    def fault(name: str, code: str, *facts: object, **more: object) -> Fault:
        return Fault(f"{name}, {base}", tuple(code.split()), base, *facts, **more)  # type: ignore[arg-type]

    def parameter(name: str, code: str, block: str = messages, **fields: object) -> Fault:
        return fault(name, code, at, block, since(FIRST, put(**fields)))

    def parameter_once(name: str, code: str, block: str = messages, **fields: object) -> Fault:
        return fault(name, code, once, block, changed(at, put(**fields)))

    def as_is(log: list[object]) -> list[object]:
        return log

    return [
        fault("system", "CC110", at, "system.1", since(FIRST, edit_system), since(FIRST, send_system), as_is),
        fault(
            "volatile system",
            "CC110",
            many,  # sending the new prompt costs the first calls more than reading the short conversation saves
            "system.1",
            since(2, edit_system_each_time),
            since(2, send_system_each_time),
            as_is,
            echo=(2, 3),
        ),
        fault("old result", "CC120", at, second, since(FIRST, edit_result), since(FIRST, send_result), as_is),
        fault(
            "inserted", "CC120", at, "messages.3.content.0", since(FIRST, insert), since(FIRST, send_inserted), as_is
        ),
        fault("dropped", "CC120", at, "messages.1.content.0", since(FIRST, drop_exchange)),
        parameter("tool choice", "CC201", tool_choice={"type": "any"}),
        parameter_once("tool choice once", "CC201", tool_choice={"type": "any"}),
        parameter_once("format once", "CC205", system, output_config={"format": FORMAT}),
        parameter("thinking", "CC210", thinking={"type": "enabled", "budget_tokens": 4096}),
        fault("model", "CC101", at, system, *models(range(FIRST, 1000), *MODELS)),
        fault("7 minutes", "CC301", at, system, paused(7, FIRST), by_policy=True),
        fault("20 minutes", "CC301", (5, 9, 13), system, paused(20, 5, 9, 13), by_policy=True),
        fault("no breakpoint once", "CC403", at, system, changed(at, no_breakpoint), echo=(FIRST + 1,)),
        fault(
            "no message breakpoint", "CC403", many, messages, since(1, no_message_breakpoint), spare=last, echo=(2, 3)
        ),
        fault("thirty blocks", "CC401", at, messages, begin, both(begin, changed(at, place_before))),
        fault(
            "reminder",
            "CC402 CC405",
            many,
            messages,
            since(1, remind),
            since(1, remind_and_place) if first_is_long else both(changed((1,), remind), since(2, remind_and_place)),
            since(1, remind_after),
            echo=(2, 3),
        ),
    ]
