"""An emitted plan: its rule as Python and as a strategy's YAML, its requests as a log, and the README beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from textwrap import fill
from typing import Any

from cachecost.analysis.optimum.online_rule import OnlineRule, RuleResult
from cachecost.analysis.optimum.optimum import Optimum
from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanStep, build_call
from cachecost.base.formatting import change, change_text, count_text, dollar_column, exact_dollars, percent
from cachecost.base.times import iso
from cachecost.base.version import __version__
from cachecost.conversations.calls import Call, KnownLengths, Call, billed_lengths
from cachecost.prompts.passes import Body, body_of
from cachecost.prompts.request import Request, wire_path
from cachecost.providers.assumptions import show_assumption
from cachecost.strategies.changes.keepalive import KeepAlive
from cachecost.strategies.placements import (
    NAMES,
    SHORTHANDS,
    FirstN,
    Hint,
    Lag,
    LastMessage,
    LastTool,
    Primitive,
    SystemBlock,
    TurnBoundary,
)
from cachecost.views.optimum.text import cost_now, extra_words

WIDTH = 100
HEAD = '''"""{what}

Written by `cachecost optimize --emit` (cachecost {version}). It uses nothing but the request itself.
"""

import json
from itertools import chain


def place_breakpoints(body):
    """Return a copy of a Messages API body with these breakpoints instead of its own."""
    body = {{key: value for key, value in json.loads(json.dumps(body)).items() if key != "cache_control"}}
    tools, system = _bare(body, "tools"), _bare(body, "system")
    messages = [_bare(message, "content") for message in body["messages"]]
{wanted}
    for block, ttl in wanted:
        if block is not None:
            block.setdefault("cache_control", {{"type": "ephemeral", "ttl": ttl}})
    return body


def _bare(holder, key):
    """Blocks as a list, without breakpoints."""
    blocks = holder.get(key)
    if blocks and isinstance(blocks, str):
        blocks = holder[key] = [{{"type": "text", "text": blocks}}]
    for block in blocks or []:
        nested = block.get("content"), (block.get("source") or {{}}).get("content")
        for one in [block, *chain(*(inner for inner in nested if isinstance(inner, list)))]:
            one.pop("cache_control", None)
    return blocks or []


def _last(blocks):
    """The last of these blocks that may have a breakpoint; thinking and empty text may not."""
    fitting = [one for one in blocks if "thinking" not in str(one.get("type")) and one.get("text") != ""]
    return fitting[-1] if fitting else None
'''
KEEP_ALIVE = '''

KEEP_ALIVE_S, KEEP_ALIVES = {every_s:g}, {times}  # seconds between them in a pause, and how many at most after a call


def keep_alive_body(body):
    """Return `body`, which has its breakpoints, as a request without output that keeps its cache alive."""
    thinking, choice = body.get("thinking") or {{}}, body.get("tool_choice") or {{}}
    schema = (body.get("output_config") or {{}}).get("format") or body.get("output_format")
    needs_output = thinking.get("type") == "enabled" or choice.get("type") in ("any", "tool") or schema
    least = 1 + thinking.get("budget_tokens", 0) if needs_output else 0  # else the API refuses it
    return {{**{{key: value for key, value in body.items() if key != "stream"}}, "max_tokens": least}}
'''
OWN_TOOLS = """    served = ("web_search_", "web_fetch_")  # rendered elsewhere: a breakpoint there writes nothing
    tools = [one for one in tools if not one.get("defer_loading") and not str(one.get("type")).startswith(served)]"""
LAST_HUMAN = """    kinds = [{block["type"] for block in blocks} - {"tool_result"} for blocks in messages]
    human = max((n for n, one in enumerate(body["messages"]) if one["role"] == "user" and kinds[n]), default=0)"""


def client_code(rule: OnlineRule) -> str:
    """The text of the module: `place_breakpoints(body)`, and `keep_alive_body(body)` where the rule has keep-alives."""
    what = fill(f"Cache breakpoints: {rule_words(rule)}.", WIDTH)
    text = HEAD.format(what=what, version=__version__, wanted="\n".join(_wanted(rule)))
    if rule.keep_alive is not None:
        text += KEEP_ALIVE.format(every_s=rule.keep_alive.every_s, times=rule.keep_alive.times)
    return text


def rule_words(rule: OnlineRule) -> str:
    """Where the breakpoints are, in words."""
    placement = rule.placement
    parts = [f"{_words(one)} ({placement.ttl_of(one)})" for one in placement.primitives]
    return ", ".join(parts) or "none, as none pays off"


def _wanted(rule: OnlineRule) -> Iterator[str]:
    """The lines that list the blocks to mark, in order of priority."""
    placement = rule.placement
    kinds = {type(primitive) for primitive in placement.primitives}
    if LastTool in kinds:
        yield OWN_TOOLS
    if TurnBoundary in kinds:
        yield LAST_HUMAN
    yield "    wanted = ["
    for one in placement.primitives:
        yield f'        ({_block_of(one)}, "{placement.ttl_of(one)}"),'
    yield "    ]"


def _block_of(primitive: Primitive) -> str:
    """A Python expression for the block that a primitive chooses. Raises ValueError where there is none."""
    match primitive:
        case LastTool():
            return "_last(tools)"
        case SystemBlock(which="first"):
            return "_last(system[::-1])"
        case SystemBlock(which="last"):
            return "_last(system)"
        case FirstN(role="any", n=1, block="last"):
            return "_last(chain(*messages[:1]))"
        case LastMessage(block="last"):
            return "_last(chain(*messages))"
        case TurnBoundary(n=1, role="human"):
            return "_last(chain(*messages[:human]))"
        case Hint(offset=offset):
            return f"_last(chain(*messages[:-{offset}]))"
        case Lag(blocks=blocks):
            return f"_last([*chain(*messages)][:-{blocks}])"
    raise ValueError(f"no client code for {primitive!r}")


def _words(primitive: Primitive) -> str:
    match primitive:
        case LastTool():
            return "the last tool"
        case SystemBlock(which=which):
            return f"the {which} system block"
        case FirstN():
            return "the end of the first message"
        case LastMessage():
            return "the end of the last message"
        case TurnBoundary():
            return "what comes before the last human message"
        case Hint(offset=offset):
            return f"the end of the message {offset} before the last"
        case Lag(blocks=blocks):
            return f"{blocks} blocks before the end"
    raise ValueError(f"no words for {primitive!r}")


THREAD = "thread"
"""The body's field of a message thread: what is written is the whole request, which needs none."""


