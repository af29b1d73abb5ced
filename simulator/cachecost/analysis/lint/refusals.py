"""Everything that the API refuses, not only the first: tries each rule of `prompts/refusals.py` by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, place_of
from cachecost.analysis.lint.request_loader import only_breakpoints, strip_request
from cachecost.prompts.refusals import SentBreakpoints, lacking_feature, refusal, refused_parameters
from cachecost.prompts.request import Breakpoint, MessageThread, Request

ANSWERED = "The log has an answer to it: what reached the API was another request than this."
OF_TOOL_CHOICE, OF_PARAMETER = "CC506", "CC509"


def check_refusals(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Every reason why this request is a 400, as `replay` has them: where the log has its bill, no parameter and no
    length is one.
    """
    for found in _check_breakpoints(loaded):
        yield found if loaded.bill is None else replace(found, message=f"{found.message} {ANSWERED}")
    if loaded.bill is None:
        for path, words in refused_parameters(loaded.request, loaded.rules, loaded.is_batch):
            yield LintFinding(OF_TOOL_CHOICE if path == "tool_choice" else OF_PARAMETER, path, words)
        yield from _check_length(loaded)


def _check_breakpoints(loaded: LoadedRequest) -> Iterator[LintFinding]:
    yield from _check_count(loaded)
    yield from _check_thread(loaded)
    yield from (LintFinding("CC503", path, words) for path, words in loaded.faults)
    yield from _check_automatic(loaded)
    yield from _check_host(loaded)
    yield from _check_order(loaded)


def _refusal(
    loaded: LoadedRequest, request: Request, breakpoints: SentBreakpoints | None = None, tokens: int = 0
) -> str | None:
    return refusal(request, breakpoints or only_breakpoints(), loaded.rules, tokens)


def _path(loaded: LoadedRequest, breakpoint: Breakpoint) -> str:
    return loaded.path(place_of(breakpoint))


def _check_count(loaded: LoadedRequest) -> Iterator[LintFinding]:
    most = loaded.rules.maximum_breakpoints
    if (
        words := _refusal(loaded, strip_request(loaded.request), loaded.sent_breakpoints)
        if len(loaded.every) > most
        else None
    ):
        paths = ", ".join(_path(loaded, breakpoint) for breakpoint in loaded.every)
        yield LintFinding("CC501", _path(loaded, loaded.every[most]), f"{words} They are {paths}.")


def _check_thread(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """More breakpoints than a request in a message thread may have."""
    thread = loaded.request.message_thread
    if thread is None and loaded.request.params.get("thread"):
        thread = MessageThread("", len(loaded.every))
    if thread is None or not loaded.rules.accepts_threads:
        return
    if words := _refusal(loaded, strip_request(loaded.request, message_thread=replace(thread, idle_s=0.0))):
        yield LintFinding("CC501", "thread", words)


def _check_automatic(loaded: LoadedRequest) -> Iterator[LintFinding]:
    if loaded.sent_breakpoints.fault and (
        words := _refusal(loaded, strip_request(loaded.request), only_breakpoints(fault=loaded.sent_breakpoints.fault))
    ):
        yield LintFinding("CC504", "cache_control", words)


def _check_host(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Automatic caching, threads and compaction on a host without them, and each TTL that the host does not accept."""
    if words := lacking_feature(loaded.request, loaded.rules):
        yield LintFinding("CC505", words.partition(":")[0], words)
    if words := _refusal(loaded, strip_request(loaded.request, automatic=loaded.request.automatic)):
        yield LintFinding("CC505", "cache_control", words)
        return
    for breakpoint in loaded.every:
        if words := _refusal(loaded, strip_request(loaded.request), only_breakpoints((breakpoint,))):
            yield LintFinding("CC505", _path(loaded, breakpoint), words)


def _check_order(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Each 1h breakpoint with a 5m breakpoint before it."""
    short = next((breakpoint for breakpoint in loaded.every if breakpoint.ttl == "5m"), None)
    if short is None or "1h" not in loaded.rules.accepted_ttls:
        return
    for breakpoint in loaded.every[loaded.every.index(short) :]:
        if breakpoint.ttl == "1h" and (
            words := _refusal(loaded, strip_request(loaded.request), only_breakpoints((short, breakpoint)))
        ):
            yield LintFinding("CC502", _path(loaded, breakpoint), f"{words} The 5m block is {_path(loaded, short)}.")


def _check_length(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Surely too long, or as long as the window within the error of the counts. Bytes are no tokens."""
    window, tokens = loaded.rules.context_window, loaded.total
    if not loaded.sized or loaded.error_margin == 0:
        return
    words = _refusal(loaded, strip_request(loaded.request), tokens=tokens)
    if words and tokens * (1 - loaded.error_margin) > window:
        yield LintFinding("CC507", "messages", words, tokens - window)
    elif tokens * (1 + loaded.error_margin) > window:
        margin = f"±{loaded.error_margin:.1%}"
        about = f"about {tokens:,} tokens ({margin}) of {window:,}: too close to tell whether it is refused"
        yield LintFinding("CC508", "messages", about, abs(window - tokens))
