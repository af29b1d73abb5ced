"""Options that are the fixes of causes, and those of some clients and hosts: deferred tools, sub-agents, hours."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from importlib.resources import files
from typing import Any

from cachecost.account.causes import Cause, causes
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import duration
from cachecost.base.structs import replace
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.caches.losses import Loss
from cachecost.changes.fix import Fix, FixContext, changed_settings, with_part
from cachecost.changes.fixes import FIXERS
from cachecost.changes.observed_replay import ObservedReplay, observe_replay
from cachecost.changes.option import BREAKPOINTS, CONTENT, SIDE_TTL, TTLS, Option, TTLChoice, measure_pauses
from cachecost.changes.steps import (
    NO_CALL,
    PartPool,
    Replays,
    ReplayStep,
    as_sent,
    conversations,
    cost,
    in_order,
)
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Block, Layer, Message, Thread
from cachecost.prompts.request import Breakpoint, answer_blocks, block_of
from cachecost.providers.clients.settings import client_settings, ttl_words
from cachecost.providers.hosts import host_of
from cachecost.providers.prices import STANDARD, moment_of
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class CauseChange:
    """A change that is the fix of causes; see the head of `changes.toml`."""

    name: str
    causes: Sequence[Cause]
    losses: str = ""
    besides: str = ""
    keeps_answers: bool = True

    def covers(self, loss: Loss, observed: ObservedReplay) -> bool:
        """Whether a loss is one that this change is for."""
        if loss.cause not in self.causes or loss.is_out_of_order is not (self.losses == "out_of_order"):
            return False
        now = observed.call(loss.call).request
        is_setting = loss.since is not None and bool(changed_settings(loss.since.request, now))
        return loss.is_out_of_order or loss.cause != "system_changed" or is_setting is (self.losses == "settings")


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("cachecost.changes").joinpath("changes.toml").read_text(encoding="utf-8"))


@cache
def cause_changes() -> tuple[CauseChange, ...]:
    """The changes that are fixes of causes."""
    return tuple(CauseChange(name, **row) for name, row in _table()["change"].items())


def alternative_of(loss: Loss, observed: ObservedReplay) -> str:
    """The name of the change that fixes a loss; "": none has one for it."""
    return next((change.name for change in cause_changes() if change.covers(loss, observed)), "")


@cache
def who_can(kind: str) -> str:
    """Who can make a change of this kind: where in a request, and the setting of Claude Code with its first version."""
    row = _table()["kind"][kind]
    if "setting" not in row:
        return str(row["where"])
    setting = client_settings().settings[row["setting"]]
    return f"{row['where']}; in Claude Code ≥ {setting.since} `{setting.key or setting.variable}`"


RANKS = {"breakpoints": BREAKPOINTS, "fan-out": BREAKPOINTS}
MOST_TRIES = 3
"""Smaller and smaller sets of conversations for which a fix is tried."""


@dataclass(slots=True)
class _CauseFix:
    """The fix of a change's losses: for the recording as `recorded`, for other steps found anew."""

    replays: Replays
    change: CauseChange
    recorded: Fix | None = None

    def __call__(self, steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        calls = self.replays.traffic.calls
        is_recorded = len(steps) == len(calls) and all(one.call is call for one, call in zip(steps, calls, strict=True))
        fix = self.recorded
        if not is_recorded or fix is None:
            fix = self.find(observe_replay(self.replays, steps))
        return list(steps) if fix is None else fix.steps

    def find(self, observed: ObservedReplay) -> Fix | None:
        """The fix that saves most, for the conversations in which it does; None: there is nothing to fix."""
        found: Fix | None = None
        for cause in self.change.causes:
            losses = [one for one in (*observed.losses, *observed.unused) if self.change.covers(one, observed)]
            losses = [one for one in losses if one.cause == cause]
            scope_of = partial(FIXERS[cause].scope, observed.conversations)
            refused = len(observed.refused)
            for _ in range(MOST_TRIES if losses else 0):
                fixes = FIXERS[cause].make(FixContext(self.replays, observed), losses)
                replayed = [(fix, self.replays.changed_rows(fix.steps, observed.tracked)) for fix in fixes]
                priced = [(fix, rows) for fix, rows in replayed if sum(bool(row.error) for row in rows) <= refused]
                if not priced:
                    break
                fix, rows = min(priced, key=lambda one: cost(one[1]))
                scopes = {step.number: scope_of(step.call) for step in observed.steps if step.number != NO_CALL}
                saved: dict[Hashable, Decimal] = {}
                for sign, steps, found_rows in ((1, observed.steps, observed.rows), (-1, fix.steps, rows)):
                    for step, row in zip(steps, found_rows, strict=True):
                        scope = scopes.get(step.number) or scope_of(step.call)
                        saved[scope] = saved.get(scope, ZERO) + sign * row.cost.total
                kept = [loss for loss in losses if saved[scope_of(observed.call(loss.call))] > 0]
                if len(kept) in (0, len(losses)):  # what saves nowhere is shown all the same, with what it costs
                    found = fix
                    if cause != self.change.causes[-1]:
                        observed = observe_replay(self.replays, fix.steps, observed.tracked)
                    break
                losses = kept
        return found


def cause_options(traffic: Workload, asked: str = "") -> Iterator[Option]:
    """The fixes of what the recording loses, by cause: where a change has nothing to fix, it is no option.

    The one `asked` for by name is: its cause may only show with another change.
    """
    replays = Replays(traffic)
    observed = observe_replay(replays, replays.recorded)
    for order, row in enumerate(cause_changes()):
        fixed = _CauseFix(replays, row)
        with suppress(CannotEvaluate):  # a block that no counter knows
            fixed.recorded = fixed.find(observed)
        if fixed.recorded is not None or row.name == asked:
            words = fixed.recorded.words if fixed.recorded else ""
            words = words or causes()[row.causes[0]].replayed_fix
            kind = row.name.partition("=")[0]
            rank = RANKS.get(kind, CONTENT)
            yield Option(row.name, kind, words, fixed, rank, row.besides, keeps_answers=row.keeps_answers, order=order)


MCP = "mcp__"
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
SEARCH_OUTPUT = 100
"""Tokens of a search call: an assumption."""


def is_mcp_tool(block: Block) -> bool:
    return str((block.content or {}).get("name") or "").startswith(MCP)


def deferred_options(traffic: Workload) -> Iterator[Option]:
    """The tools of MCP servers loaded when they are used, where some call defines any: Claude only."""
    lists = {call.request.tools for call in traffic.calls}
    count = len({block.digest for part in lists for block in part.blocks if is_mcp_tool(block)})
    if count:
        yield Option(
            "tools=deferred",
            "tools",
            f"the {count:,} tools of MCP servers are sent with `defer_loading: true`, beside a tool search",
            defer_mcp_tools,
            CONTENT,
            f"Before a conversation first uses a tool a call of {SEARCH_OUTPUT} output tokens searches for it; the "
            "model is assumed to find it, and to use the same tools",
            keeps_answers=False,
        )


Loaded = tuple[Thread, frozenset[str]]
"""A thread with the definitions that searches brought, and the names of their tools."""


def defer_mcp_tools(steps: Sequence[ReplayStep]) -> list[ReplayStep]:
    """The calls with the definitions of MCP tools deferred; an answer that first uses one comes after a search."""
    parts, known = PartPool(), dict[Thread, Loaded]()
    tools = {
        str((block.content or {}).get("name")): block
        for part in {step.call.request.tools for step in steps}
        for block in part.blocks
        if is_mcp_tool(block)
    }

    def append(before: Loaded, message: Message) -> Loaded:
        thread, loaded = before
        names = [str((block.content or {}).get("name")) for block in message.blocks if block.kind == "tool_use"]
        new = [name for name in dict.fromkeys(names) if name in tools and name not in loaded]
        if not new:
            return thread.then(message), loaded
        found = {"type": "tool_search_tool_search_result"}
        references = [{"type": "tool_reference", "tool_name": name} for name in new]
        items: list[dict[str, Any]] = [
            {"type": "server_tool_use", "id": "search", "name": SEARCH["name"], "input": {"query": " ".join(new)}},
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "search",
                "content": {**found, "tool_references": references},
            },
        ]
        blocks = (*answer_blocks(items, tools), *message.blocks)
        return thread.then(Message.of(message.role, blocks)), loaded | set(new)

    def change(call: Call) -> Call:
        kept = [block for block in call.request.tools.blocks if not is_mcp_tool(block)]
        if len(kept) == len(call.request.tools.blocks):
            return call
        thread = call.request.thread.fold(known, (call.request.thread.root, frozenset()), append)[0]
        call = with_part(call, Layer.TOOLS, parts.of((*kept, block_of("", SEARCH))))
        moved = list[Breakpoint]()
        for one in call.request.breakpoints:
            if one.node is not None:
                node = known[one.node][0]
                index = one.index + len(node.message_blocks) - len(one.node.message_blocks)
                one = replace(one, node=node, index=index)
            moved.append(one)
        request = replace(call.request, thread=thread, breakpoints=tuple(moved), deferred=tools)
        return replace(call, request=request)

    changed = [step.with_change(change) for step in steps]
    searched = {node.parent for node in known if node.parent in known and known[node][1] != known[node.parent][1]}
    made = list[ReplayStep]()
    for step, one in zip(steps, changed, strict=True):
        if step.number != NO_CALL and step.call.request.thread in searched:
            search = derive_call(one.call, one.call.request, one.call.start, SEARCH_OUTPUT, "search")
            made.append(ReplayStep(NO_CALL, search, search))
        made.append(one)
    return in_order(made)


