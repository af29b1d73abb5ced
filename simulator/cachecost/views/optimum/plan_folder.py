"""A plan as files that can be used: a request log, a strategy, code for a client, and a README."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from textwrap import fill
from typing import Any

from cachecost.analysis.optimum.online_rule import OnlineRule, RuleResult, cheapest_rule
from cachecost.analysis.optimum.optimum import Optimum, simulated_rows
from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator, PlanStep, build_call
from cachecost.base.atomic_files import open_whole, remove_file, write_text
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import change, change_text, count_text, dollar_column, dollars, exact_dollars, percent
from cachecost.base.structs import replace
from cachecost.base.times import iso
from cachecost.base.version import __version__
from cachecost.conversations.calls import Call, KnownLengths, billed_lengths
from cachecost.conversations.logs import Logs, read_logs
from cachecost.conversations.model import Conversation, encode_record
from cachecost.prompts.passes import body_of
from cachecost.providers.assumptions import show_assumption
from cachecost.providers.usage import ZERO
from cachecost.scenario.models import load_strategy
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import Workload, recorded_workload
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
from cachecost.views.optimum.text import breakpoint_objects, cost_now, extra_words

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
MARK = "<!-- written by cachecost optimize --emit -->"
"""The first line of the README: a folder that has it may be written again."""
REQUESTS, BREAKPOINTS, README = "requests.jsonl", "breakpoints.jsonl", "README.md"
STRATEGY, CLIENT = "strategy.yaml", "client.py"


def client_code(rule: OnlineRule) -> str:
    """The text of the module: `place_breakpoints(body)`, and `keep_alive_body(body)` where the rule has keep-alives."""
    what = fill(f"Cache breakpoints: {rule_words(rule)}.", WIDTH)
    placement = rule.placement
    kinds = {type(primitive) for primitive in placement.primitives}
    wanted = [OWN_TOOLS] * (LastTool in kinds) + [LAST_HUMAN] * (TurnBoundary in kinds)
    blocks = [f'        ({_describe(one)[1]}, "{placement.ttl_of(one)}"),' for one in placement.primitives]
    wanted += ["    wanted = [", *blocks, "    ]"]  # in order of priority
    text = HEAD.format(what=what, version=__version__, wanted="\n".join(wanted))
    if rule.keep_alive is not None:
        text += KEEP_ALIVE.format(every_s=rule.keep_alive.every_s, times=rule.keep_alive.times)
    return text


def rule_words(rule: OnlineRule) -> str:
    placement = rule.placement
    parts = [f"{_describe(one)[0]} ({placement.ttl_of(one)})" for one in placement.primitives]
    return ", ".join(parts) or "none, as none pays off"


def _describe(primitive: Primitive) -> tuple[str, str]:
    """Its words, and a Python expression for the block that it chooses. Raises ValueError where there is none."""
    match primitive:
        case LastTool():
            return "the last tool", "_last(tools)"
        case SystemBlock(which="first"):
            return "the first system block", "_last(system[::-1])"
        case SystemBlock(which="last"):
            return "the last system block", "_last(system)"
        case FirstN(role="any", n=1, block="last"):
            return "the end of the first message", "_last(chain(*messages[:1]))"
        case LastMessage(block="last"):
            return "the end of the last message", "_last(chain(*messages))"
        case TurnBoundary(n=1, role="human"):
            return "what comes before the last human message", "_last(chain(*messages[:human]))"
        case Hint(offset=offset):
            return f"the end of the message {offset} before the last", f"_last(chain(*messages[:-{offset}]))"
        case Lag(blocks=blocks):
            return f"{blocks} blocks before the end", f"_last([*chain(*messages)][:-{blocks}])"
    raise ValueError(f"no client code for {primitive!r}")


def request_lines(plan: Sequence[PlanStep], calls: Sequence[Call], outputs: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A line of the log for each call of the plan; `outputs` are the tokens of their answers, `calls` those that were
    planned, whose bills show lengths up to their own breakpoints. Raises CannotEvaluate for a call without content."""
    as_sent, waiting = dict[BareCall, Call](), iter(calls)
    for sent in (step.sent for step in plan if not step.sent.is_extra):
        same = (call for call in waiting if (call.request.thread, call.start) == (sent.call.request.thread, sent.start))
        if (found := next(same, None)) is not None:
            as_sent[sent] = found
    for step, output in zip(plan, outputs, strict=True):
        call = build_call(step)
        content = [dict(block.content) for block in call.response if block.content is not None]
        was = as_sent.get(step.sent)
        lengths = was.lengths if was is not None else None
        if was is not None and was.billed is not None:
            lengths = billed_lengths(was)
        fields = {
            "timestamp": _timestamp(step, call),
            # without a message thread: what is written is the whole request, which needs none
            "request": {name: value for name, value in body_of(call.request).items() if name != "thread"},
            "lengths": (lengths or KnownLengths(output=output or None)).wire() or None,
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
        places = breakpoint_objects(call.request)
        origin = {"file": call.file, "line": call.line} if call.file else {}
        yield {"timestamp": _timestamp(step, call), "purpose": call.purpose, "breakpoints": places, **origin}


def _timestamp(step: PlanStep, call: Call) -> str | None:
    """As recorded; that of an additional call to the microsecond, since it must not come after an expiry."""
    return iso(call.start) if step.sent.is_extra and call.timestamp else call.timestamp


def strategy_yaml(rule: OnlineRule, comments: Sequence[str] = ()) -> str:
    """The text of a strategy file, which is also an item of `strategies:` in a scenario. `comments` come first."""
    placement = rule.placement
    lines = [*(f"# {comment}".rstrip() for comment in comments), "name: optimized"]
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
        # a keep-alive's are written even where they are the defaults
        if (value := getattr(one, option.name)) != option.default or option.name in ("every_s", "times"):
            yield option.name, value


def _item(name: str, options: dict[str, Any]) -> str:
    if not options:
        return name
    return f"{name}: {{{', '.join(f'{option}: {show_assumption(value)}' for option, value in options.items())}}}"


def _readme_lines(
    optimum: Optimum, rule: RuleResult, logs: str, missing: str, replays: Sequence[tuple[str, Decimal, Decimal]]
) -> Iterator[str]:
    """`logs` are paths as on a command line, `missing` is why there is no request log, `replays` are commands, with
    what each says and what the table says."""
    yield from (MARK, f"# Cache plan for {logs}", "")
    name, now = cost_now(optimum)
    log = "`breakpoints.jsonl`" if missing else "`requests.jsonl`"
    rows = [
        (name, now),
        ("`strategy.yaml`, `client.py`: a rule that knows only the past", rule.usd),
        (f"{log}: the cheapest plan, which knows every later call", optimum.usd),
        ("lower bound: no legal plan for these requests costs less", optimum.lower_bound_usd),
    ]
    yield from ("| | cost | against the first |", "| --- | ---: | ---: |")
    for (what, usd), text in zip(rows, dollar_column([usd for _, usd in rows]), strict=True):
        yield f"| {what} | {text} | {change_text(change(usd, now)) if usd != now else '–'} |"
    yield ""
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
    if missing:
        yield f"There is no `requests.jsonl`: {missing}."
        yield "`breakpoints.jsonl` has the breakpoints of each call by path instead."
    else:
        without = "without the usage that was billed for others"
        yield f"`requests.jsonl` has the requests with the plan's breakpoints, {without}."
        if words := " ".join(extra_words(optimum.plan)):
            yield f"{words} They are lines of their own."
        if optimum.refused:
            yield f"{count_text(len(optimum.refused), 'call')} that failed or cannot be evaluated left out."
    if replays:
        yield ""
    width = max((len(command) for command, _, _ in replays), default=0)
    yield from (f"    {command:<{width}}  # {exact_dollars(usd)}" for command, usd, _ in replays)
    if any(usd != expected for _, usd, expected in replays):
        yield ""
        yield (
            "Where a replay differs from the table: it starts with the caches that the bills show, plans conversations "
            "anew, and has other times for calls without one; the table holds all that equal."
        )
    yield from ("", f"Tokens: {optimum.token_source}. Written by cachecost {__version__}.")


@dataclass(frozen=True, slots=True)
class PlanSource:
    """What is planned: calls, their conversations (none: they cannot be planned again), and the setup, --tokens, paths
    and options of a replay without bills, as on a command line."""

    workload: Workload
    conversations: Sequence[Conversation]
    setup: ReplaySetup
    tokens: str | None
    arguments: str
    options: str

    def replay_requests(self, path: Path) -> Decimal:
        """USD of a request log, as `cachecost replay FILE` has it."""
        calls = list(read_logs(Logs([path])))
        workload = recorded_workload(str(path), calls, self.setup.with_recorded(calls, self.tokens))
        return sum((row.cost.total for row in workload.simulation().rows(calls)), ZERO)

    def replay_strategy(self, path: Path) -> Decimal | None:
        """USD of a strategy, as `cachecost replay LOG --strategy FILE` has it; None where not all can be planned."""
        if not any(conversation.model for conversation in self.conversations):
            return None
        recorded = [call for call in self.workload.calls if not call.is_simulated]
        setup = self.setup.with_recorded(recorded, self.tokens)
        alike = replace(setup, starts_warm=True, may_lack_prices=True, counts_answers=False)
        rows = replay_strategy(load_strategy(path), self.conversations, alike).rows
        return None if any(row.error for row in rows) else sum((row.cost.total for row in rows), ZERO)


def check_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Raises InputError where a plan cannot be written: over an input, or among files of somebody else's."""
    targets = {(folder / name).resolve() for name in (REQUESTS, BREAKPOINTS, STRATEGY, CLIENT, README)}
    if taken := next((path for path in inputs if path.resolve() in targets), None):
        raise InputError([Fault(str(taken), "is the input: expected another folder for --emit")])
    if folder.exists() and not folder.is_dir():
        raise InputError([Fault(str(folder), "expected a folder for --emit; got a file")])
    is_ours = not folder.is_dir() or not any(folder.iterdir())
    with suppress(OSError, UnicodeDecodeError), (folder / README).open(encoding="utf-8") as stream:
        is_ours = stream.readline().rstrip() == MARK
    if not is_ours:
        words = "expected a new or an empty folder, or one that --emit wrote; it has other files, which stay"
        raise InputError([Fault(str(folder), f"{words} as they are")])


def write_plan(folder: Path, optimum: Optimum, source: PlanSource) -> list[str]:
    """Write the files, each whole or not at all, the README last; what to tell the user about them. Raises
    InputError."""
    evaluator = PlanEvaluator.of(source.workload.calls, source.workload.setup)
    rule = cheapest_rule(evaluator, optimum.presets, optimum.with_pings)
    outputs = [row.usage.output_tokens for row in simulated_rows(source.workload.setup, optimum.plan)]
    missing = ""
    try:  # the request log, or the breakpoints alone where content is missing
        _write_lines(folder / REQUESTS, request_lines(optimum.plan, source.workload.calls, outputs))
        remove_file(folder / BREAKPOINTS)
    except CannotEvaluate as error:
        _write_lines(folder / BREAKPOINTS, breakpoint_lines(optimum.plan))
        remove_file(folder / REQUESTS)
        missing = str(error)
    about = [f"{rule_words(rule.rule)}.", f"Replayed on {source.arguments}: {dollars(rule.usd)}."]
    write_text(folder / STRATEGY, strategy_yaml(rule.rule, [*about, "An item of `strategies:` in a scenario."]))
    write_text(folder / CLIENT, client_code(rule.rule))
    replays = []
    if not missing:
        command = f"cachecost replay {folder / REQUESTS}{source.options}"
        replays.append((command, source.replay_requests(folder / REQUESTS), optimum.usd))
    if (usd := source.replay_strategy(folder / STRATEGY)) is not None:
        command = f"cachecost replay {source.arguments}{source.options} --strategy {folder / STRATEGY}"
        replays.append((command, usd, rule.usd))
    readme = _readme_lines(optimum, rule, source.arguments, missing, replays)
    write_text(folder / README, "".join(f"{line}\n" for line in readme))
    log = BREAKPOINTS if missing else REQUESTS
    files = f"{log} ({dollars(optimum.usd)}), {STRATEGY} and {CLIENT} ({dollars(rule.usd)}), {README}"
    return [f"{folder} written: {files}", *([f"no {REQUESTS}: {missing}"] if missing else [])]


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError([Fault(str(path.parent), f"cannot be made: {error.strerror}")]) from None
    with open_whole(path) as stream:
        stream.writelines(map(encode_record, lines))
