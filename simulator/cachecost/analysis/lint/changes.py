"""Compares tools and system of a request and the next one, as far as a breakpoint covers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cachecost.analysis.lint.blocks import CHANGED, Difference, difference
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.guesses import inner_path
from cachecost.analysis.lint.loaded_request import LoadedRequest, Place
from cachecost.prompts.blocks import Block

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
    first = _first(old, new)
    if a.request.tools.digest == b.request.tools.digest or not a.reaches((TOOLS, 0, first)):
        return
    if Counter(one.digest for one in old) == Counter(one.digest for one in new):
        yield _order_finding(a, b, old, new, first)
        return
    before, after = _tools_by_name(old), _tools_by_name(new)
    if before is None or after is None:
        yield _set_finding(a, b, first, "the definitions differ from the previous request")
        return
    yield from _check_names(a, b, before, after, first)
    for name in (name for name in after if name in before):
        yield from _check_definition(a, b, before[name], after[name])


def _check_definition(
    a: LoadedRequest, b: LoadedRequest, old: tuple[int, Block], new: tuple[int, Block]
) -> Iterator[LintFinding]:
    if old[1].digest != new[1].digest:
        yield block_finding(a, b, (TOOLS, 0, old[0]), old[1], (TOOLS, 0, new[0]), new[1])


def _check_names(
    a: LoadedRequest,
    b: LoadedRequest,
    before: dict[str, tuple[int, Block]],
    after: dict[str, tuple[int, Block]],
    first: int,
) -> Iterator[LintFinding]:
    came, went = [name for name in after if name not in before], [name for name in before if name not in after]
    if came or went:
        parts = [("added: ", came), ("removed: ", went)]
        yield _set_finding(a, b, first, "; ".join(words + ", ".join(names) for words, names in parts if names))
        return
    old, new = [block for _, block in before.values()], [block for _, block in after.values()]
    if list(before) != list(after):
        yield _order_finding(
            a, b, old, new, next(n for n, (x, y) in enumerate(zip(before, after, strict=True)) if x != y)
        )


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


def _first(old: Sequence[Block], new: Sequence[Block]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (one, other) in pairs if one.digest != other.digest), min(len(old), len(new)))


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
        yield difference_finding(
            a, b, *old[least], a.path(old[least][0]), Difference(CHANGED, "", "is missing from the next request")
        )
    elif len(new) > least and a.reaches((MESSAGES, 0, 0)):
        lost = a.live[-1].tokens - a.start_of(MESSAGES) if a.sized else None
        yield LintFinding(CHANGED, b.path(new[least][0]), "a block was added to the system prompt", lost)
