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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.formatting import count_text
from cachecost.base.times import seconds_from_ms
from cachecost.conversations.input_files import SessionFile, billed_call
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.sqlite_files import columns_by_table, created_tables, is_database
from cachecost.conversations.readers.opencode.store import (
    PART_FILE,
    Number,
    StepTokens,
    StoredMessage,
    StoredPart,
    StoredSession,
    StoreReading,
    has_opencode_tables,
    storage_of,
)
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

LACKS = (
    "opencode stores neither system prompt, tools nor breakpoints (sized by the bill; breakpoints as opencode places"
    " them), nor the calls that name a session, nor whether a write was for 5m or 1h (taken as 5m)"
)
TABLES = {b"session", b"message", b"part"}
RECORDS = (
    ({"projectID", "directory", "version"}, "a session"),
    ({"sessionID", "role", "time"}, "a message"),
    ({"sessionID", "messageID", "type"}, "a part"),
)
"""Keys that only opencode's records have together, and which record that is."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is opencode's; None if it is not, or if only its tables can show it."""
    if is_database(head):
        return "a database with the tables session, message and part" if created_tables(head) >= TABLES else None
    keys = set(top_keys(head))
    record = next((name for own, name in RECORDS if own <= keys), None)
    return f"its keys are those of {record} of opencode" if record else None


def sniff_file(path: Path, head: bytes) -> str | None:
    """The same for a file, whose tables may all be in its write-ahead log."""
    if not is_database(head):
        return sniff(head)
    return "a database with opencode's tables" if has_opencode_tables(columns_by_table(path, head)) else None


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
    return common.whole_tokens(0 if is_negative else number, f"tokens.{name}")


MISSING = "of calls that are no longer stored"
BLOCKS = ("text", "file", "reasoning", "tool")
COMPACTION_REQUEST = [common.text_body("summary of the conversation so far")]
"""Stands for the words that opencode puts before a summary: they are not stored."""


@dataclass(slots=True, eq=False)
class StoredChain(common.CallChain):
    """A session with what it has had since its last call."""

    session: StoredSession = field(kw_only=True)
    root: str = field(kw_only=True)
    chars: int = 0
    blocks: int = 0
    clears: list[float] = field(default_factory=list)
    effort: str = ""
    is_copied: bool = False
    """Whether the last call is one of the session that this one was forked from."""
    mode: str = ""
    tokens: int = 0
    """Those of all messages so far, copies included."""

    def add_user_message(self, message: StoredMessage) -> None:
        if any(part.record.type == "compaction" for part in message.parts):
            return
        texts = [part for part in message.parts if part.record.type in BLOCKS]
        if not self.thread and any(not part.record.synthetic for part in texts):
            self.events.add("human")
        if self.effort and message.record.effort != self.effort:
            self.events.add("effort")
        self.effort = message.record.effort or self.effort
        self.blocks += len(texts)
        self.chars += sum(part.size for part in texts)
        self.request += _pieces("user", message, message.parts)

    def go_on(self, call: common.SessionCall, message: StoredMessage, parts: list[StoredPart]) -> None:
        """Add what the next request has after a call, or a copy of it."""
        self.last = call
        if message.record.is_summary:  # the next request begins with it
            self.cut(common.Piece("user", 0, COMPACTION_REQUEST), *call.answer)
            self.blocks, self.chars = 1, 4 * call.bill.tokens[4]
            return
        tools = [part for part in parts if part.record.type == "tool"]
        answered = [part for part in parts if part.record.type in BLOCKS]
        self.mode = message.record.agent or message.record.mode or ""
        self.blocks, self.chars = len(answered) + len(tools), sum(part.size for part in answered)
        cleared = [part.record.state.time.compacted for part in tools if part.record.state and part.record.state.time]
        self.clears += filter(None, map(seconds_from_ms, cleared))
        self.request += _pieces(RESULT, message, tools)


class StoreCalls(common.StoreParser):
    """Makes calls of sessions. `families` maps each session to the one that its calls are listed with: the session at
    the top, or the one that it was forked from. `missing` are the tokens of calls that a session no longer has."""

    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self.families: dict[str, str] = {}
        self.missing: dict[str, int] = {}
        self._faults: list[Fault] = []
        self._known: dict[str, common.SessionCall] = {}

    def stored_calls(self, faults: list[Fault]) -> Iterator[common.SessionCall]:
        self._faults = faults
        found = {one.record.id: one for one in StoreReading(self.path, self.keeps, faults).sessions()}

        def agent_name(session: str) -> str:
            names = (message.record.agent or message.record.mode for message in found[session].messages)
            return next(filter(None, names), None) or "agent"

        parents = {name: session.record.parent_id for name, session in found.items()}
        for name, root, number in common.top_sessions(parents, agent_name):
            agent = f"{agent_name(name)} {number}".removesuffix(" 1") if number else ""
            chain = StoredChain(agent, session=found[name], root=root)
            self.families[name] = self.families.get(root, root)
            for message in chain.session.messages:
                if message.record.role == "user":
                    chain.add_user_message(message)
                elif message.record.role == "compaction":
                    chain.cut(*_pieces("user", message, message.parts))
                    chain.blocks, chain.chars = 1, sum(part.size for part in message.parts)
                elif message.record.role == "assistant":
                    yield from self._read_answer(message, chain)
            missing = chain.session.record.tokens - chain.tokens
            if missing > 0:
                self.missing[name] = missing
                self.notes.add("token", MISSING, missing)

    def _read_answer(self, message: StoredMessage, chain: StoredChain) -> Iterator[common.SessionCall]:
        record, session = message.record, chain.session.record
        if record.has_error or any(part.record.type == "retry" for part in message.parts):
            chain.events.add("error")
        steps = message.steps()
        for number, (tokens, parts) in enumerate(steps):
            try:
                usage = usage_of(tokens, record.model_id)
            except ValueError as error:
                self._faults.append(Fault(str(self.path), f"message {message.id}: {error}"))
                continue
            if not (usage.total_input or usage.output_tokens):
                self.notes.skip("message", "no usage (stopped, or still being written)")
                continue
            chain.tokens += usage.total_input + usage.output_tokens
            before = chain.last
            call = _new_call(message, parts, usage, chain, is_first=not number, is_last=tokens is steps[-1][0])
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
            chain.go_on(known, message, parts)
            if record.is_summary:  # the call before a summary is still the last one
                chain.last = before or known
            chain.is_copied = known is not call or (record.is_summary and chain.is_copied)


