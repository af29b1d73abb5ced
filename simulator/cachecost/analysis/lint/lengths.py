"""Checks the breakpoints of one request: are their prefixes long enough, and are they in useful places?"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint
from cachecost.analysis.lint.request_loader import length_state
from cachecost.prompts.blocks import Layer


def check_lengths(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """No breakpoint; breakpoints that are too short or too close to call; all breakpoints in the static prefix."""
    if not loaded.sized:
        return
    if not loaded.breakpoints:
        yield from _check_unmarked(loaded)
        return
    yield from _check_short(loaded)
    yield from _check_head_only(loaded)


def _check_unmarked(loaded: LoadedRequest) -> Iterator[LintFinding]:
    minimum = loaded.rules.minimum_tokens
    if not loaded.sent_breakpoints.breakpoints and length_state(loaded.total, minimum, loaded.error_margin) == "enough":
        words = (
            f"{_about(loaded, loaded.total)} tokens and no breakpoint: nothing is cached (the minimum is {minimum:,})"
        )
        yield LintFinding("CC520", "cache_control", words, loaded.total)


def _check_short(loaded: LoadedRequest) -> Iterator[LintFinding]:
    first = next((breakpoint for breakpoint in loaded.breakpoints if breakpoint.state == "enough"), None)
    near = [breakpoint for breakpoint in loaded.breakpoints if breakpoint.state == "near"]
    if first is None and not near:
        yield _nothing_cached(loaded, loaded.breakpoints[-1])
        return
    for breakpoint in near:
        words = f"{_about(loaded, breakpoint.tokens)} tokens, where {_minimum(loaded)}: too close to tell"
        yield LintFinding("CC511", breakpoint.path, words + _first(first), abs(_missing(loaded, breakpoint)))
    for breakpoint in loaded.breakpoints:
        if breakpoint.state == "short":
            about, least = _about(loaded, breakpoint.tokens), _minimum(loaded)
            words = f"{_missing(loaded, breakpoint):,} tokens short: {about}, where {least}"
            yield LintFinding("CC512", breakpoint.path, words + _first(first), _missing(loaded, breakpoint))


def _nothing_cached(loaded: LoadedRequest, last: SizedBreakpoint) -> LintFinding:
    """No breakpoint is long enough: reported at the last one."""
    rest = loaded.total - last.tokens
    deeper = length_state(loaded.total, loaded.rules.minimum_tokens, loaded.error_margin) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    words = (
        f"{_missing(loaded, last):,} tokens short: {_about(loaded, last.tokens)} up to the last breakpoint, "
        f"where {_minimum(loaded)}{after}"
    )
    return LintFinding("CC510", last.path, words, _missing(loaded, last))


def _missing(loaded: LoadedRequest, breakpoint: SizedBreakpoint) -> int:
    return loaded.rules.minimum_tokens - breakpoint.tokens


def _minimum(loaded: LoadedRequest) -> str:
    return f"{loaded.rules.model} needs {loaded.rules.minimum_tokens:,}"


def _about(loaded: LoadedRequest, tokens: int) -> str:
    return f"{tokens:,} (±{loaded.error_margin:.1%})" if loaded.error_margin else f"{tokens:,}"


def _first(breakpoint: SizedBreakpoint | None) -> str:
    return (
        f"; the first breakpoint that counts is {breakpoint.path} ({breakpoint.tokens:,} tokens)" if breakpoint else ""
    )


def _check_head_only(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """All breakpoints spent on tools and system, in a request that has an answer in it: a conversation."""
    in_head = [breakpoint for breakpoint in loaded.breakpoints if breakpoint.breakpoint.layer is not Layer.MESSAGES]
    goes_on = any(node.message and node.message.role == "assistant" for node in loaded.request.thread.back())
    if len(in_head) < loaded.rules.maximum_breakpoints or len(in_head) < len(loaded.breakpoints) or not goes_on:
        return
    tokens = loaded.total - in_head[-1].tokens
    words = f"all {len(in_head)} breakpoints are in tools and system: the {tokens:,} tokens after them are never cached"
    yield LintFinding("CC522", in_head[-1].path, words, tokens)
