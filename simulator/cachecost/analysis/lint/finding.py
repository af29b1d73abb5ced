"""A finding of lint: what was found where, over how many calls.

The codes of lint as data: `codes.toml`, one table a code.

Everything that the API refuses, not only the first: tries each rule of `prompts/request.py` by itself.

What the bill of a call decides about the step to it from the call before: what was lost can be read off it.

Checks the breakpoints of one request: are their prefixes long enough, and are they in useful places?

Parameters that differ between a request and the one after it, and what that invalidates (rule 2).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from cachecost.analysis.lint.loaded_request import (
    CONFIRMED,
    SAME,
    UNCONFIRMED,
    CallBill,
    Confirmation,
    LoadedRequest,
    SizedBreakpoint,
    beside_cache,
    length_state,
    only_breakpoints,
    strip_request,
    without_cache,
)
from cachecost.base.formatting import count_text
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import cache_keys_of
from cachecost.prompts.request import (
    Breakpoint,
    MessageThread,
    Request,
    SentBreakpoints,
    lacking_feature,
    refusal,
    refused_parameters,
)

Severity = Literal["error", "warning", "note"]
LAYERS = ("tools", "system", "messages")
ByLayer = Mapping[str, str]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first. error: the API refuses. warning: it costs money. note: nothing is lost for sure."""


@dataclass(frozen=True, slots=True)
class LintCode:
    """What a code means, in general: what, why, the fix, who says so, and which code of explain prices it in a log.

    `explains_as` has that code by the layer that the finding is in; "" for none.
    """

    code: str
    name: str
    severity: Severity
    what: str
    why: str
    fix: str
    source: str
    explains_as: ByLayer

    @property
    def explain_codes(self) -> list[str]:
        """The codes of explain, each once, in the order of the layers."""
        return [code for code in dict.fromkeys(self.explains_as.values()) if code]

    def explained_at(self, path: str) -> str:
        """The code of explain for a finding at `path`; a parameter of the request stands in no layer, as if in the
        messages.
        """
        layer = path.partition(".")[0]
        return self.explains_as[layer if layer in LAYERS else LAYERS[-1]]


@cache
def codes() -> Mapping[str, LintCode]:
    """Every code of lint, by its id, in order."""
    text = files("cachecost.analysis.lint").joinpath("codes.toml").read_text(encoding="utf-8")
    return {code: LintCode(code, **{**row, "explains_as": _by_layer(row)}) for code, row in tomllib.loads(text).items()}


def _by_layer(row: Mapping[str, Any]) -> ByLayer:
    """One code for all layers, or one for each."""
    named = row["explains_as"]
    return {layer: named if isinstance(named, str) else named[layer] for layer in LAYERS}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One fault of a request, or between a request and the one after it.

    `path` is as the API writes paths: `tools.3`, `system.1`, `messages.4.content.0`. `tokens` is what it is about:
    how many are written again, never cached, missing … (None: not known). `offset` counts characters from 0 in the
    text at `path`, `excerpt` is that text around it. `request` says which input it is in, `call` the first call of
    a log that has it (from 1), `calls` how many have; then `tokens` are the most in any of them. `digest` is that of
    the block. `session`, `file` and `line` are those of the call; "", "" and None outside a log, or if it has none.
    `bill` is "confirmed" where the call's bill shows what the finding says, "" where there is no bill or it shows
    nothing of the kind; what a bill refutes is no finding.
    """

    code: str
    path: str
    message: str
    tokens: int | None = None
    offset: int | None = None
    excerpt: str = ""
    request: str = ""
    call: int | None = None
    calls: int = 1
    digest: bytes = b""
    session: str = ""
    file: str = ""
    line: int | None = None
    bill: Confirmation = UNCONFIRMED

    @property
    def about(self) -> LintCode:
        """What the code means, in general."""
        return codes()[self.code]

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def severity(self) -> Severity:
        return self.about.severity

    @property
    def why(self) -> str:
        return self.about.why

    @property
    def fix(self) -> str:
        return self.about.fix

    @property
    def source(self) -> str:
        return self.about.source

    @property
    def explains_as(self) -> str:
        """The code under which `explain` prices this in a log; "" for what no log can show."""
        return self.about.explained_at(self.path)

    @property
    def is_note(self) -> bool:
        return self.severity == "note"

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same finding in another call: the code, the log, and where it is; messages move on."""
        place = "messages" if self.path.startswith("messages.") else self.path
        return self.code, "" if self.call is None else self.request, place


def sort_findings(found: Iterable[LintFinding]) -> list[LintFinding]:
    """The worst first; of equal severity that with more tokens."""
    return sorted(found, key=_rank)


def _rank(one: LintFinding) -> tuple[int, int, str, str, str, int]:
    return SEVERITIES.index(one.severity), -(one.tokens or 0), one.code, one.path, one.request, one.call or 0


