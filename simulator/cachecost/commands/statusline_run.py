"""The status line itself: from Claude Code's JSON on stdin to one line on stdout, without click."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachecost.analysis.next_message.billed_models import model_of_state
from cachecost.analysis.next_message.client_facts import (
    Facts,
    last_miss,
    message_on,
    number_at,
    object_at,
    text_at,
    with_prompt_cache,
)
from cachecost.base.formatting import dollars
from cachecost.commands.deadline import pause_deadline, resume_deadline
from cachecost.commands.remembered_session import SessionMemory, remembered_folder
from cachecost.views.next.line import DEFAULT_FORMAT, NEUTRAL, UnknownField, check_format, fill_format, line_fields

FORMAT_VARIABLE = "CACHECOST_STATUSLINE"
MOST_BYTES = 4 << 20
"""More is no status of Claude Code's."""


def main(arguments: Sequence[str]) -> int:
    """Print the line for the JSON on stdin. Always 0, and a neutral line where anything fails."""
    line, problem = status_line(sys.stdin.buffer, _format_in(arguments), time.time())
    write_line(line)
    if problem:
        sys.stderr.write(f"cachecost statusline: {problem}\n")
    return 0


def status_line(stream: BinaryIO, form: str, now: float) -> tuple[str, str]:
    """The line, and what was wrong (empty: nothing)."""
    try:
        check_format(form)
        facts = read_facts(stream)
        return fill_format(form, _fields(facts, now)) if facts else NEUTRAL, ""
    except UnknownField as error:
        return NEUTRAL, str(error)
    except Exception:  # a status line never fails loudly
        return NEUTRAL, ""


def read_facts(stream: BinaryIO) -> Facts:
    """The object that a client writes to stdin; empty where it writes none."""
    text = stream.read(MOST_BYTES + 1)
    pause_deadline()
    if len(text) > MOST_BYTES or not text.strip():
        return {}
    found = msgspec.json.decode(text)
    return found if isinstance(found, Mapping) else {}


def write_line(text: str) -> None:
    """Write a line to stdout as UTF-8, whatever the locale: clients read it so."""
    resume_deadline()
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def clock_time(at: float) -> str:
    """A time of the day as this machine shows it; with the date where it is not within a day."""
    form = "%H:%M" if abs(at - time.time()) < 12 * 3600 else "%m-%d %H:%M"
    return time.strftime(form, time.localtime(at))


def _format_in(arguments: Sequence[str]) -> str:
    """The value of --format, else of the environment, else the default."""
    for position, word in enumerate(arguments):
        if word == "--format" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--format="):
            return word.removeprefix("--format=")
    return os.environ.get(FORMAT_VARIABLE) or DEFAULT_FORMAT


def _fields(facts: Facts, now: float) -> dict[str, str]:
    """The values of the fields; empty ones where the session has no call yet. Raises OSError, InputError."""
    cache, model = object_at(facts, "prompt_cache"), text_at(object_at(facts, "model"), "id")
    cost = number_at(object_at(facts, "cost"), "total_cost_usd")
    counted = "" if cost is None else dollars(Decimal(str(cost)))
    others = {"client_cost": counted, "last_miss": last_miss(cache), **({"cost": counted} if counted else {})}
    path = text_at(facts, "transcript_path")
    memory = SessionMemory(Path(path), remembered_folder()) if path else None
    state = memory.read() if memory else None
    if memory is None or state is None:
        return {**others, "model": model}
    state = with_prompt_cache(state, cache, now)
    asked = model.partition("[")[0]
    message = message_on(state, asked, model_of_state(state, memory.find, asked, now).quote, now)
    memory.save_models()
    return line_fields(state, message, now, clock_time, others) | ({"model": asked} if asked else {})
