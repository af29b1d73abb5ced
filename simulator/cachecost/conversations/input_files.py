"""Input files, local or at a URL, read as bytes and unpacked if they are gzip or zstd; and what the bill of a session
needs of each call: usage, time, model, and what happened since the call before it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import date
from decimal import Decimal
from functools import partial
from io import BufferedReader
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base import limits
from cachecost.base.atomic_files import check_readable, check_url
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.providers.usage import ToolUses, Usage

EVENTS = {
    "human": "a person's message",
    "compaction": "the history was compacted",
    "clear": "the history was cleared",
    "edit": "old tool results were removed (micro-compaction)",
    "model": "another model",
    "client": "another version of the client",
    "error": "an API error",
    "fork": "another call continued from the same one",
    "tools": "an MCP server or the list of tools changed",
    "system": "the system prompt changed",
    "history": "earlier messages changed",
    "agents": "the list of agents or skills changed",
    "effort": "another effort level",
    "thinking": "thinking was switched",
    "resume": "the session was resumed",
    "date": "the date changed",
    "images": "the first image",
    "tool_search": "a tool search",
    "skill": "a skill was loaded",
    "continued": "the session began in another file",
    "woken": "the sub-agent was woken",
    "task": "a background task's message",
    "hook": "a hook's output",
    "command": "a slash command",
    "media": "an image or a PDF",
    "plan": "plan mode was switched",
    "folder": "the shell's folder changed",
}
"""What may lie between a call and the one that it continues, and its words."""


class BilledCall(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """One call and its bill. Calls of one file refer to each other by `number`.

    `start` is when the request began, `end` when its answer was complete, in seconds since the epoch (None: unknown).
    `tokens` are input, read, 5m write, 1h write and output, as billed. `before` is the number of the call that this
    one continues (0: none), `events` which of `EVENTS` lie between the two, `blocks` the number of content blocks, and
    `new_chars` the characters of content that the request has and the one before did not. `modes` change the price
    ("batch", "fast", "us" …: tiers and region, as `CallTerms.modes`). `extra` are passes that the usage leaves out and
    that are charged: (model, tokens) of each. `miss_reason` is the API's `diagnostics.cache_miss_reason`.
    """

    number: int
    line: int
    model: str
    tokens: tuple[int, int, int, int, int]
    start: float | None = None
    end: float | None = None
    before: int = 0
    events: tuple[str, ...] = ()
    agent: str = ""
    session: str = ""
    id: str = ""
    version: str = ""
    modes: tuple[str, ...] = ()
    blocks: int = 0
    new_chars: int = 0
    has_thinking: bool = False
    is_summed: bool = False
    """Whether the usage sums several passes (server tools), so that its read and write are no length of a prefix."""
    miss_reason: str = ""
    missed_tokens: int = 0
    host: str = ""
    extra: tuple[tuple[str, tuple[int, int, int, int, int]], ...] = ()
    answered: float | None = None
    """When the answer began: from then on what the call wrote can be read (None: unknown)."""
    agent_type: str = ""
    """What kind of sub-agent made the call; agents of one type share their static prefix."""
    is_output_partial: bool = False
    """Whether the output tokens were recorded before the answer was complete: the call was billed at least these."""
    answer_bytes: int = 0
    """Of a partial output: the length of what the record has of the answer, in UTF-8."""
    tool_uses: ToolUses = ()
    charged_usd: Decimal | None = None
    """These two are as those of a usage."""
    upstream: str = ""
    """The provider that a gateway chose for the call, where its answer says so."""
    thinking: bool | None = None
    """Whether the message that began the turn asks for thinking (None: it does not say)."""

    @property
    def usage(self) -> Usage:
        return Usage(*self.tokens, self.tool_uses, self.charged_usd)

    @property
    def read(self) -> int:
        return self.tokens[1]

    @property
    def written(self) -> int:
        return self.tokens[2] + self.tokens[3]

    @property
    def cached(self) -> int:
        """Tokens of the prefix that is cached after this call: those read and those written."""
        tokens = self.tokens
        return tokens[1] + tokens[2] + tokens[3]

    @property
    def total_input(self) -> int:
        tokens = self.tokens
        return tokens[0] + tokens[1] + tokens[2] + tokens[3]


def token_counts(usage: Usage) -> tuple[int, int, int, int, int]:
    """The counts of a usage in the order of a bill."""
    return (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens)


def billed_call(
    line: int, model: str, usage: Usage, start: float | None = None, end: float | None = None, **facts: Any
) -> BilledCall:
    """A call with this usage; its number follows when all calls are known."""
    uses, charged = usage.tool_uses, usage.charged_usd
    return BilledCall(0, line, model, token_counts(usage), start, end, tool_uses=uses, charged_usd=charged, **facts)


PrefixKind = tuple[str, str, str, str, str]
"""Client, host, model, client version, and the type of the sub-agent ("main": none)."""


class SessionFile(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """The calls of one file, in the order of their first lines, and what the file says of them all.

    `client` is the agent that wrote the file ("claude-code", "codex" …), `project` the folder it worked in. `damaged`
    are (line, reason) of lines that could not be read; the other lines are counted all the same. A note on a line
    begins with ":" and its number.
    """

    path: str
    client: str
    project: str = ""
    calls: list[BilledCall] = []
    damaged: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    has_requests: bool = False
    """Whether the requests are known too, so that their content says what was written again."""
    client_sums: dict[str, tuple[int, int, int, int, int]] = {}
    """What the client counted for the session, by model: input, read, 5m write, 1h write, output. Calls that it writes
    into no transcript are in it."""
    title: str = ""
    """The title that the client recorded."""
    branches: tuple[tuple[int, str], ...] = ()
    """(number, git branch) of each call from which on another branch was checked out."""
    pull_requests: tuple[tuple[str, float, str], ...] = ()
    """(session, time, pull request) of each that the client linked: "owner/repository#185"."""
    results: bytes = b""
    """`ToolResults`, packed: a call with an object each would take much memory. b"": they are not known."""

    def branch(self, call: BilledCall) -> str:
        """The git branch at the time of a call; "" where it is not recorded."""
        position = bisect_right(self.branches, call.number, key=itemgetter(0))
        return self.branches[position - 1][1] if position else ""

    def prefix_kind(self, call: BilledCall) -> PrefixKind:
        """What calls with the same static prefix (tools and system prompt) have in common."""
        agent_type = call.agent_type or ("agent" if call.agent else "main")
        return self.client, call.host, call.model, call.version, agent_type

    def earlier_calls(self, call: BilledCall) -> Iterator[BilledCall]:
        """The calls that a call continues, latest first."""
        while call.before:
            call = self.calls[call.before - 1]
            yield call


def add_branch(branches: list[tuple[int, str]], number: int, branch: str) -> None:
    """Note the branch of a call in those of a `SessionFile`."""
    if branch != (branches[-1][1] if branches else ""):
        branches.append((number, branch))


SKILL = "Skill "
"""Before the name of a skill, in the place of a tool's."""


