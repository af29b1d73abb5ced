"""Bodies and recorded calls -> `LoadedRequest`: parsed, with their rules, rendered into one shared tree, breakpoints
sized. The bills of recorded calls size what they cover; a tokenizer counts the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cachecost.analysis.lint.bills import CallBill, bill_of
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint
from cachecost.analysis.lint.sizing import size_breakpoints
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.http.bare_body import NAMES, api_of, messages_body
from cachecost.prompts.blocks import Layer
from cachecost.prompts.counting import CannotCount
from cachecost.prompts.edits import since_compaction
from cachecost.prompts.intake import Intake
from cachecost.prompts.refusals import SentBreakpoints, accepts_breakpoint, sent_breakpoints, wire_path
from cachecost.prompts.render import Prompt, Renderer
from cachecost.prompts.request import Breakpoint, Request, block_at
from cachecost.prompts.wire import NotAMessage, breakpoint_fault, content_blocks, own_breakpoint
from cachecost.providers.rules import DEFAULT_HOST, ModelRules, RuleBook
from cachecost.tokens.calibrated import BilledLengths
from cachecost.tokens.factory import make_counter

BLOCK_PATH = re.compile(r"(messages\.\d+\.content|system|tools)\.\d+")
UNSIZED = "bytes"
"""The counter for recordings without counts: lengths then only give the order."""


class RequestLoader:
    """Loads what is to be linted. Use one for all requests that may share content; `tokens` names the counter."""

    def __init__(self, rules: RuleBook, host: str, tokens: str) -> None:
        self._rules = rules
        self.host = host
        self._tokens = tokens
        self._intake = Intake(keep_content=True)
        self._renderers: dict[tuple[str, str], Renderer] = {}
        self._billed: BilledLengths | None = None
        self._calls = 0

    def body(self, body: Mapping[str, Any], label: str) -> LoadedRequest:
        """A body of the Messages API, or of another, by its keys. Raises InputError where it is none, CannotEvaluate
        for an unknown model and OtherCache for a cache that lint does not support.
        """
        try:
            bare = messages_body(body)
            request = self._intake.body(bare.body)
            faults = tuple(wire_faults(bare.body))
        except NotAMessage as fault:
            api = api_of(body) or "messages"
            where = "" if api == "messages" else f"a request of {NAMES[api]}: "
            raise InputError([Fault(label, f"{where}{fault}")]) from None
        host = bare.host if bare.host and self.host == DEFAULT_HOST else self.host
        try:
            return size_breakpoints(self._load(label, None, request, self._rules.rules(host, request.model), faults))
        except CannotEvaluate as error:
            if bare.api == "messages":
                raise
            raise type(error)(f"{label}: a request of {NAMES[bare.api]}: {error}") from None

    def call(self, call: RecordedCall, label: str, number: int) -> LoadedRequest:
        """A recorded call, the `number`-th of its file; `size` it when all calls of the log are loaded.

        Raises CannotEvaluate for an unknown model.
        """
        request = call.request
        rules = self._rules.rules(call.host or self.host, request.model, call.day)
        faults = ((_block_path(request.fault), request.fault),) if request.fault else ()
        loaded = self._load(label, number, request, rules, faults, call.workspace)
        bill = bill_of(call)
        self._learn(loaded, bill)
        return replace(loaded, bill=bill, is_batch=call.is_batch, start=call.start if call.timestamp else None)

    def size(self, loaded: LoadedRequest) -> LoadedRequest:
        """A recorded call with its lengths, by all bills of the log."""
        if self._billed is not None and loaded.sized:
            loaded = replace(loaded, sizes=self._billed.all(loaded.prompt))
        return size_breakpoints(loaded)

    def _learn(self, loaded: LoadedRequest, bill: CallBill | None) -> None:
        """A bill that adds up passes has no lengths."""
        if bill is None or bill.is_summed or not loaded.sized:
            return
        self._calls += 1
        self._billed = self._billed or BilledLengths()
        self._billed.learn(self._calls, loaded.prompt, bill.usage)

    def _load(
        self,
        label: str,
        call: int | None,
        request: Request,
        rules: ModelRules,
        faults: tuple[tuple[str, str], ...],
        workspace: str = "",
    ) -> LoadedRequest:
        rules.require_breakpoints("lint")
        loaded = sent_breakpoints(request)
        good = tuple(
            breakpoint
            for breakpoint in loaded.breakpoints
            if accepts_breakpoint(block_at(request, breakpoint)) and _counts(request, breakpoint)
        )
        name, prompt = self._render(request, good, rules, workspace)
        error_margin = self._renderer(rules.generation, name).counter.error_margin
        sized = name == self._tokens
        return LoadedRequest(
            label,
            call,
            request,
            loaded,
            rules,
            prompt,
            _breakpoints(request, good, prompt),
            faults,
            error_margin,
            sized,
        )

    def _render(
        self, request: Request, breakpoints: tuple[Breakpoint, ...], rules: ModelRules, workspace: str
    ) -> tuple[str, Prompt]:
        """(the counter that was used, the prompt)."""
        for name in (self._tokens, UNSIZED):
            try:
                return name, self._renderer(rules.generation, name).render(request, breakpoints, rules, workspace)
            except CannotCount:
                if name == UNSIZED:
                    raise
        raise AssertionError("one of the two counters answers or raises")

    def _renderer(self, generation: str, name: str) -> Renderer:
        key = (generation, name)
        if key not in self._renderers:
            self._renderers[key] = Renderer(make_counter(name, generation))
        return self._renderers[key]


def _breakpoints(request: Request, breakpoints: tuple[Breakpoint, ...], prompt: Prompt) -> tuple[SizedBreakpoint, ...]:
    """The breakpoints with their prefixes, as counted; whether they are long enough is not decided yet."""
    return tuple(
        SizedBreakpoint(breakpoint, wire_path(request, breakpoint), one.prefix, one.prefix.tokens, "near")
        for breakpoint, one in zip(breakpoints, prompt.breakpoints, strict=True)
    )


def _counts(request: Request, breakpoint: Breakpoint) -> bool:
    """Whether the API looks at a breakpoint: what stands before a compaction is left out."""
    return request.thread.compaction is None or bool(since_compaction(request, (breakpoint,))[1])


def wire_faults(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, words) of every breakpoint in a body that the API refuses for where it stands. Raises NotAMessage."""
    yield from _faults(list(body.get("tools") or []), "tools")
    yield from _faults(content_blocks(body.get("system") or [], "system"), "system")
    for number, message in enumerate(body.get("messages") or []):
        path = f"messages.{number}.content"
        yield from _faults(content_blocks(message.get("content"), path), path)


def _faults(items: list[Mapping[str, Any]], path: str) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(items):
        where = f"{path}.{number}"
        ttl, fault = own_breakpoint(item, where)
        if words := fault or (ttl and breakpoint_fault(item, where)):
            yield where, words


def _block_path(words: str) -> str:
    found = BLOCK_PATH.match(words)
    return found[0] if found else str(Layer.TOOLS)


def strip_request(request: Request, **fields: Any) -> Request:
    """The request without everything but its blocks that the API could refuse; `fields` put some of it back."""
    nothing: dict[str, Any] = {"breakpoints": (), "automatic": None, "params": {}, "fault": None}
    return replace(request, **{**nothing, "message_thread": None, "answering_model": request.model, **fields})


def only_breakpoints(breakpoints: tuple[Breakpoint, ...] = (), fault: str | None = None) -> SentBreakpoints:
    """These breakpoints, and nothing else."""
    return SentBreakpoints(breakpoints, fault)
