"""Marks of one request: is what they end long enough to be cached, and do they stand where they help?"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import Sent, SizedMark
from cachecost.analysis.lint.request_loader import state
from cachecost.prompts.blocks import Layer


def lengths(sent: Sent) -> Iterator[LintFinding]:
    """No mark; marks that are too short or too near to tell; all marks in the head of a conversation."""
    if not sent.sized:
        return
    if not sent.marks:
        yield from _unmarked(sent)
        return
    yield from _short(sent)
    yield from _head_only(sent)


def _unmarked(sent: Sent) -> Iterator[LintFinding]:
    minimum = sent.rules.minimum_tokens
    if not sent.sent.marks and state(sent.total, minimum, sent.band) == "enough":
        words = f"{_about(sent, sent.total)} tokens and no mark: nothing is cached (the minimum is {minimum:,})"
        yield LintFinding("CC520", "cache_control", words, sent.total)


def _short(sent: Sent) -> Iterator[LintFinding]:
    first = next((mark for mark in sent.marks if mark.state == "enough"), None)
    near = [mark for mark in sent.marks if mark.state == "near"]
    if first is None and not near:
        yield _nothing(sent, sent.marks[-1])
        return
    for mark in near:
        words = f"{_about(sent, mark.tokens)} tokens, where {_minimum(sent)}: too near to tell"
        yield LintFinding("CC511", mark.path, words + _first(first), abs(_missing(sent, mark)))
    for mark in sent.marks:
        if mark.state == "short":
            words = f"{_missing(sent, mark):,} tokens short: {_about(sent, mark.tokens)}, where {_minimum(sent)}"
            yield LintFinding("CC512", mark.path, words + _first(first), _missing(sent, mark))


def _nothing(sent: Sent, last: SizedMark) -> LintFinding:
    """No mark is long enough: told of the last one."""
    rest = sent.total - last.tokens
    deeper = state(sent.total, sent.rules.minimum_tokens, sent.band) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    words = (
        f"{_missing(sent, last):,} tokens short: {_about(sent, last.tokens)} up to the last mark, "
        f"where {_minimum(sent)}{after}"
    )
    return LintFinding("CC510", last.path, words, _missing(sent, last))


def _missing(sent: Sent, mark: SizedMark) -> int:
    return sent.rules.minimum_tokens - mark.tokens


def _minimum(sent: Sent) -> str:
    return f"{sent.rules.model} needs {sent.rules.minimum_tokens:,}"


def _about(sent: Sent, tokens: int) -> str:
    return f"{tokens:,} (±{sent.band:.1%})" if sent.band else f"{tokens:,}"


def _first(mark: SizedMark | None) -> str:
    return f"; the first mark that counts is {mark.path} ({mark.tokens:,} tokens)" if mark else ""


def _head_only(sent: Sent) -> Iterator[LintFinding]:
    """All marks spent on tools and system, in a request that has an answer in it: a conversation."""
    in_head = [mark for mark in sent.marks if mark.mark.layer is not Layer.MESSAGES]
    goes_on = any(node.message and node.message.role == "assistant" for node in sent.request.thread.back())
    if len(in_head) < sent.rules.maximum_marks or len(in_head) < len(sent.marks) or not goes_on:
        return
    tokens = sent.total - in_head[-1].tokens
    words = f"all {len(in_head)} marks stand in tools and system: the {tokens:,} tokens after them are never cached"
    yield LintFinding("CC522", in_head[-1].path, words, tokens)
