"""Crush's messages as calls: an assistant message is one call, without its usage.

After a summary (`is_summary_message`) a request begins with it. A session with a parent is a sub-agent's: its calls
belong to the session at the top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachecost.base.limits import is_number
from cachecost.base.times import known_time
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.readers.common.stored_calls import StoredCall
from cachecost.conversations.readers.crush.store import (
    FIRST_MILLISECONDS,
    CrushMessage,
    CrushSession,
    CrushStore,
    parts_of,
)
from cachecost.providers.hosts import parse_model_name

Body = dict[str, Any]
TITLE = "title-"
"""How the sessions began in which versions of 2025 made titles."""


@dataclass(slots=True)
class _MessageChain:
    last: StoredCall | None = None
    waiting: list[Body] = field(default_factory=list)
    events: set[str] = field(default_factory=set)


def calls_of(store: CrushStore) -> Iterator[StoredCall]:
    """The calls of all sessions, session by session."""
    agents: Counter[str] = Counter()
    for session in store.sessions.values():
        root = _root(store, session)
        agent = ""
        if root is not session:
            agents[root.id] += 1
            agent = f"agent {agents[root.id]}"
        for call in _session_calls(session, is_agent=bool(agent)):
            call.session, call.agent = root.id, agent
            yield call


def _root(store: CrushStore, session: CrushSession) -> CrushSession:
    seen = {session.id}
    while (parent := store.sessions.get(session.parent)) and parent.id not in seen:
        session = parent
        seen.add(session.id)
    return session


def _session_calls(session: CrushSession, *, is_agent: bool) -> Iterator[StoredCall]:
    chain = _MessageChain()
    for message in session.messages:
        if message.role != "assistant":
            if message.role == "user" and not is_agent:
                chain.events.add("human")
            _add(chain, "user", _user_blocks(message))
            continue
        if message.is_summary:
            chain.events.add("compaction")
        if not message.parts or not message.model:
            continue
        call = _new_call(message, chain)
        yield call
        _continue(chain, call, message)


def _new_call(message: CrushMessage, chain: _MessageChain) -> StoredCall:
    model, host = parse_model_name(message.model, message.provider)
    if chain.last is not None and (chain.last.model, chain.last.host) != (model, host):
        chain.events.add("model")
    times = [part.get("time") for part in parts_of(message, "finish")]
    end = next((float(at) for at in times if is_number(at) and at), None)
    return StoredCall(
        model,
        None,
        host,
        message.created,
        known_time(end if end is None or end < FIRST_MILLISECONDS else end / 1000),
        before=chain.last,
        events=frozenset(chain.events),
        id=f"crush {message.id}",
        messages=chain.waiting,
        answer=_answer_blocks(message),
        is_cut="compaction" in chain.events and not message.is_summary,
        prefix="summary" if message.is_summary else "",
    )


def _continue(chain: _MessageChain, call: StoredCall, message: CrushMessage) -> None:
    """What the session has after this call: a summary takes the place of all before it."""
    chain.waiting = []
    if message.is_summary:
        _add(chain, "user", [block for block in call.answer if block["type"] == "text"])
        chain.events = {"compaction"}
        chain.last = chain.last or call
        return
    chain.last, chain.events = call, set()


def _add(chain: _MessageChain, role: str, blocks: list[Body]) -> None:
    if chain.waiting and chain.waiting[-1]["role"] == role:
        chain.waiting[-1] = {"role": role, "content": [*chain.waiting[-1]["content"], *blocks]}
    elif blocks:
        chain.waiting.append({"role": role, "content": blocks})


def _user_blocks(message: CrushMessage) -> list[Body]:
    """Results of tools, and what a person wrote."""
    results = [_result(data) for data in parts_of(message, "tool_result")]
    return results + [_text(data) for data in parts_of(message, "text")]


def _answer_blocks(message: CrushMessage) -> list[Body]:
    thinking: list[Body] = [
        {"type": "thinking", "thinking": str(data.get("thinking") or ""), "signature": str(data.get("signature") or "")}
        for data in parts_of(message, "reasoning")
    ]
    texts = [_text(data) for data in parts_of(message, "text") if data.get("text")]
    return [*thinking, *texts, *(_tool_use(data) for data in parts_of(message, "tool_call"))]


def _text(data: Mapping[str, Any]) -> Body:
    return {"type": "text", "text": str(data.get("text") or "")}


def _tool_use(data: Mapping[str, Any]) -> Body:
    """A call of a tool; its input is stored as a text of JSON."""
    told = parse_json(str(data.get("input") or "{}").encode("utf-8", "replace"))
    parsed = told if isinstance(told, Mapping) else {}
    return {"type": "tool_use", "id": str(data.get("id") or ""), "name": str(data.get("name") or ""), "input": parsed}


def _result(data: Mapping[str, Any]) -> Body:
    made = {"type": "tool_result", "tool_use_id": str(data.get("tool_call_id") or "")}
    return {**made, "content": str(data.get("content") or ""), **({"is_error": True} if data.get("is_error") else {})}
