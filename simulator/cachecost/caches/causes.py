"""Why a call read and wrote what it did: one cause of a closed list (docs/output-formats.md)."""

from __future__ import annotations

from typing import Literal, Protocol

from cachecost.base.structs import value
from cachecost.caches.breakpoints import Outcome, State
from cachecost.prompts.blocks import Layer, Prefix, Thread
from cachecost.prompts.host_cache_keys import effort_asked, model_of, thinking_asked
from cachecost.prompts.output_format import output_format
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.translated import EARLIER_ENDS
from cachecost.providers.rules import ModelRules

Cause = Literal[
    "hit",
    "new_content",
    "cold_start",
    "content_changed",
    "tools_changed",
    "system_changed",
    "tool_choice_changed",
    "thinking_changed",
    "effort_changed",
    "output_format_changed",
    "images_changed",
    "speed_changed",
    "model_changed",
    "thinking_stripped",
    "ttl_expired",
    "lookback_exceeded",
    "below_minimum",
    "no_mark",
    "mark_misplaced",
    "written_never_read",
    "concurrent_write",
    "compaction",
    "fork",
    "warm_start",
    "unknown",
]


class Keeps(Protocol):
    """A cache that can be asked how what it keeps stands: absent, live, expired or unreadable."""

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State: ...


class Before(Protocol):
    """An earlier call, to compare with: what was sent, as rendered, by which rules."""

    @property
    def request(self) -> Request: ...
    @property
    def prompt(self) -> Prompt: ...
    @property
    def rules(self) -> ModelRules: ...


@value
class Like:
    """The first of all calls that are alike in what later calls ask of them, to stand for each of these."""

    request: Request
    prompt: Prompt
    rules: ModelRules


@value
class Seen:
    """A call as later calls look back on it: what it was like, and the deepest of its marks that counted."""

    like: Like
    deepest: MarkedPrefix | None


class CauseFinder:
    """Compares each call with the last one that its conversation grew out of, in its pool, before it is written.

    Every call is kept to the end, since any later one may go on from it; so little of each is.
    """

    def __init__(self, cache: Keeps) -> None:
        self._cache = cache
        self._at_thread: dict[str, dict[Thread, Seen]] = {}
        self._likes: dict[tuple[object, ...], Like] = {}

    def before(self, request: Request, prompt: Prompt, rules: ModelRules, start: float, pool: str) -> Lost | None:
        """What an earlier call of the same conversation left for this one, and how that stands now."""
        seen = self._relative(request.thread, pool)
        if seen is None or seen.deepest is None:
            return Lost(seen, None, "absent") if seen else None
        reaches = ancestor(prompt.end, seen.deepest.prefix.depth) is seen.deepest.prefix
        state = (
            self._cache.state(seen.deepest.prefix, seen.deepest.ttl, seen.like.rules, start) if reaches else "changed"
        )
        return Lost(seen, seen.deepest.prefix, state)

    def remember(self, request: Request, prompt: Prompt, rules: ModelRules, outcome: Outcome, pool: str) -> None:
        """Keep this call for those that come after it."""
        deepest = outcome.marks[-1] if outcome.marks else None
        if rules.is_unmarked:
            deepest = MarkedPrefix(prompt.end, "5m")
        self._at_thread.setdefault(pool, {})[request.thread] = Seen(self._like(request, prompt, rules), deepest)

    def _like(self, request: Request, prompt: Prompt, rules: ModelRules) -> Like:
        """What `what_changed` asks of an earlier call is equal for all calls with this key."""
        thread, own = request.thread, (request.params, request.tools, request.system, rules)
        key = (*map(id, own), prompt.salts, thread.has_image, thread.has_thinking)
        like = self._likes.get(key)
        if like is None:  # it holds all whose id is in the key, so that no other object gets that id
            like = self._likes[key] = Like(request, prompt, rules)
        return like

    def _relative(self, thread: Thread, pool: str) -> Seen | None:
        known = self._at_thread.get(pool, {})
        return next((known[node] for node in thread.back() if node in known), None)


@value
class Lost:
    """The deepest entry of the relative `seen`, and its state: absent, live, expired, unreadable or changed."""

    seen: Seen
    entry: Prefix | None
    state: str


