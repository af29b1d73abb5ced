"""A request as lint sees it: what was sent, its prompt and rules, and a path for every block.

What the bill of a recorded call decides: whether it was accepted, cached anything, and read what was left for it.

Where keys, tokens and passwords stand in a text, for excerpts that hide them.

A short piece of a text around a character, fit to be shown: one line, no keys.

How long the prefixes of breakpoints are, and whether that is enough: by the bill, else by count and its error.

Bodies and recorded calls -> `LoadedRequest`: parsed, with their rules, rendered into one shared tree, breakpoints
sized. The bills of recorded calls size what they cover; a tokenizer counts the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.http.bare_body import NAMES, api_of, messages_body
from cachecost.prompts.blocks import Block, Layer, Prefix, Thread, is_server_result
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import passes
from cachecost.prompts.render import AS_COUNTED, CannotCount, PrefixSizes, Prompt, Renderer, since_compaction
from cachecost.prompts.request import (
    Breakpoint,
    NotAMessage,
    Request,
    SentBreakpoints,
    accepts_breakpoint,
    as_sent,
    block_at,
    breakpoint_fault,
    content_blocks,
    own_breakpoint,
    sent_breakpoints,
    wire_path,
)
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths
from cachecost.tokens.factory import make_counter

Confirmation = Literal["", "confirmed"]
UNCONFIRMED: Confirmation = ""
CONFIRMED: Confirmation = "confirmed"
SERVER_TOOLS = ("code_execution_", "tool_search_tool_")
"""What the types of tools begin with that the provider runs, besides web tools."""
SAME = 2
"""Tokens by which the bills of two calls may count one prefix differently."""


@dataclass(frozen=True, slots=True)
class CallBill:
    """The usage of a call, in tokens. `is_summed`: it adds up several passes (server tools, a compaction), so its
    reads and writes are not lengths of prefixes.
    """

    usage: Usage
    is_summed: bool = False

    @property
    def is_cached(self) -> bool:
        """Whether anything was read from the cache or written to it."""
        return bool(self.usage.read or self.usage.write)

    @property
    def uncached(self) -> int:
        """Tokens that were neither read nor written."""
        return self.usage.input_tokens

    @property
    def cached_prefix(self) -> int | None:
        """Tokens up to the last breakpoint that counts: what the call left in the cache. None: the bill has no such
        length.
        """
        return self.usage.read + self.usage.write if self.is_cached and not self.is_summed else None


def bill_of(call: RecordedCall) -> CallBill | None:
    """The bill of a call; None if the log has none, or one without input (an answer that broke off)."""
    return CallBill(call.billed, _is_summed(call)) if call.billed and call.billed.total_input else None


def _is_summed(call: RecordedCall) -> bool:
    answers = [one for one in call.iterations if one.kind == "message"]
    return len(answers) > 1 or bool(call.pass_bills) or _has_passes(call)


def _has_passes(call: RecordedCall) -> bool:
    """Whether server tools made the call several passes, or may have where the answer was not recorded."""
    if not call.response:
        return _has_server_tools(call.request)
    ran = any(is_server_result(block.kind) for block in call.response)
    return ran or len(passes(call.request, call.simulated_response)) > 1


def _has_server_tools(request: Request) -> bool:
    """Web tools stand at the head of the system layer, without a role; the others are tools of a type."""
    types = (str(block.content.get("type")) for block in request.tools.blocks if block.content is not None)
    runs = bool(request.params.get("mcp_servers")) or any(one.startswith(SERVER_TOOLS) for one in types)
    return runs or any(not block.role for block in request.system.blocks)


def without_cache(bill: CallBill) -> str:
    """What was billed where nothing was cached."""
    return f"billed: {count_text(bill.usage.total_input, 'input token')} at full price, none read or written"


def beside_cache(bill: CallBill | None) -> str:
    """What was billed beside what was cached, to end a sentence with; "" where the bill does not show it."""
    if bill is None or bill.is_summed:
        return ""
    return f"; billed: {count_text(bill.uncached, 'input token')} at full price"


Span = tuple[int, int]

KEYS = {
    "sk-": r"sk-(?=[\w-]{0,200}\d)[\w-]{16,}",
    "sk-ant-": r"sk-ant-[\w-]{8,}",
    "k-lf-": r"[sp]k-lf-[\w-]{16,}",
    "k_live_": r"[srp]k_live_\w{16,}",
    "k_test_": r"[sr]k_test_\w{16,}",
    "whsec_": r"whsec_[\w+/=-]{16,}",
    "gh": r"gh[opsur]_[A-Za-z0-9]{16,}",
    "github_pat_": r"github_pat_\w{20,}",
    "gl": r"gl[a-z]{2,6}-[\w-]{16,}",
    "xox": r"xox[a-z]-[\w-]{10,}",
    "xapp-": r"xapp-[\w-]{10,}",
    "hooks.slack.com/": r"hooks\.slack\.com/services/[\w/]{20,}",
    "IA": r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])",
    "AIza": r"AIza[\w-]{30,}",
    "GOCSPX-": r"GOCSPX-[\w-]{20,}",
    "ya29.": r"ya29\.[\w-]{20,}",
    "hf_": r"hf_[A-Za-z0-9]{20,}",
    "npm_": r"npm_[A-Za-z0-9]{20,}",
    "pypi-": r"pypi-[\w-]{40,}",
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",
    "xai-": r"xai-[A-Za-z0-9]{20,}",
    "pplx-": r"pplx-[A-Za-z0-9]{20,}",
    "r8_": r"r8_[A-Za-z0-9]{20,}",
    "tvly-": r"tvly-[\w-]{16,}",
    "lsv2_": r"lsv2_[a-z]{2}_\w{20,}",
    "lin_api_": r"lin_api_\w{20,}",
    "sbp_": r"sbp_[a-z0-9]{20,}",
    "dapi": r"dapi[0-9a-f]{32}",
    "dop_v1_": r"dop_v1_[0-9a-f]{32,}",
    "dckr_pat_": r"dckr_pat_[\w-]{20,}",
    "hvs.": r"hvs\.[\w-]{20,}",
    "SG.": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "AGE-SECRET-KEY-1": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "eyJ": r"eyJ(?:(?<![\w-]eyJ)|(?<=\\[nrt]eyJ)|(?<=%[0-9A-Fa-f]{2}eyJ))[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){1,3}",
}
"""Keys that show what they are, by a text that every one of them holds."""
PATTERNS = {sign: re.compile(pattern, re.ASCII) for sign, pattern in KEYS.items()}
ESCAPED = re.compile(r"\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")
"""What may stand right before a secret and ends with a letter or digit all the same."""

_BETWEEN = r"(?:\s|\\[nrt]|[>|+\"',]|\d{1,5}(?:→|:))*"
PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?:[\s\S]{0,20000}?-----END \1-----|"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}})+(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}\Z)?)"
)
"""Whole, or cut off: then the lines after its head that look like base64."""

SECRET_NAME = (
    r"passw(?:or)?d|passphrase|pwd|secret|token(?!iz|s)|api[_-]?key|(?:access|private|account|auth)[_-]?key|credential"
)
NAMED = re.compile(SECRET_NAME, re.IGNORECASE)
ASSIGNED = re.compile(
    rf"(?P<name>{SECRET_NAME})[\w-]{{0,40}}(?:\\*[\"'])?\s{{0,4}}(?::=|=>|[:=])\s{{0,4}}"
    r"(?:\\*(?P<quote>[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\\\n]){8,})|(?P<bare>[^\s\"'`\\,;&<>|]{8,}))",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(r"[$%<{*].*|.*[$#{]\{.*|[a-z]+://.*|\.{0,2}/.*")
"""Values that stand for a secret or say where it is: templates, addresses, paths."""
CODE = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*)+|.*[(\[].*|\d+")
"""Values without quotes that are no secrets: variables, calls, numbers."""
LEAST = 8

BEARER = re.compile(r"\bbearer\s+([\w.~+/-]{8,}=*)", re.IGNORECASE)
AUTHORIZATION = re.compile(
    r"authorization\\*[\"']?\s{0,4}[:=,]\s{0,4}\\*[\"']?(?:basic|token|digest|apikey)\s+([^\s\"'\\]{8,})", re.IGNORECASE
)
USERINFO = re.compile(r"://(?:[^\s/:@\"'<>\\]*:(?P<password>[^\s/@\"'<>\\]+)|(?P<token>[\w.~%-]{16,}))@")


def keys_in(text: str) -> Iterator[Span]:
    """Keys, tokens and passwords, in no order; spans may overlap."""
    for sign, pattern in PATTERNS.items():
        if sign in text:
            yield from (found.span() for found in pattern.finditer(text) if begins(text, found.start()))
    if "PRIVATE KEY" in text:
        yield from (found.span() for found in PRIVATE_KEY.finditer(text))
    yield from _find_by_place(text)


def begins(text: str, start: int) -> bool:
    """Whether a word begins at `start`: after no ASCII letter or digit, unless those end an escape (\\n, %3C)."""
    if start == 0 or not (text[start - 1].isascii() and text[start - 1].isalnum()):
        return True
    return any(ESCAPED.fullmatch(text, max(0, start - width), start) for width in (2, 3, 6))


def _find_by_place(text: str) -> Iterator[Span]:
    """What stands where a secret belongs."""
    lower = text.lower()
    if "://" in text:
        groups = ((found, found.lastgroup or "") for found in USERINFO.finditer(text))
        yield from (found.span(group) for found, group in groups if not PLACEHOLDER.fullmatch(found[group]))
    if "bearer" in lower:
        yield from (found.span(1) for found in BEARER.finditer(text) if any(map(str.isdigit, found[1])))
    if "authorization" in lower:
        yield from (found.span(1) for found in AUTHORIZATION.finditer(text) if not PLACEHOLDER.fullmatch(found[1]))
    if NAMED.search(lower):
        groups = ((found, found.lastgroup or "") for found in ASSIGNED.finditer(text))
        yield from (
            found.span(group) for found, group in groups if _is_secret(found["name"], found[group], group == "quoted")
        )


def _is_secret(name: str, value: str, quoted: bool) -> bool:
    is_password = name.lower()[:2] in ("pa", "pw")
    if len(value) < LEAST or PLACEHOLDER.fullmatch(value) or (not is_password and any(map(str.isspace, value))):
        return False
    if not quoted and CODE.fullmatch(value) and not (is_password and value.isdigit()):
        return False
    return any(map(str.isdigit, value)) or (quoted and is_password)


Place = tuple[int, int, int]
"""Where a block stands: layer, message (from 1; 0 in the head), block. Places compare in prompt order."""
State = Literal["short", "near", "enough"]
LAYERS = tuple(Layer)


@dataclass(frozen=True, slots=True)
class SizedBreakpoint:
    """A breakpoint with its path, the prefix that it ends, how long that is in tokens, and whether that is enough."""

    breakpoint: Breakpoint
    path: str
    prefix: Prefix
    tokens: int
    state: State

    @property
    def place(self) -> Place:
        return self.breakpoint.prompt_order


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRequest:
    """A request, rendered. `faults` are (path, words) of what the API refuses for what only the wire can show.

    `error_margin` is the relative error of token counts; `sized` says whether there are counts at all (a recording
    without content may have none): then lengths are bytes, and nothing is said about them. `sizes` are the lengths in
    tokens: as counted, or as the bills of the log have them. `bill` is that of the call (None: the log has none).
    """

    label: str
    call: int | None
    request: Request
    sent_breakpoints: SentBreakpoints
    rules: ModelRules
    prompt: Prompt
    breakpoints: tuple[SizedBreakpoint, ...]
    faults: tuple[tuple[str, str], ...]
    error_margin: float
    sized: bool
    bill: CallBill | None = None
    sizes: PrefixSizes = AS_COUNTED
    is_batch: bool = False
    start: float | None = None
    """When it was sent, in seconds since the epoch, where the log says it."""

    @property
    def total(self) -> int:
        return self.sizes.total(self.prompt)

    def length(self, prefix: Prefix) -> int:
        """Tokens up to and including `prefix`."""
        return self.sizes.of(prefix)

    def start_of(self, layer: int) -> int:
        """Tokens before a layer: 0 tools, 1 system, 2 messages."""
        return self.sizes.at((0, self.prompt.tools_tokens, self.prompt.system_tokens)[layer])

    def error(self, tokens: int) -> float:
        """How far a length of `tokens` may be off: the counter's error on what no bill covers."""
        return self.error_margin * self.sizes.doubt(tokens)

    @property
    def live(self) -> tuple[SizedBreakpoint, ...]:
        """The breakpoints that may leave an entry: all but those that are surely too short."""
        return tuple(breakpoint for breakpoint in self.breakpoints if breakpoint.state != "short")

    @property
    def every(self) -> tuple[Breakpoint, ...]:
        """All breakpoints that the API sees, in the order of the request as sent."""
        return as_sent(self.request, self.sent_breakpoints)

    @property
    def confirmation(self) -> Confirmation:
        """What to say of a finding about tokens that were not cached, where their number is the bill's."""
        return CONFIRMED if self.bill is not None and not self.bill.is_summed else UNCONFIRMED

    def is_cached_after(self, breakpoint: SizedBreakpoint) -> bool:
        """Whether the bill shows that more was cached than stands before `breakpoint`: both what was cached and what
        was not are out of the error of the counts, so the request that the API got had a breakpoint after it.
        """
        cached = self.bill.cached_prefix if self.bill else None
        if cached is None or self.bill is None:
            return False
        before, after = breakpoint.prefix.tokens, self.prompt.total_tokens - breakpoint.prefix.tokens
        return cached > before * (1 + self.error_margin) and self.bill.uncached < after * (1 - self.error_margin)

    def path(self, place: Place) -> str:
        """A place as the API writes it: `messages.0.content.4`, `system.1`, `tools.3`."""
        layer, message, index = place
        if message:
            return f"messages.{message - 1}.content.{index}"
        return wire_path(self.request, Breakpoint(LAYERS[layer], index))

    def reaches(self, place: Place) -> bool:
        """Whether what stands at `place` is in a cached prefix."""
        return bool(self.live) and self.live[-1].place >= place

    def behind(self, block: Block) -> int | None:
        """Tokens from `block` on to the last breakpoint: what is lost if it differs. None where sizes are not known."""
        if not self.sized or not self.live:
            return None
        node = next((node for node in self.nodes() if node.block is block), None)
        before = self.length(node.parent) if node is not None and node.parent is not None else 0
        return max(0, self.live[-1].tokens - before)

    def nodes(self) -> Iterator[Prefix]:
        """The prefixes of the prompt that end with a block, the longest first."""
        node: Prefix | None = self.prompt.end
        while node is not None:
            if node.block is not None:
                yield node
            node = node.parent

    def head(self) -> Iterator[tuple[Place, Block]]:
        """The blocks of tools and system with their places."""
        for number, part in enumerate((self.request.tools, self.request.system)):
            yield from (((number, 0, index), block) for index, block in enumerate(part.blocks))

    def messages(self, after: int = 0) -> list[Thread]:
        """The messages as nodes, first to last, without the first `after`. Costs work for those that are left."""
        found = []
        for node in self.request.thread.back():
            if node.length <= after:
                break
            found.append(node)
        return found[::-1]


