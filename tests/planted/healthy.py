"""Shapes of logs that are as they should be, though a call in them reads nothing or writes for nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cachecost.base.structs import replace
from planted.fault import put, since
from planted.logs import (
    STRIPS,
    Body,
    Log,
    agents,
    bare,
    chat,
    copied,
    fan_out,
    in_order,
    loop,
    one_shots,
    place_last,
    system,
    text,
    tools,
    unplace,
    user,
)
from planted.policies import hourly
from planted.time_faults import paused


def retried() -> Log:
    """The fifth call fails and is sent again 3 s later; the eighth is sent twice, the answer was cut off."""
    log = loop()
    failed = replace(log[4], status=529)
    for sending in log[4:]:
        sending.start += 3
    again = replace(log[7], start=log[7].start + 8)
    return in_order([*copied(log), replace(failed, start=failed.start), again])


def forked() -> Log:
    """From the sixth call's state the conversation goes on in another way."""
    log = loop()
    branch = copied([*loop(6), *loop(9)[6:]])[6:]
    for number, sending in enumerate(branch):
        sending.start += 130 + 20 * number
        for at in range(11, len(sending.body["messages"])):
            sending.body["messages"][at] = bare(_other(sending.body["messages"][at]))
        place_last(sending.body)
    return in_order([*log, *branch])


def _other(message: Body) -> Body:
    content = [
        {**block, "text": "Another way. " + block["text"]} if block["type"] == "text" else dict(block)
        for block in message["content"]
    ]
    return {**message, "content": content}


def overnight() -> Log:
    return paused(20 * 60, 6)(loop())


def weekend_chat() -> Log:
    return paused(60 * 60, 4)(paused(14 * 60, 8)(chat()))


def parallel_agents() -> Log:
    """Three sub-agents start at once, each kind with tools and a system prompt of its own."""
    subs = [
        loop(5, topic=f"sub {n}", begin=25.0, every=10.0, tools=tools(f"kind {n}", 3), system=system(f"kind {n}"))
        for n in range(3)
    ]
    return in_order([*loop(6, every=30.0), *subs[0], *subs[1], *subs[2]])


def titles() -> Log:
    """A short call without cache on another model beside each turn of a chat."""
    log = chat(6)
    for number in range(6):
        ask = {"role": "user", "content": [text(f"title for {number}", 10)]}
        body = {"model": "claude-sonnet-4-6", "max_tokens": 20, "messages": [ask]}
        log.append(replace(log[number], body=body, start=log[number].start + 1))
    return in_order(log)


def automatic() -> Log:
    """The breakpoint of the messages is the API's."""
    log = chat()
    for sending in log:
        unplace(sending.body)
        sending.body["cache_control"] = {"type": "ephemeral"}
    return log


def asked_in_between() -> Log:
    """A person speaks after the fourth exchange, on a model that then drops the thinking of the turns before."""
    question = text("and what about", 30)
    return since(5, lambda body, _: append_human(body, question))(loop(8, model=STRIPS, thinking=12))


def append_human(body: Body, question: Body) -> None:
    content = body["messages"][8]["content"]
    moved = content[-1].pop("cache_control", None)
    content.append(dict(question) | ({"cache_control": moved} if moved else {}))


def two_projects() -> Log:
    """Two conversations with other system prompts, one after the other."""
    return [*loop(6), *loop(6, topic="two", begin=200.0, system=system("other project"))]


def side_question() -> Log:
    """A question with another output format in a conversation of its own, cached up to the system prompt only."""
    log = loop(6)
    aside = copied(loop(1, topic="aside", begin=55.0, output_config={"effort": "low"}))
    unplace(aside[0].body)
    return in_order([*log, *aside])


def short_question() -> Log:
    log = one_shots(1)
    del log[0].body["system"]
    return log


def two_workspaces() -> Log:
    """Two users with one prompt, whose workspaces share no cache."""
    others = loop(5, topic="two")
    return in_order([*loop(5), *(replace(sending, workspace="other") for sending in others)])


def helped(tools_of: list[Body], system_of: list[Body]) -> Callable[[], Log]:
    """A main loop, and in it a sub-agent with other tools, or another system prompt, or both."""
    own: Body = {"tools": tools_of, "system": system_of}
    return lambda: in_order([*loop(7, every=30.0), *loop(4, topic="sub", begin=70.0, every=8.0, **own)])


def rewound() -> Log:
    """After the seventh call the conversation goes on from the fourth in another way."""
    log = chat(7)
    back = copied(chat(9, topic="one"))[4:8]
    for number, sending in enumerate(back):
        sending.start = log[-1].start + 40 * (number + 1)
        for message in sending.body["messages"][7:]:
            message["content"][0]["text"] = "Instead: " + message["content"][0]["text"]
    return in_order([*log, *back])


def warmed() -> Log:
    """The static prefix is sent before the first question, without an answer."""
    log = loop(5, begin=10.0)
    first = copied(log)[0]
    messages = [user(text("warm", 1))]
    return [replace(first, body={**first.body, "messages": messages, "max_tokens": 0}, start=0.0), *log]


def without_cache() -> Log:
    """One-shots that share nothing and have no breakpoint."""
    log = one_shots(5)
    for number, sending in enumerate(log):
        sending.body["system"] = [text(f"task {number}", 300)]
    return log


SHAPES: Mapping[str, Callable[[], Log]] = {
    "a tool loop": loop,
    "a tool loop on a model that drops thinking": lambda: loop(model=STRIPS, thinking=12),
    "a tool loop that thinks": lambda: loop(thinking=12),
    "parallel tools": lambda: loop(parallel=3, lines=30),
    "a chat": chat,
    "a chat with pauses of 4 minutes": lambda: chat(every=240.0),
    "one call": lambda: loop(1),
    "one short question": short_question,
    "sub-agents of one kind": agents,
    "sub-agents in parallel, each with its own prefix": parallel_agents,
    "one-shots with a shared system prompt": one_shots,
    "a fan-out after the first token": fan_out,
    "a retry after an error": retried,
    "a fork where an entry lives": forked,
    "resumed overnight": overnight,
    "a chat over a weekend": weekend_chat,
    "1h TTL and pauses of 30 minutes": lambda: hourly(loop(every=1800.0), ("tools", "system", "messages")),
    "titles by another model": titles,
    "automatic caching": automatic,
    "a human message drops thinking": asked_in_between,
    "two projects": two_projects,
    "a sub-agent with another system prompt": helped(tools(), system("helper")),
    "a sub-agent with tools of its own": helped(tools("sub", 3), system()),
    "a sub-agent without tools": helped([], system("helper")),
    "rewound while entries live": rewound,
    "warmed before the first question": warmed,
    "one-shots that share nothing": without_cache,
    "a side question": side_question,
    "two users at once": lambda: in_order([*loop(5), *loop(5, topic="two", begin=2.0)]),
    "one parameter throughout": lambda: since(1, put(tool_choice={"type": "any"}))(loop()),
    "two workspaces": two_workspaces,
}
