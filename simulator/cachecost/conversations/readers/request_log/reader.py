"""Request logs: JSON Lines of `{"timestamp", "request", "usage"?, …}` (docs/formats.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_NUMBER, TOO_DEEP, OutOfLimits, is_number, is_tokens
from cachecost.base.structs import value
from cachecost.base.times import day_of
from cachecost.base.times import seconds as seconds_of
from cachecost.conversations.checked import Warn, quiet
from cachecost.conversations.line_buffer import Line, lines_in_place
from cachecost.conversations.readers.common.message_threads import PARAMETER as THREAD
from cachecost.conversations.readers.common.message_threads import MessageThreads, why_not_whole
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.request_log.frames import Frame, Frames, Gaps, around_of
from cachecost.conversations.readers.request_log.incremental import CUT, Growing
from cachecost.prompts.blocks import COMPACTION, Block
from cachecost.prompts.exact_json import decoded, load, out_of_limits
from cachecost.prompts.intake import ABSENT, Intake, NotTheSame, RawBody, Trail, not_a_message
from cachecost.prompts.request import Request
from cachecost.prompts.wire import NotAMessage, answer_blocks, content_blocks
from cachecost.providers.usage import Usage

SECONDS_BETWEEN_UNTIMED = 2.0
MOST_FAULTS = 20
BILL_ONLY = "the log holds nothing of what was sent, only the bill"
ON_DEMAND = "on-demand compaction (compaction: summarize): its prompt is not published, and the log has no iterations"
ANSWERS_THAT_COUNT = re.compile(rb'_tool_result"|"compaction"')
"""What is in every answer that makes its call several passes: types of blocks that a server tool or the API put in."""


class RawRow(msgspec.Struct):
    """A line of the log whose values are still bytes."""

    request: RawBody
    timestamp: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT
    response: msgspec.Raw = ABSENT
    response_content: msgspec.Raw = ABSENT
    first_token_s: msgspec.Raw = ABSENT
    host: msgspec.Raw = ABSENT
    workspace: msgspec.Raw = ABSENT
    session: msgspec.Raw = ABSENT
    status: msgspec.Raw = ABSENT
    service: msgspec.Raw = ABSENT
    commit_date: msgspec.Raw = ABSENT
    source: msgspec.Raw = ABSENT
    url: msgspec.Raw = ABSENT
    anthropic_beta: msgspec.Raw = ABSENT


@value
class Iteration:
    """One of the passes that a call's usage lists: "message", "compaction", "advisor_message" …

    `model` is that of the pass; "" is the call's own.
    """

    kind: str
    usage: Usage
    model: str = ""


@value
class LoggedCall:
    """One line. `start` is seconds since the epoch, `timestamp` what the log says (None: nothing).

    `billed` is the usage that came back, `status` the HTTP status (None: not recorded, so fine).
    `response` holds the blocks of the answer, where the log has them: all if the intake keeps content, else only
    an answer that tells of server tools, which take part in the cache. `source` is who recorded the call, where the
    log or the recording says so, `seen_on` the day by which it was recorded (`commit_date`): rules and prices are
    those of that day where the times were taken out. `session` is the conversation that the log says it belongs to
    ("": it does not say), `id` what tells copies of one call in several files ("": nothing does). `number` counts the
    calls of the file up to this one, where they come in another order than the file's (0: they do not).
    """

    line: int
    start: float
    timestamp: str | None
    request: Request
    billed: Usage | None = None
    first_token_s: float = 0.0
    host: str | None = None
    workspace: str = ""
    status: int | None = None
    is_batch: bool = False
    iterations: tuple[Iteration, ...] = ()
    response: tuple[Block, ...] = ()
    source: str = ""
    seen_on: date | None = None
    session: str = ""
    id: str = ""
    number: int = 0

    @property
    def day(self) -> date | None:
        """The day whose rules and prices hold: of its time, else of `seen_on`; None: nothing tells."""
        return day_of(self.start) if self.timestamp is not None else self.seen_on

    @property
    def is_bill_only(self) -> bool:
        """Whether the log holds the bill of the call but nothing of what was sent."""
        request = self.request
        is_empty = not (request.thread.length or request.tools.blocks or request.system.blocks)
        return is_empty and self.billed is not None and self.billed.total_input > 0

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each pass of a call that the API compacted in: their sum is its bill; empty for any other."""
        if not any(one.kind == COMPACTION for one in self.iterations):
            return ()
        return tuple(one.usage for one in self.iterations if one.kind in (COMPACTION, "message"))

    @property
    def output_tokens(self) -> int | None:
        """What the bill says, or the answer's blocks where a trace says how long they were; None: nothing tells."""
        if self.pass_bills:
            return sum(one.output_tokens for one in self.pass_bills)
        if self.billed:
            return self.billed.output_tokens
        told = [block.tokens for block in self.response]
        return sum(filter(None, told)) if told and None not in told else None

    @property
    def why_unknown(self) -> str:
        """Why what was sent, or what the API made of it, cannot be told from the log; empty where it can."""
        if self.is_bill_only:
            return BILL_ONLY
        if self.request.params.get("compaction") and not self.pass_bills:
            return ON_DEMAND
        return why_not_whole(self.request.params)

    @property
    def failed(self) -> bool:
        return self.status is not None and self.status >= 400


