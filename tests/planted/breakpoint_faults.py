"""Faults of breakpoints: none, on the wrong block, too far apart, too short, for nobody."""

from __future__ import annotations

from planted.fault import ALL, Edit, Fault, as_is, both, changed, last_message, since
from planted.logs import EPHEMERAL, Body, Log, padded, place, place_last, text, unplace
from planted.policies import bridged_by_the_hour
from planted.prices import cheapest
from planted.time_faults import paused

MESSAGES, TOOLS, SYSTEM = "messages.0.content.0", "tools.0", "system.0"
NOTES = [text(f"enclosed {number}", 4) for number in range(30)]
MINIMUM = 1024


def no_message_breakpoint(body: Body, _: int) -> None:
    unplace(body)


def no_breakpoint(body: Body, _: int) -> None:
    for layer in ("tools", "system", "messages"):
        if layer in body:
            unplace(body, layer)


def last_too(body: Body, _: int) -> None:
    place_last(body)


def enclose(calls: tuple[int, ...]) -> Edit:
    """Thirty texts in the last messages of these calls."""

    def change(body: Body, call: int) -> None:
        for number in calls:
            if number <= call:
                content = body["messages"][last_message(number)]["content"]
                content[len(content) :] = [dict(note, text=f"{number} {note['text']}") for note in NOTES]
        place_last(body)

    return change


def place_before(body: Body, call: int) -> None:
    """A breakpoint on the first block after what the call before had cached."""
    body["messages"][last_message(call) - 1]["content"][0]["cache_control"] = EPHEMERAL


def remind(body: Body, call: int) -> None:
    """The last message ends with a reminder that the next call does not have; it has the breakpoint."""
    unplace(body)
    body["messages"][-1]["content"].append(place(text(f"remember {call}", 5)))


def remind_and_place(body: Body, call: int) -> None:
    remind(body, call)
    body["messages"][-1]["content"][-2]["cache_control"] = EPHEMERAL


def remind_after(body: Body, call: int) -> None:
    remind_and_place(body, call)
    del body["messages"][-1]["content"][-1]["cache_control"]


def first_message_only(body: Body, _: int) -> None:
    unplace(body)
    body["messages"][0]["content"][-1]["cache_control"] = EPHEMERAL


def question_only(body: Body, call: int) -> None:
    unplace(body, "system")
    place_last(body)


def shorten(body: Body, _: int) -> None:
    """A system prompt of 800 bytes."""
    body["system"] = [place(padded(800))]


def lengthen(body: Body, _: int) -> None:
    body["system"] = [place(padded(MINIMUM))]


def own_system(body: Body, call: int) -> None:
    """A system prompt for each user; only its end has a breakpoint."""
    unplace(body, "tools")
    body["system"] = [place(text(f"user {call}", 20))]


def own_system_and_tools(body: Body, call: int) -> None:
    own_system(body, call)
    body["tools"][-1] = place(body["tools"][-1])


def tools_only(body: Body, call: int) -> None:
    own_system_and_tools(body, call)
    unplace(body, "system")


def as_in_the_call_before(body: Body, _: int) -> None:
    """The breakpoint of the call before and none after it: the last call of all need not write."""
    unplace(body)
    body["messages"][-3]["content"][-1]["cache_control"] = EPHEMERAL


def uncached_or_kept(log: Log) -> Log:
    return cheapest([since(1, no_breakpoint)(log), bridged_by_the_hour(log)])


def missing_of(base: str, first: str, tail: str = "") -> list[Fault]:
    """`first` is the first block of the prompt."""
    spare = changed((10,), as_in_the_call_before)
    once, code = ((5,), (6,)), ("CC403",)
    late, some = tuple(range(3, 11)), (2,)
    messages, nothing = since(1, no_message_breakpoint), since(1, no_breakpoint)
    behind, second = since(1, first_message_only), "messages.1.content.0"
    return [
        Fault(
            "no message breakpoint once" + tail,
            code,
            base,
            once[0],
            MESSAGES,
            changed((5,), no_message_breakpoint),
            echo=once[1],
        ),
        Fault("no breakpoint once" + tail, code, base, once[0], first, changed((5,), no_breakpoint), echo=once[1]),
        Fault("no message breakpoint" + tail, code, base, late, MESSAGES, messages, spare=spare, echo=some),
        Fault("no breakpoint" + tail, code, base, late, first, nothing, spare=spare, echo=some),
        Fault("breakpoint stays behind" + tail, code, base, late, second, behind, spare=spare, echo=some),
    ]


def placed_of(base: str, tail: str = "") -> list[Fault]:
    each = tuple(range(2, 11))
    return [
        Fault(
            "breakpoint on a reminder" + tail,
            ("CC402", "CC405"),
            base,
            ALL,
            MESSAGES,
            since(1, remind),
            since(1, remind_and_place),
            since(1, remind_after),
        ),
        Fault(
            "thirty blocks" + tail,
            ("CC401",),
            base,
            (5,),
            MESSAGES,
            since(1, enclose((5,))),
            both(since(1, enclose((5,))), changed((5,), place_before)),
        ),
        Fault(
            "thirty blocks each time" + tail,
            ("CC401",),
            base,
            each,
            MESSAGES,
            since(1, enclose(each)),
            both(since(1, enclose(each)), since(2, place_before)),
        ),
    ]


ONE_SHOTS = [
    Fault(
        "written for nobody",
        ("CC405",),
        "one-shots",
        tuple(range(1, 7)),
        MESSAGES,
        since(1, last_too),
    ),
    Fault(
        "only the question",
        ("CC403", "CC402", "CC405"),
        "one-shots",
        tuple(range(2, 7)),
        SYSTEM,
        since(1, question_only),
        since(1, last_too),
        as_is,
        echo=(1,),
    ),
    Fault("too short", ("CC404",), "one-shots", tuple(range(2, 7)), SYSTEM, since(1, shorten), since(1, lengthen)),
    Fault(
        "tools without a breakpoint",
        ("CC403", "CC402", "CC405"),
        "one-shots with tools",
        tuple(range(2, 7)),
        TOOLS,
        since(1, own_system),
        since(1, own_system_and_tools),
        since(1, tools_only),
        echo=(1,),
    ),
    Fault(
        "thinking dropped after a long turn",
        ("CC211", "CC401"),
        "long turn",
        (14,),
        "messages.1.content.1",
        changed((14,), last_too),
    ),
    Fault(
        "one-shots every 3 hours",
        ("CC405", "CC301"),
        "one-shots",
        (),
        "",
        paused(180, *range(2, 7)),
        both(paused(180, *range(2, 7)), uncached_or_kept),
        paused(180, *range(2, 7)),
        echo=tuple(range(1, 7)),
    ),
]
