"""Faults in the tools: other order, other keys, more or fewer of them."""

from __future__ import annotations

from planted.fault import ALL, Fault, changed, since
from planted.logs import (
    Body,
    text,
)


def swap_tools(body: Body, _: int) -> None:
    one, two, *others = body["tools"]
    body["tools"] = [two, one, *others]


def sort_schema(body: Body, _: int) -> None:
    properties = body["tools"][1]["input_schema"]["properties"]
    body["tools"][1]["input_schema"]["properties"] = dict(reversed(properties.items()))


def add_tool(body: Body, _: int) -> None:
    more = {"name": "late", "description": text("late", 60)["text"], "input_schema": {"type": "object"}}
    body["tools"].append(more | {"cache_control": body["tools"][-1].pop("cache_control")})


def drop_tool(body: Body, _: int) -> None:
    del body["tools"][2]


def edit_tool(body: Body, _: int) -> None:
    body["tools"][2]["description"] = body["tools"][2]["description"].replace("tool 2-1 ", "tool 2-I ")


def drop_all_tools(body: Body, _: int) -> None:
    del body["tools"]


def tools_of(base: str, tail: str = "") -> list[Fault]:
    return [
        Fault("tools reordered" + tail, ("CC105",), base, (5,), "tools.0", since(5, swap_tools)),
        Fault("tools alternate" + tail, ("CC105",), base, ALL, "tools.0", changed(range(2, 11, 2), swap_tools)),
        Fault("schema keys reordered" + tail, ("CC105",), base, (5,), "tools.1", since(5, sort_schema)),
        Fault("tool text changed" + tail, ("CC105",), base, (5,), "tools.2", since(5, edit_tool)),
        Fault("tool added" + tail, ("CC105",), base, (5,), "tools.4", since(5, add_tool), since(1, add_tool)),
        Fault("tool gone and back" + tail, ("CC105",), base, (5, 7), "tools.2", changed((5, 6), drop_tool)),
        Fault("no tools once" + tail, ("CC105",), base, (5, 6), "system.0", changed((5,), drop_all_tools)),
    ]
