"""Calls as they are before any cache sees them: rendered, counted and priced, once for all replays of a setup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace, value
from cachecost.caches.warm_starts import SentCall, WarmPrefixes, warm_starts
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.rows import NOT_EVALUATED, REFUSED
from cachecost.prompts.counting import TokenCounter
from cachecost.prompts.host_prompts import HostPrompts, PreparedRequest
from cachecost.prompts.refusals import lacking_feature, refusal, sent_breakpoints, too_long
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import NoPrice, Options, PriceBook, Prices, ways_of
from cachecost.providers.quotes import UNPRICED, Quote
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.tokens.margins import PromptMargins

if TYPE_CHECKING:
    from cachecost.simulation.setup import ReplaySetup
    from cachecost.tokens.answer_lengths import AnswerLengths
    from cachecost.tokens.calibrated import BilledLengths

MOST_QUOTES = 4096
"""Quotes that are kept."""
CallKey = tuple[int, int, int, str, float, bool, int, bool]
"""Request, response and rules by identity; workspace, start and whether it is known, line, and whether in a batch."""


def request_quote(
    book: PriceBook, request: Request, rules: ModelRules, is_batch: bool, start: float | None = None
) -> Quote:
    """Prices of `request` on the day of its rules, for prompts of any length. Raises CannotEvaluate.

    `start` is when it was made (seconds since the epoch), where that is known: some hosts have hours that cost more.
    """
    moment = datetime.fromtimestamp(start, UTC) if start is not None and book.has_hours(rules.host) else None
    options = Options(is_batch, **ways_of(request.params))
    return book.quote(rules.host, rules.model, rules.day, options, moment)


def request_prices(
    book: PriceBook, request: Request, rules: ModelRules, tokens: int, is_batch: bool, start: float | None = None
) -> Prices:
    """As `request_quote`, for a prompt of `tokens`."""
    return request_quote(book, request, rules, is_batch, start).of(tokens)


def has_no_output(call: Call) -> bool:
    """Whether the call only writes the cache."""
    return call.request.params.get("max_tokens") == 0


def output_tokens(call: Call, counter: TokenCounter) -> int:
    """Tokens of the answer: as recorded, else as counted."""
    if has_no_output(call):
        return 0
    return call.output_tokens if call.output_tokens is not None else sum(map(counter.block, call.output))


@value
class PreparedCall:
    """A call before it is made: the prompt and the lengths of each pass, and the prices.

    `error_margin` is the relative error of its token counts, without bills. `notes` are sentences on what its host does
    not support or has no price for.
    """

    rules: ModelRules
    prompts: list[Prompt]
    sizes: Sequence[PrefixSizes]
    prices: Prices
    counter: TokenCounter
    notes: tuple[str, ...] = ()
    error_margin: float = 0.0


@value
class UnpreparedCall:
    """A call that has no usage: it failed, would be refused, or cannot be evaluated. `notes` as of a prepared call."""

    cause: str | None
    error: str | None
    kind: str | None
    notes: tuple[str, ...] = ()


@value
class _RenderedCall:
    """A call as rendered, and what its key names by identity. `refused` is why its host refuses it at any length,
    `notes` are those on its request; `is_as_sent`: the host receives the request as it is."""

    call: Call
    rules: ModelRules
    prompts: list[Prompt]
    refused: str | None
    notes: tuple[str, ...]
    is_as_sent: bool


@value
class _KeptQuote:
    """A quote, and what its key names by identity: parameters and rules."""

    params: Mapping[str, Any]
    rules: ModelRules
    quote: Quote


@dataclass(slots=True)
class CallPreparer:
    """Prepares calls under one setup; all share one tree of prefixes.

    What bills tell is learned before: `lengths` (None: no bill is known), and in `warm` what was cached before the
    first call.
    """

    setup: ReplaySetup
    prompts: HostPrompts
    lengths: BilledLengths | None = None
    warm: WarmPrefixes = field(default_factory=WarmPrefixes)
    _kept: dict[CallKey, _RenderedCall] = field(default_factory=dict)
    _prepared: dict[CallKey, PreparedCall] = field(default_factory=dict)
    """Calls that are kept, as prepared since a bill was learned last."""
    _quotes: dict[tuple[int, int, bool], _KeptQuote] = field(default_factory=dict)
    _contents: Mapping[int, Call] = field(default_factory=dict)
    """By id of a call, one that differs from it in its breakpoints only."""
    _margins: dict[int, PromptMargins] = field(default_factory=dict)
    """By id of a counter."""

    @classmethod
    def of(cls, setup: ReplaySetup) -> CallPreparer:
        """A preparer that has learned nothing."""
        return cls(setup, HostPrompts(setup.counter))

    def fork(self) -> CallPreparer:
        """A preparer on the same tree, which goes on to learn by itself."""
        lengths = self.lengths.copy() if self.lengths else None
        return CallPreparer(self.setup, self.prompts, lengths, self.warm, self._kept, _margins=self._margins)

    def with_contents(self, contents: Mapping[int, Call]) -> CallPreparer:
        """This preparer for calls that are known by their ids to differ from others in their breakpoints only.

        These calls must exist as long as it does. It is not to learn any more.
        """
        known = self._kept, self._prepared, self._quotes
        return CallPreparer(self.setup, self.prompts, self.lengths, self.warm, *known, contents, self._margins)

    def fork_for(self, calls: Iterable[Call]) -> CallPreparer:
        """As `fork`; it also keeps these calls as rendered, by itself."""
        made = self.fork()
        made._kept = self._kept.copy()
        for call in calls:
            made.keep(call)
        return made

    def prompt_as_sent(self, call: Call) -> Prompt | None:
        """The prompt of a kept call, where its host receives the request as it is; else None. Raises CannotEvaluate."""
        kept = self._kept.get(_key(call, self.setup.rules_for(call)))
        return kept.prompts[0] if kept and kept.is_as_sent else None

    def keep(self, call: Call) -> None:
        """Keep a call as rendered, for all replays that send it again."""
        if call.has_failed or call.why_unknown:
            return
        try:
            rules = self.setup.rules_for(call)
            key = _key(call, rules)
            if key not in self._kept:
                self._kept[key] = self._rendered(call, rules)
        except CannotEvaluate:
            return

    def learn_all(self, calls: Sequence[RecordedCall], may_start_warm: bool = True) -> None:
        """Learn from all bills of a recording before any call is simulated: lengths (rule 17), and what was cached
        before the recording began (assumption `warm_start`), unless all is to start cold."""
        is_asked = may_start_warm and self.setup.rules.assumptions.warm_start == "as_billed"
        may_be_warm = is_asked and any(call.billed is not None and call.billed.read for call in calls)
        sent = []
        answers: AnswerLengths | None = None
        for number, call in enumerate(calls, 1):
            if not call.billed and not may_be_warm:
                continue
            self.keep(call)
            sent.append(made := self.learn(number, call, call.billed))
            if made and made.rules.keeps_reasoning and self.lengths:
                from cachecost.tokens.answer_lengths import AnswerLengths

                answers = answers or AnswerLengths(self.lengths)
                answers.learn(number, made.prompt, made.rules, made.billed, call.simulated_response)
        for number, call in enumerate(calls, 1):
            if call.lengths is not None and call.has_known_length:
                sized = replace(call.request, breakpoints=call.lengths.breakpoints(call.request), automatic=None)
                self.learn(number, replace(call, request=sized), call.lengths.usage)
        if may_be_warm and self.lengths:
            self._find_warm_starts([call for call in sent if call], self.lengths)

    def learn(self, number: int, call: Call, billed: Usage | None) -> SentCall | None:
        """The call as rendered, its bill learnt if it is that of each pass; None: it takes no part in any cache."""
        if call.has_failed or call.why_unknown:
            return None
        try:
            rules = self.setup.rules_for(call)
            prompts = self._prompts_of(call, rules)
        except CannotEvaluate:
            return None
        self._prepared.clear()
        bills = call.pass_bills or ((billed,) if billed else ())
        if len(bills) != len(prompts):
            return SentCall(number, call.start, prompts[0], rules)
        if self.lengths is None:
            from cachecost.tokens.calibrated import BilledLengths

            self.lengths = BilledLengths()
        for prompt, bill in zip(prompts, bills, strict=True):
            self.lengths.learn(number, prompt, bill, () if call.pass_bills else call.simulated_response)
        return SentCall(number, call.start, prompts[0], rules, bills[0])

    def _find_warm_starts(self, sent: Sequence[SentCall], lengths: BilledLengths) -> None:
        for found in list(warm_starts(sent, lengths.all, lengths.told)):
            lengths.learn_prefix(found.call, found.prefix, found.tokens)
            self.warm.learn(found)

    def prepare(self, call: Call) -> PreparedCall | UnpreparedCall:
        """The call as its host receives it, or why it has no usage."""
        content = self._contents.get(id(call))
        return (content and self._marked(call, content)) or self._prepare_any(call)

    def prepare_marked(self, call: Call, content: Call) -> PreparedCall | UnpreparedCall:
        """As `prepare`; the call differs from `content` in its breakpoints only."""
        return self._marked(call, content) or self._prepare_any(call)

    def _marked(self, call: Call, content: Call) -> PreparedCall | UnpreparedCall | None:
        """The call as `content` was prepared, with its own breakpoints; None: it must be rendered by itself."""
        try:
            rules = self.setup.rules_for(content)
            kept = self._kept.get(_key(content, rules))
            before = self._prepare(content, rules) if kept and kept.is_as_sent and len(kept.prompts) == 1 else None
        except CannotEvaluate:
            return None
        if not isinstance(before, PreparedCall):
            return None
        sent = self.prompts.prepare_request(call.request, rules)
        breakpoints = _moved_breakpoints(sent, content.request, before.prompts[0])
        if breakpoints is None or sent.told.request is not call.request or sent.told.looks_at is not None:
            return None
        if refused := refusal(call.request, sent.breakpoints, rules):
            return UnpreparedCall(None, refused, REFUSED)
        return replace(before, prompts=[replace(before.prompts[0], breakpoints=breakpoints)])

    def _prepare_any(self, call: Call) -> PreparedCall | UnpreparedCall:
        why = "" if call.has_failed else call.why_unknown
        if why and not call.may_be_refused:
            return UnpreparedCall(None, why, NOT_EVALUATED)
        try:
            rules = self.setup.rules_for(call)
            if why:
                refused = lacking_feature(call.request, rules)
                return UnpreparedCall(None, refused or why, REFUSED if refused else NOT_EVALUATED)
            return self._prepare(call, rules)
        except CannotEvaluate as error:
            return UnpreparedCall(None, str(error), NOT_EVALUATED)

    def _prepare(self, call: Call, rules: ModelRules) -> PreparedCall | UnpreparedCall:
        if call.has_failed:
            return UnpreparedCall("unknown", None, None)
        key = _key(call, rules)
        kept = self._kept.get(key)
        if kept is None:
            return self._prepare_anew(call, rules, None)
        made = self._prepared.get(key)
        if made is None:
            anew = self._prepare_anew(call, rules, kept)
            if isinstance(anew, UnpreparedCall):
                return anew
            made = self._prepared[key] = anew
        return made

    def _prepare_anew(self, call: Call, rules: ModelRules, kept: _RenderedCall | None) -> PreparedCall | UnpreparedCall:
        if kept:
            notes, refused = kept.notes, kept.refused
        else:
            sent = self.prompts.prepare_request(call.request, rules)
            notes, refused = sent.told.notes, refusal(sent.told.request, sent.breakpoints, rules)
        if refused:
            return UnpreparedCall(None, refused, REFUSED, notes)
        try:
            prompts = kept.prompts if kept else self._render(call, sent, rules)
            return self._count_and_price(call, rules, prompts, notes)
        except CannotEvaluate as error:
            return UnpreparedCall(None, str(error), NOT_EVALUATED, notes)

    def _count_and_price(
        self, call: Call, rules: ModelRules, prompts: list[Prompt], notes: tuple[str, ...]
    ) -> PreparedCall | UnpreparedCall:
        counter = self.prompts.renderer(rules.generation).counter
        lengths = self.lengths
        sizes = [lengths.all(prompt) for prompt in prompts] if lengths else [AS_COUNTED] * len(prompts)
        tokens = sizes[0].total(prompts[0])
        if counter.name != "bytes" and (late := too_long(tokens, rules)):
            return UnpreparedCall(None, late, REFUSED, notes)
        prices, unpriced = self._prices_of(call, rules, tokens)
        ranges = (rules.range_in_words,) if rules.range_in_words else ()
        margin = self._margin(prompts, counter)
        return PreparedCall(rules, prompts, sizes, prices, counter, (*notes, *unpriced, *ranges), margin)

    def _margin(self, prompts: Sequence[Prompt], counter: TokenCounter) -> float:
        margins = self._margins.get(id(counter))
        if margins is None:
            margins = self._margins[id(counter)] = PromptMargins(counter)
        return margins.of(prompts)

    def _prices_of(self, call: Call, rules: ModelRules, tokens: int) -> tuple[Prices, tuple[str, ...]]:
        """Prices of a call; none, with a note, where that may be. Raises CannotEvaluate."""
        start = None if call.timestamp is None else call.start
        try:
            return self._quote(call, rules, start).of(tokens), ()
        except NoPrice as error:
            if not self.setup.may_lack_prices:
                raise
            return UNPRICED, (str(error),)

    def _quote(self, call: Call, rules: ModelRules, start: float | None) -> Quote:
        """The prices of a call, found once for all with the same parameters. Raises CannotEvaluate."""
        book, request = self.setup.prices, call.request
        if book.has_hours(rules.host):
            return request_quote(book, request, rules, call.is_batch, start)
        key = request.params_id, id(rules), call.is_batch
        found = self._quotes.get(key)
        if found is None:
            if len(self._quotes) >= MOST_QUOTES:
                self._quotes.clear()
            quote = request_quote(book, request, rules, call.is_batch)
            found = self._quotes[key] = _KeptQuote(request.params, rules, quote)
        return found.quote

    def _prompts_of(self, call: Call, rules: ModelRules) -> list[Prompt]:
        kept = self._kept.get(_key(call, rules))
        return kept.prompts if kept else self._render(call, self.prompts.prepare_request(call.request, rules), rules)

    def _rendered(self, call: Call, rules: ModelRules) -> _RenderedCall:
        sent = self.prompts.prepare_request(call.request, rules)
        refused = refusal(sent.told.request, sent.breakpoints, rules)
        is_as_sent = sent.told.request is call.request and sent.told.looks_at is None
        return _RenderedCall(call, rules, self._render(call, sent, rules), refused, sent.told.notes, is_as_sent)

    def _render(self, call: Call, sent: PreparedRequest, rules: ModelRules) -> list[Prompt]:
        return self.prompts.render_prompts(sent, call.simulated_response, rules, call.workspace)


def _moved_breakpoints(sent: PreparedRequest, content: Request, prompt: Prompt) -> tuple[BreakpointPrefix, ...] | None:
    """The breakpoints as rendered, where `prompt` has some at the same places: that of `content`; None: it has not."""
    wanted = sent.breakpoints.breakpoints
    if not wanted:
        return ()
    there = sent_breakpoints(content).breakpoints
    if len(there) != len(prompt.breakpoints):
        return None
    known = {one.block_key: rendered.prefix for one, rendered in zip(there, prompt.breakpoints, strict=True)}
    if not all(one.block_key in known for one in wanted):
        return None
    return tuple([BreakpointPrefix(known[one.block_key], one.ttl) for one in wanted])


def _key(call: Call, rules: ModelRules) -> CallKey:
    """What a prompt depends on. An answer that is not known follows from the place of the call."""
    where = call.workspace, call.start, call.timestamp is None, call.line, call.is_batch
    return id(call.request), id(call.response), id(rules), *where
