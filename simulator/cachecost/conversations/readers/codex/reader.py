"""Reads sessions of Codex CLI (`rollout-*.jsonl`) as calls, with their requests as far as the file has them.

The file has the messages, the system prompt (`base_instructions`) and the usage of each call, but not the tools: they
are sized by the bill (common/session_calls.py). A line is `{"timestamp", "type", "payload"}`; content stays
undecoded.

Read in November 2026: files that Codex CLI 0.169.0 wrote (new, resumed, forked, compacted, review), its protocol
types (openai/codex), and the issues of tools that count its tokens (ccusage #876 and #1288, June 2026).

- **Bill**: `token_usage_record` has the usage of one response, with its id (since 0.153, September 2026). Older clients
  write only `token_count` events: `last_token_usage` of the call and a running `total_token_usage`. Codex repeats such
  an event without a new call (rate limits, a compacted window), so one with an unchanged total is none. Newer clients
  write both; only records have the compactions (user reports of September 2026): from the first on they count alone.
- **Copies**: a forked session, and a sub-agent that got its parent's history, may begin with a copy of it, running
  total included, but without its records. What was counted before the first record is a copy where the thread's own
  total begins with that record; else an older client wrote it. Without records, a call is identified by the first
  ancestor and the total.
- **Time**: a request starts when the last item that it sends was recorded, its answer ends with its usage. A copied
  turn may have the time of the copy on its lines; then its `started_at` is all that tells when it was.
- **Host** is the model provider's, else that of the model's maker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate, Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import day_of
from cachecost.conversations.input_files import Warn, billed_call
from cachecost.conversations.readers.apis.openai import from_responses_output
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.json_values import decode, object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes, sniff_first_line
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.hosts import AUTO_HOST, host_of, parse_model_name
from cachecost.providers.prices import terms_of
from cachecost.providers.rules import RuleBook

Raw = msgspec.Raw
ITEM_LIST: Any = list[Raw] | None


class Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: Raw = Raw(b"{}")


class Meta(msgspec.Struct):
    """`session_meta`: who began the file. `source` is {"subagent": …} for a sub-agent, else a word."""

    id: str = ""
    session_id: str | None = None
    forked_from_id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    source: Any = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    base_instructions: Raw = Raw(b"null")
    git: Any = None

    @property
    def agent(self) -> str:
        """The name of a sub-agent; "" of the main thread."""
        source = object_or_empty(self.source).get("subagent")
        if source is None:
            return ""
        names = object_or_empty(object_or_empty(source).get("thread_spawn"))
        name = self.agent_role or names.get("agent_role") or self.agent_nickname or names.get("agent_nickname")
        return str(name or (source if isinstance(source, str) else next(iter(source), "sub-agent")))


class TurnContext(msgspec.Struct):
    cwd: str | None = None
    model: str | None = None
    effort: str | None = None
    service_tier: str | None = None


class Item(msgspec.Struct):
    """`response_item`: a part of the conversation, an item of the Responses API; or what an event completed."""

    type: str = ""
    role: str | None = None
    name: Any = None
    call_id: Any = None


class ThreadSettings(msgspec.Struct):
    model: str | None = None
    reasoning_effort: str | None = None
    service_tier: str | None = None


class TokenInfo(msgspec.Struct):
    total_token_usage: dict[str, Any] | None = None
    last_token_usage: dict[str, Any] | None = None
    model_context_window: int | None = None


class Event(msgspec.Struct):
    """`event_msg`."""

    type: str = ""
    started_at: float | None = None
    info: TokenInfo | None = None
    item: Raw = Raw(b"null")
    thread_settings: ThreadSettings | None = None


class UsageRecord(msgspec.Struct):
    """`token_usage_record` (Codex 0.153 and later): the bill of one response."""

    thread_id: str | None = None
    response_id: str | None = None
    usage: dict[str, Any] | None = None
    thread_token_usage: dict[str, Any] | None = None


class Compacted(msgspec.Struct):
    """`compacted`: what the history is replaced with; older files have the summary alone."""

    message: str | None = None
    replacement_history: Raw = Raw(b"null")


SUMMARY = "summary"
"""The kind of a piece that is a compaction's summary, a JSON text; all others are items of the Responses API."""
ITEM_KIND = "item"
WRITTEN_BY_MODEL = ("reasoning", "compaction", "compaction_summary", "context_compaction")
COUNTS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
    *("output_tokens", "reasoning_output_tokens"),
)
NO_TOTAL = (0, 0, 0, 0, 0)
RECORDS_SINCE = (0, 153)
"""The version from which each response has a record (user reports of September 2026, read on 27 November 2026)."""
NO_WRITES = "without a count of cache writes, which cost more than input: all counts as input, a lower bound"
RULES = RuleBook()
MOST_DELAY = 5.0
"""Seconds from the start of a turn to the line that says so."""
MOST_COPYING = 1.0
"""Seconds that the copy of another thread's history takes."""
UNKNOWN_MODEL = "unknown"
Counts = tuple[int, ...]


