"""What a prompt shares with earlier ones, the read that usage reports, and its range where hits are not certain."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, takewhile
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.render import PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules, SharedPrefix

LACKING_TOKENS = 32
"""How much shorter than billed an answer may come back: half of the 64 tokens that OpenAI bills reasoning in."""
SURPLUS_TOKENS = 8
"""How much longer than billed it may come back: blocks are counted by an estimate."""
CALL_TOKENS = 32
"""The same of a call of a tool, which no client writes by itself: its wrapping is estimated as well."""
SHARE = 0.05
"""Each as a share of the billed length, where that is more."""


class PriorPrompt(NamedTuple):
    """`shared`: the longest prefix that an earlier prompt also had. `answer`: the prefix that ends with the answer to
    that prompt, if `shared` is all of it and its answer follows here for the first time. `is_billed`: the length of
    that answer is known."""

    shared: Prefix | None
    answer: Prefix | None
    is_billed: bool = False


NO_PRIOR_PROMPT = PriorPrompt(None, None)


class PromptHistory:
    """All prompts so far. Each call has one answer; calls with the same prompt have one answer each."""

    def __init__(self) -> None:
        self.seen: set[Prefix] = set()
        self._awaited: dict[Prefix, list[int | None]] = {}

    def add_call(self, end: Prefix) -> PriorPrompt:
        """Record a call whose prompt ends at `end`. Takes time for the blocks that are new in it."""
        new, node = new_prefixes(end, self.seen)
        answer, is_billed = self._find_answer(node, new[::-1]) if node is not None else (None, False)
        self.seen.update(new)
        self._awaited.setdefault(end, []).append(None)
        return PriorPrompt(node, answer, is_billed)

    def note_answer(self, end: Prefix, tokens: int) -> None:
        """The answer to the latest call whose prompt ends at `end` has so many tokens, thinking included."""
        awaited = self._awaited.get(end)
        if awaited:
            awaited[-1] = tokens

    def add_answer(self, end: Prefix, answer: Prefix) -> None:
        """The answer to the latest call whose prompt ends at `end` is known: the prefix `answer` ends with it."""
        self.seen.update(new_prefixes(answer, self.seen)[0])
        if self._awaited.get(end):
            self._awaited[end].pop()

    def _find_answer(self, prompt: Prefix, after: list[Prefix]) -> tuple[Prefix | None, bool]:
        """The prefix that ends with an answer to `prompt`, and whether a bill says how long that is."""
        run = list(takewhile(attrgetter("is_of_assistant"), after))
        awaited = self._awaited.get(prompt)
        if not run or not awaited:
            return None, False
        for place, tokens in enumerate(awaited):
            found = run[-1] if tokens is None else _as_long(prompt, run, tokens)
            if found is not None:
                del awaited[place]
                return found, tokens is not None
        return None, False


def _as_long(prompt: Prefix, run: list[Prefix], tokens: int) -> Prefix | None:
    """The end of the blocks after `prompt` that are as long as an answer of `tokens`; None where none are."""
    share = SHARE * tokens
    fitting = []
    for node in run:
        is_call = node.block is not None and node.block.kind == "tool_use"
        if node.tokens - prompt.tokens <= tokens + max(CALL_TOKENS if is_call else SURPLUS_TOKENS, share):
            fitting.append(node)
    lacking = tokens - (fitting[-1].tokens - prompt.tokens) if fitting else tokens
    return fitting[-1] if fitting and lacking <= max(LACKING_TOKENS, share) else None


def kept_answer(asked: Prefix, answer: Prefix, rules: ModelRules) -> Prefix:
    """How far an answer to the prompt `asked` is read where it comes back: to its end, or to that of its first call."""
    calls = [
        node
        for node in takewhile(lambda node: node is not asked, prefixes_back(answer))
        if node.block is not None and node.block.kind == "tool_use"
    ]
    return calls[-1] if rules.keeps_first_call_only and len(calls) > 1 else answer


def reported_read(matched: int, total: int, rules: ModelRules) -> int:
    """The tokens that usage reports as read, of a prompt of `total` tokens whose first `matched` are cached.

    They end at a block, reach the minimum, exclude what is recomputed, and are reported in whole steps.
    """
    hit = round_down_to_block(matched, rules)
    if hit < rules.minimum_tokens:
        return 0
    hit = min(hit, round_down_to_block(total - rules.recomputed_tokens, rules))
    return hit - hit % rules.reported_step_tokens


def round_down_to_block(tokens: int, rules: ModelRules) -> int:
    """The last end of a fixed-size block at or before `tokens`; blocks start at the provider's own hidden text."""
    from_its_start = tokens + rules.grid_offset_tokens
    return max(0, from_its_start - from_its_start % rules.step_tokens - rules.grid_offset_tokens)