class ToolResults(msgspec.Struct, array_like=True, gc=False):
    """The results of tools that the request of a call added: (tool, bytes) of each; a skill is "Skill NAME".

    `input_bytes` is the length of all that people and tools added to the request.
    """

    call: int
    input_bytes: int
    sizes: list[tuple[str, int]]


pack_results = msgspec.msgpack.Encoder().encode
unpack_results = msgspec.msgpack.Decoder(list[ToolResults]).decode


Warn = Callable[[str], None]
KeepsContent = Callable[[str | None, str, date | None], bool]
"""Whether the content of a call is needed, by its host as recorded, its model as written, and its day."""
WATCH: ContextVar[Callable[[int], None]] = ContextVar("watch", default=lambda size: None)
"""Gets the bytes of each line that is read, for a progress bar."""
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
"""Codex CLI packs sessions of more than a week with it."""
BUFFER = 1 << 16
"""Bytes that are read at once: lines of logs are longer than the buffer that Python uses."""
PIECE = 1 << 20
BOM = b"\xef\xbb\xbf"
"""A byte order mark, which some editors put at the start of a file; not part of the first line."""
COMMENT = b"//"


def quiet(_: str) -> None:
    """A `Warn` that drops the notes."""


def is_url(name: str | Path) -> bool:
    """Whether a name is a URL, to be read by `remote_files`, and no path on a disk."""
    return "://" in str(name)