def merge_findings(found: Iterable[LintFinding]) -> list[LintFinding]:
    """Equal findings of several calls as one: that of the first call, the most tokens, how many calls have it.

    `found` come call by call. Two findings of one call stay two.
    """
    groups: dict[tuple[tuple[str, str, str], int], list[LintFinding]] = {}
    met: Counter[tuple[tuple[str, str, str], str, int | None]] = Counter()
    for one in found:
        met[one.key, one.request, one.call] += 1
        groups.setdefault((one.key, met[one.key, one.request, one.call]), []).append(one)
    return sort_findings(map(_merge_group, groups.values()))


def _merge_group(group: list[LintFinding]) -> LintFinding:
    known = [one.tokens for one in group if one.tokens is not None]
    return replace(group[0], tokens=max(known, default=None), calls=len(group))


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
    return loaded.path(breakpoint.prompt_order)


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


NEAR_THE_END, STUCK = "CC523", "CC521"
UNDECIDED = frozenset({NEAR_THE_END, STUCK})
"""Not about what was read: a margin, and what comes after the last breakpoint."""


def settle(
    a: LoadedRequest, b: LoadedRequest, found: Iterable[LintFinding], written: Collection[Prefix]
) -> Iterator[LintFinding]:
    """The findings about the step from `a` to `b` that the bill of `b` does not refute, with what it confirms.

    `written` are the prefixes that earlier requests left in the cache.
    """
    for one in found:
        settled = one if one.code in UNDECIDED or b.bill is None else _settled(a, b, b.bill, one, written)
        if settled is not None:
            yield settled


def _settled(
    a: LoadedRequest, b: LoadedRequest, bill: CallBill, one: LintFinding, written: Collection[Prefix]
) -> LintFinding | None:
    """What the bill of `b` leaves of a finding. Models that count in other tokens compare only where nothing was read.

    The first of several passes read no more than their sum: a sum can confirm a loss, and seldom refute one.
    """
    left, error = _left(a)
    if a.rules.generation != b.rules.generation and bill.usage.read:
        return one
    if left is None:
        return _bounded(a, bill, one)
    lost = left - bill.usage.read
    if lost <= SAME + error or _is_read_past(a, b, bill, one, left, written):
        return _bounded(a, bill, one) if bill.is_summed else None
    tokens = lost if one.tokens is None else min(one.tokens, lost)
    words = f"{one.message}; billed: {bill.usage.read:,} of {left:,} cached tokens read"
    return replace(one, tokens=tokens, message=words, bill=CONFIRMED)


def _left(a: LoadedRequest) -> tuple[int | None, float]:
    """(tokens that `a` left in the cache, how far they may be off); None: not known."""
    billed = a.bill.cached_prefix if a.bill else None
    if billed is not None:
        return billed, 0
    return (a.live[-1].tokens, a.error(a.live[-1].tokens)) if a.sized else (None, 0)


def _is_read_past(
    a: LoadedRequest, b: LoadedRequest, bill: CallBill, one: LintFinding, left: int, written: Collection[Prefix]
) -> bool:
    """Whether more was read than stands before the place of the finding, and than `b` had left there itself."""
    if one.tokens is None or not bill.usage.read:
        return False
    before = left - one.tokens
    own = next((b.length(node) for node in b.nodes() if node in written), 0) if bill.usage.read > before else 0
    return bill.usage.read > max(before + a.error(before), own + b.error(own)) + SAME


def _bounded(a: LoadedRequest, bill: CallBill, one: LintFinding) -> LintFinding | None:
    """A bill that is no length of a prefix still bounds what was written again: by all that was not read."""
    most = bill.usage.write + bill.uncached
    is_refuted = one.tokens is not None and one.tokens - a.error(one.tokens) > most + SAME
    return None if is_refuted else one