def shared_with(end: Prefix, tail: int, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The tokens that a longer prompt shares with one that ended at `end`: all but those that opened its answer.

    A bill of the earlier prompt counts all of them, our own count the `tail` of them that it puts after `end`.
    """
    tokens = sizes.of(end)
    return tokens + tail - rules.opener_tokens if sizes.doubt(tokens) == 0 else tokens


def tail_of(prompt: Prompt) -> int:
    """The tokens that are counted after the last block of a prompt."""
    return prompt.total_tokens - prompt.end.tokens


def build_outcome(prompt: Prompt, sizes: PrefixSizes, matched: int, hit: Prefix | None, rules: ModelRules) -> Outcome:
    """The outcome where `matched` tokens are cached, up to `hit`. Breakpoints have no effect; writes are free, or whole
    steps are charged at the price of `charged_ttl`."""
    total = sizes.total(prompt)
    read = reported_read(matched, total, rules)
    whole = total - total % rules.step_tokens if rules.charged_ttl and total >= rules.minimum_tokens else read
    written = {"5m": 0, "1h": 0, rules.charged_ttl: whole - read}
    return Outcome(read, written["1h"], written["5m"], total - whole, hit if read else None, ())


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """From `least` to `most` tokens, in a share `coverage` of such calls (1: in all of them)."""

    least: int
    most: int
    coverage: float

    def hold(self, read: int, slack: float) -> bool:
        """Whether a billed read lies within, give or take `slack` tokens for estimated lengths."""
        return self.least - slack <= read <= self.most + slack


def with_shared_prefix(outcome: Outcome, shared: SharedPrefix) -> Outcome:
    """An outcome of a billed prompt, which begins with the provider's own text: that is usually read."""
    return with_least_read(outcome, shared.usual)


def with_least_read(outcome: Outcome, tokens: int) -> Outcome:
    """The outcome with at least so many tokens read: of what is written first, which begins after the read."""
    more = min(tokens, outcome.total) - outcome.read
    if more <= 0:
        return outcome
    hour = min(more, outcome.write_1h)
    five = min(more - hour, outcome.write_5m)
    return replace(
        outcome,
        read=outcome.read + more,
        write_1h=outcome.write_1h - hour,
        write_5m=outcome.write_5m - five,
        uncached=outcome.uncached - (more - hour - five),
    )


def read_bounds(rules: ModelRules, shared: SharedPrefix, predicted: int, reach: int, total: int) -> ReadBounds | None:
    """The bounds of a call's read; None where the host's hits are certain, or nothing can be read.

    `predicted` tokens are the most that the rules let it read; earlier calls sent or got the first `reach` of its
    `total` tokens, so that more of an answer may be read than is predicted.
    """
    stated = rules.read_range
    if stated is None:
        return None
    possible = max(predicted, reported_read(min(reach, total), total, rules))
    floor = shared.least if shared.least < possible else 0
    return ReadBounds(max(floor, ceil(stated.least * possible)), possible, stated.coverage) if possible else None


COVERED = 0.9
"""The share of calls whose read the range is to hold."""
PLACES = ("latest", "previous", "older")


class _Sender(NamedTuple):
    """A call, in tokens: what is counted after its prompt's last block, its answer, and what it read (0: nothing); of
    the calls on the way to it, the longest read that was shorter, and the shortest."""

    tail: int
    answer: int
    read: int
    shorter: int
    least: int


class MachineRanges:
    """The prompts of a replay so far: for each prefix, a call that sent it, the latest where prompts end or part."""

    def __init__(self) -> None:
        self._senders: dict[Prefix, _Sender] = {}

    def add(self, prompt: Prompt, read: int, answer: int = 0) -> None:
        """Record the prompt of a call that read so many tokens and was answered with so many (0: not known).

        Takes time for the blocks that are new in it.
        """
        new, node = new_prefixes(prompt.end, self._senders)
        before = self._senders[node] if node else _Sender(0, 0, 0, 0, 0)
        shorter = before.read if before.read < read else before.shorter
        least = min(filter(None, (before.least, read)), default=0)
        sender = _Sender(0, 0, read, shorter, least)
        self._senders.update(dict.fromkeys(new, sender))
        if node is not None and read:
            self._senders[node] = before._replace(read=read, shorter=shorter, least=least)
        self._senders[prompt.end] = sender._replace(tail=tail_of(prompt), answer=answer)

    def range_of(
        self, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules, most: int, reach: int = 0
    ) -> ReadBounds | None:
        """The range of a call that reads `most` tokens on the machine that has the latest prompt it goes on from.

        None where it reads nothing anywhere, or its rules know no other machine. Earlier calls sent the first `reach`
        tokens: a range that holds for every call goes up to there.
        """
        if not most or not rules.varies_by_machine:
            return None
        node = new_prefixes(prompt.end, self._senders)[1]
        latest = self._senders[node] if node else None
        shares = rules.machine_shares if latest and latest.read else rules.first_shares
        covered = zip(PLACES, accumulate(shares.get(place, 0.0) for place in PLACES), strict=True)
        place = next((place for place, share in covered if share >= COVERED), "none")  # the last that it takes in
        if node is None or latest is None or place == "none":
            return ReadBounds(0, max(most, reach - reach % rules.reported_step_tokens), 1.0)
        previous = next((read for read in (latest.read, latest.shorter) if 0 < read < most), most)
        least = {"latest": most, "previous": previous, "older": latest.least}[place]
        if least >= most:  # it read as much before: no more is known of it than the step that a read is cut to
            least = max(0, most - max(rules.step_tokens, rules.reported_step_tokens))
        return ReadBounds(least, max(most, _with_answer(node, latest, prompt, sizes, rules)), COVERED)


def _with_answer(node: Prefix, sender: _Sender, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The most that is read of `node` and its answer: a client's words in its place may begin with the same."""
    if not rules.keeps_answers or not sender.answer or node is prompt.end:
        return 0
    shared = shared_with(node, sender.tail, sizes, rules) + rules.opener_tokens + sender.answer
    return reported_read(shared, sizes.total(prompt), rules)
