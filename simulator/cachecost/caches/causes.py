"""Why a call read and wrote what it did: one cause of a closed list (docs/reference/output-formats.md)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cachecost.account.causes import Cause
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.losses import EarlierCall
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.compare import common, path
from cachecost.prompts.output_format import effort_asked, model_of, output_format, thinking_asked
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.translated import EARLIER_ENDS
from cachecost.providers.rules import ModelRules

ENTRY_STATES: dict[str, Cause] = {"expired": "ttl_expired", "unreadable": "concurrent_write"}
"""The cause where an entry was looked for and its state is why it was not read."""
SHORTER = 0.75
"""A compacted conversation has at most this share of the messages that it had."""


class EarlierEntry(msgspec.Struct, frozen=True):
    """The deepest entry of the earlier call `seen`, and its state: absent, live, expired, unreadable or changed."""

    seen: EarlierCall
    entry: Prefix | None
    state: str


def cause_of(request: Request, prompt: Prompt, outcome: Outcome, lost: EarlierEntry | None, rules: ModelRules) -> Cause:
    """The cause of how a call's prompt divided, on a host without a lookback from breakpoints."""
    if rules.is_automatic:
        return _unmarked_cause(request, prompt, outcome, lost, rules)
    if not outcome.breakpoints:
        return "below_minimum" if prompt.breakpoints else "no_breakpoint"
    read = outcome.hit.depth if outcome.hit else 0
    if read >= outcome.breakpoints[-1].prefix.depth:
        return "hit"
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None or (lost.state != "changed" and read >= lost.entry.depth):
        return "hit" if outcome.hit else "new_content"
    if lost.state in ENTRY_STATES:
        return ENTRY_STATES[lost.state]
    if lost.state == "live":
        return cause_of_distance(lost.entry, prompt, outcome.breakpoints)
    return find_change(request, prompt, lost.seen, rules)


def cause_of_distance(entry: Prefix, prompt: Prompt, breakpoints: Sequence[BreakpointPrefix]) -> Cause:
    """Why breakpoints miss an entry that could be read: they look back, but not so far, or none stands behind it."""
    if prompt.boundaries is None:
        is_too_far_back = bool(breakpoints) and breakpoints[-1].prefix.depth >= entry.depth
    else:
        ends = [place.depth for place in prompt.boundaries if place.layer is Layer.MESSAGES]
        is_too_far_back = len(ends) > EARLIER_ENDS and entry.depth < min(ends)
    if is_too_far_back:
        return "lookback_exceeded"
    has_one_there = any(breakpoint.prefix.layer is entry.layer for breakpoint in breakpoints)
    return "breakpoint_misplaced" if has_one_there else "no_breakpoint"


def _unmarked_cause(
    request: Request, prompt: Prompt, outcome: Outcome, lost: EarlierEntry | None, rules: ModelRules
) -> Cause:
    """As `cause_of`, on a host that caches by itself: later calls may find the end of each prompt."""
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None:  # the earlier call had no breakpoint, on a model that needs one
        return "hit" if outcome.hit else find_change(request, prompt, lost.seen, rules)
    if outcome.hit and outcome.hit.depth >= lost.entry.depth:
        return "hit"
    if lost.state in ENTRY_STATES:
        return ENTRY_STATES[lost.state]
    if lost.state == "live":
        return "hit" if outcome.hit else "below_minimum"
    return find_change(request, prompt, lost.seen, rules) if lost.state == "changed" else "unknown"


def cause_of_unread(
    prompt: Prompt, rules: ModelRules, tokens: int, entry: Prefix | None, state: str, is_fork: bool, is_off_path: bool
) -> Cause:
    """Why a host that looks back from breakpoints did not read a prefix that an earlier call sent: the first row that
    applies.

    `tokens` is its length. `entry` is the deepest entry on the way to it, in this `state` (None, "absent": there is
    none). `is_fork`: see `is_fork`. `is_off_path`: the call before cached a prefix that this prompt does not have.
    """
    distance: Cause = cause_of_distance(entry, prompt, prompt.breakpoints) if entry else "unknown"
    causes: list[tuple[bool, Cause]] = [
        (not prompt.breakpoints, "no_breakpoint"),
        (state == "unreadable", ENTRY_STATES["unreadable"]),
        (is_fork, "fork"),
        (state == "expired", ENTRY_STATES["expired"]),
        (entry is not None, distance),
        (tokens < rules.minimum_tokens, "below_minimum"),
        (is_off_path, "breakpoint_misplaced"),
    ]
    return next((cause for applies, cause in causes if applies), "no_breakpoint")


