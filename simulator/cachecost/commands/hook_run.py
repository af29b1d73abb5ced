"""The hook itself: from Claude Code's JSON on stdin to what its hooks print, without click.

Hooks and their JSON (Claude Code docs, Hooks, 2026-11): `systemMessage` is shown to the person and not to the model;
`decision: "block"` stops a message or a compaction; `permissionDecision: "ask"` makes a switch of the model ask first.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from cachecost.analysis.next_message.state import (
    Facts,
    SessionState,
    is_same_model,
    message_on,
    model_of_state,
    next_message,
    price_compaction,
    text_at,
)
from cachecost.base.formatting import inert
from cachecost.commands.statusline_run import SessionMemory, read_facts, remembered_folder, write_line
from cachecost.providers.usage import Quote
from cachecost.views.next.words import (
    compaction_warning,
    is_expensive,
    message_warning,
    rewritten_tokens,
    switch_warning,
)

USD_VARIABLE, TOKENS_VARIABLE = "CACHECOST_HOOK_LEAST_USD", "CACHECOST_HOOK_LEAST_TOKENS"
LEAST_USD, LEAST_TOKENS = Decimal("0.10"), 20_000
CHARACTERS_PER_TOKEN = 4
"""Rough: a person's message is a small part of the prompt."""


class HookOptions(NamedTuple):
    """When to say anything, and whether to stop what is expensive."""

    least_usd: Decimal = LEAST_USD
    least_tokens: int = LEAST_TOKENS
    blocks: bool = False


class _Hook(NamedTuple):
    """What a hook knows: the event, the session, its prices, the time, and what was asked for."""

    facts: Facts
    state: SessionState
    prices: Quote | None
    memory: SessionMemory
    now: float
    options: HookOptions

    def is_silent(self, cost: Decimal | None, tokens: int) -> bool:
        return not is_expensive(cost, tokens, self.options.least_usd, self.options.least_tokens)

    def warn(self, words: str, may_stop: bool, how_to_go_on: str) -> dict[str, Any]:
        """Shown to the person, or the reason to stop it once."""
        if may_stop and self.options.blocks and self.memory.note_block(self.state.last_used):
            return {"decision": "block", "reason": f"{words}. {how_to_go_on} to go on."}
        return {"systemMessage": words}

    def before_message(self) -> dict[str, Any] | None:
        state, text = self.state, text_at(self.facts, "prompt")
        if text.startswith(("/compact", "/clear")):  # they send no conversation; a compaction has a hook of its own
            return None
        new = len(text) // CHARACTERS_PER_TOKEN
        message = next_message(state, self.prices, self.now, new)
        if self.is_silent(message.cost, rewritten_tokens(state, message)):
            return None
        compaction = price_compaction(state, self.prices, self.now, new)
        words = message_warning(state, message, compaction, self.now, "this message")
        return self.warn(words, True, "Send it again")

    def before_compaction(self) -> dict[str, Any] | None:
        """An automatic compaction is never stopped: the request that needs it would fail."""
        found = price_compaction(self.state, self.prices, self.now)
        if found is None or self.is_silent(found.summary.cost, self.state.prompt_tokens):
            return None
        is_manual = text_at(self.facts, "trigger") == "manual"
        return self.warn(compaction_warning(self.state, found, self.now), is_manual, "/compact again")

    def before_session(self) -> dict[str, Any] | None:
        state, prices, now = self.state, self.prices, self.now
        message = next_message(state, prices, now)
        is_resumed = text_at(self.facts, "source") in ("resume", "fork")
        if not is_resumed or self.is_silent(message.cost, rewritten_tokens(state, message)):
            return None
        compaction = price_compaction(state, prices, now)
        return {"systemMessage": message_warning(state, message, compaction, now, "the next message of this session")}

    def before_switch(self) -> dict[str, Any] | None:
        state, now, model = self.state, self.now, text_at(self.facts, "to_model").partition("[")[0]
        if not model or is_same_model(model, state.model):
            return None
        message = message_on(state, model, model_of_state(state, self.memory.find, model, now).quote, now)
        if self.is_silent(message.cost, message.usage.write):
            return None
        words = inert(switch_warning(model, message, next_message(state, self.prices, now)))
        if not self.options.blocks:
            return {"systemMessage": words}
        decision = {"permissionDecision": "ask", "permissionDecisionReason": words}
        return {"hookSpecificOutput": {"hookEventName": "PreModelSwitch", **decision}}


def main(arguments: Sequence[str]) -> int:
    """Answer the JSON on stdin. Always 0; silent where there is nothing to say or anything fails."""
    options, problem = parse_options(arguments, os.environ)
    answer = hook_answer(sys.stdin.buffer, options, time.time())
    if answer:
        write_line(msgspec.json.encode(answer).decode())
    if problem:
        sys.stderr.write(f"cachecost hook: {problem}\n")
    return 0


def parse_options(arguments: Sequence[str], environment: Any) -> tuple[HookOptions, str]:
    """The options, and what was wrong with one (then it has its default)."""
    named = {"--least-usd": environment.get(USD_VARIABLE, ""), "--least-tokens": environment.get(TOKENS_VARIABLE, "")}
    words = [part for word in arguments for part in word.split("=", 1)]
    for name, value in pairwise(words):
        if name in named:
            named[name] = value
    problem = ""
    try:
        usd = Decimal(named["--least-usd"] or LEAST_USD)
        tokens = int(named["--least-tokens"] or LEAST_TOKENS)
    except (InvalidOperation, ValueError):
        usd, tokens, problem = LEAST_USD, LEAST_TOKENS, "--least-usd and --least-tokens take numbers"
    return HookOptions(usd, tokens, "--block" in words), problem


def hook_answer(stream: BinaryIO, options: HookOptions, now: float) -> dict[str, Any] | None:
    """What the hook prints; None: nothing."""
    try:
        facts = read_facts(stream)
        path, event = text_at(facts, "transcript_path"), text_at(facts, "hook_event_name")
        if not path or event not in EVENTS:
            return None
        memory = SessionMemory(Path(path), remembered_folder())
        state = memory.read()
        if state is None:
            return None
        prices = model_of_state(state, memory.find, at=now).quote
        found = EVENTS[event](_Hook(facts, state, prices, memory, now, options))
        memory.save_models()
        return found
    except Exception:  # a hook never stands in the way
        return None


EVENTS = {
    "UserPromptSubmit": _Hook.before_message,
    "PreCompact": _Hook.before_compaction,
    "SessionStart": _Hook.before_session,
    "PreModelSwitch": _Hook.before_switch,
}
"""What is done at each event; any other is ignored."""
