"""Reads opencode's session stores as calls: its database, or the file of a session of versions before 1.2.

Usage, times, model, folder and messages are the store's own. Missing parts are filled in as
`readers/common/session_calls.py` says; breakpoints as opencode places them: on the system prompt and the last two
messages, for Claude. How messages become calls (checked on sessions of opencode 1.18.33 against the requests that it
sent):

- An assistant message is one call. Older ones have several steps, each with a `step-finish` part and its own usage;
  the usage of such a message is that of its last step.
- Its request is all before it in its session: after a compaction (an assistant message with `summary: true`) only the
  summary and what follows it.
- A forked session begins with copies of the messages of the other one, under new ids, with the same times and usage:
  they are no calls.
- A session with a `parentID` is a sub-agent's: its calls belong to the session at the top.
- A message without usage was stopped or is still being written: it is no call.
- The title of a session is a call of its own that is not stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.formatting import count_text
from cachecost.base.limits import json_value
from cachecost.base.times import seconds_from_ms
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile, Warn, billed_call, quiet
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes, top_keys
from cachecost.conversations.readers.common.session_calls import (
    Body,
    Piece,
    Session,
    SessionCall,
    StoreRequests,
    damaged_places,
    number_calls,
    project_and_bills,
    text_body,
    top_sessions,
    whole_tokens,
)
from cachecost.conversations.readers.common.sqlite_files import is_database
from cachecost.conversations.readers.opencode.store import (
    PART_FILE,
    Number,
    StepTokens,
    StoredMessage,
    StoredPart,
    StoredSession,
    is_opencode_database,
    read_store,
    storage_of,
)
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

LACKS = (
    "opencode stores neither system prompt, tools nor breakpoints (sized by the bill; breakpoints as opencode places"
    " them), nor the calls that name a session, nor whether a write was for 5m or 1h (taken as 5m)"
)
TABLE = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"]?(?:session|message|part)[`\"]?\s*\(")
RECORDS = (
    ({"projectID", "directory", "version"}, "a session"),
    ({"sessionID", "role", "time"}, "a message"),
    ({"sessionID", "messageID", "type"}, "a part"),
)
"""Keys that only opencode's records have together, and which record that is."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is opencode's; None if it is not, or if only its tables can show it."""
    if is_database(head):
        names = {match[0].rstrip(b"( \n").split()[-1].strip(b'`"') for match in TABLE.finditer(head)}
        return "a database with the tables session, message and part" if len(names) == 3 else None
    keys = set(top_keys(head))
    record = next((name for own, name in RECORDS if own <= keys), None)
    return f"its keys are those of {record} of opencode" if record else None


def sniff_file(path: Path, head: bytes) -> str | None:
    """The same for a file, whose tables may all be in its write-ahead log."""
    if is_database(head):
        return "a database with opencode's tables" if is_opencode_database(path) else None
    return sniff(head)


def is_companion(path: Path, folder: Path) -> bool:
    """Whether a file in `folder` belongs to another one there: messages and parts to the file of their session."""
    if path.name.startswith(PART_FILE):
        return True
    storage = storage_of(path)
    has_session = next(storage.glob(f"session/*/{path.parent.name}.json"), None) is not None
    return path.parent.parent.name == "message" and has_session and folder.absolute() in (storage, *storage.parents)


def usage_of(tokens: StepTokens, model: str) -> Usage:
    """The usage in Anthropic's convention. Raises ValueError with what is wrong with a number.

    `tokens.input` leaves out what was read or written (since 0.3; cache writes of providers other than Anthropic,
    Bedrock and Vertex were not kept before 2026).
    """
    counted = _count(tokens.input, "input"), _count(tokens.cache.read, "cache.read")
    write, output = _count(tokens.cache.write, "cache.write"), _count(tokens.output, "output")
    reasoning = _count(tokens.reasoning, "reasoning")
    # The output leaves the reasoning out since April 2026 (anomalyco/opencode#21047). Before, it was the provider's,
    # and Gemini's left it out. The total shows it, where there is one.
    others = sum(counted) + write + output
    is_apart = tokens.total != others and (
        tokens.total == others + reasoning or reasoning > output or "gemini" in model.lower()
    )
    return Usage(*counted, write, 0, output + reasoning if is_apart else output)


def _count(number: Number, name: str) -> int:
    """A count of tokens. A negative one is of versions that subtracted cached tokens from an input without them: 0."""
    is_negative = isinstance(number, int) and number < 0
    return whole_tokens(0 if is_negative else number, f"tokens.{name}")


def user_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The texts and images of a user message. Raises ValueError where the JSON of a part is beyond a limit."""
    found: list[Body] = []
    for part in parts:
        data = _part_data(part)
        if part.record.type == "text" and not data.get("ignored"):
            found.append(text_body(data.get("text")))
        elif part.record.type == "file":
            kind, _, rest = str(data.get("url") or "").partition(";base64,")
            if rest and kind.startswith("data:image/"):
                source = {"type": "base64", "media_type": kind.removeprefix("data:"), "data": rest}
                found.append({"type": "image", "source": source})
    return found


