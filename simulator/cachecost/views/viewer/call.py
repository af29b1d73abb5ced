"""What the page shows of a session: its calls, one call block by block, what-ifs, and two recordings side by side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest
from json import dumps
from typing import Any

from cachecost.account.causes import Cause, causes
from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.summary import BillSummary
from cachecost.analysis.bill.timeline import TimelineCall, call_class_costs
from cachecost.analysis.viewing.blocks import SentBlock, compared_texts, readable_text
from cachecost.analysis.viewing.listing import Blocks, SessionReplay, ViewedCall, ViewedSession
from cachecost.analysis.viewing.what_if import AS_SENT, KINDS, ReplayedAlternative, SessionAlternatives
from cachecost.base.formatting import capitalized, count_text, exact, exact_or_none, percent
from cachecost.changes.option import pings_worth
from cachecost.changes.presets import list_placing_presets
from cachecost.conversations.input_files import EVENTS
from cachecost.prompts.compare import diff_texts
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import SimulatedCall
from cachecost.views.bill.json_output import call_object as billed_call_object
from cachecost.views.bill.json_output import hit_rate
from cachecost.views.bill.text import MAIN, agent_name, is_human, named_facts, session_headline, what_came_before
from cachecost.views.bill.words import evidence_words
from cachecost.views.tables.output import pick, pick_usd

CUT_FILE = "session.jsonl"
HOUR_LAYERS = {"1h:tools": ("last_tool",), "1h:tools+system": ("last_tool", "last_system")}
OWN_BREAKPOINTS: Mapping[str, Sequence[str]] = {
    "automatic": ("automatic",),
    "head+automatic": ("last_tool", "last_system", "automatic"),
    "none": (),
}
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
UNKNOWN: Cause = "unknown"
LISTS = {"ttl": "ttl", "model": "models", "host": "hosts", "keep_alive": "keep_alive", "compaction": "compaction"}
"""The list of each kind but breakpoints, which have words too."""
AT_BLOCK = re.compile(r" at (?:tools|system|messages)[.\w]*$")
"""Where what was idle begins: that is the whole prompt, or what the page shows as written."""
NO_BILL = "none in the log: tokens and dollars are those of a replay"
MOST_TEXT = 200_000
"""Characters of a block's text alone."""


def command_line(replay: SessionReplay, choices: Mapping[str, str], options: Sequence[str]) -> str:
    """The command that prices these choices, with the `options` that were given; of a log of several sessions, the
    session is cut out first. "" for sessions that share several files, or share one with calls that do not count."""
    session, files = replay.session, replay.session.files
    names = ",".join(f"{KINDS[kind]}={value}" for kind, value in choices.items())
    asked = ["--jointly", names] if names else []
    if not replay.counts_all or (replay.shares_files and (len(files) > 1 or session.key == files[0])):
        return ""
    if not replay.shares_files:
        return shlex.join(["cachecost", "whatif", *files, *asked, *options])
    cut = shlex.join(["cachecost", "recording", "cut", files[0], "--session", session.key, "-o", CUT_FILE])
    return f"{cut} && {shlex.join(['cachecost', 'whatif', CUT_FILE, *asked, *options])}"


def scenario_yaml(alternatives: SessionAlternatives, choices: Mapping[str, str]) -> str:
    """A scenario that plans the session again, as the preset nearest to what was sent, and with the choices."""
    replay, profile, main = alternatives.replay, alternatives.profile, alternatives.profile.main
    host = main.host if main else sorted(replay.workload.hosts)[0]
    model = main.rules.model if main else replay.session.calls[0].call.model
    session, files = replay.session, replay.session.files
    client = session.calls[0].file.client  # the preset that stands for what a client sent
    own = client if client in ("claude-code", "opencode", "crush", "qwen-code") else "head+automatic"
    short = NOT_IN_NAMES.sub("-", session.id[:8]).strip("-")
    changed = " and ".join(f"{KINDS[kind]} {value}" for kind, value in choices.items()) or AS_SENT
    joined = [f"# {shlex.join(['cachecost', 'import', *files, '-o', CUT_FILE])}"] if len(files) > 1 else []
    strategies = [{"name": AS_SENT, **_placement(own)}]
    if set(choices) - {"host"}:
        pings = (pings_worth(profile.prices) if profile.prices else None) or 0
        strategies.append({"name": "what if", **_strategy(own, choices, pings)})
    lines = [
        *joined,
        f"# cachecost run FILE.yaml; the breakpoints of {own} stand for those that were sent",
        "format: 1",
        f"name: session-{short}",
        f"question: {dumps(f'What does session {short} cost with {changed}?')}",
        f"host: {choices.get('host', host)}",
        f"model: {dumps(model)}",
        f"conversation: {{recording: {dumps(CUT_FILE if joined else files[0])}}}",
        "strategies:",
        *(f"  - {dumps(one)}" for one in strategies),
        f"compare_to: {AS_SENT}",
    ]
    return "\n".join(lines) + "\n"