def _new_call(
    message: StoredMessage,
    parts: list[StoredPart],
    usage: Usage,
    chain: StoredChain,
    *,
    is_first: bool,
    is_last: bool,
) -> common.SessionCall:
    record, before = message.record, chain.last
    model, host = parse_model_name(record.model_id, record.provider_id)
    start = seconds_from_ms(record.time.created) if is_first else None
    end = seconds_from_ms(record.time.completed)
    if not is_last:
        tools = [part.record.state.time.end for part in parts if part.record.state and part.record.state.time]
        end = max(filter(None, map(seconds_from_ms, tools)), default=None)
    bill = billed_call(0, model, usage, start or (before.bill.end if before else None), end, session=chain.root)
    bill.agent, bill.version, bill.host = chain.thread, chain.session.record.version, host or ""
    bill.blocks, bill.new_chars = chain.blocks, chain.chars
    bill.has_thinking = any(part.record.type == "reasoning" for part in parts)
    happened = {"compaction": record.is_summary, "fork": chain.is_copied}
    if before is not None:
        mode = record.agent or record.mode or ""
        happened["tools"] = not record.is_summary and bool(chain.mode) and mode != chain.mode
        happened["edit"] = any((before.bill.start or 0) < at <= (bill.start or 0) for at in chain.clears)
    chain.events |= {event for event, holds in happened.items() if holds}
    call = chain.add_call(bill, _pieces("assistant", message, parts))
    call.prefix = "summary" if record.is_summary else ""
    return call


def _pieces(kind: str, message: StoredMessage, parts: Iterable[StoredPart]) -> list[common.Piece]:
    return [common.Piece(kind, part.size, part.raw, f"message {message.id}: ") for part in parts if part.raw]


RESULT = "result"
"""The kind of a piece that is a tool call, of which the result is sent; those of others are roles."""


def _to_blocks(kind: str, value: Any) -> Iterator[common.RoleBlocks]:
    """What a request has of a part. Those of opencode 2 have other names in tool calls."""
    part = object_or_empty(value)
    type_, state = part.get("type"), object_or_empty(part.get("state"))
    call_id = str(part.get("callID" if "tool" in part else "id") or "")
    if kind == RESULT:
        texts = [block.get("text") for block in objects_in(state.get("content"))]
        output = state.get("output") or "\n".join(text for text in texts if isinstance(text, str))
        is_error = state.get("status") == "error"
        made: common.Body = {"type": "tool_result", "tool_use_id": call_id}
        made["content"] = str((state.get("error") if is_error else output) or "")
        yield "user", [{**made, "is_error": True} if is_error else made]
    elif type_ == "text" and not (kind == "user" and part.get("ignored")):
        yield kind, [common.text_body(part.get("text"))]
    elif type_ == "file" and kind == "user":
        media, _, rest = str(part.get("url") or "").partition(";base64,")
        if rest and media.startswith("data:image/"):
            source = {"type": "base64", "media_type": media.removeprefix("data:"), "data": rest}
            yield kind, [{"type": "image", "source": source}]
    elif type_ == "reasoning" and kind == "assistant":
        metadata = object_or_empty(object_or_empty(part.get("metadata")).get("anthropic"))
        signature = str(metadata.get("signature") or "")
        yield kind, [{"type": "thinking", "thinking": str(part.get("text") or ""), "signature": signature}]
    elif type_ == "tool" and kind == "assistant":
        name = str(part.get("tool") or part.get("name") or "")
        arguments = object_or_empty(state.get("input"))
        yield kind, [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]


FORMAT = common.SessionFormat("opencode", "opencode", StoreCalls, _to_blocks)
calls = FORMAT.calls


def session_files(path: Path) -> list[SessionFile]:
    """The sessions of a database or of a session's file: each with its sub-agents and the sessions forked from it.

    What is damaged stands in the first of them, with the place in its reason; the rest is counted. Raises InputError
    where the file cannot be read at all.
    """
    faults, store = list[Fault](), StoreCalls(path, False)
    families: dict[str, list[common.SessionCall]] = {}
    for call in list(store.stored_calls(faults)):
        families.setdefault(store.families.get(call.bill.session, call.bill.session), []).append(call)
    files = {
        name: SessionFile(str(path), "opencode", numbered[0].project, common.bills_of(numbered))
        for name, numbered in ((name, common.number_calls(found)) for name, found in families.items())
    }
    for session, tokens in store.missing.items():
        if file := files.get(store.families[session]):
            file.notes = (*file.notes, f"session {session}: {count_text(tokens, 'token')} {MISSING}")
    made = list(files.values())
    if faults:
        made = made or [SessionFile(str(path), "opencode")]
        made[0].damaged = common.damaged_places(faults, path)
    return made