def request_lines(plan: Sequence[PlanStep], calls: Sequence[Call], outputs: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A line of the log for each call of the plan; `outputs` are the tokens of their answers.

    `calls` are those that were planned, as they were sent: their bills show lengths up to their own breakpoints. Raises
    CannotEvaluate for a call whose content was not recorded.
    """
    as_sent = _calls_as_sent(plan, calls)
    for step, output in zip(plan, outputs, strict=True):
        call = build_call(step)
        content = [dict(block.content) for block in call.response if block.content is not None]
        fields = {
            "timestamp": _timestamp(step, call),
            "request": _body(call.request),
            "lengths": _lengths(as_sent.get(step.sent), output).wire() or None,
            "most_read": call.most_read,
            "response": ({"content": content} if content else None),
            "first_token_s": call.first_token_s or None,
            "host": call.host,
            "workspace": call.workspace or None,
            "session": call.session or None,
            "service": "batch" if call.is_batch else None,
            "commit_date": call.day.isoformat() if call.day and call.timestamp is None else None,
        }
        yield {name: value for name, value in fields.items() if value is not None}


def breakpoint_lines(plan: Sequence[PlanStep]) -> Iterator[dict[str, Any]]:
    """Where the breakpoints of each call go, by path: what a plan says of calls without content."""
    for step in plan:
        call = build_call(step)
        request = call.request
        places = [{"path": wire_path(request, one), "ttl": one.ttl} for one in request.breakpoints]
        origin = {"file": call.file, "line": call.line} if call.file else {}
        yield {"timestamp": _timestamp(step, call), "purpose": call.purpose, "breakpoints": places, **origin}


def _calls_as_sent(plan: Sequence[PlanStep], calls: Sequence[Call]) -> dict[BareCall, Call]:
    """The call that each planned one was, with the breakpoints that it had. Both are in the same order."""
    found, waiting = dict[BareCall, Call](), iter(calls)
    for sent in (step.sent for step in plan if not step.sent.is_extra):
        same = (call for call in waiting if (call.request.thread, call.start) == (sent.call.request.thread, sent.start))
        if (call := next(same, None)) is not None:
            found[sent] = call
    return found


def _timestamp(step: PlanStep, call: Call) -> str | None:
    """As recorded; that of an additional call to the microsecond, since it must not come after an expiry."""
    return iso(call.start) if step.sent.is_extra and call.timestamp else call.timestamp


def _body(request: Request) -> Body:
    return {name: value for name, value in body_of(request).items() if name != THREAD}


def _lengths(call: Call | None, output: int) -> KnownLengths:
    if isinstance(call, Call) and call.billed is not None:
        return billed_lengths(call)
    if isinstance(call, Call) and call.lengths is not None:
        return call.lengths
    return KnownLengths(output=output or None)


NAME = "optimized"
ALWAYS = ("every_s", "times")
"""Options that are written even where they are the defaults."""


def strategy_yaml(rule: OnlineRule, comments: Sequence[str] = ()) -> str:
    """The text of a strategy file, which is also an item of `strategies:` in a scenario. `comments` come first."""
    placement = rule.placement
    lines = [*(f"# {comment}".rstrip() for comment in comments), f"name: {NAME}"]
    listed = [f"  - {_item(_name(one), _options(one))}" for one in placement.primitives]
    lines += ["breakpoints:", *listed] if listed else ["breakpoints: []"]
    lines.append(f"ttl: {placement.ttl}")
    if rule.keep_alive is not None:
        lines += ["changes:", f"  - {_item('keep_alive', _options(rule.keep_alive))}"]
    return "\n".join(lines) + "\n"


def _name(primitive: Primitive) -> str:
    """Its name in a scenario: the shorthand, if that stands for its options."""
    bare = type(primitive)(**{name: value for name, value in _given(primitive) if name != "ttl"})
    return next((name for name, one in SHORTHANDS.items() if one == bare), NAMES[type(primitive)])


def _options(one: Primitive | KeepAlive) -> dict[str, Any]:
    """The options that are not the defaults, without those that a shorthand stands for."""
    is_short = isinstance(one, Primitive) and _name(one) in SHORTHANDS
    return {name: value for name, value in _given(one) if not is_short or name == "ttl"}


def _given(one: Primitive | KeepAlive) -> Iterator[tuple[str, Any]]:
    for option in fields(one):
        if (value := getattr(one, option.name)) != option.default or option.name in ALWAYS:
            yield option.name, value


def _item(name: str, options: dict[str, Any]) -> str:
    if not options:
        return name
    return f"{name}: {{{', '.join(f'{option}: {show_assumption(value)}' for option, value in options.items())}}}"


MARK = "<!-- written by cachecost optimize --emit -->"
"""The first line of the README: a folder that has it may be written again."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the README says. `requests_usd` and `strategy_usd` are what `cachecost replay` says (None: not possible).

    `arguments` are the paths as on a command line, `options` the options of a replay with the same rules and prices,
    `missing` is why there is no request log.
    """

    optimum: Optimum
    rule: RuleResult
    arguments: str
    options: str
    folder: Path
    requests_usd: Decimal | None
    strategy_usd: Decimal | None
    missing: str = ""


def plan_readme(facts: PlanFacts) -> str:
    """The text of README.md."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: PlanFacts) -> Iterator[str]:
    yield MARK
    yield f"# Cache plan for {facts.arguments}"
    yield ""
    yield from _table(facts)
    yield ""
    optimum, rule = facts.optimum, facts.rule
    more = change(rule.usd, optimum.usd)
    word = "less" if rule.usd < optimum.usd else "more"
    gap = f"{exact_dollars(abs(rule.usd - optimum.usd))} ({percent(abs(more))}) {word} than" if more else "the same as"
    yield f"The rule: {rule_words(rule.rule)}. It costs {gap} the plan."
    if (habit := rule.rule.keep_alive) is not None:
        sent = f"{count_text(rule.keep_alives, 'keep-alive')} here"
        yield f"Keep-alives: every {habit.every_s:g} s after a call, at most {habit.times}; {sent}, in the cost."
    if (best := optimum.best_preset).usd < rule.usd:
        yield f"Cheaper, but without code here: the built-in strategy {best.name}, {exact_dollars(best.usd)}."
    yield "It is the cheapest of those tried on these calls, and a guess for others: replay a later log to check it."
    yield ""
    yield from _about_requests(facts)
    yield from _about_replays(facts)
    yield ""
    yield f"Tokens: {facts.optimum.token_source}. Written by cachecost {__version__}."


def _table(facts: PlanFacts) -> Iterator[str]:
    optimum = facts.optimum
    name, now = cost_now(optimum)
    log = "`breakpoints.jsonl`" if facts.missing else "`requests.jsonl`"
    rows = [
        (name, now),
        ("`strategy.yaml`, `client.py`: a rule that knows only the past", facts.rule.usd),
        (f"{log}: the cheapest plan, which knows every later call", optimum.usd),
        ("lower bound: no legal plan for these requests costs less", optimum.lower_bound_usd),
    ]
    yield "| | cost | against the first |"
    yield "| --- | ---: | ---: |"
    for (what, usd), text in zip(rows, dollar_column([usd for _, usd in rows]), strict=True):
        yield f"| {what} | {text} | {change_text(change(usd, now)) if usd != now else '–'} |"


def _about_requests(facts: PlanFacts) -> Iterator[str]:
    if facts.missing:
        yield f"There is no `requests.jsonl`: {facts.missing}."
        yield "`breakpoints.jsonl` has the breakpoints of each call by path instead."
        return
    words = " ".join(extra_words(facts.optimum.plan))
    yield "`requests.jsonl` has the requests with the plan's breakpoints, without the usage that was billed for others."
    if words:
        yield f"{words} They are lines of their own."
    if facts.optimum.refused:
        yield f"{count_text(len(facts.optimum.refused), 'call')} that failed or cannot be evaluated left out."


def _about_replays(facts: PlanFacts) -> Iterator[str]:
    """The commands, with exactly what they say; where that differs from the table, why."""
    shown = []
    if facts.requests_usd is not None:
        shown.append(
            (
                f"cachecost replay {facts.folder / 'requests.jsonl'}{facts.options}",
                facts.requests_usd,
                facts.optimum.usd,
            )
        )
    if facts.strategy_usd is not None:
        command = f"cachecost replay {facts.arguments}{facts.options} --strategy {facts.folder / 'strategy.yaml'}"
        shown.append((command, facts.strategy_usd, facts.rule.usd))
    if not shown:
        return
    width = max(len(command) for command, _, _ in shown)
    yield ""
    yield from (f"    {command:<{width}}  # {exact_dollars(usd)}" for command, usd, _ in shown)
    if any(usd != expected for _, usd, expected in shown):
        yield ""
        yield (
            "Where a replay differs from the table: it starts with the caches that the bills show, plans conversations "
            "anew, and has other times for calls without one; the table holds all that equal."
        )