FIVE, HOUR = TTLS[:2]
SCOPES = {"main-ttl": "main_ttl", "sub-agents-ttl": "side_ttl"}
"""Kinds of options, and the setting of Claude Code that says the same."""


def scoped_ttl_options(traffic: Workload, short_s: float, least_scopes: int = 2) -> Iterator[Option]:
    """Another TTL for the main conversation or for sub-agents alone, where the calls are of so many scopes."""
    scopes = {bool(call.agent) for call in traffic.calls}
    for kind, setting in SCOPES.items() if len(scopes) >= least_scopes else ():
        is_agent = setting == "side_ttl"
        concerned = [call for call in traffic.calls if bool(call.agent) is is_agent]
        for choice, needed_s in ((FIVE, 0.0), (HOUR, short_s)):

            def change(steps: Sequence[ReplayStep], ttl: TTLChoice = choice, of: bool = is_agent) -> list[ReplayStep]:
                return [
                    step.with_request(ttl.change(step.call.request)) if bool(step.call.agent) is of else step
                    for step in steps
                ]

            is_same = all(choice.change(call.request) is call.request for call in concerned)
            ttl = choice.name.removeprefix("ttl=")
            yield Option(
                f"{kind}={ttl}",
                kind,
                ttl_words(ttl, setting),
                change,
                SIDE_TTL,
                unsupported=measure_pauses(concerned).missing_reason(needed_s),
                unchanged="already so" if is_same else "",
            )


