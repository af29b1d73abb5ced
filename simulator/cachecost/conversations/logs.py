"""Logs as a command is given them: one file, or several files and folders as one stream of calls.

One file is read as it is, call by call, and what is wrong with it is an error. Of several files, and of folders, each
file that can be read counts and the others are left out, with their errors. The calls of all files are one stream in
time order, each call once, whose conversations grow from one root: what the requests have in common is in one cache,
across files and sessions, and nothing else is; a file without times has a cache of its own. Each call says in which
file and line it was recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import chain
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text, inert
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import KeepsContent, Warn, quiet
from cachecost.conversations.readers.detect import (
    CALLS,
    CONVERSATIONS,
    UNRECOGNIZED,
    Unrecognized,
    calls_in_time,
    detect,
    is_companion,
    lacks,
    read_calls,
)
from cachecost.conversations.start_times import SECONDS_BETWEEN_UNTIMED

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation


NEVER_LOGS = (
    *(".md", ".txt", ".png", ".jpg", ".py", ".toml", ".lock", ".html", ".css", ".js", ".sh", ".part"),
    *("sessions-index.json", ".meta.json", "-wal", "-shm"),
    *("api_conversation_history.json", "task_metadata.json", "history_item.json", "context_history.json"),
    *("taskHistory.json", ".compaction.json"),
)
"""Endings of files in a log folder that are no logs; they are not opened."""


@dataclass(frozen=True)
class InputFile:
    """A file to read. `format_` is the value of --format ("auto": detect it)."""

    path: Path
    format_: str = "auto"

    @cached_property
    def format(self) -> tuple[str, str]:
        """(name of its format, why). What can be read only once is a request log. Raises InputError if no reader
        knows the file."""
        return detect(self.path, self.format_, None if self.path.is_file() else "request-log")

    @property
    def is_empty(self) -> bool:
        return self.path.is_file() and not self.path.stat().st_size

    def calls(self, warn: Warn) -> Iterator[Call]:
        """Its calls in time order. Raises InputError with every fault, and where it holds a conversation."""
        name, reason = self.format
        if name not in CALLS:
            what = f"is a conversation ({name}: {reason})"
            raise InputError([Fault(str(self.path), f"{what}: choose a folder for the output, not one file")])
        return calls_in_time(self.path, name, warn, says=warn)


def find_input_files(paths: Sequence[Path], format_: str, warn: Warn, skipped: list[Fault]) -> Iterator[InputFile]:
    """The files among `paths` and below its folders, each once, in the order given, those of a folder sorted.

    Files that no reader knows are added to `skipped`, with a warning. Empty files are ignored, with a warning. Raises
    InputError where --format names no reader.
    """
    for path, folder in _expand(paths):
        found = InputFile(path, format_)
        if found.is_empty:
            warn(f"{path}: empty, ignored")
            continue
        try:
            name, _ = found.format
        except Unrecognized as error:
            skipped += error.faults
            warn(f"{path}: {UNRECOGNIZED}, skipped ({error.hint})")
        except InputError as error:
            if format_ != "auto":
                raise
            skipped += error.faults
            warn(f"{error}, skipped")
        else:
            if not (folder and is_companion(path, name, folder)):
                yield found


def expand_folders(paths: Sequence[Path]) -> Iterator[Path]:
    """The files of `paths` and of its folders, each once; in folders only those that may be logs."""
    return (path for path, _ in _expand(paths))


def _expand(paths: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Each file, and the folder among `paths` that it is in (None: it was named)."""
    seen = set()
    for path in paths:
        is_folder = path.is_dir()
        for one in sorted(path.rglob("*")) if is_folder else [path]:
            if is_folder and (not one.is_file() or one.name.startswith(".") or one.name.endswith(NEVER_LOGS)):
                continue
            status = one.stat()
            if (where := (status.st_dev, status.st_ino)) not in seen:
                seen.add(where)
                yield one, path if is_folder else None


