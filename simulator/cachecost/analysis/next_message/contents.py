"""The content of a next message: a text, or a message as the API takes it."""

from __future__ import annotations

from dataclasses import replace

from cachecost.analysis.next_message.state import SessionState
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.times import day_of
from cachecost.prompts.blocks import Message
from cachecost.prompts.wire import NotAMessage, parse_message
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import counter_name


def parse_content(text: str, name: str) -> Message:
    """The message in the file `name`: JSON with `role` and `content`, or a text. Raises InputError."""
    body: object = {"role": "user", "content": [{"type": "text", "text": text}]}
    if text.lstrip().startswith("{"):
        try:
            found = json_value(text)
        except ValueError:  # a text that begins with a brace
            found = None
        body = found if isinstance(found, dict) and "content" in found else body
    try:
        return parse_message(body, True, 0).message
    except NotAMessage as error:
        raise InputError([Fault(name, str(error).removeprefix("messages.0."))]) from None


def count_message(message: Message, setup: ReplaySetup, state: SessionState, counter: str | None = None) -> int:
    """Tokens of a message, as the tokenizer of the session's model counts. Raises CannotEvaluate."""
    day = None if state.last_used is None else day_of(state.last_used)
    rules = setup.rules.rules(state.host, state.model, day)
    counted = replace(setup, tokens=counter_name(counter, has_bills=False), counters={}).counter(rules.generation)
    return sum(counted.block(block) for block in message.blocks)
