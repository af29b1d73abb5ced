"""Request logs: JSON Lines of `{"timestamp", "request", "usage"?, …}` (docs/reference/formats.md).

A growing log repeats its prefix in each line. What a line means is defined by its whole parse alone (`RequestLog`). The
same result comes faster: cut out of the line the messages that the last line of its conversation had, byte for byte,
put `CUT` in their place, and parse what is left. The results are equal because:

- the cut is one or more whole elements of a JSON array with what separates them, each parsed before, so that the line
  is valid JSON exactly when what is left of it is;
- `CUT` comes out as the first element of the messages, which is no message, and it occurs once: the cut was made in the
  array that counts, and nowhere else (in a text, in a tool, in the first of two `messages`);
- anything unusual in what is left, an error included, makes the reader parse the whole line.

The frame of a line: all of it but its timestamp, which comes first, and its messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_NUMBER, TOO_DEEP, OutOfLimits, is_number, is_tokens
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call, parse_iterations, parse_lengths, parse_usage
from cachecost.conversations.input_files import KeepsContent, Warn, quiet
from cachecost.conversations.readers.call_builder import request_keys
from cachecost.conversations.readers.common.message_threads import PARAMETER as THREAD
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.start_times import BufferLine, StartTimes, lines_in_place, parse_time
from cachecost.prompts.blocks import Block
from cachecost.prompts.exact_json import decode, load, out_of_limits
from cachecost.prompts.intake import ABSENT, BodyHead, CannotContinue, Intake, MessageTrail, RawBody, not_a_message
from cachecost.prompts.request import NotAMessage, Request, answer_blocks, content_blocks
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import served_params

TIME = re.compile(rb'\{\s*"timestamp"\s*:\s*"')
FrameBytes = tuple[bytes, bytes, bytes]
"""The bytes of a frame: up to the timestamp, from there to the first message, from the last message on."""


class Frame(NamedTuple):
    """A frame and what it means: the request without its messages, and `row`, the other fields of the call."""

    frame_bytes: FrameBytes
    heads: BodyHead
    request: Request
    row: tuple[Any, ...]
    keeps_content: bool

    def gaps(self, line: BufferLine) -> tuple[str, int, int] | None:
        """The timestamp of `line`, and where its messages start and stop; None if it has another frame."""
        _, buffer, start, stop = line
        before, after, tail = self.frame_bytes
        if not buffer.startswith(before, start, stop):
            return None
        start += len(before)
        end = buffer.find(b'"', start, min(start + 48, stop))  # lines with a longer timestamp are parsed whole
        messages, stop = end + len(after), stop - len(tail)
        if end < 0 or messages > stop or not buffer.startswith(after, end) or not buffer.startswith(tail, stop):
            return None
        time = buffer[start:end]
        text = time.decode("ascii", "replace")
        return (text, messages, stop) if text.isprintable() and text.isascii() and "\\" not in text else None


class Frames:
    """The frames of a log, those that were used last first."""

    def __init__(self) -> None:
        self._known: list[Frame] = []
        self._seen_once: FrameBytes | None = None

    def find(self, line: BufferLine) -> tuple[Frame, tuple[str, int, int]] | None:
        """The frame of `line`, if it is known."""
        for index, frame in enumerate(self._known):
            gaps = frame.gaps(line)
            if gaps is not None:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return frame, gaps
        return None

    def repeated(self, rest: bytes, array: int, end: int) -> FrameBytes | None:
        """The frame of a line whose messages are at `array` to `end`, if the timestamp is first and the last line had
        the frame, too: keeping one pays only then."""
        opening = TIME.match(rest)
        quote = rest.find(b'"', opening.end(), array) if opening else -1
        if opening is None or quote < 0:
            return None
        before, self._seen_once = self._seen_once, (opening[0], rest[quote:array], rest[end:])
        return self._seen_once if self._seen_once == before else None

    def keep(self, frame: Frame) -> None:
        self._known.insert(0, frame)
        del self._known[8:]


CUT = b"-0.0e-000007"
"""A number that no client writes, in place of what was cut out."""
ARRAY = re.compile(rb'"messages"\s*:\s*\[\s*')
BETWEEN = re.compile(rb"\s*,\s*")
OPENING_BYTES = 80
"""Conversations are looked up by this much of their first message: few share it, and it rarely has a breakpoint."""
MOST_BYTES = 24 << 20
"""Of all conversations that are kept; the least recent goes first. This is nearly all memory of reading a log."""
MOST_LINES = 1000
"""After so many lines without it a conversation is dropped; if it comes back, one line is parsed whole."""


class KnownConversation(msgspec.Struct, eq=False):
    """A conversation as of its last line.

    `settled` are the bytes of its first messages with what separates them, `ends` where each of them ends; `loose`
    are the bytes of each message after those, up to the last, with what stands before it. `trail` has all of them.
    `kept` counts the lines up to the last that had it. Until a line repeats it, its bytes are those of its line, and
    `unsplit` is (line, where its messages begin, these): many conversations have one call.
    """

    opening: bytes
    trail: MessageTrail
    unsplit: tuple[bytes, int, Sequence[msgspec.Raw]] | None = None
    settled: bytearray = msgspec.field(default_factory=bytearray)
    ends: list[int] = msgspec.field(default_factory=list)
    loose: list[bytes] = msgspec.field(default_factory=list)
    size: int = 0
    kept: int = 0

    def count_repeated(self, line: BufferLine, at: int) -> tuple[int, int]:
        """(messages, position after them) that `line` repeats from `at` on."""
        if self.unsplit is not None:
            self.loose, self.unsplit = _message_texts(*self.unsplit) or [], None
        _, buffer, _, stop = line
        if not buffer.startswith(self.settled, at, stop):
            low, high, known = 0, len(self.ends), 0
            with memoryview(self.settled) as settled:
                while low < high:
                    middle = (low + high) // 2
                    end = self.ends[middle]
                    with settled[known:end] as part:
                        is_same = line.buffer.startswith(part, at + known, line.stop)
                    low, high, known = (middle + 1, high, end) if is_same else (low, middle, known)
            return low, at + known
        at += len(self.settled)
        messages = len(self.ends)
        for text in self.loose:
            if not buffer.startswith(text, at, stop):
                break
            at += len(text)
            messages += 1
        return messages, at

    def cut(self, messages: int) -> None:
        """Keep only the first `messages`."""
        settled = len(self.ends)
        if messages < settled:
            del self.ends[messages:]
            del self.settled[self.ends[-1] if self.ends else 0 :]
        del self.loose[max(0, messages - settled) :]

    def settle(self) -> None:
        """Settle what comes before the first breakpoint that the next line may place elsewhere."""
        if self.unsplit is not None:
            self.size = len(self.unsplit[0])
            return
        messages = len(self.trail.nodes)
        recent = (breakpoint.node.length - 1 for breakpoint in self.trail.breakpoints if breakpoint.node)
        # in the last eight messages the next line may place its breakpoints elsewhere
        stable = min((index for index in recent if index >= messages - 8), default=messages)
        moved = self.loose[: max(0, stable - len(self.ends))]
        for text in moved:
            self.settled += text
            self.ends.append(len(self.settled))
        del self.loose[: len(moved)]
        self.size = len(self.settled) + sum(map(len, self.loose))


class Repeat(NamedTuple):
    """The part of a line that repeats `messages` of a conversation: `start` to `stop` in its buffer."""

    conversation: KnownConversation
    messages: int
    start: int
    stop: int


class IncrementalParser:
    """The recent conversations of a log, within `MOST_BYTES` and `MOST_LINES`."""

    def __init__(self) -> None:
        self._by_opening: dict[bytes, list[KnownConversation]] = {}
        self._recent: dict[int, KnownConversation] = {}
        self._bytes = 0
        self._lines = 0

    def find(self, line: BufferLine, start: int | None = None) -> Repeat | None:
        """The conversation that `line` (its messages begin at `start`) repeats most of; None if it may be a new one."""
        if start is None:
            array = ARRAY.search(line.buffer, line.start, line.stop)
            if array is None:
                return None
            start = array.end()
        opening = bytes(line.buffer[start : min(start + OPENING_BYTES, line.stop)])
        best: Repeat | None = None
        for conversation in self._by_opening.get(opening, ()):
            messages, stop = conversation.count_repeated(line, start)
            if messages and (best is None or messages > best.messages):
                best = Repeat(conversation, messages, start, stop)
            if messages == len(conversation.trail.nodes):
                break
        return best

    def begin(self, line: bytes, raws: Sequence[msgspec.Raw], trail: MessageTrail) -> None:
        """Remember a conversation that was parsed whole."""
        for array in ARRAY.finditer(line):
            start = array.end()
            if raws and line.startswith(bytes(raws[0]), start):
                conversation = KnownConversation(line[start : start + OPENING_BYTES], trail, (line, start, raws))
                self._by_opening.setdefault(conversation.opening, []).insert(0, conversation)
                self._keep(conversation)
                return

    def extend(self, repeat: Repeat, trail: MessageTrail, rest: bytes, at: int, raws: Sequence[msgspec.Raw]) -> int:
        """Add what `rest` has from `at` on to a conversation, whose trail is then `trail`. Returns where that ends; 0
        if the messages are not there: then the conversation is dropped."""
        conversation = repeat.conversation
        texts = _message_texts(rest, at, raws)
        if texts is None:
            self.forget(conversation)
            return 0
        conversation.cut(repeat.messages)
        conversation.loose += texts
        conversation.trail = trail
        alike = self._by_opening[conversation.opening]
        if alike[0] is not conversation:
            alike.remove(conversation)
            alike.insert(0, conversation)
        self._keep(conversation)
        return at + sum(map(len, texts))

    def forget(self, conversation: KnownConversation) -> None:
        if self._recent.pop(id(conversation), None) is None:
            return
        self._bytes -= conversation.size
        alike = self._by_opening[conversation.opening]
        alike.remove(conversation)
        if not alike:
            del self._by_opening[conversation.opening]

    def _keep(self, conversation: KnownConversation) -> None:
        before = conversation.size if self._recent.pop(id(conversation), None) is not None else 0
        conversation.settle()
        self._recent[id(conversation)] = conversation
        self._bytes += conversation.size - before
        self._lines += 1
        conversation.kept = self._lines
        oldest = next(iter(self._recent.values()))
        while oldest is not conversation and (self._bytes > MOST_BYTES or self._lines - oldest.kept > MOST_LINES):
            self.forget(oldest)
            oldest = next(iter(self._recent.values()))


def _message_texts(source: bytes, at: int, raws: Sequence[msgspec.Raw]) -> list[bytes] | None:
    """The bytes of each message with the separator before it; None if they are not at `at`."""
    texts = []
    for raw in raws:
        start = at
        data = bytes(raw)
        gap = BETWEEN.match(source, at)
        at = gap.end() if gap else at
        if not source.startswith(data, at):
            return None
        at += len(data)
        texts.append(source[start:at])
    return texts


FRAME_FIELDS = Call.__match_args__[4 : Call.__match_args__.index("line")]
"""The fields between the timestamp and the line number: a frame has them with any timestamp and messages."""
TRIED = b"0001-01-01T00:00:07.000007Z"
"""A time that no log contains."""
OPEN = b"[" + CUT
SECONDS = f"seconds, a number from 0 to {MOST_NUMBER:,}"
PASS_TYPES = re.compile(rb'_tool_result"|"compaction"')
"""In every answer that makes its call several passes: types of blocks that a server tool or the API put in."""
INTERLEAVED = b"interleaved-thinking"
"""The beta that adds tokens to a prompt (`tokens/hidden.toml`)."""


def sniff(head: bytes) -> str | None:
    return 'its first line has a "request"' if "request" in top_keys(head) else None


def calls(path: Path, warn: Warn = quiet, keep_content: KeepsContent | bool = True) -> Iterator[Call]:
    """The calls of a log, in order; see `RequestLog.calls`. A last line that is cut off gives a warning."""
    keeps = None if isinstance(keep_content, bool) else keep_content
    log = RequestLog(path, Intake(keep_content is not False), keeps)
    yield from log.calls()
    if log.unfinished:
        warn(f"{path}:{log.unfinished} the last line is still being written: skipped")


class RawRow(msgspec.Struct):
    """A line of the log. All methods raise NotAMessage with the path of what is wrong."""

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
    lengths: msgspec.Raw = ABSENT
    most_read: msgspec.Raw = ABSENT

    def parse(self, name: str, kind: Any = str) -> Any:
        """The value of a field; None where it is absent or null."""
        data = bytes(getattr(self, name))
        if data == b"null":
            return None
        value = load(data, name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise NotAMessage(name, {str: "a string", int: "a whole number"}.get(kind, "a number"), value)
        return value

    def complete_body(self) -> str | None:
        """Put betas, and the model of a Bedrock URL where there is none, into the body. Returns the URL's host."""
        body = self.request
        if bytes(body.betas) == bytes(body.anthropic_beta) == b"null" and INTERLEAVED in bytes(self.anthropic_beta):
            body.anthropic_beta = self.anthropic_beta
        if bytes(self.url) == b"null":
            return None
        from cachecost.conversations.readers.http.exchange import Route, route_of
        from cachecost.providers.hosts import parse_model_name

        route = route_of("POST", self.parse("url"))
        if not isinstance(route, Route):
            return None
        if not route.model or bytes(body.model) not in (b"null", b'""'):
            named = load(bytes(body.model), "request.model")
            return route.host_for(named if isinstance(named, str) else "")
        model, prefix = parse_model_name(route.model, route.host or "")
        body.model = msgspec.Raw(msgspec.json.encode(model))
        return route.host_for(model, prefix)

    def number(self, name: str, kind: Any, is_good: Callable[[Any], bool], expected: str) -> Any:
        value = self.parse(name, kind)
        if value is not None and not is_good(value):
            raise NotAMessage(name, expected, value)
        return value

    def usage_and_path(self) -> tuple[Any, str]:
        """The usage object, None if there is none, and its path."""
        if bytes(self.usage) != b"null":
            return load(bytes(self.usage), "usage"), "usage"
        if bytes(self.response) == b"null":
            return None, "usage"
        response = load(bytes(self.response), "response")
        return (response.get("usage") if isinstance(response, dict) else None), "response.usage"

    def answer_id(self) -> str:
        try:
            found = _decode_answer(self.response).id
        except msgspec.DecodeError:
            return ""
        return found if isinstance(found, str) else ""

    def answer(self, request: Request, keep_content: bool) -> tuple[Block, ...]:
        """The blocks of the answer; none if what was logged as an answer is no list of blocks. Without content, only
        an answer is read that may make its call several passes, or that a message thread continues from."""
        may_have_passes = any(PASS_TYPES.search(part) for part in (self.response, self.response_content))
        if not keep_content and bytes(self.request.thread) == b"null" and not may_have_passes:
            return ()
        content = load(bytes(self.response_content), "response_content")
        if content is None:
            response = load(bytes(self.response), "response")
            content = response.get("content") if isinstance(response, Mapping) else None
        try:
            blocks = content_blocks(content or [], "response.content")
        except NotAMessage:
            blocks = []
        return answer_blocks(blocks, request.deferred, keep_content)