def cause_of(request: Request, prompt: Prompt, outcome: Outcome, lost: Lost | None, rules: ModelRules) -> Cause:
    """The one cause of how this call's prompt divided."""
    if rules.is_unmarked:
        return _unmarked_cause(request, prompt, outcome, lost, rules)
    if not outcome.marks:
        return "below_minimum" if prompt.marks else "no_mark"
    read = outcome.hit.depth if outcome.hit else 0
    if read >= outcome.marks[-1].prefix.depth:
        return "hit"
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None or (lost.state != "changed" and read >= lost.entry.depth):
        return "hit" if outcome.hit else "new_content"
    states: dict[str, Cause] = {"expired": "ttl_expired", "unreadable": "concurrent_write"}
    if lost.state in states:
        return states[lost.state]
    if lost.state == "live":
        return "lookback_exceeded" if _is_too_far_back(lost.entry, prompt, outcome) else "mark_misplaced"
    return what_changed(request, prompt, lost.seen.like, rules)


def _is_too_far_back(entry: Prefix, prompt: Prompt, outcome: Outcome) -> bool:
    """Whether marks look towards a live entry, and not as far as that. Else none stands where it could find it."""
    if prompt.boundaries is None:
        return outcome.marks[-1].prefix.depth >= entry.depth
    ends = [place.depth for place in prompt.boundaries if place.layer is Layer.MESSAGES]
    return len(ends) > EARLIER_ENDS and entry.depth < min(ends)


def _unmarked_cause(request: Request, prompt: Prompt, outcome: Outcome, lost: Lost | None, rules: ModelRules) -> Cause:
    """As `cause_of`, on a host that caches by itself: the end of each prompt is what later ones may find."""
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None:  # the call before went to a model that caches by marks, and marked nothing
        return "hit" if outcome.hit else what_changed(request, prompt, lost.seen.like, rules)
    if outcome.hit and outcome.hit.depth >= lost.entry.depth:
        return "hit"
    states: dict[str, Cause] = {"expired": "ttl_expired", "unreadable": "concurrent_write", "live": "below_minimum"}
    if lost.state in states:
        return "hit" if outcome.hit and lost.state == "live" else states[lost.state]
    return what_changed(request, prompt, lost.seen.like, rules) if lost.state == "changed" else "unknown"


def what_changed(request: Request, prompt: Prompt, seen: Before, rules: ModelRules) -> Cause:
    """The first difference in prompt order: model, speed, tools, system's salt and text, messages' salt."""
    before = seen.request
    is_salted = rules.salted_by is None or prompt.salts != seen.prompt.salts
    differs: list[tuple[bool, Cause]] = [
        (model_of(rules) != model_of(seen.rules), "model_changed"),
        (_is_fast(request) != _is_fast(before), "speed_changed"),
        (request.tools.digest != before.tools.digest, "tools_changed"),
        (is_salted and output_format(request.params) != output_format(before.params), "output_format_changed"),
        (request.system.digest != before.system.digest, "system_changed"),
        (prompt.salts[1] != seen.prompt.salts[1], "system_changed"),
        (_choice(request) != _choice(before) and prompt.salts[2] != seen.prompt.salts[2], "tool_choice_changed"),
        (is_salted and thinking_asked(request, rules) != thinking_asked(before, seen.rules), "thinking_changed"),
        (is_salted and effort_asked(request, rules) != effort_asked(before, seen.rules), "effort_changed"),
        (request.thread.has_image != before.thread.has_image, "images_changed"),
        (not rules.keeps_thinking and before.thread.has_thinking, "thinking_stripped"),
        (rules.salted_by is not None and is_salted, "unknown"),  # a parameter that no cause is named after
    ]
    return next((cause for differed, cause in differs if differed), "content_changed")


def _is_fast(request: Request) -> bool:
    return request.params.get("speed") == "fast"


def _choice(request: Request) -> object:
    return request.params.get("tool_choice")


def ancestor(node: Prefix, depth: int) -> Prefix:
    """The prefix of `node` that is `depth` blocks long. Costs the blocks in between."""
    while node.depth > depth or (node.block is None and node.parent is not None):
        assert node.parent is not None
        node = node.parent
    return node
