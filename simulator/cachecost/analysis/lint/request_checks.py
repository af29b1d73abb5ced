"""What is wrong with one request: what the API refuses, breakpoints that do nothing, words that may change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, takewhile

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import (
    CONFIRMED,
    LAYERS,
    UNCONFIRMED,
    LoadedRequest,
    Place,
    SizedBreakpoint,
    beside_cache,
    length_state,
    message_place,
    strip_request,
    without_cache,
)
from cachecost.analysis.lint.volatile import KIND_NAMES, VolatileWord, excerpt, find_volatile_words
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import texts
from cachecost.prompts.request import (
    Breakpoint,
    MessageThread,
    Request,
    SentBreakpoints,
    lacking_feature,
    refusal,
    refused_parameters,
)


def check_refusals(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Every reason why this request is a 400, as `replay` has them: where the log has its bill, no parameter and no
    length is one.
    """
    for found in chain(_check_breakpoints(loaded), _check_features(loaded)):
        answered = "The log has an answer to it: what reached the API was another request than this."
        yield found if loaded.bill is None else replace(found, message=f"{found.message} {answered}")
    if loaded.bill is not None:
        return
    for path, words in refused_parameters(loaded.request, loaded.rules, loaded.is_batch):
        yield LintFinding("CC506" if path == "tool_choice" else "CC509", path, words)
    window, tokens = loaded.rules.context_window, loaded.total
    if not loaded.sized or loaded.error_margin == 0:  # bytes are no tokens
        return
    too_long = _refusal(loaded, strip_request(loaded.request), tokens=tokens)
    if too_long and tokens * (1 - loaded.error_margin) > window:
        yield LintFinding("CC507", "messages", too_long, tokens - window)
    elif tokens * (1 + loaded.error_margin) > window:
        margin = f"±{loaded.error_margin:.1%}"
        about = f"about {tokens:,} tokens ({margin}) of {window:,}: too close to tell whether it is refused"
        yield LintFinding("CC508", "messages", about, abs(window - tokens))


def _refusal(
    loaded: LoadedRequest, request: Request, breakpoints: SentBreakpoints | None = None, tokens: int = 0
) -> str | None:
    return refusal(request, breakpoints or SentBreakpoints(()), loaded.rules, tokens)


def _path(loaded: LoadedRequest, breakpoint: Breakpoint) -> str:
    return loaded.path(breakpoint.prompt_order)


