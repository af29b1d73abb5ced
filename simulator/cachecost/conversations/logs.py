"""Logs as a command is given them: one file, or several files and folders as one stream of calls.

One file is read as it is, call by call, and what is wrong with it is an error. Of several files, and of folders, each
file that can be read counts and the others are left out, with their errors. The calls of all files are one stream in
time order, each call once, whose conversations grow from one root: what the requests have in common is in one cache,
across files and sessions, and nothing else is; a file without times has a cache of its own. Each call says in which
file and line it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachecost.base.errors import Fault, InputError
from cachecost.base.inert import inert
from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.readers.detect import CALLS, CONVERSATIONS, calls_in_time, lacks, read_calls

if TYPE_CHECKING:
    from cachecost.conversations.merging import InputFile
    from cachecost.conversations.model import Conversation

NO_LOGS = "has no file of a known format"
NO_CALLS = "is a conversation without calls; cachecost replay --strategy NAME plans them"


class Logs:
    """Files and folders of logs, and how to read them. Reading adds the errors of files left out to `skipped`.

    With `may_skip_all`, also the only file of `paths` is left out if it cannot be read, and not an error.
    """

    def __init__(
        self, paths: Sequence[Path], format_: str = "auto", warn: Warn = quiet, may_skip_all: bool = False
    ) -> None:
        self.paths = paths
        self.may_skip_all = may_skip_all
        self.format_ = format_
        self.warn = warn
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
        """The files to read: those that a reader knows, or the single one. The others are said and skipped.

        Raises InputError if there are none.
        """
        from cachecost.conversations.merging import InputFile, find_input_files

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


def read_logs(logs: Logs, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls of all logs as one stream in time order (see above). A single file is read while it is iterated over.

    Raises InputError where a single file cannot be read, or none of several is known.
    """
    if logs.single is not None:
        return read_calls(logs.single, logs.format_, logs.warn, keep_content)
    return iter(_merged(logs, _calls_of_files(logs, logs.files(), keep_content)))


def read_sessions(logs: Logs) -> tuple[list[Conversation], list[RecordedCall]]:
    """The conversations of all logs, and the calls that they were found in. Raises InputError as `read_logs` does."""
    from cachecost.conversations.sessions import conversations_of, read_conversations

    if logs.single is not None:
        return read_conversations(logs.single, logs.format_, logs.warn)
    files = logs.files()
    recorded = [one for one in files if one.format[0] in CONVERSATIONS]
    calls = _merged(logs, _calls_of_files(logs, [one for one in files if one not in recorded], True))
    return [*_conversations_of_files(logs, recorded), *conversations_of(calls, logs.warn)], calls


def _calls_of_files(logs: Logs, files: Sequence[InputFile], keep_content: bool) -> Iterator[list[RecordedCall]]:
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


def _conversations_of_files(logs: Logs, files: Sequence[InputFile]) -> Iterator[Conversation]:
    for one in files:
        try:
            yield CONVERSATIONS[one.format[0]].read(one.path, logs.warn)
        except InputError as error:
            logs.skip(error)


def _merged(logs: Logs, streams: Iterator[list[RecordedCall]]) -> list[RecordedCall]:
    """The calls of several files, numbered anew and grown from one root."""
    from cachecost.conversations.merging import merge_calls
    from cachecost.conversations.thread_joining import ThreadJoiner

    joiner = ThreadJoiner()
    found = list(streams)
    return [_renumbered(joiner.call(call)) for call in merge_calls(found, logs.warn)]


def _renumbered(call: RecordedCall) -> RecordedCall:
    """The call without its number in its file: among several files, calls are numbered in time order.

    When a file without times was recorded is not known, so it shares no cache with the others.
    """
    if call.timestamp is None:
        return replace(call, number=0, workspace=f"{call.workspace} {call.file}".strip())
    return replace(call, number=0) if call.number else call
