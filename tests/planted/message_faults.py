"""Faults in earlier messages: edited, inserted, dropped, compacted."""

from __future__ import annotations

from copy import deepcopy

from cachecost.base.structs import replace
from planted.fault import Edit, Fault, as_is, both, changed, last_message, since
from planted.logs import (
    Body,
    Log,
    append_block,
    assistant,
    bare,
    copied,
    exchange,
    in_order,
    place,
    place_last,
    text,
    unplace,
    user,
)


def first_text(body: Body, at: int) -> Body:
    """The first text or tool result of a message."""
    found: Body = next(block for block in body["messages"][at]["content"] if block["type"] != "thinking")
    return found


def edit(body: Body, at: int) -> None:
    block = first_text(body, at)
    field = "text" if block["type"] == "text" else "content"
    block[field] = block[field].replace("-3 ", "-E ", 1)


def edit_at(at: int) -> Edit:
    return lambda body, _: edit(body, at)


def send_edited(at: int, call: int) -> Edit:
    """The message as first sent; the edited block as new content of the call that edited it."""

    def change(body: Body, _: int) -> None:
        edited = deepcopy(body)
        edit(edited, at)
        append_block(body, last_message(call), bare(first_text(edited, at)))

    return change


def insert_messages(body: Body, _: int) -> None:
    body["messages"][3:3] = [assistant(text("a remark", 12)), user(text("all right", 8))]


def insert_exchange(body: Body, _: int) -> None:
    body["messages"][3:3] = exchange("extra", 0, lines=15)


def append_exchange(body: Body, _: int) -> None:
    for message in exchange("extra", 0, lines=15):
        for block in message["content"]:
            append_block(body, last_message(5), block)


def append_remark(call: int) -> Edit:
    def change(body: Body, _: int) -> None:
        append_block(body, last_message(call), text("a remark", 12))
        append_block(body, last_message(call), text("all right", 8))

    return change


def drop_note(body: Body, _: int) -> None:
    """The first block of the first message, unless it is the only one."""
    body["messages"][0]["content"][:-1] = body["messages"][0]["content"][1:-1]


def drop_exchange(body: Body, _: int) -> None:
    del body["messages"][1:3]


def drop_thinking(body: Body, _: int) -> None:
    for message in body["messages"][:-2]:
        message["content"] = [block for block in message["content"] if block["type"] != "thinking"]


def swap_keys(body: Body, _: int) -> None:
    use = next(block for block in body["messages"][1]["content"] if block["type"] == "tool_use")
    use["input"] = dict(reversed(use["input"].items()))


def compact(body: Body, _: int) -> None:
    """Before call 8, a summary instead of all but the last exchange."""
    body["messages"] = [user(text("in short", 40)), *body["messages"][last_message(8) - 1 :]]


def only_last(body: Body, _: int) -> None:
    """A breakpoint on the last block, and no other."""
    unplace(body, "tools")
    unplace(body, "system")
    place_last(body)


def place_on_system(body: Body, _: int) -> None:
    body["system"][-1] = place(body["system"][-1])


def messages_of(base: str, tail: str = "") -> list[Fault]:
    code = ("CC120",)
    return [
        Fault(
            "old message edited" + tail,
            code,
            base,
            (5,),
            "messages.2.content.0",
            since(5, edit_at(2)),
            since(5, send_edited(2, 5)),
            as_is,
        ),
        Fault(
            "first message edited" + tail,
            code,
            base,
            (5,),
            "messages.0.content.0",
            since(5, edit_at(0)),
            since(5, send_edited(0, 5)),
            as_is,
        ),
        Fault("block dropped" + tail, code, base, (5,), "messages.0.content.0", since(5, drop_note)),
    ]


def inserted_into(base: str, tail: str = "") -> Fault:
    """A person's message among older ones: a model that drops thinking would drop it before there."""
    return Fault(
        "message inserted" + tail,
        ("CC120",),
        base,
        (5,),
        "messages.3.content.0",
        since(5, insert_messages),
        since(5, append_remark(5)),
        as_is,
    )


def more_messages_of(base: str, tail: str = "") -> list[Fault]:
    """Of loops with thinking."""
    code = ("CC120",)
    return [
        Fault(
            "exchange inserted" + tail,
            code,
            base,
            (5,),
            "messages.3.content.0",
            since(5, insert_exchange),
            since(5, append_exchange),
            as_is,
        ),
        Fault("tool use keys reordered" + tail, code, base, (5,), "messages.1.content.2", since(5, swap_keys)),
        Fault("exchange dropped" + tail, code, base, (5,), "messages.1.content.0", since(5, drop_exchange)),
        Fault(
            "thinking dropped" + tail, code, base, (5, 6, 7, 8, 9, 10), "messages.1.content.0", since(5, drop_thinking)
        ),
    ]


def ask_again(log: Log) -> Log:
    """The last question of a chat is asked again in other words: the answer before it is not cached."""
    log = in_order(copied(log))
    again = replace(copied(log)[-1], start=log[-1].start + 30)
    again.body["messages"][-1]["content"][0]["text"] = "Once more. " + text("note", 5)["text"]
    return [*log, again]


def place_before_question(body: Body, _: int) -> None:
    body["messages"][-2]["content"][-1] = place(body["messages"][-2]["content"][-1])


FORK = Fault(
    "last question asked again",
    ("CC122",),
    "chat",
    (),
    "",
    ask_again,
    both(ask_again, changed((10, 11), place_before_question)),
    ask_again,
    echo=(11,),
)
COMPACTION = Fault(
    "compaction, no breakpoint on system",
    ("CC121", "CC402", "CC403"),
    "loop with one breakpoint",
    (8,),
    "tools.0",
    since(8, compact),
    both(since(1, place_on_system), since(8, compact)),
)
