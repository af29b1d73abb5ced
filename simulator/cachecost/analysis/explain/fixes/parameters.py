"""The same parameters in all calls of a conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from cachecost.analysis.explain.fixes.conversations import replaced, with_losses
from cachecost.analysis.explain.fixes.fix import Fix, FixContext, MakeFixes
from cachecost.analysis.explain.fixes.threads import ThreadCorrections
from cachecost.analysis.replays.steps import ReplayStep
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Message, Thread, given_block

Parameter = tuple[Callable[[Call], Any], Callable[..., Call]]
"""How a parameter is read from a call, and how it is set."""


def same_parameter(parameter: Parameter, keeps_prices: bool = False, words: str = "") -> MakeFixes:
    """Fixes that send the first value of each conversation in all its calls, or the one that most calls have.

    `words` name that value, if it is one for all conversations.
    """
    return partial(_same_values, parameter=parameter, keeps_prices=keeps_prices, words=words)


def _same_values(
    context: FixContext, losses: Sequence[Loss], parameter: Parameter, keeps_prices: bool, words: str
) -> Iterator[Fix]:
    read, put = parameter
    conversations = list(with_losses(context, losses).values())
    known: list[list[Any]] = []
    for pick in (first_value, most_common_value):
        values = [pick([read(step.call) for step in steps]) for steps in conversations]
        if values not in known:
            known.append(values)
            changed = [
                step.with_change(partial(put, value=value))
                for steps, value in zip(conversations, values, strict=True)
                for step in steps
            ]
            named = words.format(values[0]) if len(set(map(repr, values))) == 1 else ""
            yield Fix(replaced(context.steps, changed), named, keeps_prices)


def first_value(values: Sequence[Any]) -> Any:
    return values[0]


def most_common_value(values: Sequence[Any]) -> Any:
    """The most frequent value, of equals the first."""
    counted = Counter(map(repr, values))
    most = max(counted.values())
    return next(one for one in values if counted[repr(one)] == most)


def body_field(*path: str) -> Parameter:
    """A field of the request's body, by its path."""
    return partial(_read_field, path=path), partial(_put_field, path=path)


def _read_field(call: Call, path: Sequence[str]) -> Any:
    found: Any = call.request.params
    for name in path:
        found = (found or {}).get(name)
    return found


def _put_field(call: Call, value: Any, path: Sequence[str]) -> Call:
    if _read_field(call, path) == value:
        return call
    params = _with_field(call.request.params, path, value)
    return replace(call, request=replace(call.request, params=params))


def _with_field(fields: Any, path: Sequence[str], value: Any) -> dict[str, Any]:
    """The fields with one set; None and empty ones are left out."""
    name, *rest = path
    made = dict(fields or {})
    made[name] = _with_field(made.get(name), rest, value) if rest else value
    return {key: one for key, one in made.items() if one is not None and one != {}}


def _read_model(call: Call) -> str:
    return call.request.model


def _put_model(call: Call, value: str) -> Call:
    return replace(call, request=replace(call.request, model=value))


def _read_place(call: Call) -> tuple[str, str | None]:
    return call.workspace, call.host


def _put_place(call: Call, value: tuple[str, str | None]) -> Call:
    return replace(call, workspace=value[0], host=value[1])


MODEL: Parameter = _read_model, _put_model
PLACE: Parameter = _read_place, _put_place
STAY_ON = "stay on {} for the whole conversation, or start a side conversation for the other model"
CHOICE, THINKING, SPEED = body_field("tool_choice"), body_field("thinking"), body_field("speed")
EFFORT, FORMAT = body_field("output_config", "effort"), body_field("output_config", "format")


def image_from_the_start(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A tiny image in the first message of each conversation, so that a later one changes nothing."""
    corrections, changed = ThreadCorrections(), list[ReplayStep]()
    for steps in with_losses(context, losses).values():
        for step in steps:
            first = step.call.request.thread.up_to(1)
            corrections.put({first: _with_image(first)})
            changed.append(step.with_change(lambda call: replace(call, request=corrections.request(call.request))))
    yield Fix(replaced(context.steps, changed))


def _with_image(first: Thread) -> Thread:
    assert first.message is not None and first.parent is not None
    image = replace(given_block("image", first.message.role, "a tiny image", 1), has_image=True)
    return first.parent.then(Message.of(first.message.role, (image, *first.message.blocks)))
