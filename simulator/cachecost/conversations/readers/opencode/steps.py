"""opencode's messages as calls.

How messages become calls (checked on sessions of opencode 1.18.33 against the requests that it sent):

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

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cachecost.base.times import seconds_from_ms
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.common.session_calls import Body, Piece, SessionCall
from cachecost.conversations.readers.opencode.records import (
    MessageRecord,
    StepTokens,
    StoredMessage,
    StoredPart,
    StoredSession,
    answer_blocks,
    model_of,
    result_blocks,
    usage_of,
    user_blocks,
)
from cachecost.providers.usage import Usage

MISSING = "of calls that are no longer stored"
STEP_END = "step-finish"
BLOCKS = ("text", "file", "reasoning", "tool")
COMPACTION_REQUEST: list[Body] = [{"type": "text", "text": "summary of the conversation so far"}]
"""Stands for the words that opencode puts before a summary: they are not stored."""


@dataclass(slots=True)
class _Step:
    """One call of an assistant message: its usage and its parts."""

    tokens: StepTokens
    parts: list[StoredPart]
    is_first: bool
    is_last: bool


@dataclass(slots=True)
class _SessionChain:
    """What a session has had since its last call, and whether its history goes into the next request."""

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
    agent: str = ""
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
        self._agents: Counter[tuple[str, str]] = Counter()

    def calls(self) -> Iterator[SessionCall]:
        for session in self._sessions.values():
            root = self._root(session)
            chain = _SessionChain()
            agent = self._agent_name(session, root.record.id) if root is not session else ""
            self.families[session.record.id] = self.families.get(root.record.id, root.record.id)
            for message in session.messages:
                if message.record.role == "user":
                    self._take_user(message, chain, bool(agent))
                elif message.record.role == "compaction":
                    chain.events, chain.waiting, chain.is_cut = chain.events | {"compaction"}, [], True
                    chain.blocks, chain.chars = 1, sum(part.size for part in message.parts)
                    if self.with_content:
                        chain.add("user", self._content(message, user_blocks, message.parts))
                elif message.record.role == "assistant":
                    yield from self._take_answer(message, chain, session, root, agent)
            missing = session.record.tokens - chain.tokens
            if missing > 0:
                self.missing[session.record.id] = missing
                self.notes.add("token", MISSING, missing)

    def _root(self, session: StoredSession) -> StoredSession:
        """The session at the top: itself, unless it is a sub-agent's."""
        seen = {session.record.id}
        while (parent := self._sessions.get(session.record.parent_id or "")) and parent.record.id not in seen:
            session = parent
            seen.add(session.record.id)
        return session

    def _agent_name(self, session: StoredSession, root: str) -> str:
        """ "general", "general 2" …"""
        names = (message.record.agent or message.record.mode for message in session.messages)
        name = next(filter(None, names), None) or "agent"
        self._agents[root, name] += 1
        number = self._agents[root, name]
        return name if number == 1 else f"{name} {number}"

    def _take_user(self, message: StoredMessage, chain: _SessionChain, is_agent: bool) -> None:
        if any(part.record.type == "compaction" for part in message.parts):
            return
        texts = [part for part in message.parts if part.record.type in BLOCKS]
        if not is_agent and any(not part.record.synthetic for part in texts):
            chain.events.add("human")
        if chain.effort and message.record.effort != chain.effort:
            chain.events.add("effort")
        chain.effort = message.record.effort or chain.effort
        chain.blocks += len(texts)
        chain.chars += sum(part.size for part in texts)
        if self.with_content:
            chain.add("user", self._content(message, user_blocks, message.parts))

    def _take_answer(
        self, message: StoredMessage, chain: _SessionChain, session: StoredSession, root: StoredSession, agent: str
    ) -> Iterator[SessionCall]:
        record = message.record
        if record.has_error or any(part.record.type == "retry" for part in message.parts):
            chain.events.add("error")
        for number, step in enumerate(_steps(message)):
            usage = self._usage(message, step)
            if usage is None:
                continue
            chain.tokens += usage.total_input + usage.output_tokens
            call = self._new_call(message, step, usage, chain)
            call.session, call.agent, call.thread = root.record.id, agent, agent
            call.project = record.path.cwd if record.path and record.path.cwd else session.record.directory
            call.version = session.record.version
            tokens = f"{usage.input_tokens}/{usage.read}/{usage.write}/{usage.output_tokens}"
            call.id = (
                f"opencode {record.time.created} {record.time.completed} {call.model} {tokens} {number}".removesuffix(
                    " 0"
                )
            )
            known = self._known.setdefault(call.id, call)
            if known is not call:
                self._join(session.record.id, known, chain)
            else:
                yield call
            self._continue(chain, known, message, step, is_copy=known is not call)

    def _join(self, session: str, known: SessionCall, chain: _SessionChain) -> None:
        self.notes.skip("message", "copied from the session that this one was forked from")
        self.families[session] = self.families.get(known.session, known.session)
        chain.is_copied = True

    def _usage(self, message: StoredMessage, step: _Step) -> Usage | None:
        try:
            usage = usage_of(step.tokens, message.record.model_id)
        except ValueError as error:
            self.damaged.append(f"message {message.id}: {error}")
            return None
        if usage.total_input or usage.output_tokens:
            return usage
        self.notes.skip("message", "no usage (stopped, or still being written)")
        return None

    def _new_call(self, message: StoredMessage, step: _Step, usage: Usage, chain: _SessionChain) -> SessionCall:
        record = message.record
        model, host = model_of(record)
        start = seconds_from_ms(record.time.created) if step.is_first else None
        call = SessionCall(model=model, usage=usage, host=host or "")
        call.start = start or (chain.last.end if chain.last else None)
        call.end = seconds_from_ms(record.time.completed) if step.is_last else _tool_end(step.parts)
        call.before, call.is_cut, call.prefix = chain.last, chain.is_cut, "summary" if record.is_summary else ""
        call.events = set(_events(call, record, chain))
        call.blocks, call.new_chars = chain.blocks, chain.chars
        call.has_thinking = any(part.record.type == "reasoning" for part in step.parts)
        if self.with_content:
            call.request = [*chain.waiting]
            call.answer = [Piece("assistant", 0, self._content(message, answer_blocks, step.parts))]
        return call

    def _continue(
        self, chain: _SessionChain, call: SessionCall, message: StoredMessage, step: _Step, *, is_copy: bool
    ) -> None:
        """What the session has after this call."""
        if message.record.is_summary:
            self._compact(chain, call)
            return
        tools = [part for part in step.parts if part.record.type == "tool"]
        answered = [part for part in step.parts if part.record.type in BLOCKS]
        chain.last, chain.events, chain.waiting, chain.is_cut = call, set(), [], False
        chain.is_copied, chain.agent = is_copy, message.record.agent or message.record.mode or ""
        chain.blocks, chain.chars = len(answered) + len(tools), sum(part.size for part in answered)
        chain.clears += _clears(tools)
        if self.with_content:
            chain.add("user", self._content(message, result_blocks, tools))

    def _compact(self, chain: _SessionChain, call: SessionCall) -> None:
        """The next request begins with the summary. The call before it is still the last of the main thread."""
        chain.events, chain.waiting, chain.is_cut = {"compaction"}, [], True
        chain.last, chain.blocks = chain.last or call, 1
        chain.chars = 4 * call.usage.output_tokens
        if self.with_content:
            chain.add("user", COMPACTION_REQUEST)
            chain.waiting += call.answer

    def _content(self, message: StoredMessage, blocks: object, parts: Iterable[StoredPart]) -> list[Body]:
        """The blocks of parts; none, and an error, where one is beyond a limit."""
        try:
            return blocks(parts)  # type: ignore[operator,no-any-return]
        except ValueError as error:
            self.damaged.append(f"message {message.id}: {error}")
            return []