def _placement(name: str) -> dict[str, Any]:
    return {"breakpoints": list(OWN_BREAKPOINTS[name])} if name in OWN_BREAKPOINTS else {"preset": name}


def _strategy(own: str, choices: Mapping[str, str], pings: int) -> dict[str, Any]:
    """A strategy with the choices; `pings` is how many keep-alives a pause is worth."""
    made = _placement(choices.get("breakpoints", own))
    ttl = choices.get("ttl")
    if ttl in HOUR_LAYERS:
        hour = [{name: {"ttl": "1h"}} for name in HOUR_LAYERS[ttl]]
        made = {"breakpoints": [*hour, *(["last_system"] if len(hour) == 1 else []), "automatic"]}
    elif ttl:
        made["ttl"] = ttl
    if model := choices.get("model"):
        made["model"] = model
    changes: list[dict[str, Any]] = []
    if limit := choices.get("compaction"):
        tokens = int(limit.removesuffix("k")) * (1000 if limit.endswith("k") else 1)
        changes.append({"compaction": {"at": 1.0, "window_tokens": tokens, "min_turns": 1, "keep_last": 1}})
    every, _, most = choices.get("keep_alive", "").partition(":")
    if every and (times := int(most) if most else pings):
        changes.append({"keep_alive": {"every_s": float(every.removesuffix("s")), "times": times}})
    return made | ({"changes": changes} if changes else {})


class NameList:
    """Names in the order in which they first occur, each once."""

    def __init__(self, first: Sequence[str] = ()) -> None:
        self._places: dict[str, int] = {name: place for place, name in enumerate(first)}

    def place(self, name: str) -> int:
        return self._places.setdefault(name, len(self._places))

    @property
    def names(self) -> list[str]:
        return list(self._places)


def cause_objects(causes: NameList) -> list[dict[str, str]]:
    return [{"cause": cause, "name": name_of_cause(cause)} for cause in causes.names]


def name_of_cause(cause: str) -> str:
    """The name of a cause for people; what a report of another version has, and is none here, is shown as it is."""
    row = causes().get(cause)
    return row.name_in_bill if row else cause.replace("_", " ")


def usage_columns(usages: Iterable[Usage]) -> dict[str, list[int]]:
    listed = list(usages)
    return {
        "read": [usage.read for usage in listed],
        "write_5m": [usage.write_5m for usage in listed],
        "write_1h": [usage.write_1h for usage in listed],
        "input": [usage.input_tokens for usage in listed],
    }


def simulated_columns(made: Sequence[SimulatedCall | None], causes: NameList) -> dict[str, list[Any]]:
    """What a replay says of calls; None is a call that it cannot make."""
    rows = [one.row if one else None for one in made]
    known = [row if row is not None and row.error is None else None for row in rows]
    return {
        **usage_columns(row.usage if row else Usage() for row in known),
        "cost_usd": [exact(row.cost.total) if row and row.is_priced else None for row in known],
        "cause": [causes.place((row.cause if row else None) or UNKNOWN) for row in known],
        # tokens and TTL of each one of the first pass: a whole timeline would read the prompt of every call
        "breakpoints": [
            [(first.sizes.of(at.prefix), at.ttl) for at in first.outcome.breakpoints] if first else []
            for first in (one.passes[0] if one and one.passes else None for one in made)
        ],
    }