def merge_calls(streams: Sequence[Iterable[Call]], warn: Warn) -> Iterator[Call]:
    """The calls of all streams in the order they start. A call that several streams hold comes once.

    Copies share id and input; without an id, they share time, request, answer and bill. The copy with the most output
    counts: a session that was copied during an answer has less of it. It has the earliest time of all copies, as a
    session that is resumed may copy its calls under a new one. Streams without any time come after the others,
    one after another, with a warning.
    """
    if len(streams) == 1:
        yield from streams[0]
        return
    found = [sorted(stream, key=attrgetter("start")) for stream in streams]
    kept = [sorted(stream, key=attrgetter("start")) for stream in _without_copies(found)]
    if copies := sum(map(len, found)) - sum(map(len, kept)):
        warn(f"{count_text(copies, 'repeated call')} in several files: each call is counted once")
    timed = [stream for stream in kept if any(call.timestamp is not None for call in stream)]
    untimed = [stream for stream in kept if stream and all(call.timestamp is None for call in stream)]
    in_order: Iterator[Call] = merge(*timed, key=attrgetter("start"))
    if untimed:
        warn(f"{count_text(len(untimed), 'file')} without timestamps: taken after all others, in the order given")
        in_order = join_in_order([list(in_order), *untimed])
    yield from in_order


def join_in_order(streams: Iterable[Sequence[Call]]) -> Iterator[Call]:
    """The calls of one stream after those of another; one without times begins when the one before it has ended."""
    last: float | None = None
    for stream in streams:
        is_untimed = all(call.timestamp is None for call in stream)
        later = last + SECONDS_BETWEEN_UNTIMED - stream[0].start if stream and is_untimed and last is not None else 0.0
        for call in stream:
            yield replace(call, start=call.start + later)
            last = call.start + later


def _without_copies(streams: Sequence[Sequence[Call]]) -> Iterator[Iterator[Call]]:
    """Each stream without the calls that another one, or itself, has with more output or earlier."""
    keys = CopyKeys(streams)
    whole: dict[object, Call] = {}
    first: dict[object, Call] = {}
    named = [[(call, keys.key(call, number)) for call in stream] for number, stream in enumerate(streams)]
    for call, key in chain.from_iterable(named):
        if key is None:
            continue
        if _time(call) < _time(first.setdefault(key, call)):
            first[key] = call
        known = whole.setdefault(key, call)
        outputs = [one.billed.output_tokens if one.billed else 0 for one in (call, known)]
        if (-outputs[0], _time(call)) < (-outputs[1], _time(known)):
            whole[key] = call
    for stream in named:
        yield (
            call
            if _time(at := first.get(key, call)) == _time(call)
            else replace(call, start=at.start, timestamp=at.timestamp, day=at.day)
            for call, key in stream
            if whole.get(key, call) is call
        )


def _time(call: Call) -> float:
    return inf if call.timestamp is None else call.start


class CopyKeys:
    """What the copies of a call have in common.

    A call with an id is copied where id and input are equal, also within one file. Without an id all that is known must
    be equal, the time included, and the copies are in several files: the second such call of a file is a call of its
    own, a copy only of the second one elsewhere.
    """

    def __init__(self, streams: Sequence[Sequence[Call]]) -> None:
        met: dict[tuple[object, ...], int] = {}
        self._several: set[tuple[object, ...]] = set()
        for number, stream in enumerate(streams):
            for call in stream:
                if not call.id and met.setdefault(_moment(call), number) != number:
                    self._several.add(_moment(call))
        self._times: Counter[tuple[object, ...]] = Counter()

    def key(self, call: Call, stream: int) -> object:
        """Equal for all copies of a call of the `stream`-th file; None for a call without any."""
        if call.id:
            billed = call.billed
            return (call.id, replace(billed, output_tokens=0) if billed else None)
        if call.timestamp is None or _moment(call) not in self._several:
            return None
        request = call.request  # all that is known of a call but where it was recorded
        messages = tuple(node.message.digest for node in request.thread.back() if node.message)
        answer = tuple(block.digest for block in call.response)
        place = call.host, call.workspace, call.session, call.agent, call.source, call.status, call.first_token_s
        content = (*_moment(call), *place, request.tools.digest, request.system.digest, messages, answer)
        self._times[stream, content] += 1
        return (content, self._times[stream, content])


def _moment(call: Call) -> tuple[object, ...]:
    return call.timestamp, call.request.model, call.request.thread.blocks, call.billed


NO_LOGS = "has no file of a known format"
NO_CALLS = "is a conversation without calls; cachecost replay --strategy NAME plans them"


