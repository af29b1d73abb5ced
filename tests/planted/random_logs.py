"""Random logs: some conversations, some faults at random calls. A seed makes a log again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from cachecost.base.structs import replace
from planted import breakpoint_faults as breakpoints
from planted import message_faults as messages
from planted import system_faults as systems
from planted import tool_faults as tools
from planted.fault import Edit, put, sendings, since
from planted.logs import STRIPS, Body, Log, Sending, chat, copied, in_order, loop, one_shots
from planted.parameter_faults import FORMAT
from planted.policies import hourly

PAUSES_S = (60.0, 240.0, 299.0, 300.0, 301.0, 420.0, 1200.0, 3000.0, 3700.0, 20 * 3600.0)


def _think(body: Body, _: int) -> None:
    """As far as the model can be asked to."""
    if body["model"] != STRIPS:
        body["thinking"] = {"type": "adaptive"}


PROMPTS: tuple[Edit, ...] = (
    tools.swap_tools,
    tools.sort_schema,
    tools.add_tool,
    tools.edit_tool,
    systems.edit_system,
    systems.clock,
    systems.clock_in_front,
    messages.edit_at(0),
    messages.drop_note,
    put(tool_choice={"type": "any"}),
    put(output_config={"format": FORMAT}),
    _think,
    put(model="claude-opus-4-7"),
    put(model="claude-sonnet-4-6"),
)
PLACES: tuple[Edit, ...] = (
    breakpoints.no_message_breakpoint,
    breakpoints.no_breakpoint,
    breakpoints.first_message_only,
    breakpoints.remind,
    messages.only_last,
)


def random_log(seed: int, prompt_faults: bool = True) -> Log:
    """Without `prompt_faults` only times and breakpoints are wrong, and no calls are at once."""
    dice = Random(seed)
    log = in_order([sending for topic in "ab"[: dice.randint(1, 2)] for sending in _conversation(dice, topic)])
    for _ in range(dice.randint(0, 4)):
        log = _spoiled(log, dice, prompt_faults)
    log = in_order(log)
    log[-1].start += 1.0 if log[-1].start == log[0].start else 0.0  # equal times on all calls mean no times
    return log if prompt_faults else _one_after_another(log)


def _one_after_another(log: Log) -> Log:
    """No two calls at once: no breakpoints help those, only other times."""
    spaced: Log = []
    for sending in log:
        earliest = spaced[-1].start + 2 * sending.first_token_s if spaced else 0.0
        spaced.append(replace(sending, start=max(sending.start, earliest)))
    return spaced


def _conversation(dice: Random, topic: str) -> Log:
    begin, every = dice.choice((0.0, 7.0, 60.0)), dice.choice((5.0, 20.0, 100.0, 290.0))
    made: list[Callable[[], Log]] = [
        lambda: loop(dice.randint(1, 6), topic=topic, begin=begin, every=every),
        lambda: loop(dice.randint(2, 5), topic=topic, begin=begin, every=every, parallel=3, lines=20),
        lambda: loop(dice.randint(2, 6), model=STRIPS, topic=topic, begin=begin, every=every, thinking=10),
        lambda: chat(dice.randint(1, 6), topic=topic, begin=begin, every=every),
        lambda: _asked_too(one_shots(dice.randint(1, 4), every), dice),
    ]
    return dice.choice(made)()


def _asked_too(log: Log, dice: Random) -> Log:
    return since(1, breakpoints.last_too)(log) if dice.random() < 0.5 else log


def _spoiled(log: Log, dice: Random, prompt_faults: bool) -> Log:
    first, count = dice.randint(1, len(log)), dice.choice((1, 2, 1000))
    kinds = [_paused, _placed, _lengthened, _sent_twice, *([_changed] * 4 if prompt_faults else [])]
    return dice.choice(kinds)(log, dice, range(first, first + count))


def _changed(log: Log, dice: Random, calls: range) -> Log:
    return _edited(log, dice.choice(PROMPTS), calls)


def _placed(log: Log, dice: Random, calls: range) -> Log:
    return _edited(log, dice.choice(PLACES), calls)


def _edited(log: Log, edit: Edit, calls: range) -> Log:
    def change(sending: Sending, call: int) -> None:
        with suppress(KeyError, IndexError, ValueError):  # no tools to change, say
            edit(sending.body, call)

    return sendings(calls, change)(log)


def _paused(log: Log, dice: Random, calls: range) -> Log:
    pause = dice.choice(PAUSES_S)

    def wait(sending: Sending, call: int) -> None:
        sending.start += pause if call >= calls.start else 0.0

    return sendings(range(1, 1000), wait)(log)


def _lengthened(log: Log, dice: Random, calls: range) -> Log:
    return hourly(log, ("tools", "system", "messages"))


def _sent_twice(log: Log, dice: Random, calls: range) -> Log:
    again = replace(copied(log)[calls.start - 1], start=log[calls.start - 1].start + dice.choice((0.1, 0.6, 30.0)))
    return in_order([*log, again])
