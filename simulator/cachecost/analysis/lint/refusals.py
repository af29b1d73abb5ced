"""What the API refuses, all of it at once: each rule of `prompts/refusals.py` is asked by itself, in its words."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import Sent, place_of
from cachecost.analysis.lint.request_loader import bare, only
from cachecost.prompts.refusals import SentMarks, refusal
from cachecost.prompts.request import Mark, Request


def refused(sent: Sent) -> Iterator[LintFinding]:
    """Every reason why this request is a 400."""
    yield from _too_many(sent)
    yield from (LintFinding("CC503", path, words) for path, words in sent.faults)
    yield from _automatic(sent)
    yield from _not_here(sent)
    yield from _order(sent)
    yield from _forced(sent)
    yield from _too_long(sent)


def _asked(sent: Sent, request: Request, marks: SentMarks | None = None, tokens: int = 0) -> str | None:
    return refusal(request, marks or only(), sent.rules, tokens)


def _path(sent: Sent, mark: Mark) -> str:
    return sent.path(place_of(mark))


def _too_many(sent: Sent) -> Iterator[LintFinding]:
    most = sent.rules.maximum_marks
    if words := _asked(sent, bare(sent.request), sent.sent) if len(sent.every) > most else None:
        paths = ", ".join(_path(sent, mark) for mark in sent.every)
        yield LintFinding("CC501", _path(sent, sent.every[most]), f"{words} They are {paths}.")


def _automatic(sent: Sent) -> Iterator[LintFinding]:
    if sent.sent.fault and (words := _asked(sent, bare(sent.request), only(fault=sent.sent.fault))):
        yield LintFinding("CC504", "cache_control", words)


def _not_here(sent: Sent) -> Iterator[LintFinding]:
    """Automatic caching where the host has none, and each mark whose lifetime it does not accept."""
    if words := _asked(sent, bare(sent.request, automatic=sent.request.automatic)):
        yield LintFinding("CC505", "cache_control", words)
        return
    for mark in sent.every:
        if words := _asked(sent, bare(sent.request), only((mark,))):
            yield LintFinding("CC505", _path(sent, mark), words)


def _order(sent: Sent) -> Iterator[LintFinding]:
    """Each 1h mark with a 5m mark before it."""
    short = next((mark for mark in sent.every if mark.ttl == "5m"), None)
    if short is None or "1h" not in sent.rules.accepted_ttls:
        return
    for mark in sent.every[sent.every.index(short) :]:
        if mark.ttl == "1h" and (words := _asked(sent, bare(sent.request), only((short, mark)))):
            yield LintFinding("CC502", _path(sent, mark), f"{words} The 5m block is {_path(sent, short)}.")


def _forced(sent: Sent) -> Iterator[LintFinding]:
    if words := _asked(sent, bare(sent.request, params=sent.request.params)):
        yield LintFinding("CC506", "tool_choice", words)


def _too_long(sent: Sent) -> Iterator[LintFinding]:
    """Surely too long, or as long as the window within the error of the counts. Bytes are no tokens."""
    window, tokens = sent.rules.context_window, sent.total
    if not sent.sized or sent.band == 0:
        return
    words = _asked(sent, bare(sent.request), tokens=tokens)
    if words and tokens * (1 - sent.band) > window:
        yield LintFinding("CC507", "messages", words, tokens - window)
    elif tokens * (1 + sent.band) > window:
        about = f"about {tokens:,} tokens (±{sent.band:.1%}) of {window:,}: too near to tell whether it is refused"
        yield LintFinding("CC508", "messages", about, abs(window - tokens))