def message_place(node: Thread, index: int) -> Place:
    """The place of a message's block."""
    return LAYERS.index(Layer.MESSAGES), node.length, index


BEFORE, AFTER = 32, 48
KEY_LENGTH = 256
HERE = "▮"
"""Stands where the text goes on: for the first character that differs, or after the word that is meant."""
CUT = "…"


def excerpt(text: str, at: int, length: int = 0) -> str:
    """What stands before character `at`, in one line, ending in ▮; what looks like a key is hidden.

    The last `length` characters are the word that is meant: the excerpt begins before it.
    """
    start = _word_start(text, max(0, at - length - BEFORE), at - length)
    shown = "".join(_without_keys(text, start, at))
    before = CUT if start else ""
    after = CUT if at < len(text) else ""
    return f"{before}{' '.join(shown.split())}{HERE}{after}"


def excerpt_around(text: str, at: int, before: int = BEFORE, after: int = AFTER) -> str:
    """What stands around character `at`, in one line, "…" where the text goes on; what looks like a key is hidden."""
    start = _word_start(text, max(0, at - before), at)
    end = min(len(text), at + after)
    shown = "".join(_without_keys(text, start, end))
    return f"{CUT if start else ''}{' '.join(shown.split())}{CUT if end < len(text) else ''}"


