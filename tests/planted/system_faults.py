"""Faults in the system prompt: clocks, edits, edits that are taken back."""

from __future__ import annotations

from copy import deepcopy

from planted.fault import ALL, Edit, Fault, as_is, both, changed, last_message, since
from planted.logs import (
    Body,
    append_block,
    bare,
)


def edit_system(body: Body, _: int) -> None:
    body["system"][1]["text"] = "In another folder. " + body["system"][1]["text"]


def send_edited_system(call: int) -> Edit:
    """The changed block as new content of the call in which it changed."""

    def change(body: Body, _: int) -> None:
        edited = deepcopy(body)
        edit_system(edited, 0)
        append_block(body, last_message(call), bare(edited["system"][1]))

    return change


def send_first_system(call: int) -> Edit:
    return lambda body, _: append_block(body, last_message(call), bare(body["system"][1]))


def clock(body: Body, call: int) -> None:
    body["system"][1]["text"] = f"Current time: 12:{call:02d}. " + body["system"][1]["text"]


def clock_in_front(body: Body, call: int) -> None:
    body["system"].insert(0, {"type": "text", "text": f"Current time: 12:{call:02d}."})


def first_clock(body: Body, _: int) -> None:
    clock(body, 1)


def clock_in_messages(body: Body, call: int) -> None:
    """The block of the system prompt as first sent; what it became, in each message since."""
    at = [deepcopy(body) for _ in range(2, call + 1)]
    for number, copy in enumerate(at, 2):
        clock(copy, number)
        append_block(body, last_message(number), bare(copy["system"][1]))
    first_clock(body, 1)


def front_clock_in_messages(body: Body, call: int) -> None:
    for number in range(2, call + 1):
        append_block(body, last_message(number), {"type": "text", "text": f"Current time: 12:{number:02d}."})
    clock_in_front(body, 1)


def first_clock_in_front(body: Body, _: int) -> None:
    clock_in_front(body, 1)


def system_of(base: str, tail: str = "") -> list[Fault]:
    reverted = both(since(5, send_edited_system(5)), since(7, send_first_system(7)))
    code = ("CC110",)
    return [
        Fault(
            "clock in system" + tail,
            code,
            base,
            ALL,
            "system.1",
            since(1, clock),
            since(1, clock_in_messages),
            since(1, first_clock),
        ),
        Fault(
            "clock first in system" + tail,
            code,
            base,
            ALL,
            "system.0",
            since(1, clock_in_front),
            since(1, front_clock_in_messages),
            since(1, first_clock_in_front),
        ),
        Fault(
            "system edited" + tail,
            code,
            base,
            (5,),
            "system.1",
            since(5, edit_system),
            since(5, send_edited_system(5)),
            as_is,
        ),
        Fault(
            "system edited and reverted" + tail,
            code,
            base,
            (5, 7),
            "system.1",
            changed((5, 6), edit_system),
            reverted,
            as_is,
        ),
    ]
