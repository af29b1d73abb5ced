"""The session that a next message continues, among the sessions and logs that were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.compaction import measure_compactions
from cachecost.analysis.bill.timeline import session_key, session_timelines
from cachecost.analysis.next_message.alternatives import (
    COLD,
    EFFORT,
    MESSAGE_EFFORT,
    MODEL,
    NOW,
    NextAlternative,
    NextChoice,
    choose_next,
)
from cachecost.analysis.next_message.billed_models import BilledModel, FindModel, model_of_state, models_in
from cachecost.analysis.next_message.history import session_state
from cachecost.analysis.next_message.requests import LastConversation, message_of_size, with_effort, with_model
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.billed_calls import BilledCall
from cachecost.prompts.blocks import Message
from cachecost.simulation.workload import Workload

EFFORTS = ("low", "high")
WITHOUT_KEEP_ALIVES = ("claude-code",)
"""Clients that send none, and let nobody set that they do."""


@dataclass(frozen=True, slots=True)
class NextRequest:
    """What is asked: when the message is sent, its length or content, the answer, and what else could be changed."""

    at: float
    new_tokens: int | None = None
    message: Message | None = None
    output_tokens: int = 0
    models: Sequence[str] = ()
    tools_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NextSession:
    """A session that goes on. Where its requests are known, `conversation` simulates the next one."""

    state: SessionState
    find: FindModel
    conversation: LastConversation | None = None

    @property
    def is_simulated(self) -> bool:
        return self.conversation is not None

    def choose(self, asked: NextRequest) -> NextChoice:
        """The next message and what could be done instead. Raises CannotEvaluate for an unknown model."""
        state, at = self.state, asked.at
        day = None if state.last_used is None else at  # without times the prices of the rule data's day hold
        model = model_of_state(state, self.find, at=day)
        others = [self._known_model(name, day) for name in asked.models]
        output, tools = asked.output_tokens, asked.tools_tokens
        found = choose_next(state, model.quote, at, asked.new_tokens, output, others, tools)
        return found if self.conversation is None else self._simulated(found, self.conversation, asked)

    def _known_model(self, name: str, at: float | None) -> BilledModel:
        """Another model. Raises CannotEvaluate where no price is known."""
        found = model_of_state(self.state, self.find, name, at)
        if found.quote is None:
            raise CannotEvaluate(f"no price known for {name} on host {self.state.host}: `cachecost models` lists them")
        return found

    def _simulated(self, found: NextChoice, known: LastConversation, asked: NextRequest) -> NextChoice:
        """The same with the simulation's figures where a request can be simulated."""
        at = asked.at if known.is_timed else known.last.start
        new = self.state.typical_new_tokens if asked.new_tokens is None else asked.new_tokens
        message, known = asked.message or message_of_size(new), known.with_answer(asked.output_tokens)
        now = known.next_message(message, at)
        models = iter(asked.models)
        rows: list[NextAlternative] = []
        for row in found.alternatives:
            if row.kind in (NOW, MESSAGE_EFFORT):
                rows.append(replace(row, usage=now.price))
            elif row.kind == COLD:
                rows.append(replace(row, usage=now.cold))
            elif row.kind == MODEL:
                price = known.next_message(message, at, with_model(next(models))).price
                rows.append(replace(row, usage=price, note="another model reads nothing of this cache"))
            else:
                rows.append(_effort_row(row, known, message, at) if row.kind == EFFORT else row)
        return replace(found, message=now, alternatives=tuple(rows))


def _effort_row(row: NextAlternative, known: LastConversation, message: Message, at: float) -> NextAlternative:
    """The row with the usage of another level; as it is where the host refuses the parameter."""
    config = known.last.request.params.get("output_config") or {}
    level = EFFORTS[config.get("effort") == EFFORTS[0]]
    try:
        return replace(row, usage=known.next_message(message, at, with_effort(level)).price)
    except CannotEvaluate:
        return row


def next_session(account: BillAccount, key: str, workload: Workload | None = None) -> NextSession | None:
    """The session `key` of an account; None where its main thread has no bill. `workload` are the calls of its log."""
    find = models_in(account.prices)
    timeline = session_timelines(account, [key])[key]
    state = session_state([one.call for one in timeline], find, timeline[-1].file.project) if timeline else None
    if state is None:
        return None
    client = timeline[-1].file.client
    state = replace(state, can_keep_alive=client not in WITHOUT_KEEP_ALIVES)
    state = replace(state, static_warm_until=_static_warm_until(account, key, state, find))
    size = measure_compactions(account) if not state.summary_tokens else None
    state = replace(state, summary_tokens=size.summary) if size else state
    is_whole = workload is not None and timeline[-1].file.has_requests
    return NextSession(state, find, LastConversation(workload) if workload is not None and is_whole else None)


def _static_warm_until(account: BillAccount, key: str, state: SessionState, find: FindModel) -> float | None:
    """Until when other sessions of the same client, version and model keep tools and system prompt warm."""
    if not state.static_tokens:
        return None
    ends = [
        _expires(call, find)
        for file, call in account.calls()
        if call.start is not None and not call.agent and session_key(file, call) != key and _is_alike(call, state)
    ]
    return max(ends, default=None)


def _is_alike(call: BilledCall, state: SessionState) -> bool:
    return (call.model, call.version) == (state.model, state.version) and call.read == state.static_tokens


def _expires(call: BilledCall, find: FindModel) -> float:
    ttl_s = find(call, "").ttl_s or {"5m": 300.0}
    return (call.start or 0.0) + (ttl_s.get("1h" if call.tokens[3] else "5m") or 300.0)
