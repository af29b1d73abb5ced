"""What the step from a request to the next one loses: by changed parameters, tools, system prompt and messages, and by
breakpoints that stay behind or are out of reach. Where the next one has a bill, that decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import (
    CONFIRMED,
    SAME,
    LoadedRequest,
    Place,
    SizedBreakpoint,
    beside_cache,
    length_state,
    message_place,
)
from cachecost.analysis.lint.request_checks import inner_path
from cachecost.analysis.lint.volatile import KIND_NAMES, excerpt, kind_of, only_words_changed
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.caches.losses import LONG_TEXT, share_of_long_text
from cachecost.prompts.blocks import Block, Prefix, Thread
from cachecost.prompts.compare import ancestor, first_changed_block, first_difference, texts, value_text
from cachecost.prompts.render import cache_keys_of, lookback_steps

VOLATILE, CHANGED, KEY_ORDER = "CC530", "CC533", "CC534"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a block differs from the one before it: the code, where in the block, and in words."""

    code: str
    inner: str
    words: str
    offset: int | None = None
    excerpt: str = ""


def difference(old: Block, new: Block) -> Difference:
    """The difference of two blocks whose digests differ. Without content it is only known that they do."""
    if old.content is None or new.content is None:
        return Difference(CHANGED, "", "differs from the previous request")
    if old.content == new.content:
        inner, keys, others = _first_other_order(old.content, new.content, "")
        words = f"the same JSON with its keys in another order: {', '.join(others)}; before: {', '.join(keys)}"
        return Difference(KEY_ORDER, inner, words)
    before, after = list(texts(old.content)), list(texts(new.content))
    if [path for path, _ in before] != [path for path, _ in after]:
        return _find_first_change(before, after, is_volatile=False)
    changed = [(one, other) for (_, one), (_, other) in zip(before, after, strict=True) if one != other]
    return _find_first_change(before, after, bool(changed) and all(only_words_changed(*pair) for pair in changed))


def _find_first_change(before: list[tuple[str, str]], after: list[tuple[str, str]], is_volatile: bool) -> Difference:
    for (path, old), (other, new) in zip(before, after, strict=False):
        if path == other and old != new:
            at = first_difference(old, new)
            shown = excerpt(new, at)
            what = f"{KIND_NAMES[kind_of(new, min(at, len(new) - 1))]} differs" if is_volatile and new else "differs"
            words = f'{what} from the previous request at character {at:,}: "{shown}"'
            return Difference(VOLATILE if is_volatile else CHANGED, path, words, at, shown)
    return Difference(CHANGED, "", "has other fields than in the previous request")


def _first_other_order(old: Any, new: Any, path: str) -> tuple[str, list[str], list[str]]:
    """(path of the first object with another order of keys, the keys before, the keys after)."""
    if isinstance(old, Mapping):
        if list(old) != list(new):
            return path, list(map(str, old)), list(map(str, new))
        pairs = [(f"{path}.{key}".lstrip("."), old[key], new[key]) for key in old]
    elif isinstance(old, list):
        both = enumerate(zip(old, new, strict=True))
        pairs = [(f"{path}.{number}".lstrip("."), one, two) for number, (one, two) in both]
    else:
        pairs = []
    for inner, one, two in pairs:
        found = _first_other_order(one, two, inner)
        if found[1]:
            return found
    return path, [], []


UNDECIDED = frozenset({"CC521", "CC523"})
"""Not about what was read: a margin, and what comes after the last breakpoint."""


def settle(
    a: LoadedRequest, b: LoadedRequest, found: Iterable[LintFinding], written: Collection[Prefix]
) -> Iterator[LintFinding]:
    """The findings about the step from `a` to `b` that the bill of `b` does not refute, with what it confirms.

    `written` are the prefixes that earlier requests left in the cache.
    """
    bill = b.bill
    for one in found:
        # Models that count in other tokens compare only where nothing was read.
        if one.code in UNDECIDED or bill is None or (a.rules.generation != b.rules.generation and bill.usage.read):
            yield one
            continue
        # What `a` left in the cache (None: not known), and how far that may be off.
        left, error = a.cached, 0.0
        if left is None and a.sized:
            left, error = a.live[-1].tokens, a.error(a.live[-1].tokens)
        lost, is_read_past = 0 if left is None else left - bill.usage.read, False
        if left is not None and one.tokens is not None and bill.usage.read > left - one.tokens:
            before = left - one.tokens  # what stands before the finding; and what `b` had left there itself
            own = next((b.length(node) for node in b.nodes() if node in written), 0)
            read_past = max(before + a.layer_error(before), own + b.layer_error(own))
            is_read_past = bill.usage.read > read_past + SAME
        if left is not None and lost > SAME + error and not is_read_past:
            tokens = lost if one.tokens is None else min(one.tokens, lost)
            words = f"{one.message}; billed: {bill.usage.read:,} of {left:,} cached tokens read"
            yield replace(one, tokens=tokens, message=words, bill=CONFIRMED)
        # The first of several passes read no more than their sum: a sum can confirm a loss, and seldom refute one. A
        # bill that is no length of a prefix still bounds what was written again: by all that was not read.
        elif (left is None or bill.is_summed) and (
            one.tokens is None or one.tokens - a.error(one.tokens) <= bill.usage.unread + SAME
        ):
            yield one


PARAMETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "CC542": (("speed",),),
    "CC545": (("output_config", "format"), ("output_format",)),
    "CC546": (("container", "skills"),),
    "CC547": (("output_config", "task_budget"),),
    "CC548": (("tool_choice",),),
    "CC549": (("thinking",),),
    "CC550": (("output_config", "effort"),),
}
"""The paths of a body that a code is about. The cache keys say which layer they change."""
LONGEST = 40
LOST = (
    "tools, system and messages are written again",
    "system and messages are written again",
    "messages are written again",
)


def check_parameters(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """A finding for each parameter whose change loses what `a` wrote."""
    if a.rules.model != b.rules.model:
        yield from _parameter_finding(a, "CC541", "model", 0, b.rules.model, a.rules.model)
    for code, paths in PARAMETERS.items():  # `a` with this parameter as `b` has it: does a cache key change?
        params = dict(a.request.params)
        for path in paths:
            params = _set_field(params, path, _read_field(b.request.params, path))
        keys = [cache_keys_of(request, a.rules) for request in (a.request, replace(a.request, params=params))]
        layer = next((number for number, (old, new) in enumerate(zip(*keys, strict=True)) if old != new), None)
        if layer is not None:
            values = ((path, *(_read_field(one.request.params, path) for one in (b, a))) for path in paths)
            path, new, old = next(row for row in values if row[1] != row[2])
            yield from _parameter_finding(a, code, ".".join(path), layer, _value_text(new), _value_text(old))
    one, other = a.request, b.request
    web = [[block.digest for block in each.system.blocks if not block.role] for each in (one, other)]
    if web[0] != web[1]:
        now, was = (count_text(len(each), "web tool") for each in (web[1], web[0]))
        yield from _parameter_finding(a, "CC543", "tools", 1, now, was)
    cites = [each.thread.has_citations or each.system.has_citations for each in (one, other)]
    if cites[0] != cites[1]:
        now, was = ("on" if each else "off" for each in (cites[1], cites[0]))
        yield from _parameter_finding(a, "CC544", "citations", 1, now, was)
    if one.thread.has_image != other.thread.has_image:
        now, was = ("some image" if each.thread.has_image else "no image" for each in (other, one))
        yield from _parameter_finding(a, "CC551", "messages", 2, now, was)


def _parameter_finding(a: LoadedRequest, code: str, path: str, layer: int, now: str, was: str) -> Iterator[LintFinding]:
    """Nothing is lost where no breakpoint of `a` stands in that layer or after it."""
    if not a.reaches((layer, 0, 0)):
        return
    differ = f"{now}, before {was}" if now != was else "changed"
    tokens = a.live[-1].tokens - a.start_of(layer) if a.sized else None
    yield LintFinding(code, path, f"{differ}: {LOST[layer]}", tokens)


def _read_field(params: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = params
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _set_field(params: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    name, *rest = path
    if not rest:
        return {**params, name: value}
    inner = params.get(name)
    return {**params, name: _set_field(dict(inner) if isinstance(inner, Mapping) else {}, tuple(rest), value)}


def _value_text(value: Any) -> str:
    text = "not set" if value is None else value_text(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def check_last_breakpoint(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """The last breakpoint of `b` stands no later than that of `a`, and before the end of `a`, which `b` goes on
    from.
    """
    before, after = a.request.thread, b.request.thread
    grew = after.length > before.length > 0 and after.up_to(before.length) is before
    if not grew or not b.live or length_state(a.total, a.error(a.total), a.rules.minimum_tokens) != "enough":
        return
    end = message_place(before, len(before.message_blocks) - 1)
    last = b.live[-1]
    if last.place < end and not b.is_cached_after(last) and (not a.live or last.place <= a.live[-1].place):
        more = b.request.thread.length - a.request.thread.length
        tokens = b.total - last.tokens
        how_long = f"the {tokens:,} tokens after it are" if b.sized else "what comes after it is"
        words = f"the last breakpoint stays here while the conversation grew by {more} messages: {how_long} not cached"
        words += beside_cache(b.bill)
        yield LintFinding("CC521", last.path, words, tokens if b.sized else None, bill=b.confirmation)


def check_lookback(a: LoadedRequest, b: LoadedRequest, margin: int) -> Iterator[LintFinding]:
    """How many more positions would put the last breakpoint of `a` out of reach of every breakpoint of `b`: fewer
    than `margin`?
    """
    if not a.live or a.live[-1].state != "enough":
        return
    entry = a.live[-1].prefix
    if ancestor(b.prompt.end, entry.depth) is not entry:
        return
    breakpoints = [breakpoint for breakpoint in b.live if breakpoint.prefix.depth >= entry.depth]
    if not breakpoints:
        return
    nearest = min(breakpoints, key=lambda breakpoint: _steps(breakpoint, entry, b))
    steps = _steps(nearest, entry, b)
    left = b.rules.lookback_positions - steps
    back = f"{steps} positions back to the last breakpoint of the previous request ({a.live[-1].path})"
    if left < 1:
        # What is lost is what lies between the entry that is out of reach and the best of the others.
        reached = 0
        for one in a.live[:-1]:
            after = (end for end in b.live if end.prefix.depth >= one.prefix.depth)
            if any(_steps(end, one.prefix, b) < b.rules.lookback_positions for end in after):
                reached = max(reached, one.tokens)
        lost = a.live[-1].tokens - reached
        words = f"{back}, {1 - left} too many: it is missed"
        yield LintFinding("CC524", nearest.path, words, lost if a.sized else None)
    elif left < margin:
        more = "one more block puts" if left == 1 else f"{left} more blocks put"
        words = f"{back}; the lookback covers {b.rules.lookback_positions - 1}: {more} it out of reach"
        yield LintFinding("CC523", nearest.path, words, a.live[-1].tokens if a.sized else None)


def _steps(breakpoint: SizedBreakpoint, entry: Prefix, b: LoadedRequest) -> int:
    return lookback_steps(breakpoint.prefix, entry, b.rules)


TOOL_ORDER, TOOL_SET, ON_CHANGING = "CC535", "CC536", "CC537"
TOOLS, SYSTEM, MESSAGES = range(3)


def block_finding(a: LoadedRequest, b: LoadedRequest, at: Place, old: Block, now: Place, new: Block) -> LintFinding:
    """The finding about a block of `a` that is another in `b`."""
    return difference_finding(a, b, at, old, b.path(now), difference(old, new))


def difference_finding(
    a: LoadedRequest, b: LoadedRequest, at: Place, old: Block, path: str, how: Difference
) -> LintFinding:
    """The finding about a difference. A breakpoint of `a` on a block that is simply another one can never be read."""
    is_marked = at[0] != TOOLS and any(breakpoint.place == at for breakpoint in a.live)
    code = ON_CHANGING if how.code == CHANGED and is_marked else how.code
    words = f"the breakpoint is on a block that {how.words}" if code == ON_CHANGING else how.words
    return LintFinding(code, inner_path(path, how.inner), words, a.behind(old), how.offset, how.excerpt)


def check_tools(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """Tools in another order, other tools, tools that are defined otherwise."""
    old, new = a.request.tools.blocks, b.request.tools.blocks
    first = first_changed_block(old, new)
    if a.request.tools.digest == b.request.tools.digest or not a.reaches((TOOLS, 0, first)):
        return
    if Counter(one.digest for one in old) == Counter(one.digest for one in new):
        yield _order_finding(a, b, old, new, first)
        return
    before, after = _tools_by_name(old), _tools_by_name(new)
    if before is None or after is None:
        yield _set_finding(a, b, first, "the definitions differ from the previous request")
        return
    came, went = [name for name in after if name not in before], [name for name in before if name not in after]
    if came or went:
        parts = [("added: ", came), ("removed: ", went)]
        yield _set_finding(a, b, first, "; ".join(words + ", ".join(names) for words, names in parts if names))
    elif list(before) != list(after):
        one, other = ([block for _, block in named.values()] for named in (before, after))
        moved = next(n for n, (x, y) in enumerate(zip(before, after, strict=True)) if x != y)
        yield _order_finding(a, b, one, other, moved)
    for name in (name for name in after if name in before):
        (at, was), (place, now) = before[name], after[name]
        if was.digest != now.digest:
            yield block_finding(a, b, (TOOLS, 0, at), was, (TOOLS, 0, place), now)


def _order_finding(
    a: LoadedRequest, b: LoadedRequest, old: Sequence[Block], new: Sequence[Block], first: int
) -> LintFinding:
    names = _name(new[first]), _name(old[first])
    shown = f": {names[0]} is now where {names[1]} was" if all(names) else ""
    return LintFinding(
        TOOL_ORDER, b.path((TOOLS, 0, first)), f"the same tools in another order{shown}", a.behind(old[first])
    )


def _set_finding(a: LoadedRequest, b: LoadedRequest, first: int, words: str) -> LintFinding:
    """About the first place where the lists part; what is behind it is the same from either list."""
    old, new = a.request.tools.blocks, b.request.tools.blocks
    path = b.path((TOOLS, 0, first)) if first < len(new) else "tools"
    lost = a.behind(old[first]) if first < len(old) else a.live[-1].tokens - a.start_of(SYSTEM)
    return LintFinding(TOOL_SET, path, words, lost if a.sized else None)


def _name(block: Block) -> str:
    return str(block.content.get("name") or "") if block.content else ""


def _tools_by_name(blocks: Sequence[Block]) -> dict[str, tuple[int, Block]] | None:
    """Tools by name with their number; None where names are not known, or not each its own."""
    found = {_name(block): (number, block) for number, block in enumerate(blocks)}
    return found if len(found) == len(blocks) and "" not in found else None


def check_system(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """Blocks of the system prompt that differ, came or went. Web tools at its head are parameters' affair."""
    old, new = ([(at, block) for at, block in one.head() if at[0] == SYSTEM and block.role] for one in (a, b))
    for (at, before), (now, after) in zip(old, new, strict=False):
        if not a.reaches(at):
            return
        if before.digest != after.digest:
            yield block_finding(a, b, at, before, now, after)
    least = min(len(old), len(new))
    if len(old) > least and a.reaches(old[least][0]):
        yield difference_finding(a, b, *old[least], a.path(old[least][0]), GONE)
    elif len(new) > least and a.reaches((MESSAGES, 0, 0)):
        lost = a.live[-1].tokens - a.start_of(MESSAGES) if a.sized else None
        yield LintFinding(CHANGED, b.path(new[least][0]), "a block was added to the system prompt", lost)


GONE = Difference(CHANGED, "", "is missing from the next request")


def check_messages(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """What was changed in messages that go on: one finding a code, at the first block that has it.

    Another conversation, a message that was taken back, a fork: those are no faults. So a difference counts only
    if later messages of `a` stand in `b` again, or if it is in the last message of `a`, and `b` goes on from there.
    """
    shared = a.request.thread.common(b.request.thread).length
    old, new = a.messages(shared), b.messages(shared)
    if not old or not new:
        return
    kept = {node.message.digest for node in new if node.message and not node.message.is_human}
    stays = any(node.message.digest in kept for node in old if node.message)
    if not stays and shared == 0:  # a long block, or most of a long text, of a first message, not where both begin
        before, after = old[0].message_blocks, new[0].message_blocks
        long = {block.digest for block in before if block.size >= LONG_TEXT}
        first = first_changed_block(before, after)
        first = first if first < len(before) else len(after)
        stays = any(block.digest in long for block in after[first:])
        stays = stays or any(share_of_long_text(x, y) for x, y in zip(before[first:], after[first:], strict=False))
    firsts = old[0].message_blocks[:1], new[0].message_blocks[:1]
    is_same = shared > 0 or (all(firsts) and firsts[0][0].digest == firsts[1][0].digest)
    found: dict[str, LintFinding] = {}
    for one in _find_differences(a, b, old, new):
        is_word = one.code in (VOLATILE, KEY_ORDER)
        if stays or ((len(old) == 1 and b.request.thread.length > a.request.thread.length) and (is_same or is_word)):
            found.setdefault(one.code, one)
        if not is_word:
            break
    yield from found.values()


def _find_differences(
    a: LoadedRequest, b: LoadedRequest, old: list[Thread], new: list[Thread]
) -> Iterator[LintFinding]:
    """Block by block, until messages no longer correspond, or no breakpoint of `a` comes after."""
    for one, other in zip(old, new, strict=False):
        if one.message is None or other.message is None or one.message.digest == other.message.digest:
            continue
        for before, after in zip_longest(_counted_blocks(one, b), _counted_blocks(other, b)):
            if before is None or not a.reaches(before[0]):
                return
            place, block = before
            if after is None:
                yield difference_finding(a, b, place, block, a.path(place), GONE)
                return
            if block.digest != after[1].digest:
                yield block_finding(a, b, place, block, *after)


def _counted_blocks(node: Thread, b: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """The blocks of a message as they count in `b`: where the model drops thinking, it does not matter who does."""
    human = b.request.thread.human
    drops = not b.rules.keeps_thinking and human is not None and node.length < human.length
    for index, block in enumerate(node.message_blocks):
        if not (drops and block.is_thinking):
            yield message_place(node, index), block