def options_object(alternatives: SessionAlternatives) -> dict[str, Any]:
    """The values of each choice; the first is as sent."""
    made: dict[str, Any] = {name: [AS_SENT, *alternatives.values(kind)] for kind, name in LISTS.items()}
    words = [(AS_SENT, "the breakpoints that were sent")]
    words += [(one, alternatives.known[f"breakpoints={one}"].does) for one in alternatives.values("breakpoints")]
    words += [(one.name, one.what) for one in list_placing_presets() if one.name not in OWN_BREAKPOINTS]
    return made | {"breakpoints": [{"name": name, "words": text} for name, text in words]}


def what_if_object(
    alternatives: SessionAlternatives, found: ReplayedAlternative, choices: Mapping[str, str], options: Sequence[str]
) -> dict[str, Any]:
    """The session with these choices; `options` are those of the command that shows the page."""
    replay, causes = alternatives.replay, NameList()
    chosen = {kind: value for kind, value in choices.items() if value not in ("", AS_SENT) and kind in KINDS}
    usage = sum((row.usage for row in found.base), Usage())
    made = found.options
    sentences = [capitalized("; ".join(one.does for one in made)) or "As sent"]
    sentences += dict.fromkeys(one.assumption for one in made if one.assumption)
    sentences += dict.fromkeys(f"Not supported by the data: {one.unsupported}" for one in made if one.unsupported)
    sentences += dict.fromkeys(f"{one.name}: {one.unchanged}" for one in made if one.unchanged)
    tokens = {"read": usage.read, "write_1h": usage.write_1h, "write_5m": usage.write_5m, "input": usage.input_tokens}
    return {
        **pick_usd(found, "cost", "basis"),
        "difference_usd": exact(found.cost - found.basis),
        "basis": {**tokens, "output": usage.output_tokens, "calls": len(found.base)},
        "words": " ".join(f"{one.rstrip('.')}." for one in sentences),
        "extra_calls": found.extra_calls,
        "calls": {  # in the order of time; an extra call has the number 0
            "number": [one.number for one in found.calls],
            "start": [one.call.start if one.call.timestamp is not None else None for one in found.calls],
            **simulated_columns([one.made for one in found.calls], causes),
            "output": [one.made.row.usage.output_tokens for one in found.calls],
        },
        "causes": cause_objects(causes),
        "command": command_line(replay, chosen, options),
        "yaml": scenario_yaml(alternatives, chosen),
        "errors": list(dict.fromkeys(one.made.row.error for one in found.calls if one.made.row.error)),
    }


def session_object(session: ViewedSession, name: str) -> dict[str, Any]:
    """A session under the name it has in the list; its calls as columns."""
    total, calls = session.summary.total, session.calls
    causes, models, agents = NameList(), NameList(), NameList([MAIN])
    columns = call_columns(calls, causes, models, agents)
    row = session.summary.rows[0]
    return {
        "id": session.id,
        "name": name,
        **pick(row, "session", "project", "client"),
        "models": models.names,
        "agents": agents.names,
        "causes": cause_objects(causes),
        "headline": session_headline(session.summary),
        "facts": [*named_facts(session.calls), *([] if session.has_bill else [("bill", NO_BILL)])],
        **pick(session, "has_text", "has_blocks", "has_bill"),
        **pick_usd(total, "cost", "rewritten"),
        "calls": columns,
        "moments": moment_objects(calls),
    }


def call_columns(calls: Sequence[TimelineCall], causes: NameList, models: NameList, agents: NameList) -> dict[str, Any]:
    """What was billed of each call; new causes, models and agents are added to the lists."""
    first_model = calls[0].call.model if calls else ""
    return {
        "number": [one.number for one in calls],
        "start": [one.call.start for one in calls],
        "model": [models.place(one.call.model) for one in calls],
        "agent": [agents.place(agent_name(one)) for one in calls],
        **usage_columns(one.call.usage for one in calls),
        "output": [one.call.tokens[4] for one in calls],
        "cost_usd": [exact_or_none(one.cost) for one in calls],
        "rewritten_usd": [exact(rewritten_cost(one)) for one in calls],
        "rewritten_tokens": [one.rewrite.tokens if one.rewrite else 0 for one in calls],
        "cause": [causes.place(one.cause) for one in calls],
        "is_human": [is_human(one) for one in calls],
        "idle_s": [one.idle_s for one in calls],
        "event": [event_text(one, first_model) for one in calls],
    }