def answer_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """Thinking, text and tool calls of an assistant message. Raises ValueError as `user_blocks`."""
    found: list[Body] = []
    for part in parts:
        data = _part_data(part)
        if part.record.type == "text":
            found.append(text_body(data.get("text")))
        elif part.record.type == "reasoning":
            metadata = object_or_empty(object_or_empty(data.get("metadata")).get("anthropic"))
            signature = str(metadata.get("signature") or "")
            found.append({"type": "thinking", "thinking": str(data.get("text") or ""), "signature": signature})
        elif part.record.type == "tool":
            use = {"type": "tool_use", "id": str(data.get("callID") or ""), "name": str(data.get("tool") or "")}
            found.append({**use, "input": object_or_empty(object_or_empty(data.get("state")).get("input"))})
    return found


def result_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The results of the tools that an assistant message called. Raises ValueError as `user_blocks`."""
    found: list[Body] = []
    for data in (_part_data(part) for part in parts if part.record.type == "tool"):
        state = object_or_empty(data.get("state"))
        is_error = state.get("status") == "error"
        made: Body = {"type": "tool_result", "tool_use_id": str(data.get("callID") or "")}
        made["content"] = str(state.get("error" if is_error else "output") or "")
        found.append({**made, "is_error": True} if is_error else made)
    return found


def _part_data(part: StoredPart) -> Mapping[str, Any]:
    return object_or_empty(json_value(part.raw)) if part.raw else {}


MISSING = "of calls that are no longer stored"
STEP_END = "step-finish"
BLOCKS = ("text", "file", "reasoning", "tool")
COMPACTION_REQUEST = [text_body("summary of the conversation so far")]
"""Stands for the words that opencode puts before a summary: they are not stored."""


@dataclass(slots=True)
class _SessionChain:
    """A session's last call, what it has had since then, and whether its history goes into the next request."""

    session: StoredSession
    root: str
    agent: str
    last: SessionCall | None = None
    events: set[str] = field(default_factory=set)
    waiting: list[Piece] = field(default_factory=list)
    chars: int = 0
    blocks: int = 0
    clears: list[float] = field(default_factory=list)
    effort: str = ""
    is_cut: bool = False
    is_copied: bool = False
    """Whether the last call is one of the session that this one was forked from."""
    mode: str = ""
    tokens: int = 0
    """Those of all messages so far, copies included."""

    def add(self, role: str, blocks: list[Body]) -> None:
        self.waiting.append(Piece(role, 0, blocks))


