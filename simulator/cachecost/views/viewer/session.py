"""A session call by call: what was billed, and what a replay says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest
from typing import Any

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.analysis.viewing.listing import ViewedSession
from cachecost.base.formatting import exact
from cachecost.conversations.billed_calls import EVENTS
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import SimulatedCall
from cachecost.views.bill.session import (
    MAIN,
    agent_name,
    named_facts,
    session_headline,
    what_came_before,
)
from cachecost.views.bill.words import evidence_words
from cachecost.views.viewer.columns import NameList, cause_objects, simulated_columns, usage_columns, usd

MOMENTS = 5
AT_BLOCK = re.compile(r" at (?:tools|system|messages)[.\w]*$")
"""Where what was idle begins: that is the whole prompt, or what the page shows as written."""
NO_BILL = "none in the log: tokens and dollars are those of a replay"


def session_object(session: ViewedSession, name: str) -> dict[str, Any]:
    """A session under the name it has in the list; its calls as columns."""
    total, calls = session.summary.total, session.calls
    causes, models, agents = NameList(), NameList(), NameList([MAIN])
    columns = call_columns(calls, causes, models, agents)
    row = session.summary.rows[0]
    return {
        "id": session.id,
        "name": name,
        "session": row.session,
        "project": row.project,
        "client": row.client,
        "models": models.names,
        "agents": agents.names,
        "causes": cause_objects(causes),
        "headline": session_headline(session.summary),
        "facts": list(_facts(session)),
        "has_text": session.has_text,
        "has_blocks": session.has_blocks,
        "has_bill": session.has_bill,
        "cost_usd": exact(total.cost),
        "rewritten_usd": exact(total.rewritten),
        "calls": columns,
        "moments": moment_objects(calls),
    }


def _facts(session: ViewedSession) -> Iterator[tuple[str, str]]:
    yield from named_facts(session.calls)
    if not session.has_bill:
        yield "bill", NO_BILL


def call_columns(calls: Sequence[TimelineCall], causes: NameList, models: NameList, agents: NameList) -> dict[str, Any]:
    """What was billed of each call; new causes, models and agents are added to the lists."""
    first_model = calls[0].call.model if calls else ""
    return {
        "number": [one.number for one in calls],
        "start": [one.call.start for one in calls],
        "model": [models.place(one.call.model) for one in calls],
        "agent": [agents.place(agent_name(one)) for one in calls],
        **usage_columns(one.call.usage for one in calls),
        "output": [one.call.tokens[4] for one in calls],
        "cost_usd": [usd(one.cost) for one in calls],
        "rewritten_usd": [exact(rewritten_cost(one)) for one in calls],
        "rewritten_tokens": [one.rewrite.tokens if one.rewrite else 0 for one in calls],
        "cause": [causes.place(one.cause) for one in calls],
        "is_human": [is_human(one) for one in calls],
        "idle_s": [one.idle_s for one in calls],
        "event": [event_text(one, first_model) for one in calls],
    }


def rewritten_cost(one: TimelineCall) -> Decimal:
    """USD that a call paid to write again what had been cached."""
    return (one.rewrite.cost if one.rewrite else None) or ZERO


def is_human(one: TimelineCall) -> bool:
    """Whether a person's message came before the call."""
    return "human" in one.call.events and not one.agent_number


def event_text(one: TimelineCall, model: str) -> str:
    """What came before a call besides a person's message; `model` is that of the session's start."""
    if one.before is not None and not one.call.events:
        return ""
    words = what_came_before(one, {}, model).split("; ")
    return "; ".join(word for word in words if word and word != EVENTS["human"])


def moment_objects(calls: Sequence[TimelineCall]) -> list[dict[str, Any]]:
    """The most expensive rewrites, the most expensive first."""
    paid = [one for one in calls if one.rewrite and rewritten_cost(one) > 0]
    found = nsmallest(MOMENTS, paid, key=lambda one: (-rewritten_cost(one), one.number))
    return [
        {"call": one.number, "cost_usd": exact(rewritten_cost(one)), "words": words_of_cause(one.rewrite)}
        for one in found
        if one.rewrite
    ]


def words_of_cause(rewrite: BilledRewrite) -> str:
    """The cause of a rewrite and what shows it, without what the page shows beside it: tokens, dollars, the place."""
    words = evidence_words(rewrite)
    return AT_BLOCK.sub("", words) if rewrite.cause == "ttl_expired" else words


def simulated_object(session: ViewedSession, made: Mapping[int, SimulatedCall], token_source: str) -> dict[str, Any]:
    """The replay of a session as it was sent, in the order of its calls."""
    causes = NameList()
    rows = [one.row for one in made.values()]
    return {
        "cost_usd": exact(sum((row.cost.total for row in rows), ZERO)),
        "billed_usd": exact(session.summary.total.cost) if session.has_bill else None,
        "tokens_from": token_source,
        "calls": {
            "number": [one.number for one in session.calls],
            **simulated_columns([made.get(one.number) for one in session.calls], causes),
        },
        "causes": cause_objects(causes),
        "errors": list(dict.fromkeys(row.error for row in rows if row.error)),
    }