def first_changed_text(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """(path within, text before, text now) of the first text of two blocks that is another one; None: none is."""
    known = dict(texts(old))
    found = ((path, known[path], text) for path, text in texts(new) if known.get(path, text) != text)
    return next(found, None)


def _word_start(text: str, start: int, end: int) -> int:
    """Where the first whole word from `start` on begins; `start` itself where none begins before `end`."""
    if start == 0 or text[start - 1].isspace():
        return start
    return next((number + 1 for number in range(start, end - 1) if text[number].isspace()), start)


def _without_keys(text: str, start: int, end: int) -> Iterator[str]:
    """The characters from `start` to `end`; a key may begin before them and go on after them."""
    shift = max(0, start - KEY_LENGTH)
    spans = [(one + shift, other + shift) for one, other in keys_in(text[shift : end + KEY_LENGTH])]
    for number in range(start, end):
        yield "*" if any(one <= number < other for one, other in spans) else text[number]


def texts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path within, text) of every text in a block, in order; its type and names of keys are none."""
    for key, value in content.items():
        if key not in ("type", "cache_control"):
            yield from _texts(key, value)


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(f"{path}.{key}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(f"{path}.{number}", inner)


REPEATED_LETTER = re.compile(r"([^\W\d_])\1{15,}")
"""A run of one letter. Tokenizers differ most on these (6,000 × "a": 2,001 and 836 tokens by two counters that agree
within their error on prose), so no measured error holds for them; one token for each letter is the most.
"""
UNWRITTEN = ("image", "document")
"""Blocks whose data is not text; their tokens are not those of letters."""
Decided = Literal["short", "enough"] | None


def length_state(tokens: int, error: float, minimum: int) -> State:
    """Whether a prefix of `tokens`, give or take `error`, reaches the minimum: surely, surely not, or who knows."""
    if tokens + error < minimum:
        return "short"
    return "enough" if tokens - error >= minimum else "near"


def size_breakpoints(loaded: LoadedRequest) -> LoadedRequest:
    """The request with the lengths and states of its breakpoints as its `sizes` and its bill have them."""
    decided = _billed_states(loaded.breakpoints, loaded.bill)
    sized = tuple(_sized(loaded, one, state) for one, state in zip(loaded.breakpoints, decided, strict=True))
    return replace(loaded, breakpoints=sized)


def _sized(loaded: LoadedRequest, one: SizedBreakpoint, decided: Decided) -> SizedBreakpoint:
    tokens = loaded.length(one.prefix)
    return replace(one, tokens=tokens, state=decided or _counted_state(loaded, one.prefix, tokens))


def _counted_state(loaded: LoadedRequest, prefix: Prefix, tokens: int) -> State:
    if not loaded.sized:
        return "enough"
    error, minimum = loaded.error(tokens), loaded.rules.minimum_tokens
    state = length_state(tokens, error, minimum)
    may_be_longer = state == "short" and error and loaded.bill is None
    return length_state(tokens, error + repeated_letters(prefix), minimum) if may_be_longer else state


def _billed_states(breakpoints: Sequence[SizedBreakpoint], bill: CallBill | None) -> list[Decided]:
    """What the bill decides about each breakpoint; None: nothing.

    A call that read and wrote nothing had no breakpoint that was long enough. Else the last one was, and the last 1h
    one if anything was written for 1h.
    """
    decided: list[Decided] = [None] * len(breakpoints)
    if bill is None or not breakpoints:
        return decided
    if not bill.is_cached:
        return ["short"] * len(breakpoints)
    if bill.is_summed:
        return decided
    hours = [number for number, one in enumerate(breakpoints) if one.breakpoint.ttl == "1h"]
    if hours and bill.usage.write_1h:
        decided[hours[-1]] = "enough"
    decided[-1] = "enough"
    return decided


def repeated_letters(prefix: Prefix) -> int:
    """How many letters of the text up to `prefix` stand in runs of one letter."""
    return sum(_letters_in(block) for block in _blocks(prefix))


def _blocks(prefix: Prefix) -> Iterator[Block]:
    node: Prefix | None = prefix
    while node is not None:
        if node.block is not None:
            yield node.block
        node = node.parent


def _letters_in(block: Block) -> int:
    if block.content is None or block.kind in UNWRITTEN:
        return 0
    return sum(len(match[0]) for _, text in texts(block.content) for match in REPEATED_LETTER.finditer(text))


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
        host = bare.host if bare.host and self.host == AUTO_HOST else self.host
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
        rules = self._rules.rules(host_of(call.host, self.host, request.model), request.model, call.day)
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
            if accepts_breakpoint(block_at(request, breakpoint))
            and (request.thread.compaction is None or bool(since_compaction(request, (breakpoint,))[1]))
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
