"""Calls of a coding agent's session store, while its lines are read: one form for the bill and for the request.

A store's parser makes `SessionCall`s without looking into content: pieces of it stay undecoded JSON. `billed_call` is
what the bill needs of one, `SessionRequests` makes it a recorded call with its request. So both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from cachecost.base.errors import Fault
from cachecost.base.limits import MOST_ERRORS, OutOfLimits
from cachecost.base.times import seconds
from cachecost.conversations.billed_calls import EVENTS, BilledCall, SessionFile
from cachecost.conversations.input_files import BOM, Warn, byte_lines, quiet
from cachecost.conversations.json_object import parse_json, reason
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage

NO_USAGE = Usage()
CUT_OFF = "cut off"


class Piece(NamedTuple):
    """A part of a conversation as stored: its kind to the parser, its size, and its JSON where content is kept."""

    kind: str
    chars: int
    data: msgspec.Raw | None


@dataclass(slots=True, eq=False)
class SessionCall:
    """One call of a session. The fields are those of `BilledCall`, and what the request is made of.

    `request` is what the request has after the answer of the call `before`; with `is_cut`, all that it has. `answer`
    is what the model wrote. `has_content` is False where the store has the bill alone. `thread` tells the chains of
    calls of one session apart (the id of a sub-agent); "" is the main one.
    """

    number: int
    line: int
    model: str = ""
    usage: Usage = NO_USAGE
    start: float | None = None
    end: float | None = None
    before: int = 0
    events: set[str] = field(default_factory=set)
    agent: str = ""
    session: str = ""
    thread: str = ""
    id: str = ""
    version: str = ""
    host: str = ""
    modes: tuple[str, ...] = ()
    first_token_s: float = 0.0
    request: Sequence[Piece] = ()
    answer: Sequence[Piece] = ()
    is_cut: bool = False
    has_content: bool = True
    has_thinking: bool = False


@dataclass(slots=True)
class Session:
    """What a parser found in a file: its calls, and the folder that the agent worked in.

    `copies` are calls of another thread whose history the file begins with: they are billed with that.
    """

    project: str = ""
    calls: list[SessionCall] = field(default_factory=list)
    copies: list[SessionCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def link(self) -> None:
        """Add to each call the events that only show in comparison with the call before it."""
        by_number = {call.number: call for call in self.calls}
        continued: set[int] = set()
        for call in self.calls:
            if before := by_number.get(call.before):
                call.events |= {name for name, holds in _differences(before, call, continued).items() if holds}
                continued.add(call.before)


def _differences(before: SessionCall, call: SessionCall, continued: set[int]) -> dict[str, bool]:
    return {
        "model": before.model != call.model,
        "client": bool(before.version and call.version and before.version != call.version),
        "fork": before.number in continued,
    }


def billed_call(call: SessionCall) -> BilledCall:
    """What the bill needs of a call."""
    usage = call.usage
    return BilledCall(
        call.number,
        call.line,
        call.model,
        (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens),
        call.start,
        call.end,
        call.before,
        tuple(name for name in EVENTS if name in call.events),
        call.agent,
        call.session,
        call.id,
        call.version,
        call.modes,
        len(call.request),
        sum(piece.chars for piece in call.request),
        call.has_thinking,
        host=call.host,
        tool_uses=usage.tool_uses,
        charged_usd=usage.charged_usd,
    )


def session_file(path: Path, client: str, session: Session, faults: Sequence[Fault]) -> SessionFile:
    """The calls of a file as the bill takes them."""
    return SessionFile(
        str(path),
        client,
        session.project,
        [billed_call(call) for call in session.calls],
        tuple((fault.line or 0, fault.message) for fault in faults),
        tuple(session.notes),
    )


def take_lines(path: Path, take: Callable[[int, bytes], None], warn: Warn = quiet) -> list[Fault]:
    """Pass each line with its number to `take`; a line that it cannot decode is a fault, and the others still count.

    A last line without a newline that is not JSON is still being written: it is skipped, with a warning. Raises
    InputError if the file cannot be opened.
    """
    faults: list[Fault] = []
    for number, raw in byte_lines(path):
        if not raw.strip():
            continue
        why = _try_to_take(take, number, raw)
        if why == CUT_OFF:
            warn(f"{path}:{number} the last line is cut off (still being written?): skipped")
        elif why and len(faults) < MOST_ERRORS:
            faults.append(Fault(str(path), why, number))
    return faults


def take_all(path: Path, data: bytes, take: Callable[[int, bytes], None]) -> list[Fault]:
    """Pass the one value of a file to `take`."""
    why = _try_to_take(take, 1, data.removeprefix(BOM) + b"\n")
    return [Fault(str(path), why, 1)] if why else []


def _try_to_take(take: Callable[[int, bytes], None], number: int, line: bytes) -> str:
    """Why a line cannot be read; empty if it was."""
    try:
        take(number, line)
    except (msgspec.MsgspecError, NotAMessage, ValueError, RecursionError) as error:
        return _why_damaged(line, error)
    return ""


def _why_damaged(line: bytes, error: Exception) -> str:
    """Why a line cannot be read; CUT_OFF if it is still being written."""
    value = parse_json(line)
    if isinstance(value, ValueError):
        is_cut_off = not line.endswith(b"\n") and not isinstance(value, OutOfLimits)
        return CUT_OFF if is_cut_off else reason(value)
    if isinstance(error, RecursionError):
        return "expected fewer levels of nesting"
    return str(error) if isinstance(error, NotAMessage) else f"{error}".replace("Expected", "expected", 1)


def time_of(timestamp: str | None) -> float | None:
    """Seconds since the epoch of a line's time; None without one. Raises NotAMessage."""
    if timestamp is None:
        return None
    try:
        return seconds(timestamp)
    except (ValueError, OverflowError):
        raise NotAMessage("timestamp", "an ISO 8601 time", timestamp) from None


def last_of(*times: float | None) -> float | None:
    """The latest of the times that are known."""
    return max((time for time in times if time is not None), default=None)


def piece_of(kind: str, data: msgspec.Raw, keeps_content: bool) -> Piece:
    return Piece(kind, memoryview(data).nbytes, data if keeps_content else None)