def rewritten_cost(one: TimelineCall) -> Decimal:
    """USD that a call paid to write again what had been cached."""
    return (one.rewrite.cost if one.rewrite else None) or ZERO


def event_text(one: TimelineCall, model: str) -> str:
    """What came before a call besides a person's message; `model` is that of the session's start."""
    if one.before is not None and not one.call.events:
        return ""
    words = what_came_before(one, {}, model).split("; ")
    return "; ".join(word for word in words if word and word != EVENTS["human"])


def moment_objects(calls: Sequence[TimelineCall]) -> list[dict[str, Any]]:
    paid = [one for one in calls if one.rewrite and rewritten_cost(one) > 0]
    found = nsmallest(5, paid, key=lambda one: (-rewritten_cost(one), one.number))
    return [
        {"call": one.number, "cost_usd": exact(rewritten_cost(one)), "words": words_of_cause(one.rewrite)}
        for one in found
        if one.rewrite
    ]


def words_of_cause(rewrite: BilledRewrite) -> str:
    """The cause of a rewrite and what shows it, without what the page shows beside it: tokens, dollars, the place."""
    words = evidence_words(rewrite)
    return AT_BLOCK.sub("", words) if rewrite.cause == "ttl_expired" else words


def simulated_object(session: ViewedSession, made: Mapping[int, SimulatedCall], token_source: str) -> dict[str, Any]:
    causes = NameList()
    rows = [one.row for one in made.values()]
    return {
        "cost_usd": exact(sum((row.cost.total for row in rows), ZERO)),
        "billed_usd": exact(session.summary.total.cost) if session.has_bill else None,
        "tokens_from": token_source,
        "calls": {
            "number": [one.number for one in session.calls],
            **simulated_columns([made.get(one.number) for one in session.calls], causes),
        },
        "causes": cause_objects(causes),
        "errors": list(dict.fromkeys(row.error for row in rows if row.error)),
    }


def viewed_call_object(viewed: ViewedCall, prices: CallPrices, first_model: str) -> dict[str, Any]:
    """A call and its blocks; `first_model` is that of the session's start."""
    made, one = viewed.made, viewed.call
    row = made.row if made and made.row.error is None else None
    billed = billed_call_object(one)
    kept = ("number", "time", "model", "file", "line", "usage", "cost_usd", "cause", "idle_s", "cache_miss_reason")
    classes = call_class_costs(one.call, prices)
    names, names_before = _tool_names(viewed.blocks), _tool_names(viewed.blocks_before)
    at, found, difference = viewed.changes.first_changed, viewed.difference, None
    if at is not None and found is not None:
        place = viewed.changes.blocks[at].before
        texts = pick(found, "at", "before", "was", "now", "after")
        difference = {"block": at + 1, "before_block": None if place is None else place + 1, **texts}
    return {
        "call": {
            **{name: billed[name] for name in kept},
            "agent": agent_name(one),
            "cost_by_class_usd": {
                **{name: exact(cost) for name, cost in classes.items()},
                "rewritten": exact(rewritten_cost(one)),
            },
            "cause_name": name_of_cause(one.cause),
            "message": words_of_cause(one.rewrite) if one.rewrite else None,
            "event": event_text(one, first_model),
        },
        "simulated": {"usage": row.usage.wire(), "cost_usd": exact(row.cost.total)} if row else None,
        "before": viewed.before.number if viewed.before else None,
        "blocks": [_compared(viewed, at, names) for at in range(len(viewed.blocks))],
        "gone": [_described(viewed.blocks_before[at], at, names_before) for at in viewed.changes.gone],
        "difference": difference,
        "has_text": viewed.has_text,
    }