class Logs:
    """Files and folders of logs, and how to read them. Reading adds the errors of files left out to `skipped`. With
    `may_skip_all`, also the only file of `paths` is left out if it cannot be read, and not an error."""

    def __init__(
        self, paths: Sequence[Path], format_: str = "auto", warn: Warn = quiet, may_skip_all: bool = False
    ) -> None:
        self.paths, self.format_, self.warn, self.may_skip_all = paths, format_, warn, may_skip_all
        self.skipped: list[Fault] = []

    @property
    def single(self) -> Path | None:
        """The file, where it is the only one that was named; it is read as it is."""
        is_single = len(self.paths) == 1 and not self.may_skip_all and not self.paths[0].is_dir()
        return self.paths[0] if is_single else None

    @property
    def name(self) -> str:
        return inert(str(self.paths[0])) if len(self.paths) == 1 else f"{len(self.paths)} logs"

    @property
    def arguments(self) -> str:
        """The paths as on a command line, in one line."""
        return inert(" ".join(map(str, self.paths)))

    def files(self) -> list[InputFile]:
        """The files to read: those that a reader knows, or the single one. The others are said and skipped. Raises
        InputError if there are none."""
        if self.single is not None:
            return [InputFile(self.single, self.format_)]
        found = list(find_input_files(self.paths, self.format_, self.warn, self.skipped))
        if not found and not self.may_skip_all:
            raise InputError([Fault(str(path), NO_LOGS) for path in self.paths])
        return found

    def skip(self, error: InputError) -> None:
        """Leave a file out that cannot be read, and say why."""
        self.skipped.extend(error.faults)
        for fault in error.faults:
            self.warn(str(fault))


def read_logs(logs: Logs, keep_content: KeepsContent | bool = True) -> Iterator[Call]:
    """The calls of all logs as one stream in time order (see above). A single file is read while it is iterated over.
    Raises InputError where a single file cannot be read, or none of several is known."""
    if logs.single is not None:
        return read_calls(logs.single, logs.format_, logs.warn, keep_content)
    return iter(_merged(logs, _calls_of_files(logs, logs.files(), keep_content)))


def read_sessions(logs: Logs) -> tuple[list[Conversation], list[Call]]:
    """The conversations of all logs, and the calls that they were found in. Raises InputError as `read_logs` does."""
    from cachecost.conversations.sessions import conversations_of, read_conversations

    if logs.single is not None:
        return read_conversations(logs.single, logs.format_, logs.warn)
    files = logs.files()
    recorded: list[Conversation] = []
    calls = _merged(logs, _calls_of_files(logs, [one for one in files if one.format[0] not in CONVERSATIONS], True))
    for one in files:
        if one.format[0] in CONVERSATIONS:
            try:
                recorded.append(CONVERSATIONS[one.format[0]].read(one.path, logs.warn))
            except InputError as error:
                logs.skip(error)
    return [*recorded, *conversations_of(calls, logs.warn)], calls


def _calls_of_files(logs: Logs, files: Sequence[InputFile], keep_content: KeepsContent | bool) -> Iterator[list[Call]]:
    """The calls of each file that can be read whole; a file that cannot is skipped."""
    formats = dict.fromkeys(one.format[0] for one in files)
    for lack in dict.fromkeys(filter(None, map(lacks, formats))):
        logs.warn(lack)
    for one in files:
        name = one.format[0]
        try:
            if name not in CALLS:
                raise InputError([Fault(str(one.path), NO_CALLS)])
            yield list(calls_in_time(one.path, name, logs.warn, keep_content, logs.warn))
        except InputError as error:
            logs.skip(error)


def _merged(logs: Logs, streams: Iterator[list[Call]]) -> list[Call]:
    """The calls of several files, numbered anew and grown from one root."""
    from cachecost.conversations.call_recording import ThreadJoiner

    joiner, found = ThreadJoiner(), list[Call]()
    for call in merge_calls(list(streams), logs.warn):
        joined = joiner.call(call)
        if call.timestamp is None:  # when its file was recorded is not known, so it shares no cache with the others
            joined = replace(joined, number=0, workspace=f"{call.workspace} {call.file}".strip())
        elif call.number:
            joined = replace(joined, number=0)
        found.append(joined)
    return found