def _check_breakpoints(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Too many breakpoints, one on what can carry none or is written wrongly, and 1h ones with a 5m one before them."""
    most, bare = loaded.rules.maximum_breakpoints, strip_request(loaded.request)
    if len(loaded.every) > most and (words := _refusal(loaded, bare, loaded.sent_breakpoints)):
        paths = ", ".join(_path(loaded, breakpoint) for breakpoint in loaded.every)
        yield LintFinding("CC501", _path(loaded, loaded.every[most]), f"{words} They are {paths}.")
    yield from (LintFinding("CC503", path, words) for path, words in loaded.faults)
    fault = loaded.sent_breakpoints.fault
    if fault and (words := _refusal(loaded, bare, SentBreakpoints((), fault))):
        yield LintFinding("CC504", "cache_control", words)
    short = next((breakpoint for breakpoint in loaded.every if breakpoint.ttl == "5m"), None)
    if short is None or "1h" not in loaded.rules.accepted_ttls:
        return
    for breakpoint in loaded.every[loaded.every.index(short) :]:
        is_hour = breakpoint.ttl == "1h"
        if is_hour and (words := _refusal(loaded, bare, SentBreakpoints((short, breakpoint)))):
            yield LintFinding("CC502", _path(loaded, breakpoint), f"{words} The 5m block is {_path(loaded, short)}.")


def _check_features(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """What a host lacks: breakpoints in threads, automatic caching, threads and compaction, and TTLs."""
    thread = loaded.request.message_thread
    if thread is None and loaded.request.params.get("thread"):
        thread = MessageThread("", len(loaded.every))
    if thread is not None and loaded.rules.accepts_threads:
        threaded = strip_request(loaded.request, message_thread=replace(thread, idle_s=0.0))
        if words := _refusal(loaded, threaded):
            yield LintFinding("CC501", "thread", words)
    if words := lacking_feature(loaded.request, loaded.rules):
        yield LintFinding("CC505", words.partition(":")[0], words)
    if words := _refusal(loaded, strip_request(loaded.request, automatic=loaded.request.automatic)):
        yield LintFinding("CC505", "cache_control", words)
        return
    for breakpoint in loaded.every:
        if words := _refusal(loaded, strip_request(loaded.request), SentBreakpoints((breakpoint,))):
            yield LintFinding("CC505", _path(loaded, breakpoint), words)


def check_lengths(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """No breakpoint; breakpoints that are too short or too close to call; all breakpoints in the static prefix."""
    bill = loaded.bill
    if bill is not None and not bill.is_cached and loaded.breakpoints:
        last, words = loaded.breakpoints[-1], without_cache(bill)
        if loaded.sized:
            about = f"{_about(loaded, last.tokens)} up to the last breakpoint, where {_minimum(loaded)}"
            words += f"; {about}" if _missing(loaded, last) > 0 else f", although the prefix seems long enough: {about}"
        yield LintFinding("CC510", last.path, words, bill.usage.total_input, bill=CONFIRMED)
    elif not loaded.sized:
        return
    elif loaded.breakpoints:
        first = next((breakpoint for breakpoint in loaded.breakpoints if breakpoint.state == "enough"), None)
        if first is not None:
            yield from _check_shallow(loaded, first)
        elif bill is None:
            yield from _check_uncertain(loaded)
        yield from _check_head_only(loaded)
    elif not loaded.sent_breakpoints.breakpoints and (bill is None or not bill.is_cached):
        minimum, total = loaded.rules.minimum_tokens, loaded.total
        if bill:
            total = min(total, bill.usage.total_input)  # never more than were billed, whatever the count says
        if length_state(total, loaded.error(total), minimum) == "enough":
            words = f"{_about(loaded, total)} tokens and no breakpoint: nothing is cached (the minimum is {minimum:,})"
            words += f"; {without_cache(bill)}" if bill else ""
            yield LintFinding("CC520", "cache_control", words, total, bill=CONFIRMED if bill else UNCONFIRMED)


def _check_shallow(loaded: LoadedRequest, first: SizedBreakpoint) -> Iterator[LintFinding]:
    """Breakpoints that do nothing, or perhaps nothing, beside `first`, which surely counts."""
    counts = f"; the first breakpoint that counts is {first.path} ({first.tokens:,} tokens)"
    for breakpoint in loaded.breakpoints:
        if breakpoint.state == "near":
            words = f"{_about(loaded, breakpoint.tokens)} tokens, where {_minimum(loaded)}: too close to tell"
            yield LintFinding("CC513", breakpoint.path, words + counts, abs(_missing(loaded, breakpoint)))
        elif breakpoint.state == "short":
            words = f"{_short_by(loaded, breakpoint)}: {_about(loaded, breakpoint.tokens)}, where {_minimum(loaded)}"
            yield LintFinding("CC512", breakpoint.path, words + counts, _missing(loaded, breakpoint))


def _check_uncertain(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Without a bill: no breakpoint is long enough, or none surely is. Reported at the last one."""
    last = loaded.breakpoints[-1]
    about = f"{_about(loaded, last.tokens)} up to the last breakpoint, where {_minimum(loaded)}"
    if last.state == "near":
        is_far = last.tokens + loaded.error(last.tokens) < loaded.rules.minimum_tokens
        why = ", as counters disagree on long runs of one letter" if is_far else ""
        words = f"{about}: whether anything is cached is too close to tell{why}"
        yield LintFinding("CC511", last.path, words, abs(_missing(loaded, last)))
        return
    rest = loaded.total - last.tokens
    deeper = length_state(loaded.total, loaded.error(loaded.total), loaded.rules.minimum_tokens) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    yield LintFinding("CC510", last.path, f"{_short_by(loaded, last)}: {about}{after}", _missing(loaded, last))


def _short_by(loaded: LoadedRequest, breakpoint: SizedBreakpoint) -> str:
    return f"{count_text(_missing(loaded, breakpoint), 'token')} short"


def _missing(loaded: LoadedRequest, breakpoint: SizedBreakpoint) -> int:
    return loaded.rules.minimum_tokens - breakpoint.tokens


def _minimum(loaded: LoadedRequest) -> str:
    return f"{loaded.rules.model} needs {loaded.rules.minimum_tokens:,}"


def _about(loaded: LoadedRequest, tokens: int) -> str:
    """A length with its error margin, in tokens and in percent; a billed one has none."""
    error = loaded.error(tokens)
    return f"{tokens:,} (±{error:,.0f}, {error / tokens:.1%})" if error >= 1 else f"{tokens:,}"


def _check_head_only(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """All breakpoints spent on tools and system, in a request that has an answer in it: a conversation."""
    in_head = [breakpoint for breakpoint in loaded.breakpoints if breakpoint.breakpoint.layer is not Layer.MESSAGES]
    goes_on = any(node.message and node.message.role == "assistant" for node in loaded.request.thread.back())
    if len(in_head) < loaded.rules.maximum_breakpoints or len(in_head) < len(loaded.breakpoints) or not goes_on:
        return
    if loaded.is_cached_after(in_head[-1]):
        return
    tokens = loaded.total - in_head[-1].tokens
    words = f"all {len(in_head)} breakpoints are in tools and system: the {tokens:,} tokens after them are never cached"
    billed = beside_cache(loaded.bill)
    yield LintFinding("CC522", in_head[-1].path, words + billed, tokens, bill=loaded.confirmation)


SURE, MAYBE = "CC531", "CC532"
Candidate = tuple[str, str, VolatileWord]
"""Path within the block, the text there, the word in it."""


class Guesser:
    """Looks through the blocks that stand before a breakpoint. Each block is read once, however many requests
    repeat it.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Candidate, ...]] = {}
        self._sent: dict[bytes, tuple[float, float]] = {}

    def may_have_stood_still(self, digest: bytes) -> bool:
        """Whether all requests with this block were sent before the time of day in it could be another."""
        first, last = self._sent.get(digest, (0.0, math.inf))
        return last - first < max((word.step_s for _, _, word in self._known.get(digest, ())), default=0.0)

    def guesses(self, loaded: LoadedRequest) -> Iterator[LintFinding]:
        """One finding a text that holds a candidate: the surest, the first of equals."""
        for place, block in early_blocks(loaded):
            if not loaded.reaches(place):
                return
            if block.digest not in self._known:
                words = ((path, text, find_volatile_words(text)) for path, text in texts(block.content or {}))
                surest = (
                    (path, text, min(found, key=lambda one: not one.strong)) for path, text, found in words if found
                )
                self._known[block.digest] = tuple(surest)
            for inner, text, word in self._known[block.digest]:
                if loaded.start is not None:
                    first, last = self._sent.get(block.digest, (loaded.start, loaded.start))
                    self._sent[block.digest] = min(first, loaded.start), max(last, loaded.start)
                code = SURE if word.strong and LAYERS[place[0]] is not Layer.MESSAGES else MAYBE
                path, shown = inner_path(loaded.path(place), inner), excerpt(text, word.end, word.end - word.start)
                what = f'{KIND_NAMES[word.kind]} at character {word.start:,}: "{shown}"'
                yield LintFinding(code, path, what, loaded.behind(block), word.start, shown, digest=block.digest)


def early_blocks(loaded: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """The blocks that are looked through: tools, system, and what stands in messages before the first answer, tool
    results left out."""
    yield from loaded.head()
    messages = takewhile(lambda node: node.message is None or node.message.role != "assistant", loaded.messages())
    for node in messages:
        for index, block in enumerate(node.message_blocks):
            if block.kind == "text":
                yield message_place(node, index), block


def inner_path(path: str, inner: str) -> str:
    """The path of a text within a block; that of a text block is the block's own."""
    return path if inner in ("", "text") else f"{path}.{inner}"