class Rollout(common.SessionParser):
    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self._meta = Meta()
        self._root = ""
        self._model = UNKNOWN_MODEL
        self._effort: str | None = None
        self._tier = ""
        self._total: Counts = NO_TOTAL
        self._tools: dict[str, str] = {}
        """By the id of the call."""
        self.session.results = []
        self._responses: set[tuple[str, Counts]] = set()
        self._has_records = False
        self._head: float | None = None
        """When the file was begun."""
        self._window = 0
        """The model's context window as the client has it; 0: not stated."""
        self._answer: list[common.Piece] = []
        self._later: list[common.Piece] = []
        """What was recorded after the answer began, for the request after it."""
        self._has_thinking = False
        self._has_images = False
        self._sent: float | None = None
        self._answered: float | None = None
        """When the answer that is not billed yet began: its first item. `_began` is when its request did, `_written`
        when its last item was recorded."""
        self._began: float | None = None
        self._written: float | None = None
        self._ended: float | None = None
        self._copied: float | None = None
        """When the turn that is read began, where its lines have the time of a copy."""

    def read_line(self, number: int, raw: bytes) -> None:
        line = decode(raw, Line)
        if line.type in HANDLERS:
            kind, handler = HANDLERS[line.type]
            handler(self, decode(line.payload, kind), line, number)

    def meta(self, meta: Meta, line: Line, number: int) -> None:
        """The head of the file, or a copy of an ancestor's head."""
        self._root = meta.forked_from_id or meta.id
        if self._meta.id and not (meta.id and meta.id in self.path.name):
            return
        if meta.forked_from_id:
            self.chain.events.add("fork")
        self._meta, self._head = meta, common.time_of(line.timestamp)
        self.session.project = meta.cwd or ""
        self.session.branches = [(1, str(object_or_empty(meta.git).get("branch") or ""))]

    def turn_context(self, context: TurnContext, line: Line, number: int) -> None:
        self._settle(context.model, context.effort, context.service_tier)
        self._sent = common.time_of(line.timestamp)

    def _settle(self, model: str | None, effort: str | None, tier: str | None) -> None:
        if effort and self._effort and effort != self._effort:
            self.chain.events.add("effort")
        self._model, self._effort, self._tier = model or self._model, effort or self._effort, tier or self._tier

    def item(self, item: Item, line: Line, number: int) -> None:
        """A part of the conversation."""
        time = common.time_of(line.timestamp)
        if not item.type or item.type == "ghost_snapshot":
            return
        piece = self.piece(ITEM_KIND, line.payload)
        if (item.type == "message" and item.role == "assistant") or (
            item.type in WRITTEN_BY_MODEL or item.type.endswith("_call")
        ):
            if self._answered is None:
                self._answered, self._began = time, common.last_of(self._sent, self._ended)
            self._written = time
            self._has_thinking |= item.type == "reasoning"
            self._answer.append(piece)
            self._tools[str(item.call_id)] = str(item.name or item.type.removesuffix("_call"))
            return
        self._sent = time
        if item.type.endswith("_output"):
            piece = piece._replace(tool=self._tools.get(str(item.call_id), ""))
        if not self._has_images and b'"input_image"' in bytes(line.payload):
            self._has_images = True
            self.chain.events.add("images")
        (self.chain.request if self._answered is None else self._later).append(piece)

    def compacted(self, compacted: Compacted, line: Line, number: int) -> None:
        """From here on the history is another one."""
        self._drop_answer()
        if items := decode(compacted.replacement_history, ITEM_LIST):
            self.chain.cut(*(self.piece(ITEM_KIND, item) for item in items))
        else:
            self.chain.cut(self.piece(SUMMARY, Raw(msgspec.json.encode(compacted.message or ""))))
        self._sent = common.time_of(line.timestamp)

    def _drop_answer(self) -> None:
        """An answer that nobody billed (interrupted, failed) is only a part of the history."""
        self.chain.request += [*self._answer, *self._later]
        self._answer, self._later = [], []
        self._answered = None

    def event(self, event: Event, line: Line, number: int) -> None:
        if event.type == "token_count" and event.info is not None:
            self._add_counted_call(event.info, line, number)
        elif event.type in ("task_started", "turn_started", "turn_aborted"):
            self._drop_answer()
            started, time = event.started_at, common.time_of(line.timestamp)
            is_copied = started is not None and time is not None and 0 <= started < time - MOST_DELAY
            self._copied = started if is_copied else None
        elif event.type in ("error", "stream_error"):
            self.chain.events.add("error")
        elif event.type == "thread_settings_applied" and event.thread_settings is not None:
            settings = event.thread_settings
            self._settle(settings.model, settings.reasoning_effort, settings.service_tier)
        elif event.type == "user_message" or (
            event.type == "item_completed" and decode(event.item, Item).type == "UserMessage"
        ):
            self.chain.events.add("human")

    def usage_record(self, record: UsageRecord, line: Line, number: int) -> None:
        """The bill of one response."""
        if record.usage is None:
            return
        counts = _counts(record.usage)
        if not self._has_records:
            self._has_records = True
            thread = record.thread_token_usage
            if _counts(thread) == counts if thread else self._meta.forked_from_id:
                self._drop_copies()
        known = record.response_id or ""
        is_other_thread = bool(record.thread_id and self._meta.id) and record.thread_id != self._meta.id
        if is_other_thread or (known and (known, counts) in self._responses):
            self._drop_answer()
            return
        self._responses.add((known, counts))
        self._add_call(line, number, record.usage, known)

    def _add_counted_call(self, info: TokenInfo, line: Line, number: int) -> None:
        """The bill of a call, unless records have it or nothing was added to the total."""
        self._window = info.model_context_window or self._window
        totals, before = info.total_token_usage or {}, self._total
        total = _counts(totals)
        if self._has_records or total == before:
            return
        self._total = total
        last = info.last_token_usage
        if last and any(_counts(last)):
            usage, most = last, 0
        else:
            is_reset = any(now < then for now, then in zip(total, before, strict=True))
            if is_reset and last is not None:
                return
            added = zip(COUNTS, total, NO_TOTAL if is_reset else before, strict=True)
            usage, most = {name: now - then for name, now, then in added if name in totals}, self._window
        self._add_call(line, number, usage, f"{self._root} {'/'.join(map(str, total))}", most)

    def _drop_copies(self) -> None:
        """The calls so far are those of another thread: only a part of the history."""
        copied: list[common.Piece] = []
        for call in self.session.calls:
            copied = [*([] if call.is_cut else copied), *call.request, *call.answer]
            self.chain.events |= call.events & {"fork"}
        if not self.chain.is_cut:
            self.chain.request = [*copied, *self.chain.request]
        self.session.copies, self.session.calls, self.chain.last = self.session.calls, [], None
        self.notes = ReaderNotes()

    def read(self, faults: list[Fault], warn: Warn) -> common.Session:
        session = super().read(faults, warn)
        if self.keeps and not faults:
            value = json.loads(bytes(self._meta.base_instructions))
            text = value.get("text") if isinstance(value, dict) else value
            session.system = text if isinstance(text, str) else ""
        return session

    def finish(self) -> common.Session:
        ends = common.last_of(*(call.bill.end for call in self.session.calls))
        is_all_copied = ends is not None and self._head is not None and ends <= self._head + MOST_COPYING
        version = list(map(whole_number, (self._meta.cli_version or "").split(".")[:2]))
        has_records = None not in version and tuple(version) >= RECORDS_SINCE
        if self._meta.forked_from_id and has_records and is_all_copied and not self._has_records:
            self._drop_copies()
        self.notes.report("", lambda note: self.session.notes.append(note.removeprefix(": ")))
        return super().finish()

    def _add_call(self, line: Line, number: int, counts: Mapping[str, Any], known: str, most: int = 0) -> None:
        """Add a call, unless it is larger than `most` tokens (0: not known), or than the model's context window."""
        # Older clients write the bill of an answer after its tools have run.
        usage, end = (
            usage_from(counts, "usage", "openai"),
            self._written if self._later else common.time_of(line.timestamp),
        )
        stated, rules = parse_model_name(self._model, self._meta.model_provider or "")[1], None
        host = host_of(stated, AUTO_HOST, self._model)
        with suppress(CannotEvaluate):
            rules = RULES.rules(host, self._model, None if end is None else day_of(end))
        window = most or (max(self._window, rules.context_window) if rules else 0)
        if window and usage.total_input > window:
            self.notes.skip("call", f"more than the context window of {window:,} tokens")
            self._drop_answer()
            return
        charges_writes = rules is not None and rules.matching == "breakpoint"
        if charges_writes and usage.input_tokens and counts.get("cache_write_input_tokens") is None:
            self.notes.add("call", NO_WRITES)
        start = self._began if self._answered is not None else common.last_of(self._sent, self._ended)
        agent, meta = self._meta.agent, self._meta
        bill = billed_call(number, self._model, usage, end if start is None else start, end, agent=agent, id=known)
        bill.session, bill.version = meta.session_id or meta.id, meta.cli_version or ""
        bill.host, bill.has_thinking = stated or "", self._has_thinking
        bill.modes = terms_of({"service_tier": self._tier}, False).modes
        self.chain.thread = meta.id if agent else ""
        call = self.add_call(bill, self._answer)
        if self._copied is not None:
            bill.start = bill.end = self._copied
        elif self._answered is not None and bill.start is not None:
            call.first_token_s = max(0.0, self._answered - bill.start)
        self.chain.request, self._answer, self._later, self._has_thinking = self._later, [], [], False
        self._answered, self._began, self._ended = None, None, end


