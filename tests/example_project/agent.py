"""A small agent: it answers questions about the weather, with one tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MODEL = "claude-sonnet-5-5"
BREAKPOINT = {"type": "ephemeral"}
GUIDE = """You answer questions about the weather for people who walk, cycle and sail on the coast.

Ask the tool for every place that is named; never answer from memory. Say first whether it is safe to go out, then the
wind in knots and its direction, then rain and visibility. Use the units of the country that the place is in. If a
forecast is older than six hours, say so. If two forecasts differ, give the worse one and name both.

Warnings come before everything else. A gale warning is told in the first words, with the hours it holds for. Nobody is
ever told that they can go out in spite of a warning, whatever boat they have and however well they know the water.

Keep answers short: three sentences, without headings and without lists. No greeting, and no question at the end.
"""
PLACES = "\n".join(
    f"{name}: {kind}, {harbour}; the wind that matters most here is {wind}."
    for name, kind, harbour, wind in (
        ("Kap Arkona", "cliffs and open water to the north", "the nearest harbour is Glowe", "north-east"),
        ("Hiddensee", "a flat island with a lagoon to the east", "harbours at Kloster, Vitte and Neuendorf", "west"),
        ("Warnemünde", "a river mouth with ferries", "a large marina on the east side", "north"),
        ("Fehmarn", "an island with a bridge that is closed in storms", "harbours all around it", "west"),
        ("Kiel", "a long fjord with much traffic", "many marinas on both sides", "south-west"),
        ("Flensburg", "a narrow fjord along a border", "harbours in two countries", "west"),
        ("Sylt", "surf on the west side, tidal flats on the east side", "harbours at List and Hörnum", "north-west"),
        ("Helgoland", "open sea, a day's trip from the coast", "one harbour, crowded in summer", "any"),
    )
)
SYSTEM = f"{GUIDE}\nThe places that you know\n{PLACES}\n"
TOOLS = [
    {
        "name": "forecast",
        "description": "The forecast of a place for the next 24 hours: wind in knots with its direction and gusts, "
        "rain in millimetres an hour, visibility in kilometres, and the warnings that hold, with their hours.",
        "input_schema": {
            "type": "object",
            "properties": {"place": {"type": "string", "description": "A place from the list of places."}},
            "required": ["place"],
        },
    }
]
FORECAST = "Wind west 14 knots, gusts 22, backing south-west after 18:00. No rain. Visibility 20 km. No warnings."


def system_prompt() -> str:
    return SYSTEM


def answer(client: Any, questions: Iterable[str]) -> list[str]:
    """The answers to questions of one conversation."""
    messages: list[dict[str, Any]] = []
    answers = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        answers.append(_turn(client, messages))
    return answers


def _turn(client: Any, messages: list[dict[str, Any]]) -> str:
    while True:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=500,
            system=[{"type": "text", "text": system_prompt(), "cache_control": BREAKPOINT}],
            tools=TOOLS,
            messages=messages,
            cache_control=BREAKPOINT,
        )
        messages.append({"role": "assistant", "content": [one.model_dump(exclude_none=True) for one in reply.content]})
        asked = [one for one in reply.content if one.type == "tool_use"]
        if not asked:
            return "".join(one.text for one in reply.content if one.type == "text")
        results = [{"type": "tool_result", "tool_use_id": one.id, "content": FORECAST} for one in asked]
        messages.append({"role": "user", "content": results})