class _Answer(msgspec.Struct):
    id: Any = None


_decode_answer = msgspec.json.Decoder(_Answer).decode


class RequestLog:
    """A log, read line by line. `unfinished` is the number of a last line that was still being written: skipped."""

    def __init__(self, path: Path, intake: Intake, keeps_content: KeepsContent | None = None) -> None:
        """`keeps_content` decides call by call; None: as the intake does."""
        self.path = path
        self.intake = intake
        self._keeps_content = keeps_content
        self.unfinished: int | None = None
        self._faults: list[Fault] = []
        self._decoder = msgspec.json.Decoder(RawRow)
        self._starts = StartTimes()
        self._array = msgspec.json.Decoder(list[msgspec.Raw])
        self._parser = IncrementalParser()
        self._frames = Frames()
        self._threads = MessageThreads()

    def calls(self) -> Iterator[Call]:
        """Calls in input order, until the first error; the rest is only checked. Raises InputError with all errors."""
        line = None
        for line in lines_in_place(self.path):
            call = self._quick(line) or self._read_whole(line.number, line.copy())
            if call is not None and not self._faults:
                yield call
            if len(self._faults) >= 20:
                break
        if line is None:
            self._faults.append(
                Fault(str(self.path), "expected a request log, one JSON object a line; got an empty file")
            )
        if self._faults:
            raise InputError(self._faults)

    def _quick(self, line: BufferLine) -> Call | None:
        """None if the line must be parsed whole."""
        began = self._starts.last
        try:
            framed = self._frames.find(line)
            return self._read_framed(line, *framed) if framed else self._read_repeated(line)
        except (NotAMessage, CannotContinue, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._starts.last = began
            return None

    def _read_framed(self, line: BufferLine, frame: Frame, gaps: tuple[str, int, int]) -> Call | None:
        timestamp, first, stop = gaps
        found = self._parser.find(line, first)
        if found is None or found.stop > stop:
            return None
        rest = b"".join((OPEN, memoryview(line.buffer)[found.stop : stop], b"]"))
        if not rest.isascii():
            rest.decode()
        raws = self._array.decode(rest)[1:]
        trail = found.conversation.trail.cut(found.messages)
        self.intake.keep_content = frame.keeps_content
        self.intake.add(trail, raws, frame.heads)
        request = self.intake.again(frame.request, frame.heads, trail)
        start = self._starts.next(timestamp)
        self._parser.extend(found, trail, rest, len(OPEN), raws)
        row: Any = (*frame.row, line.number)
        return Call(request, start, None, timestamp, *row)

    def _read_repeated(self, line: BufferLine) -> Call | None:
        found = self._parser.find(line)
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
        trail = found.conversation.trail.cut(found.messages)
        call = self._call(line.number, raw, trail)
        array = found.start - line.start
        end = self._parser.extend(found, trail, rest, array + len(CUT), raws)
        frame_bytes = self._frames.repeated(rest, array, end) if bytes(raw.request.thread) == b"null" else None
        if frame_bytes is None:
            return call
        before, after, tail = frame_bytes
        tried = self._decoder.decode(b"".join((before, TRIED, after, CUT, tail)))
        if bytes(tried.timestamp) == b'"%b"' % TRIED and list(map(bytes, tried.request.messages)) == [CUT]:
            heads = self.intake.heads(raw.request)
            row = tuple(getattr(call, name) for name in FRAME_FIELDS)
            self._frames.keep(Frame(frame_bytes, heads, call.request, row, self.intake.keep_content))
        return call

    def _read_whole(self, number: int, line: bytes) -> Call | None:
        if not line.strip():
            return None
        trail = MessageTrail({}, [], [], [])
        try:
            line, raw = decode(self._decode, line)
            call = self._call(number, raw, trail)
        except NotAMessage as fault:
            keys = request_keys(line) if fault.path == "messages" else set()
            apis = {"contents": "gemini-log", "input": "openai-log"} if "messages" not in keys else {}
            api = next((name for key, name in apis.items() if key in keys), "")
            hint = f" (--format {api} reads such requests)" if api else ""
            self._faults.append(Fault(str(self.path), f"{fault}{hint}", number))
        except (msgspec.DecodeError, UnicodeDecodeError):
            if line.endswith(b"\n"):
                message = f"expected one JSON object; got a damaged line ({_reason(line.strip())})"
                self._faults.append(Fault(str(self.path), message, number))
            else:
                self.unfinished = number
        else:
            self._parser.begin(line, raw.request.messages, trail)
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

    def _call(self, number: int, raw: RawRow, before: MessageTrail | None = None) -> Call:
        timestamp, status = raw.parse("timestamp"), raw.parse("status", int)
        usage, path = raw.usage_and_path()
        by_url = raw.complete_body()
        host = raw.parse("host") or by_url or host_of_message(raw.answer_id())
        start = self._starts.next(timestamp)
        if self._keeps_content:
            model = str(load(bytes(raw.request.model), "request.model"))
            self.intake.keep_content = self._keeps_content(host, model, day_of(start) if timestamp else None)
        request = self.intake.request(raw.request, before)
        response = raw.answer(request, self.intake.keep_content)
        billed = parse_usage(usage, path) if usage is not None else None
        if THREAD in request.params:
            request = self._threads.complete(request, start, raw.answer_id(), response, billed is not None)
        first_token_s = float(raw.number("first_token_s", (int, float), is_number, SECONDS) or 0.0)
        workspace = raw.parse("workspace") or ""
        is_batch, iterations = raw.parse("service") == "batch", parse_iterations(usage, path)
        if type(usage) is dict:
            served = served_params(request.params, usage)
            request = request if served is request.params else replace(request, params=served)
        source, commit_date = load(bytes(raw.source), "source"), raw.parse("commit_date")
        commit_day = None if commit_date is None else day_of(parse_time(commit_date))
        return Call(
            request,
            start,
            commit_day if timestamp is None else None,
            timestamp,
            host,
            workspace,
            first_token_s,
            response=response,
            is_batch=is_batch,
            most_read=raw.number("most_read", int, is_tokens, "a whole number of tokens"),
            billed=billed,
            iterations=iterations,
            status=status,
            source=source if isinstance(source, str) else "",
            session=raw.parse("session") or "",
            lengths=None if bytes(raw.lengths) == b"null" else parse_lengths(load(bytes(raw.lengths), "lengths")),
            line=number,
        )


def _reason(line: bytes) -> str:
    try:
        line.decode()
        msgspec.json.decode(line)
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start + 1}"
    except msgspec.DecodeError as error:
        return "cut off" if "truncated" in str(error) else str(error).removeprefix("JSON is malformed: ")
    return "no object"
