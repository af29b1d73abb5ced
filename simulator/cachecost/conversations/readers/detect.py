"""Which format a file is in, and why we think so. Two visible tables: to add a format, add its reader."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import force_setattr

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.limits import LINE
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import KeepsContent, Warn, comment_note, open_input, quiet, skip_comments
from cachecost.conversations.readers.common.peek import TIMES
from cachecost.conversations.start_times import order_by_time

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation

SHORT_HEAD_BYTES = 1 << 15
HEAD_BYTES = 1 << 20
"""A request log is known by a key that may come after a long answer."""


class Readers(Mapping[str, Any]):
    """Readers by name: modules, or "module:object". Each is imported when it is asked for: most files are in one
    format, and start-up counts.

    `sniff(head)` is why a file that begins with `head` is in the format; None if it is not. `calls(path, warn,
    keep_content)` yields its calls until the first error, and then raises InputError with every error; what it skips
    and what calls lack goes to `warn`. A format that holds a conversation has `read(path, warn)` instead.
    """

    def __init__(self, table: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
        self.table = table
        signs = (sign for _, own in table.values() for sign in own)
        self._quoted_signs = frozenset(sign[1:-1].encode() for sign in signs if sign[0] == '"')

    def __getitem__(self, name: str) -> Any:
        module, _, inside = self.table[name][0].partition(":")
        found = import_module(f"cachecost.conversations.{module}")
        return getattr(found, inside) if inside else found

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def nearest(self, head: bytes, suffix: str = "") -> str:
        """The name of the format that a file with this `head` and name most likely has, though no reader knows it."""
        by_name = {".yaml": "vcr", ".yml": "vcr", ".har": "har", ".mitm": "mitmproxy", ".flow": "mitmproxy"}
        return next(self.possible(head), by_name.get(suffix, "request-log"))

    def possible(self, head: bytes) -> Iterator[str]:
        """The names of those whose files have what `head` has: only these need to look at it."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        quoted = self._quoted_signs.intersection(head.split(b'"')[1:-1])  # a dozen searches in one

        def has(sign: str) -> bool:
            if sign[0] == "^":
                return text.startswith(sign[1:].encode())
            return sign[1:-1].encode() in quoted if sign[0] == '"' else sign.encode() in head

        return (name for name, (_, signs) in self.table.items() if any(map(has, signs)))


UNRECOGNIZED = "unrecognized format"

CALLS = Readers(
    {
        "calls": ("readers.call_recording", ('"kind"',)),
        "codex": ("readers.codex.reader", ('"session_meta"',)),
        "gemini-cli": ("readers.gemini_cli.reader", ('"projectHash"',)),
        "qwen-code": ("readers.qwen_code.reader", ('"parts"', '"systemPayload"')),
        "mooncake": ("readers.mooncake", ('"hash_ids"',)),
        "anthropic-batch": ("readers.anthropic_batch", ('"custom_id"', '"modelInput"')),
        "openai-log": (
            "readers.openai_log",
            (
                *('"custom_id"', '"chat.completion"', '"response"', '"input"', '"instructions"', '"event_id"', '"url"'),
                '"function"',
            ),
        ),
        "langfuse": ("readers.langfuse", ('"traceId"', '"trace_id"', '"observations"')),
        "langsmith": ("readers.langsmith", ('"run_type"', '"run_id"', '"inputs"')),
        "litellm": ("readers.litellm", ('"call_type"',)),
        "otel": (
            "readers.otel.reader",
            ('"resourceSpans"', '"resourceLogs"', '"trace_id"', "claude_code.", "instrumentationScope"),
        ),
        "gemini-log": ("readers.http.gemini_log", ('"contents"',)),
        "har": ("readers.http.recorders:HAR", ('"log"',)),
        "vcr": ("readers.http.vcr", ("interactions", "^requests:", "^[", "^-")),
        "http-json": ("readers.http.recorders", ('"response"', '"httpResponse"', '"Entries"')),
        "mitmproxy": ("readers.http.mitmproxy", tuple(f"^{digit}" for digit in range(10))),
        "opencode": ("readers.opencode.reader", ("^SQLite format 3", '"sessionID"', '"projectID"')),
        "crush": ("readers.crush.reader", ("^SQLite format 3",)),
        "cline": ("readers.cline.reader", ('"api_req_started"', '"sessionId"', '"session_id"')),
        "request-log": ("readers.request_log", ('"request"',)),
        "claude-code": ("readers.claude_code.reader", ('"type"',)),
    }
)
"""Readers of calls: the module of each, and what its files cannot be without (one of these; ^ at the beginning).

They are asked in this order: one whose signs are rarer comes before one that would take its files, too.
"""
CONVERSATIONS = Readers({"recording": ("model", ('"kind"',)), "jp": ("readers.jp", ("^[",))})
READERS = Readers({**CALLS.table, **CONVERSATIONS.table})


class Unrecognized(InputError):
    """A file that no reader knows; `hint` names the format that it most likely has, and the option that says so."""

    def __init__(self, path: Path, near: str) -> None:
        self.hint = f"nearest: {near}; name it with --format"
        super().__init__([Fault(str(path), f"{UNRECOGNIZED} ({self.hint}): expected one of {', '.join(READERS)}")])