class SessionCalls:
    """Makes calls of sessions. `families` maps each session to the one that its calls are listed with: the session at
    the top, or the one that it was forked from. `damaged` are the reasons why calls could not be read, `missing` the
    tokens of calls that a session no longer has."""

    def __init__(self, sessions: list[StoredSession], with_content: bool) -> None:
        self.with_content = with_content
        self.notes = ReaderNotes()
        self.damaged: list[str] = []
        self.families: dict[str, str] = {}
        self.missing: dict[str, int] = {}
        self._sessions = {session.record.id: session for session in sessions}
        self._known: dict[str, SessionCall] = {}

    def calls(self) -> Iterator[SessionCall]:
        parents = {name: session.record.parent_id for name, session in self._sessions.items()}
        for name, root, number in top_sessions(parents, self._agent_name):
            agent = f"{self._agent_name(name)} {number}".removesuffix(" 1") if number else ""
            chain = _SessionChain(self._sessions[name], root, agent)
            self.families[name] = self.families.get(root, root)
            for message in chain.session.messages:
                if message.record.role == "user":
                    self._read_user_message(message, chain)
                elif message.record.role == "compaction":
                    chain.events, chain.waiting, chain.is_cut = chain.events | {"compaction"}, [], True
                    chain.blocks, chain.chars = 1, sum(part.size for part in message.parts)
                    if self.with_content:
                        chain.add("user", self._content(message, user_blocks, message.parts))
                elif message.record.role == "assistant":
                    yield from self._read_answer(message, chain)
            missing = chain.session.record.tokens - chain.tokens
            if missing > 0:
                self.missing[name] = missing
                self.notes.add("token", MISSING, missing)

    def _agent_name(self, session: str) -> str:
        names = (message.record.agent or message.record.mode for message in self._sessions[session].messages)
        return next(filter(None, names), None) or "agent"

    def _read_user_message(self, message: StoredMessage, chain: _SessionChain) -> None:
        if any(part.record.type == "compaction" for part in message.parts):
            return
        texts = [part for part in message.parts if part.record.type in BLOCKS]
        if not chain.agent and any(not part.record.synthetic for part in texts):
            chain.events.add("human")
        if chain.effort and message.record.effort != chain.effort:
            chain.events.add("effort")
        chain.effort = message.record.effort or chain.effort
        chain.blocks += len(texts)
        chain.chars += sum(part.size for part in texts)
        if self.with_content:
            chain.add("user", self._content(message, user_blocks, message.parts))

    def _read_answer(self, message: StoredMessage, chain: _SessionChain) -> Iterator[SessionCall]:
        record, session = message.record, chain.session.record
        if record.has_error or any(part.record.type == "retry" for part in message.parts):
            chain.events.add("error")
        steps = _steps(message)
        for number, (tokens, parts) in enumerate(steps):
            try:
                usage = usage_of(tokens, record.model_id)
            except ValueError as error:
                self.damaged.append(f"message {message.id}: {error}")
                continue
            if not (usage.total_input or usage.output_tokens):
                self.notes.skip("message", "no usage (stopped, or still being written)")
                continue
            chain.tokens += usage.total_input + usage.output_tokens
            call = self._new_call(message, parts, usage, chain, is_first=not number, is_last=tokens is steps[-1][0])
            call.project = record.path.cwd if record.path and record.path.cwd else session.directory
            times = f"{record.time.created} {record.time.completed}"
            counts = f"{usage.input_tokens}/{usage.read}/{usage.write}/{usage.output_tokens}"
            call.bill.id = f"opencode {times} {call.bill.model} {counts} {number}".removesuffix(" 0")
            known = self._known.setdefault(call.bill.id, call)
            if known is call:
                yield call
            else:
                self.notes.skip("message", "copied from the session that this one was forked from")
                self.families[session.id] = self.families.get(known.bill.session, known.bill.session)
                chain.is_copied = True
            self._continue(chain, known, message, parts, is_copy=known is not call)

    def _new_call(
        self,
        message: StoredMessage,
        parts: list[StoredPart],
        usage: Usage,
        chain: _SessionChain,
        *,
        is_first: bool,
        is_last: bool,
    ) -> SessionCall:
        record, before = message.record, chain.last
        model, host = parse_model_name(record.model_id, record.provider_id)
        start = seconds_from_ms(record.time.created) if is_first else None
        end = seconds_from_ms(record.time.completed)
        if not is_last:
            tools = [part.record.state.time.end for part in parts if part.record.state and part.record.state.time]
            end = max(filter(None, map(seconds_from_ms, tools)), default=None)
        bill = billed_call(0, model, usage, start or (before.bill.end if before else None), end, session=chain.root)
        bill.agent, bill.version, bill.host = chain.agent, chain.session.record.version, host or ""
        bill.blocks, bill.new_chars = chain.blocks, chain.chars
        bill.has_thinking = any(part.record.type == "reasoning" for part in parts)
        call = SessionCall(bill, before, set(chain.events), thread=chain.agent, is_cut=chain.is_cut)
        call.prefix = "summary" if record.is_summary else ""
        happened = {"compaction": record.is_summary, "fork": chain.is_copied}
        if before is not None:
            mode = record.agent or record.mode or ""
            happened["tools"] = not record.is_summary and bool(chain.mode) and mode != chain.mode
            happened["edit"] = any((before.bill.start or 0) < at <= (bill.start or 0) for at in chain.clears)
        call.events |= {event for event, holds in happened.items() if holds}
        if self.with_content:
            call.request = [*chain.waiting]
            call.answer = [Piece("assistant", 0, self._content(message, answer_blocks, parts))]
        return call

    def _continue(
        self, chain: _SessionChain, call: SessionCall, message: StoredMessage, parts: list[StoredPart], *, is_copy: bool
    ) -> None:
        if message.record.is_summary:  # the next request begins with it; the call before it is still the last one
            chain.events, chain.waiting, chain.is_cut = {"compaction"}, [], True
            chain.last, chain.blocks = chain.last or call, 1
            chain.chars = 4 * call.bill.tokens[4]
            if self.with_content:
                chain.add("user", COMPACTION_REQUEST)
                chain.waiting += call.answer
            return
        tools = [part for part in parts if part.record.type == "tool"]
        answered = [part for part in parts if part.record.type in BLOCKS]
        chain.last, chain.events, chain.waiting, chain.is_cut = call, set(), [], False
        chain.is_copied, chain.mode = is_copy, message.record.agent or message.record.mode or ""
        chain.blocks, chain.chars = len(answered) + len(tools), sum(part.size for part in answered)
        cleared = [part.record.state.time.compacted for part in tools if part.record.state and part.record.state.time]
        chain.clears += filter(None, map(seconds_from_ms, cleared))
        if self.with_content:
            chain.add("user", self._content(message, result_blocks, tools))

    def _content(
        self, message: StoredMessage, blocks: Callable[[Iterable[StoredPart]], list[Body]], parts: Iterable[StoredPart]
    ) -> list[Body]:
        """The blocks of parts; none, and an error, where one is beyond a limit."""
        try:
            return blocks(parts)
        except ValueError as error:
            self.damaged.append(f"message {message.id}: {error}")
            return []


