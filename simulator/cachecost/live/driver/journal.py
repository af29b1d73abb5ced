"""The journal of a run: a line before each attempt and after, so that a run that was killed does not pay twice.

JSON Lines, each line one write. `run` names the run, its plan's digest and the scenario; `reserved` stands before an
attempt, with the most it can cost; then `done`, `released` (not billed), `lost` (perhaps billed), `failed` (no retry).
A `done` line whose usage cannot be what was billed has `doubt`, why, and `unknown_usd`, what more counts as spent.
A reservation without a later line was interrupted: it counts as spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Self

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import exact
from cachecost.base.limits import MOST_TOKENS, json_value
from cachecost.conversations.calls import parse_usage
from cachecost.live.clock import moment
from cachecost.live.driver.budget import AnsweredCall, CallFailed
from cachecost.live.driver.wire import AttemptFailed, PartialAnswer
from cachecost.live.request_log import CallLog, LineFile, input_errors, last_line_end
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import ZERO


@dataclass(slots=True)
class RunState:
    """The state of a run: calls by label, and dollars. `unknown` is the upper bound of attempts without a bill."""

    run: str = ""
    digest: str = ""
    at: float = 0.0
    done: dict[str, AnsweredCall] = field(default_factory=dict)
    dollars: dict[str, Decimal] = field(default_factory=dict)
    begun: list[tuple[str, PartialAnswer]] = field(default_factory=list)
    unknown_calls: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unknown: Decimal = ZERO
    open: dict[str, Decimal] = field(default_factory=dict)

    @property
    def billed_usd(self) -> Decimal:
        return sum(self.dollars.values(), ZERO)

    @property
    def cached_tokens(self) -> int:
        """Tokens that the calls so far may have cached; no limit where a bill is unknown."""
        if self.unknown:
            return MOST_TOKENS
        return sum(sent.usage.write for sent in self.done.values())

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply one line. Raises KeyError, ValueError, TypeError, NotAMessage if it is damaged."""
        kind = line["kind"]
        if kind == "run":
            self.run, self.digest, self.at = str(line["id"]), str(line["digest"]), float(line["planned_at"])
            return
        call = str(line["call"])
        if kind == "reserved":
            self._cut_off(call)
            self.open[call] = Decimal(line["usd"])
        elif kind == "done":
            self.open.pop(call, None)
            self.done[call] = AnsweredCall(
                parse_usage(line["usage"], "usage"),
                float(line["start"]),
                float(line["first_token_s"]),
                line["response"],
                str(line.get("doubt", "")),
                Decimal(line.get("unknown_usd", 0)),
            )
            self.dollars[call] = Decimal(line["usd"])
            self.unknown += self.done[call].unknown_usd
            self.failed.pop(call, None)
        elif kind == "released":
            self.open.pop(call, None)
        elif kind == "lost":
            self._cut_off(call)
            if line["start"] is not None:
                self.begun.append((call, PartialAnswer(float(line["start"]), float(line["first_token_s"]))))
        elif kind == "failed":
            self.failed[call] = str(line["message"])
        else:
            raise ValueError(f"kind: got '{kind}'")

    def _cut_off(self, call: str) -> None:
        if call in self.open:
            self.unknown += self.open.pop(call)
            self.unknown_calls[call] = self.unknown_calls.get(call, 0) + 1

    def close(self) -> None:
        """Count what is still reserved as interrupted."""
        for call in list(self.open):
            self._cut_off(call)


def read_journal(path: Path) -> RunState:
    """The state in a journal; an incomplete last line is ignored. Raises InputError with every error."""
    state, faults = RunState(), []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault(str(path), f"cannot be read: {error}")]) from None
    for number, line in enumerate(lines[:-1], 1):
        try:
            state.apply(json_value(line))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation, NotAMessage) as error:
            faults.append(Fault(str(path), f"expected a line of a journal; got a damaged one ({error})", number))
    if not faults and not state.run:
        faults.append(Fault(str(path), "expected the journal of a run; got a file without one"))
    if faults:
        raise InputError(faults)
    state.close()
    return state


def recorded_fields(label: str, sent: AnsweredCall | PartialAnswer) -> dict[str, Any]:
    """The fields of a call in the recording. Each strategy is a workspace and a session of its own.

    An answer that was cut off has no usage: it affects the cache and is not compared."""
    name = label.rpartition("/")[0]
    record = {
        "call": label,
        "timestamp": moment(sent.start),
        "first_token_s": round(sent.first_token_s, 6),
        "workspace": name,
        "session": name,
    }
    if isinstance(sent, PartialAnswer):
        return record
    return {**record, "usage": sent.usage.wire(), "response": {**sent.response, "usage": sent.usage.wire()}}


def recorded_body(body: Mapping[str, Any]) -> bytes:
    """The body of a call as the recording has it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


class Journal:
    """Writes the journal at `path`, or continues it; `state` is what it holds.

    It is notified of each attempt, before it is sent and after. `log` is the recording of a run: each answered call is
    written there, after its line in the journal.
    """

    def __init__(self, path: Path, run: str, digest: str, scenario: str, options: Mapping[str, Any], at: float) -> None:
        self.path = path
        self.log: CallLog | None = None
        with input_errors(path, "another `cachecost live` continues this run"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(path)
        try:
            is_old = self._file.size > 0
            self.state = read_journal(path) if is_old else RunState(run, digest, at)
            if self.state.digest != digest:
                problem = "expected the same scenario, options and version as when the run started"
                raise InputError([Fault(str(path), problem)])
            with path.open("rb") as stream:
                self._file.truncate(last_line_end(stream, self._file.size))
        except BaseException:
            self._file.close()
            raise
        if not is_old:
            self._add("run", id=run, format=1, scenario=scenario, digest=digest, planned_at=at, options=dict(options))

    def on_reserved(self, label: str, retry: int, dollars: Decimal) -> None:
        self._add("reserved", call=label, retry=retry, usd=exact(dollars))

    def on_answered(
        self, label: str, retry: int, sent: AnsweredCall, dollars: Decimal, body: Mapping[str, Any]
    ) -> None:
        doubt = {"doubt": sent.doubt, "unknown_usd": exact(sent.unknown_usd)} if sent.doubt else {}
        self._add(
            "done",
            call=label,
            retry=retry,
            start=sent.start,
            first_token_s=sent.first_token_s,
            usage=sent.usage.wire(),
            usd=exact(dollars),
            response=sent.response,
            **doubt,
        )
        self._record(label, sent, body)

    def on_released(self, label: str, retry: int, fault: AttemptFailed) -> None:
        self._add("released", call=label, retry=retry, status=fault.status, message=str(fault))

    def on_lost(self, label: str, retry: int, fault: AttemptFailed, dollars: Decimal, body: Mapping[str, Any]) -> None:
        begun = fault.begun
        self._add(
            "lost",
            call=label,
            retry=retry,
            usd=exact(dollars),
            status=fault.status,
            message=str(fault),
            start=begun.start if begun else None,
            first_token_s=begun.first_token_s if begun else None,
        )
        if begun:
            self._record(label, begun, body)

    def add_failed(self, label: str, fault: CallFailed) -> None:
        """A call has failed for good."""
        self._add("failed", call=label, status=fault.status, message=str(fault))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _record(self, label: str, sent: AnsweredCall | PartialAnswer, body: Mapping[str, Any]) -> None:
        if self.log is not None:
            self.log.append(recorded_fields(label, sent), recorded_body(body))

    def _add(self, kind: str, **fields: Any) -> None:
        line = {"kind": kind, **fields}
        self._file.append_lines(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.state.apply(line)