OF_FRAME = LoggedCall.__match_args__[4:]
"""The fields after the request: what a line says of them stands around its messages."""
TRIED = b"0001-01-01T00:00:07.000007Z"
"""A time that nobody writes."""
OPEN = b"[" + CUT
INTERLEAVED = b"interleaved-thinking"
"""The beta that adds tokens to a prompt (`tokens/hidden.toml`)."""


class Starts:
    """When calls started. Rule 11: a call without a time starts 2 s after the one before it."""

    def __init__(self) -> None:
        self.last: float | None = None

    def of(self, timestamp: str | None, told: float | None = None) -> float:
        """Seconds since the epoch of the next call; without a timestamp, what is `told`. Raises NotAMessage."""
        if timestamp is not None:
            self.last = seconds(timestamp)
        elif told is not None:
            self.last = told
        else:
            self.last = 0.0 if self.last is None else self.last + SECONDS_BETWEEN_UNTIMED
        return self.last

    def unusual(self, start: float, timestamp: str | None) -> float | None:
        """When the next call starts, if nothing else tells; None if its timestamp does, or rule 11."""
        usual = self.of(timestamp)
        self.last = start
        return start if timestamp is None and start != usual else None


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a request log; None if they do not."""
    return 'its first line has a "request"' if "request" in top_keys(head) else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[LoggedCall]:
    """The calls of a log, in order; see `RequestLog.calls`. A last line that is cut off is said to `warn`."""
    log = RequestLog(path, Intake(keep_content))
    yield from log.calls()
    if log.unfinished:
        warn(f"{path}:{log.unfinished} the last line is still being written; it is left out")


class RequestLog:
    """A log, read line by line. After the last call, faults raise InputError all at once.

    `unfinished` is the number of a last line that was still being written; it is left out.
    """

    def __init__(self, path: Path, intake: Intake) -> None:
        self.path = path
        self.intake = intake
        self.unfinished: int | None = None
        self._faults: list[Fault] = []
        self._decoder = msgspec.json.Decoder(RawRow)
        self._starts = Starts()
        self._array = msgspec.json.Decoder(list[msgspec.Raw])
        self._growing = Growing()
        self._frames = Frames()
        self._threads = MessageThreads()

    def calls(self) -> Iterator[LoggedCall]:
        """Calls in input order, until the first fault; then the rest is only checked.

        Raises InputError (an empty file, damaged lines, bodies that are no Messages request, what cannot be read).
        """
        line = None
        for line in lines_in_place(self.path):
            call = self._quick(line) or self._read(line.number, line.copy())
            if call is not None and not self._faults:
                yield call
            if len(self._faults) >= MOST_FAULTS:
                break
        if line is None:
            self._faults.append(
                Fault(str(self.path), "expected a request log, one JSON object a line; got an empty file")
            )
        if self._faults:
            raise InputError(self._faults)

    def _quick(self, line: Line) -> LoggedCall | None:
        """The call of a line that goes on with a conversation; None where it is to be parsed whole."""
        began = self._starts.last
        try:
            framed = self._frames.find(line)
            return self._framed(line, *framed) if framed else self._grown(line)
        except (NotAMessage, NotTheSame, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._starts.last = began
            return None

    def _framed(self, line: Line, frame: Frame, gaps: Gaps) -> LoggedCall | None:
        """The call of a line in a known frame."""
        found = self._growing.find(line, gaps.start)
        if found is None or found.stop > gaps.stop:
            return None
        rest = b"".join((OPEN, memoryview(line.buffer)[found.stop : gaps.stop], b"]"))
        if not rest.isascii():
            rest.decode()
        raws = self._array.decode(rest)[1:]
        trail = found.talk.trail.cut(found.messages)
        self.intake.add(trail, raws, frame.heads)
        request = self.intake.again(frame.request, frame.heads, trail)
        start = self._starts.of(gaps.timestamp)
        self._growing.go_on(found, trail, rest, len(OPEN), raws)
        return LoggedCall(line.number, start, gaps.timestamp, request, *frame.row)

    def _grown(self, line: Line) -> LoggedCall | None:
        """The call of a line that begins as its conversation did, whatever stands around that."""
        found = self._growing.find(line)
        if found is None:
            return None
        rest = line.without(found.start, found.stop, CUT)
        if rest.count(CUT) != 1:
            return None
        raw = self._decode(rest)
        raws = raw.request.messages
        if not raws or bytes(raws[0]) != CUT:
            return None
        del raws[0]
        trail = found.talk.trail.cut(found.messages)
        call = self._call(line.number, raw, trail)
        array = found.start - line.start
        end = self._growing.go_on(found, trail, rest, array + len(CUT), raws)
        self._frame(rest, array, end, raw, call)
        return call

    def _frame(self, rest: bytes, array: int, end: int, raw: RawRow, call: LoggedCall) -> None:
        """Keep what stands around the messages of `rest`, if it comes back."""
        around = around_of(rest, array, end) if bytes(raw.request.thread) == b"null" else None
        if around is None or not self._frames.comes_back(around):
            return
        tried = self._decoder.decode(around.with_gaps(TRIED, CUT))
        if bytes(tried.timestamp) == b'"%b"' % TRIED and list(map(bytes, tried.request.messages)) == [CUT]:
            heads = self.intake.heads(raw.request)
            row = tuple(getattr(call, name) for name in OF_FRAME)
            self._frames.keep(Frame(around, heads, call.request, row))

    def _read(self, number: int, line: bytes) -> LoggedCall | None:
        """The call of a line, parsed whole. What is wrong with it is added to the faults."""
        if not line.strip():
            return None
        trail = Trail({}, [], [], [])
        try:
            line, raw = decoded(self._decode, line)
            call = self._call(number, raw, trail)
        except NotAMessage as fault:
            self._fault(number, str(fault))
        except (msgspec.DecodeError, UnicodeDecodeError):
            if line.endswith(b"\n"):
                self._fault(number, f"expected one JSON object; got a damaged line ({_reason(line.strip())})")
            else:
                self.unfinished = number
        else:
            self._growing.begin(line, raw.request.messages, trail)
            return call
        return None

    def _decode(self, line: bytes) -> RawRow:
        if not line.isascii():
            line.decode()
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError as error:
            raise not_a_message(error) from None
        except RecursionError:
            raise out_of_limits("line", OutOfLimits(*TOO_DEEP)) from None

    def _call(self, number: int, raw: RawRow, before: Trail | None = None) -> LoggedCall:
        timestamp = _field(raw.timestamp, "timestamp", str)
        status = _field(raw.status, "status", int)
        usage, path = _usage(raw)
        host = _complete(raw) or _field(raw.host, "host", str)
        start, request = self._starts.of(timestamp), self.intake.request(raw.request, before)
        answer = self._response(raw, request)
        if THREAD in request.params:
            request = self._threads.whole(request, _answer_id(raw), answer)
        return LoggedCall(
            number,
            start,
            timestamp,
            request,
            usage_of(usage, path) if usage is not None else None,
            _waited(raw.first_token_s),
            host,
            _field(raw.workspace, "workspace", str) or "",
            status,
            _field(raw.service, "service", str) == "batch",
            _iterations(usage, path),
            answer,
            source=_source(raw),
            seen_on=_seen_on(raw),
            session=_field(raw.session, "session", str) or "",
        )

    def _response(self, raw: RawRow, request: Request) -> tuple[Block, ...]:
        keep = self.intake.keep_content
        if not keep and bytes(raw.request.thread) == b"null" and not _counts(raw):
            return ()
        return answer_blocks(_answer(raw), request.deferred, keep)

    def _fault(self, number: int, message: str) -> None:
        self._faults.append(Fault(str(self.path), message, number))


def _complete(raw: RawRow) -> str | None:
    """Put into the body what only the HTTP request said: the model of a Bedrock URL, betas. The host of that URL."""
    body = raw.request
    if bytes(body.betas) == bytes(body.anthropic_beta) == b"null" and INTERLEAVED in bytes(raw.anthropic_beta):
        body.anthropic_beta = raw.anthropic_beta
    if bytes(body.model) not in (b"null", b'""') or bytes(raw.url) == b"null":
        return None
    from cachecost.conversations.readers.common.model_names import named
    from cachecost.conversations.readers.http.routes import Route, route_of

    route = route_of("POST", _field(raw.url, "url", str))
    if not isinstance(route, Route) or not route.model:
        return None
    model, host = named(route.model, route.host or "")
    body.model = msgspec.Raw(msgspec.json.encode(model))
    return route.host or host


def _seen_on(raw: RawRow) -> date | None:
    told = _field(raw.commit_date, "commit_date", str)
    return None if told is None else day_of(seconds(told))


def seconds(timestamp: str) -> float:
    """ISO 8601 -> seconds since the epoch; a time without a zone is UTC. Raises NotAMessage."""
    try:
        return seconds_of(timestamp)
    except ValueError:
        raise NotAMessage("timestamp", "an ISO 8601 time", timestamp) from None


def _field(raw: msgspec.Raw, name: str, kind: Any) -> Any:
    data = bytes(raw)
    if data == b"null":
        return None
    value = load(data, name)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {str: "a string", int: "a whole number"}.get(kind, "a number")
        raise NotAMessage(name, words, value)
    return value


def _waited(raw: msgspec.Raw) -> float:
    value = _field(raw, "first_token_s", (int, float)) or 0.0
    if not is_number(value):
        raise NotAMessage("first_token_s", f"seconds, a number from 0 to {MOST_NUMBER:,}", value)
    return float(value)


def _usage(raw: RawRow) -> tuple[Any, str]:
    """The usage object of a row, None if it has none, and its path."""
    if bytes(raw.usage) != b"null":
        return load(bytes(raw.usage), "usage"), "usage"
    if bytes(raw.response) == b"null":
        return None, "usage"
    response = load(bytes(raw.response), "response")
    return (response.get("usage") if isinstance(response, dict) else None), "response.usage"


def _iterations(usage: Any, path: str) -> tuple[Iteration, ...]:
    passes = usage.get("iterations") if isinstance(usage, dict) else None
    if not isinstance(passes, list) or not all(isinstance(one, dict) for one in passes):
        return ()
    return tuple(
        Iteration(
            str(one.get("type") or "message"), usage_of(one, f"{path}.iterations.{n}"), str(one.get("model") or "")
        )
        for n, one in enumerate(passes)
    )


def _source(raw: RawRow) -> str:
    source = load(bytes(raw.source), "source")
    return source if isinstance(source, str) else ""


def _counts(raw: RawRow) -> bool:
    """Whether the answer may make its call several passes."""
    return any(ANSWERS_THAT_COUNT.search(part) for part in (raw.response, raw.response_content))


def _answer_id(raw: RawRow) -> str:
    response = load(bytes(raw.response), "response")
    return str(response.get("id") or "") if isinstance(response, Mapping) else ""


def _answer(raw: RawRow) -> list[Mapping[str, Any]]:
    """The wire objects of the answer; none where what was logged as an answer is no list of blocks."""
    content = load(bytes(raw.response_content), "response_content")
    if content is None:
        response = load(bytes(raw.response), "response")
        content = response.get("content") if isinstance(response, Mapping) else None
    try:
        return content_blocks(content or [], "response.content")
    except NotAMessage:
        return []


def usage_of(value: Any, path: str) -> Usage:
    """A wire `usage` object. Creation that its 5m/1h split leaves out is 5m. Raises NotAMessage."""
    if not isinstance(value, dict):
        raise NotAMessage(path, "a usage object", value)
    split = value.get("cache_creation") or {}
    written = _tokens(value, "cache_creation_input_tokens", path)
    hour = _tokens(split, "ephemeral_1h_input_tokens", f"{path}.cache_creation")
    five = _tokens(split, "ephemeral_5m_input_tokens", f"{path}.cache_creation")
    return Usage(
        _tokens(value, "input_tokens", path),
        _tokens(value, "cache_read_input_tokens", path),
        max(five, written - hour),
        hour,
        _tokens(value, "output_tokens", path),
    )


def _tokens(value: Any, name: str, path: str) -> int:
    found = value.get(name) if isinstance(value, dict) else value
    if found is None:
        return 0
    if not is_tokens(found):
        raise NotAMessage(f"{path}.{name}", "a whole number of tokens", found)
    return found


def _reason(line: bytes) -> str:
    try:
        line.decode()
        msgspec.json.decode(line)
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start + 1}"
    except msgspec.DecodeError as error:
        return "cut off" if "truncated" in str(error) else str(error).removeprefix("JSON is malformed: ")
    return "no object"