HALF_HOUR_S = 1_800.0
HALF_HOURS = 48


def hour_options(traffic: Workload) -> Iterator[Option]:
    """Each conversation at the next hours at which its host is cheapest; none where no host has such hours."""
    book, setup = traffic.setup.prices, traffic.setup
    if not any(map(book.has_hours, traffic.hosts)) or not any(call.timestamp for call in traffic.calls):
        return

    def price(call: Call, delay: float) -> Decimal:
        later, host = call.start + delay, host_of(call.host, setup.host, call.request.model)
        try:
            return book.quote(host, call.request.model, moment_of(later, day_of(later)), STANDARD).of(0).input
        except CannotEvaluate:
            return ZERO

    def delay_of(calls: Sequence[Call]) -> float:
        delays = [number * HALF_HOUR_S for number in range(HALF_HOURS)]
        return min(delays, key=lambda delay: sum((price(call, delay) for call in calls), ZERO))

    def wait(call: Call, delay: float) -> Call:
        start = call.start + delay
        return replace(call, start=start, day=day_of(start), timestamp=iso_milliseconds(start))

    def change(steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        made = list[ReplayStep]()
        for conversation in conversations(steps):
            delay = delay_of([step.call for step in conversation])
            made += [step.with_change(partial(wait, delay=delay)) if delay else step for step in conversation]
        return in_order(made)

    delays = [delay_of([step.call for step in one]) for one in conversations(as_sent(traffic.calls))]
    yield Option(
        "hours=cheap",
        "hours",
        f"each conversation waits for its host's cheap hours, {duration(max(delays, default=0.0))} at most",
        change,
        CONTENT,
        "Nobody waits for these answers, and they are the same later; pauses within a conversation stay",
        unchanged="" if any(delays) else "every conversation is in the cheapest hours already",
    )
