"""Checks the breakpoints of one request: are their prefixes long enough, and are they in useful places?"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedMark
from cachecost.analysis.lint.request_loader import length_state
from cachecost.prompts.blocks import Layer


def check_lengths(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """No breakpoint; breakpoints that are too short or too close to call; all breakpoints in the static prefix."""
    if not loaded.sized:
        return
    if not loaded.marks:
        yield from _check_unmarked(loaded)
        return
    yield from _check_short(loaded)
    yield from _check_head_only(loaded)


def _check_unmarked(loaded: LoadedRequest) -> Iterator[LintFinding]:
    minimum = loaded.rules.minimum_tokens
    if not loaded.sent_marks.marks and length_state(loaded.total, minimum, loaded.band) == "enough":
        words = (
            f"{_about(loaded, loaded.total)} tokens and no breakpoint: nothing is cached (the minimum is {minimum:,})"
        )
        yield LintFinding("CC520", "cache_control", words, loaded.total)


def _check_short(loaded: LoadedRequest) -> Iterator[LintFinding]:
    first = next((mark for mark in loaded.marks if mark.state == "enough"), None)
    near = [mark for mark in loaded.marks if mark.state == "near"]
    if first is None and not near:
        yield _nothing_cached(loaded, loaded.marks[-1])
        return
    for mark in near:
        words = f"{_about(loaded, mark.tokens)} tokens, where {_minimum(loaded)}: too close to tell"
        yield LintFinding("CC511", mark.path, words + _first(first), abs(_missing(loaded, mark)))
    for mark in loaded.marks:
        if mark.state == "short":
            words = f"{_missing(loaded, mark):,} tokens short: {_about(loaded, mark.tokens)}, where {_minimum(loaded)}"
            yield LintFinding("CC512", mark.path, words + _first(first), _missing(loaded, mark))


def _nothing_cached(loaded: LoadedRequest, last: SizedMark) -> LintFinding:
    """No breakpoint is long enough: reported at the last one."""
    rest = loaded.total - last.tokens
    deeper = length_state(loaded.total, loaded.rules.minimum_tokens, loaded.band) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    words = (
        f"{_missing(loaded, last):,} tokens short: {_about(loaded, last.tokens)} up to the last breakpoint, "
        f"where {_minimum(loaded)}{after}"
    )
    return LintFinding("CC510", last.path, words, _missing(loaded, last))


def _missing(loaded: LoadedRequest, mark: SizedMark) -> int:
    return loaded.rules.minimum_tokens - mark.tokens


def _minimum(loaded: LoadedRequest) -> str:
    return f"{loaded.rules.model} needs {loaded.rules.minimum_tokens:,}"


def _about(loaded: LoadedRequest, tokens: int) -> str:
    return f"{tokens:,} (±{loaded.band:.1%})" if loaded.band else f"{tokens:,}"


def _first(mark: SizedMark | None) -> str:
    return f"; the first breakpoint that counts is {mark.path} ({mark.tokens:,} tokens)" if mark else ""


def _check_head_only(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """All marks spent on tools and system, in a request that has an answer in it: a conversation."""
    in_head = [mark for mark in loaded.marks if mark.mark.layer is not Layer.MESSAGES]
    goes_on = any(node.message and node.message.role == "assistant" for node in loaded.request.thread.back())
    if len(in_head) < loaded.rules.maximum_marks or len(in_head) < len(loaded.marks) or not goes_on:
        return
    tokens = loaded.total - in_head[-1].tokens
    words = f"all {len(in_head)} breakpoints are in tools and system: the {tokens:,} tokens after them are never cached"
    yield LintFinding("CC522", in_head[-1].path, words, tokens)