def shown_name(name: str) -> str:
    """A name as errors and reports show it: a URL without password and query."""
    if not is_url(name):
        return name
    from cachecost.conversations.remote_files import without_secrets

    return without_secrets(name)


def input_path(name: str | Path, folder: Path | None = None) -> Path:
    """The path of an input, which starts at `folder`. Raises NotInstalled and InputError for a URL that cannot be read;
    any other path is not looked at."""
    if isinstance(name, str) and is_url(name):
        from cachecost.conversations.remote_files import remote_path

        check_url(shown_name(name))
        return remote_path(name)
    if folder is not None:
        return folder / name
    return name if isinstance(name, Path) else Path(name)


def byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, numbered from 1, unpacked if it is gzip, without a byte order mark and without comments
    before the first record. Raises InputError where it cannot be read."""
    watch, most, is_head = WATCH.get(), limits.LINE.value(), True
    with open_input(path) as stream:
        for number, line in enumerate(iter(partial(stream.readline, most + 1), b""), 1):
            if len(line) > most:
                raise too_long(path, number)
            watch(len(line))
            if is_head:
                line = line.removeprefix(BOM)
                if line.lstrip().startswith(COMMENT):
                    continue
                is_head = line.isspace()
            yield number, line


def skip_comments(head: bytes) -> tuple[bytes, int]:
    """The beginning of a file from its first record on, and how many comment lines are before that. No JSON begins as
    they do (`//`); blank lines may be among them. A byte order mark goes, too."""
    comments = 0
    text = head.removeprefix(BOM).lstrip()
    if not text.startswith(COMMENT) and not head.startswith(BOM):
        return head, 0
    while text.startswith(COMMENT):
        text = text.partition(b"\n")[2].lstrip()
        comments += 1
    return text, comments


def first_line(path: Path) -> bytes:
    """The first line that is neither blank nor a comment, as far as it is short. Raises InputError."""
    with open_input(path) as stream:
        texts = (piece.removeprefix(BOM).strip() for piece in iter(partial(stream.readline, BUFFER), b""))
        return next((text for text in texts if text and not text.startswith(COMMENT)), b"")


def comment_note(path: Path) -> str:
    """That a file begins with comments, in words; "" where it does not."""
    if not path.is_file():
        return ""
    with open_input(path) as stream:
        _, comments = skip_comments(stream.read(BUFFER))
    return f"{count_text(comments, 'comment line')} before the first record: skipped" if comments else ""


def too_long(path: Path, line: int) -> InputError:
    """A line that is longer than lines may be."""
    return InputError([Fault(str(path), str(limits.LINE.error()), line)])


def read_input(path: Path) -> bytes:
    """All bytes of a file, unpacked if it is gzip. Raises InputError where it cannot be read or is too large."""
    most, pieces, size = limits.FILE.value(), list[bytes](), 0
    watch = WATCH.get()
    with open_input(path) as stream:
        while piece := stream.read(PIECE):
            watch(len(piece))
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise InputError([Fault(str(path), str(limits.FILE.error()))])
    return b"".join(pieces)


def open_input(path: Path) -> Any:
    """`path`, open for reading bytes, unpacked if it is gzip or zstd. Raises InputError if it cannot or may not be."""
    if not is_url(path):
        check_readable(path)
    try:
        if not path.is_file():
            from cachecost.conversations.remote_files import EndlessInput

            return BufferedReader(EndlessInput(path))
        stream: Any = path.open("rb", buffering=BUFFER)
        head = stream.peek(4)[:4]
        if head[:2] != GZIP and head != ZSTD:
            return stream
        stream.close()
        from cachecost.conversations.remote_files import open_packed

        return open_packed(path, "zstd" if head == ZSTD else "gzip")
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be read: {error.strerror}")]) from error