def detect(path: Path, format_: str = "auto", otherwise: str | None = None) -> tuple[str, str]:
    """(name of the format, why). What no reader knows, and what can be read only once, is `otherwise`.

    Raises InputError if no reader knows the file and there is no `otherwise` or no JSON in it, or if none has the name
    `format_`.
    """
    if format_ != "auto" and format_ not in READERS:
        known = ", ".join(["auto", *READERS])
        message = f"format: expected one of {known}; got {format_!r}{nearest(format_, READERS)}"
        raise InputError([Fault(str(path), message)])
    if format_ != "auto":
        return format_, "named with --format"
    if otherwise and not path.is_file():
        return otherwise, "it can be read only once"
    for whole in _heads(path):
        head, _ = skip_comments(whole)
        for name in READERS.possible(head):
            reader = READERS[name]  # one whose files do not show it at the beginning looks at the whole file
            looks_inside = hasattr(reader, "sniff_file") and path.is_file()
            if reason := reader.sniff_file(path, head) if looks_inside else reader.sniff(head):
                return name, reason
    if not head.strip():
        error = InputError([Fault(str(path), "is empty")])
    elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "expected UTF-8; got UTF-16 (iconv -f UTF-16 -t UTF-8 FILE converts it)"
        error = InputError([Fault(str(path), f"{UNRECOGNIZED}: {encoding}")])
    else:
        error = Unrecognized(path, READERS.nearest(head, path.suffix.lower()))
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    # the errors of what begins as JSON does, or has a line that does, say more than that it is no log
    if otherwise and (not head.strip() or text[:1] in (b"{", b"[") or b'\n{"' in text):
        return otherwise, error.faults[0].message
    raise error


def _heads(path: Path) -> Iterator[bytes]:
    """The beginning of a file, then a longer one: no line may hide the next because it does not fit."""
    with open_input(path) as stream:
        head = stream.read(SHORT_HEAD_BYTES)
        first = skip_comments(head)[0].partition(b"\n")[0]
        is_whole = len(first) < SHORT_HEAD_BYTES and first[:1] == b"{" and first.rstrip()[-1:] == b"}"
        if len(head) == SHORT_HEAD_BYTES and is_whole:
            yield head
        head += stream.read(HEAD_BYTES - len(head))
        yield head
        if len(head) < HEAD_BYTES:
            return
        if b"\n" in head:
            yield head + stream.read(HEAD_BYTES)
            return
        # the rest of the first line, as far as lines may be long
        pieces = (stream.readline(HEAD_BYTES) for _ in range(LINE.value() // HEAD_BYTES))
        if next((piece for piece in pieces if len(piece) < HEAD_BYTES or piece.endswith(b"\n")), b"").endswith(b"\n"):
            yield head + b"\n" + stream.read(HEAD_BYTES)


def is_companion(path: Path, name: str, folder: Path) -> bool:
    """Whether a file of the format `name` is no log of its own, as it belongs to another one in `folder`."""
    belongs = getattr(READERS[name], "is_companion", None)
    return bool(belongs and belongs(path, folder))


def read_conversation(path: Path, format_: str = "auto", warn: Warn = quiet) -> Conversation:
    """The conversation in a file. Raises InputError with every fault, and where the file holds calls."""
    name, reason = detect(path, format_)
    if name in CONVERSATIONS:
        conversation: Conversation = CONVERSATIONS[name].read(path, warn)
        return conversation
    raise InputError([Fault(str(path), f"expected a conversation; got recorded calls ({name}: {reason})")])


def read_calls(
    path: Path,
    format_: str = "auto",
    warn: Warn = quiet,
    keep_content: KeepsContent | bool = True,
    *,
    says_format: bool = True,
) -> Iterator[Call]:
    """The calls in a file in time order; what is not known is a request log. With `says_format`, the format that was
    detected goes to `warn`, and what that format never contains.

    Raises InputError where the file holds a conversation, and at the end with every fault.
    """
    name, reason = detect(path, format_, "request-log")
    if name not in CALLS:
        what = f"expected recorded calls; got a conversation ({name}: {reason})"
        raise InputError([Fault(str(path), f"{what}; choose a --strategy")])
    if not says_format:
        return calls_in_time(path, name, quiet, keep_content, warn)
    if format_ == "auto" and name != "request-log":
        warn(f"{path}: detected format: {name} ({reason})")
    if reason.startswith(UNRECOGNIZED):
        warn(f"{path}: {reason.partition(': expected')[0]}, read as {name}")
    if lacks(name):
        warn(f"{path}: {lacks(name)}")
    return calls_in_time(path, name, warn, keep_content, warn)


def calls_in_time(
    path: Path, name: str, warn: Warn, keep_content: KeepsContent | bool = True, says: Warn = quiet
) -> Iterator[Call]:
    """The calls of a file of the format `name` in the order of their times (time_order.py).

    Only a request log, which is never in memory as a whole, decides call by call whether content is kept. Notes on
    times go to `warn`, those of the reader to `says`. Raises InputError at the end.
    """
    if note := comment_note(path):
        says(f"{path}: {note}")
    file = str(path)
    keep = keep_content if name == "request-log" else keep_content is not False

    def calls_with_file() -> Iterator[Call]:
        for call in CALLS[name].calls(path, says, keep):
            force_setattr(call, "file", file)  # it is fresh from the reader; a copy takes time
            yield call

    return order_by_time(calls_with_file(), path, warn, TIMES.get(name))


def lacks(name: str) -> str:
    """What recordings in a format never contain, and what replaces it; empty where nothing is missing."""
    return str(getattr(READERS[name], "LACKS", ""))