def _compared(viewed: ViewedCall, at: int, names: Mapping[str, str]) -> dict[str, Any]:
    one, change = viewed.blocks[at], viewed.changes.blocks[at]
    return {
        **_described(one, at, names),
        "state": one.state,
        "breakpoint": one.breakpoint or None,
        "change": change.change,
        "before_n": None if change.before is None else change.before + 1,
    }


def _described(one: SentBlock, at: int, names: Mapping[str, str]) -> dict[str, Any]:
    """A block; its number counts from 1 in the order of the prompt."""
    block = one.block
    text = readable_text(block, one.layer) if block else None
    name = "not in the transcript" if one.is_unrecorded else "added by the provider"
    if block:  # that of a tool, also of that whose result the block is
        content = block.content or {}
        own = content.get("name")
        name = own if isinstance(own, str) else names.get(str(content.get("tool_use_id", "")), "")
    return {
        "n": at + 1,
        "layer": str(one.layer),
        "role": block.role if block else "",
        "kind": block.kind if block else "hidden",
        "name": name,
        "tokens": one.tokens,
        "size": block.size if block else 0,
        "digest": block.digest.hex() if block else "",
        "text": "" if text is None else text[:200],  # characters of a block's text in the list of blocks
    }


def _tool_names(blocks: Blocks) -> Mapping[str, str]:
    """The name of the tool of each `tool_use` block by its id."""
    uses = (one.block.content for one in blocks if one.block and one.block.kind == "tool_use")
    return {one["id"]: str(one.get("name", "")) for one in uses if one is not None and isinstance(one.get("id"), str)}


def block_object(viewed: ViewedCall, number: int) -> dict[str, Any]:
    """One block with its text and what changed in it. Raises KeyError."""
    if not 1 <= number <= len(viewed.blocks):
        raise KeyError(number)
    at = number - 1
    one, other = viewed.blocks[at], viewed.counterpart(at)
    text, before = None, None
    if one.block is not None:
        both = compared_texts(other.block, one.block, one.layer) if other and other.block else None
        before, text = both or (None, readable_text(one.block, one.layer))
    cut = (text or "")[:MOST_TEXT]
    old = before if before is None else before[:MOST_TEXT]
    parts = [("same", cut)] if cut else []
    if old is not None and old != cut:
        parts = [*diff_texts(old, cut)]
    return {
        **_compared(viewed, at, _tool_names(viewed.blocks)),
        "text": cut,
        "is_cut": max(len(text or ""), len(before or "")) > MOST_TEXT,
        "before": old,
        "parts": parts,
    }


def side_object(title: str, summary: BillSummary, calls: Sequence[TimelineCall]) -> dict[str, Any]:
    """One recording: its calls as columns, numbered in the order of time."""
    causes, models, agents = NameList(), NameList(), NameList([MAIN])
    columns = call_columns(calls, causes, models, agents) | {"number": list(range(1, len(calls) + 1))}
    return {
        "title": title,
        "headline": session_headline(summary),
        **pick_usd(summary.total, "cost", "rewritten"),
        "hit_rate": hit_rate(summary.total),
        "calls": columns,
        "causes": cause_objects(causes),
        "models": models.names,
        "agents": agents.names,
    }


def comparison_object(
    titles: tuple[str, str],
    summaries: tuple[BillSummary, BillSummary],
    calls: tuple[Sequence[TimelineCall], Sequence[TimelineCall]],
    pairs: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Both recordings, and the indices of the calls that correspond."""
    left, right = (side_object(*one) for one in zip(titles, summaries, calls, strict=True))
    before, after = (summary.total for summary in summaries)
    rates = f"cache hit rate {percent(after.hit_rate)} instead of {percent(before.hit_rate)}"
    counts = f"{count_text(after.calls, 'call')} instead of {before.calls:,}"
    return {
        "left": left,
        "right": right,
        "pairs": pairs,
        "difference_usd": exact(after.cost - before.cost),
        "words": f"{titles[1]} against {titles[0]}: {counts}, {rates}",
    }
