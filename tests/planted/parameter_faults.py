"""Faults in parameters: model, speed, tool choice, format, thinking, effort, images, workspace."""

from __future__ import annotations

import json

from planted.fault import ALL, Change, Fault, both, changed, last_message, put, sendings, since
from planted.logs import Body, Sending, padded

SYSTEM, MESSAGES = "system.0", "messages.0.content.0"
FORMAT = {"type": "json_schema", "schema": {"type": "object", "properties": {"answer": {"type": "string"}}}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 40}}
SMALL_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
EVEN = range(2, 11, 2)


def parameter(name: str, code: str, base: str, block: str, once: bool, tail: str, **fields: object) -> Fault:
    """A parameter that is another one in call 5 alone, or from call 5 on."""
    plant = changed((5,), put(**fields)) if once else since(5, put(**fields))
    return Fault(name + tail, (code,), base, (5, 6) if once else (5,), block, plant)


def alternating(name: str, code: str, base: str, block: str, **fields: object) -> Fault:
    return Fault(name, (code,), base, ALL, block, changed(EVEN, put(**fields)))


def parameters_of(base: str, tail: str = "") -> list[Fault]:
    budget = {"type": "adaptive"}
    return [
        parameter("tool choice", "CC201", base, MESSAGES, False, tail, tool_choice={"type": "any"}),
        parameter(
            "tool choice once", "CC201", base, MESSAGES, True, tail, tool_choice={"type": "tool", "name": "tool_2"}
        ),
        parameter("format once", "CC205", base, SYSTEM, True, tail, output_config={"format": FORMAT}),
        parameter("format from", "CC205", base, SYSTEM, False, tail, output_config={"format": FORMAT}),
        parameter("thinking on", "CC210", base, MESSAGES, False, tail, thinking=budget),
        parameter("thinking once", "CC210", base, MESSAGES, True, tail, thinking=budget),
        parameter("effort low", "CC215", base, MESSAGES, False, tail, output_config={"effort": "low"}),
        parameter("effort once", "CC215", base, MESSAGES, True, tail, output_config={"effort": "low"}),
    ]


# ------------------------------------------------------------------------------------------- model, speed, workspace


def models(calls: range, base_model: str, model: str) -> tuple[Change, Change]:
    """Another model for these calls, and the same calls with the cache of the first model at their own prices."""

    def switch(sending: Sending, _: int) -> None:
        sending.body["model"] = model

    def stay(sending: Sending, call: int) -> None:
        switch(sending, call)
        sending.cached_as = base_model

    return sendings(calls, switch), sendings(calls, stay)


def switched(name: str, base: str, calls: range, expected: tuple[int, ...], pair: tuple[str, str]) -> Fault:
    plant, stay = models(calls, *pair)
    first = "system.0" if base == "chat" else "tools.0"
    return Fault(name, ("CC101",), base, expected, first, plant, stay, echo=(6,))


def _hurry(sending: Sending, _: int) -> None:
    sending.body["speed"] = "fast"


def _hurry_cached(sending: Sending, _: int) -> None:
    sending.body["speed"] = "fast"
    sending.cached_as = sending.body["model"]


def _move(sending: Sending, _: int) -> None:
    sending.workspace = "other"


def draw(at: int) -> Change:
    """An image in the last message of call `at` and since."""
    return since(at, lambda body, _: body["messages"][last_message(at)]["content"].insert(0, dict(IMAGE)))


def draw_in_words(at: int) -> Change:
    """As many bytes as the image, without the flag."""
    size = len(json.dumps(IMAGE, separators=(",", ":")))
    return since(at, lambda body, _: body["messages"][last_message(at)]["content"].insert(0, padded(size)))


def small_image_first(body: Body, _: int) -> None:
    body["messages"][0]["content"].insert(0, dict(SMALL_IMAGE))


PAIR = ("claude-opus-4-8", "claude-opus-4-7")
STRIPPED_PAIR = ("claude-sonnet-4-5", "claude-sonnet-4-6")

OTHERS = [
    switched("model switched", "loop", range(5, 1000), (5,), PAIR),
    switched("model once", "loop", range(5, 6), (5,), PAIR),
    switched("model alternates", "loop", range(2, 1000, 2), ALL, PAIR),
    switched("cheaper model", "loop", range(5, 1000), (5,), ("claude-opus-4-8", "claude-sonnet-4-6")),
    switched("model switched, chat", "chat", range(5, 1000), (5,), PAIR),
    switched("model switched, thinking dropped", "loop on sonnet", range(5, 1000), (5,), STRIPPED_PAIR),
    Fault(
        "fast from",
        ("CC102",),
        "loop",
        (5,),
        "tools.0",
        sendings(range(5, 1000), _hurry),
        sendings(range(5, 1000), _hurry_cached),
        lambda log: log,
    ),
    Fault(
        "first image late",
        ("CC220",),
        "loop",
        (5,),
        MESSAGES,
        draw(5),
        both(draw(5), since(1, small_image_first)),
        draw_in_words(5),
    ),
    Fault("tool choice alternates", ("CC201",), "loop", ALL, MESSAGES, changed(EVEN, put(tool_choice={"type": "any"}))),
    alternating("effort alternates", "CC215", "loop", MESSAGES, output_config={"effort": "low"}),
    alternating("format alternates", "CC205", "loop", SYSTEM, output_config={"format": FORMAT}),
    alternating("thinking alternates", "CC210", "loop", MESSAGES, thinking={"type": "adaptive"}),
    Fault(
        "thinking on, after thinking",
        ("CC210",),
        "loop with thinking",
        (5,),
        MESSAGES,
        since(5, put(thinking={"type": "adaptive"})),
    ),
    Fault(
        "workspace switched",
        ("CC103", "CC101", "CC310", "CC900"),
        "loop",
        (5,),
        "tools.0",
        sendings(range(5, 1000), _move),
    ),
]