def check_lengths(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """No breakpoint; breakpoints that are too short or too close to call; all breakpoints in the static prefix."""
    if loaded.bill is not None and not loaded.bill.is_cached and loaded.breakpoints:
        yield _billed_uncached(loaded, loaded.bill, loaded.breakpoints[-1])
    elif not loaded.sized:
        return
    elif not loaded.breakpoints:
        yield from _check_unmarked(loaded)
    else:
        first = next((breakpoint for breakpoint in loaded.breakpoints if breakpoint.state == "enough"), None)
        if first is not None:
            yield from _check_shallow(loaded, first)
        elif loaded.bill is None:
            yield from _check_uncertain(loaded)
        yield from _check_head_only(loaded)


def _check_unmarked(loaded: LoadedRequest) -> Iterator[LintFinding]:
    if loaded.sent_breakpoints.breakpoints or (loaded.bill is not None and loaded.bill.is_cached):
        return
    minimum, total = loaded.rules.minimum_tokens, _longest(loaded)
    if length_state(total, loaded.error(total), minimum) == "enough":
        words = f"{_about(loaded, total)} tokens and no breakpoint: nothing is cached (the minimum is {minimum:,})"
        billed = f"; {without_cache(loaded.bill)}" if loaded.bill else ""
        yield LintFinding("CC520", "cache_control", words + billed, total, bill=CONFIRMED if billed else UNCONFIRMED)


def _longest(loaded: LoadedRequest) -> int:
    """Tokens of the prompt; never more than were billed, whatever the count says."""
    return min(loaded.total, loaded.bill.usage.total_input) if loaded.bill else loaded.total


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
        words = f"{about}: whether anything is cached is too close to tell{_letters(loaded, last)}"
        yield LintFinding("CC511", last.path, words, abs(_missing(loaded, last)))
        return
    rest = loaded.total - last.tokens
    deeper = length_state(loaded.total, loaded.error(loaded.total), loaded.rules.minimum_tokens) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    yield LintFinding("CC510", last.path, f"{_short_by(loaded, last)}: {about}{after}", _missing(loaded, last))


def _letters(loaded: LoadedRequest, last: SizedBreakpoint) -> str:
    """Why a length that is far from the minimum is too close to tell."""
    is_far = last.tokens + loaded.error(last.tokens) < loaded.rules.minimum_tokens
    return ", as counters disagree on long runs of one letter" if is_far else ""


def _billed_uncached(loaded: LoadedRequest, bill: CallBill, last: SizedBreakpoint) -> LintFinding:
    """The bill shows that nothing was cached, whatever the count says."""
    words = without_cache(bill)
    if loaded.sized:
        about = f"{_about(loaded, last.tokens)} up to the last breakpoint, where {_minimum(loaded)}"
        words += f"; {about}" if _missing(loaded, last) > 0 else f", although the prefix seems long enough: {about}"
    return LintFinding("CC510", last.path, words, bill.usage.total_input, bill=CONFIRMED)


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
        yield from _finding(a, "CC541", "model", 0, b.rules.model, a.rules.model)
    for code, paths in PARAMETERS.items():
        yield from _compare(a, b, code, paths)
    one, other = a.request, b.request
    web = [[block.digest for block in each.system.blocks if not block.role] for each in (one, other)]
    if web[0] != web[1]:
        yield from _finding(a, "CC543", "tools", 1, _count(len(web[1])), _count(len(web[0])))
    cites = [each.thread.has_citations or each.system.has_citations for each in (one, other)]
    if cites[0] != cites[1]:
        yield from _finding(a, "CC544", "citations", 1, _switch(cites[1]), _switch(cites[0]))
    if one.thread.has_image != other.thread.has_image:
        yield from _finding(a, "CC551", "messages", 2, _some(other.thread.has_image), _some(one.thread.has_image))


def _compare(
    a: LoadedRequest, b: LoadedRequest, code: str, paths: tuple[tuple[str, ...], ...]
) -> Iterator[LintFinding]:
    """`a` with this parameter as `b` has it: does a cache key change?"""
    params = dict(a.request.params)
    for path in paths:
        params = _put(params, path, _get(b.request.params, path))
    before = cache_keys_of(a.request, a.rules)
    after = cache_keys_of(replace(a.request, params=params), a.rules)
    layer = next((number for number, (one, other) in enumerate(zip(before, after, strict=True)) if one != other), None)
    if layer is not None:
        path = next(path for path in paths if _get(a.request.params, path) != _get(b.request.params, path))
        now, was = (_get(one.request.params, path) for one in (b, a))
        yield from _finding(a, code, ".".join(path), layer, _value_text(now), _value_text(was))


def _finding(a: LoadedRequest, code: str, path: str, layer: int, now: str, was: str) -> Iterator[LintFinding]:
    """Nothing is lost where no breakpoint of `a` stands in that layer or after it."""
    if not a.reaches((layer, 0, 0)):
        return
    differ = f"{now}, before {was}" if now != was else "changed"
    yield LintFinding(
        code, path, f"{differ}: {LOST[layer]}", a.live[-1].tokens - a.start_of(layer) if a.sized else None
    )


def _get(params: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = params
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _put(params: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    name, *rest = path
    if not rest:
        return {**params, name: value}
    inner = params.get(name)
    return {**params, name: _put(dict(inner) if isinstance(inner, Mapping) else {}, tuple(rest), value)}


def _value_text(value: Any) -> str:
    """A value as the request has it, cut where it is long."""
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _count(tools: int) -> str:
    return f"{tools} web tool{'' if tools == 1 else 's'}"


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _some(present: bool) -> str:
    return "some image" if present else "no image"