HANDLERS: dict[str, tuple[type[msgspec.Struct], Callable[[Rollout, Any, Line, int], None]]] = {
    "session_meta": (Meta, Rollout.meta),
    "turn_context": (TurnContext, Rollout.turn_context),
    "response_item": (Item, Rollout.item),
    "compacted": (Compacted, Rollout.compacted),
    "event_msg": (Event, Rollout.event),
    "token_usage_record": (UsageRecord, Rollout.usage_record),
}
"""What reads each kind of line that matters."""


def _counts(usage: Mapping[str, Any]) -> Counts:
    counts = (usage.get(name) for name in COUNTS)
    return tuple(count if isinstance(count, int) else 0 for count in counts)


LACKS = "Codex sessions lack the tools: sized by the bill; calls that Codex makes on the side are not in them"
ADDED_BY_CODEX = "internal_chat_message_metadata_passthrough"
ROLES = {"assistant": "assistant", "developer": "system", "system": "system"}


sniff = sniff_first_line('its first line is a "session_meta"', {"type", "payload"}, b'"session_meta"')


def _to_blocks(kind: str, item: Any) -> Iterator[common.RoleBlocks]:
    if kind == SUMMARY:
        yield "user", [{"type": "text", "text": str(item)}]
        return
    kind_of_item = str(item.get("type"))
    if kind_of_item == "message":
        role = ROLES.get(str(item.get("role")), "user")
    else:
        role = "user" if kind_of_item.endswith("_output") else "assistant"
    bare = {name: value for name, value in item.items() if name != ADDED_BY_CODEX}
    yield role, from_responses_output([bare])


FORMAT = common.SessionFormat("codex", "Codex", Rollout, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