def is_fork(request: Request, prompt: Prompt, rules: ModelRules, shared: Prefix, earlier: EarlierCall | None) -> bool:
    """Whether the conversation restarts from an earlier place and continues differently; `shared` was sent before.

    Replacing the last message while the conversation goes on is no fork, nor is a change before messages that stay.
    """
    if earlier is None or earlier.rules.model != rules.model:
        return False
    thread, other = request.thread, earlier.request.thread
    length = thread.common(other).length
    is_parted = 0 < length < min(other.length, thread.length) and shared.layer == prompt.end.layer
    is_left = length < other.length - 1 or thread.length <= other.length
    if not is_parted or not is_left:
        return False
    known = {node.message.digest for node in thread.back() if node.length > length and node.message}
    later = (node.message.digest for node in other.back() if node.length > length and node.message)
    return known.isdisjoint(later)


def find_change_or_compaction(request: Request, prompt: Prompt, seen: EarlierCall, rules: ModelRules) -> Cause:
    """As `find_change`; changed content is a compaction where the conversation became much shorter."""
    cause = find_change(request, prompt, seen, rules)
    is_shorter = request.thread.length <= SHORTER * seen.request.thread.length
    return "compaction" if cause == "content_changed" and is_shorter else cause


def find_change(request: Request, prompt: Prompt, seen: EarlierCall, rules: ModelRules) -> Cause:
    """The first difference in prompt order: model, speed, tools, cache key and text of system, key of messages."""
    before = seen.request
    speed, speed_before = (one.params.get("speed") for one in (request, before))
    choice, choice_before = (one.params.get("tool_choice") for one in (request, before))
    has_cache_key = rules.keyed_by is None or prompt.cache_keys != seen.prompt.cache_keys
    differs: list[tuple[bool, Cause]] = [
        (model_of(rules) != model_of(seen.rules), "model_changed"),
        ((speed == "fast") != (speed_before == "fast"), "speed_changed"),
        (request.tools.digest != before.tools.digest, "tools_changed"),
        (has_cache_key and output_format(request.params) != output_format(before.params), "output_format_changed"),
        (request.system.digest != before.system.digest, "system_changed"),
        (prompt.cache_keys[1] != seen.prompt.cache_keys[1], "system_changed"),
        (choice != choice_before and prompt.cache_keys[2] != seen.prompt.cache_keys[2], "tool_choice_changed"),
        (has_cache_key and thinking_asked(request, rules) != thinking_asked(before, seen.rules), "thinking_changed"),
        (has_cache_key and effort_asked(request, rules) != effort_asked(before, seen.rules), "effort_changed"),
        (request.thread.has_image != before.thread.has_image, "images_changed"),
        (before.thread.has_thinking and _is_thinking_stripped(request, prompt, seen), "thinking_stripped"),
        (rules.keyed_by is not None and has_cache_key, "unknown"),  # a parameter that no cause is named after
    ]
    return next((cause for differed, cause in differs if differed), "content_changed")


def _is_thinking_stripped(request: Request, prompt: Prompt, seen: EarlierCall) -> bool:
    """Whether the prompts diverge at a thinking block that is sent again, but not rendered any more."""
    parted = common(seen.prompt.end, prompt.end)
    if parted is None or parted is seen.prompt.end:
        return False
    block = path(seen.prompt.end, parted.depth)[0].block
    if block is None or not block.is_thinking:
        return False
    again = request.thread.common(seen.request.thread).back()
    return any(block is other or block.digest == other.digest for node in again for other in node.message_blocks)


def changed_parameter(cause: str, request: Request) -> object:
    """What a call states for the parameter that a cause is named after; "" for other causes."""
    params, config = request.params, request.params.get("output_config") or {}
    stated: dict[str, object] = {
        "model_changed": request.model,
        "speed_changed": params.get("speed") or "standard",
        "tool_choice_changed": params.get("tool_choice") or "auto",
        "thinking_changed": params.get("thinking") or "its default",
        "effort_changed": config.get("effort") or "its default",
    }
    return stated.get(cause, "")