def _steps(message: StoredMessage) -> Iterator[_Step]:
    """The calls of a message: one, unless it has several ends of steps."""
    ends = [part for part in message.parts if part.record.type == STEP_END and part.record.tokens]
    if len(ends) < 2:
        yield _Step(message.record.tokens or StepTokens(), message.parts, is_first=True, is_last=True)
        return
    parts: list[StoredPart] = []
    for part in message.parts:
        parts.append(part)
        if part.record.type == STEP_END and part.record.tokens:
            yield _Step(part.record.tokens, parts, is_first=part is ends[0], is_last=part is ends[-1])
            parts = []


def _events(call: SessionCall, record: MessageRecord, chain: _SessionChain) -> Iterator[str]:
    """What lies between a call and the one that it continues."""
    yield from chain.events
    if record.is_summary:
        yield "compaction"
    if chain.is_copied:
        yield "fork"
    before = chain.last
    if before is None:
        return
    if (before.model, before.host) != (call.model, call.host):
        yield "model"
    if not record.is_summary and chain.agent and (record.agent or record.mode or "") != chain.agent:
        yield "tools"
    if any((before.start or 0) < at <= (call.start or 0) for at in chain.clears):
        yield "edit"


def _tool_end(parts: Iterable[StoredPart]) -> float | None:
    """When the last tool of a step had ended."""
    times = [part.record.state.time.end for part in parts if part.record.state and part.record.state.time]
    return max(filter(None, map(seconds_from_ms, times)), default=None)


def _clears(tools: Iterable[StoredPart]) -> list[float]:
    """When outputs of tools were cleared from the history."""
    times = [part.record.state.time.compacted for part in tools if part.record.state and part.record.state.time]
    return list(filter(None, map(seconds_from_ms, times)))