def _steps(message: StoredMessage) -> list[tuple[StepTokens, list[StoredPart]]]:
    """The usage and the parts of each call of a message: one, unless it has several ends of steps."""
    found: list[tuple[StepTokens, list[StoredPart]]] = []
    parts: list[StoredPart] = []
    for part in message.parts:
        parts.append(part)
        if part.record.type == STEP_END and part.record.tokens:
            found.append((part.record.tokens, parts))
            parts = []
    return found if len(found) > 1 else [(message.record.tokens or StepTokens(), message.parts)]


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of their times. Raises InputError with every error."""
    store = read_store(path, with_content=True)
    sessions = SessionCalls(store.sessions, with_content=True)
    found = number_calls(sessions.calls())
    sessions.notes.report(path, warn)
    faults = [*store.faults, *(Fault(str(path), reason) for reason in sessions.damaged)]
    yield from StoreRequests(path, "opencode", keep_content, faults, marked=2).calls(Session(calls=found))


def session_files(path: Path) -> list[SessionFile]:
    """The sessions of a database or of a session's file: each with its sub-agents and the sessions forked from it.

    What is damaged stands in the first of them, with the place in its reason; the rest is counted. Raises InputError
    where the file cannot be read at all.
    """
    store = read_store(path, with_content=False)
    sessions = SessionCalls(store.sessions, with_content=False)
    families: dict[str, list[SessionCall]] = {}
    for call in list(sessions.calls()):
        families.setdefault(sessions.families.get(call.bill.session, call.bill.session), []).append(call)
    files = {
        name: SessionFile(str(path), "opencode", *project_and_bills(number_calls(calls)))
        for name, calls in families.items()
    }
    for session, tokens in sessions.missing.items():
        if file := files.get(sessions.families[session]):
            file.notes = (*file.notes, f"session {session}: {count_text(tokens, 'token')} {MISSING}")
    damaged = damaged_places(store.faults, path)
    damaged += [(0, reason) for reason in sessions.damaged]
    made = list(files.values())
    if damaged:
        made = made or [SessionFile(str(path), "opencode")]
        made[0].damaged = tuple(damaged)
    return made
