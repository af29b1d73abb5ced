"""Sends calls to the process that writes a recording without content, and restarts it if it exits."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock

from cachecost.live.callbacks import Say
from cachecost.live.log import call_line
from cachecost.live.recorder.capture import ROOM
from cachecost.live.recorder.digest import calls_in, cut_torn_line, free_place
from cachecost.live.recorder.helper import HelperOptions, RecorderHelper
from cachecost.live.recorder.log_lines import LogLine, NotRecorded

MOST_STRIKES = 2
"""A call is given up after this many processes exited while they worked on it."""
MOST_IN_VAIN = 4
"""No further process is started after this many exited without writing a call."""
GONE = "the process that writes the recording keeps exiting"
NO_ROOM = "the file cannot be written"


class DigestSink:
    """Sends calls to a helper that removes their content and writes the rest: content never reaches a disk.

    What the helper has not written yet is kept here. If it exits early, another one continues with the missing calls,
    in a new file, since the key of the first is lost. `paths` are all files. `unwritten` are messages by the number of
    their call.
    """

    def __init__(self, options: HelperOptions, say: Say) -> None:
        self.paths = [Path(options.path)]
        self._options = options
        self._say = say
        self._lock = RLock()
        self._running: set[int] = set()
        self.unwritten: dict[int, bytes] = {}
        self._written_here = 0
        self._reading: int | None = None
        self._strikes: dict[int, int] = {}
        self._in_vain = 0
        self._is_closing = False
        self._watcher = self._start_helper()

    @property
    def calls(self) -> int:
        """How many calls the files hold."""
        return sum(map(calls_in, self.paths))

    def on_start(self, number: int) -> None:
        with self._lock:
            self._running.add(number)
            self._watcher.tell(b"begin %d\n" % number)

    def take(self, number: int, line: LogLine) -> None:
        message = b"line %d %b" % (number, call_line(line.fields, line.request))
        with self._lock:
            if self._is_given_up:
                raise NotRecorded(GONE)
            if sum(map(len, self.unwritten.values())) + len(message) > ROOM:
                raise NotRecorded(f"more than {ROOM >> 20} MiB are waiting to be written")
            self._running.discard(number)
            self.unwritten[number] = message
            self._watcher.tell(message)

    def nothing(self, number: int) -> None:
        with self._lock:
            self._running.discard(number)
            self._watcher.tell(b"gone %d\n" % number)

    def close(self) -> None:
        """Wait until everything possible is written, or until Ctrl-C or SIGTERM."""
        with self._lock:
            self._is_closing = True
        watcher, code = None, 0
        while watcher is not self._watcher:  # another one may have followed it meanwhile
            watcher = self._watcher
            code = watcher.close()
        if self.unwritten:
            self._forget_written()
        if left := len(self.unwritten):
            why = GONE if self._is_given_up else "stopped while they were being written" if code else NO_ROOM
            self._say(f"{left:,} {'call is' if left == 1 else 'calls are'} not recorded: {why}")

    def _start_helper(self) -> RecorderHelper:
        watcher = RecorderHelper(replace(self._options, path=str(self.paths[-1])), self._on_message, self._on_exit)
        begun = [b"begin %d\n" % number for number in sorted({*self._running, *self.unwritten})]
        watcher.tell(b"".join([*begun, *self.unwritten.values()]))  # at once: this process may be killed, too
        return watcher

    def _on_message(self, answer: bytes) -> None:
        word, _, rest = answer.partition(b" ")
        if word == b"full":
            why = rest.decode()
            self._say(f"{self.paths[-1]} cannot be written: {why}; ended calls are kept in memory until it can be")
            return
        with self._lock:
            if word == b"reading":
                self._reading = int(rest)
            elif word == b"wrote":
                self._note_written(map(int, rest.split()))

    def _note_written(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._written_here += self.unwritten.pop(number, None) is not None
            self._in_vain = 0

    def _on_exit(self, code: int) -> None:
        """However it ended: on purpose, or another one goes on."""
        with self._lock:
            if self._is_closing and code == 0:
                return
            ended = f"the process that writes {self.paths[-1]} exited early (exit code {code})"
            self._forget_written()
            self._strike()
            self._in_vain += 1
            if self._is_closing and not self.unwritten:
                self._say(ended)
            elif self._is_given_up:
                self._say(f"{ended}; nothing more is recorded")
            else:
                self._go_on_in_another_file()
                self._watcher = self._start_helper()
                self._say(f"{ended}; recording goes on in {self.paths[-1]}")

    @property
    def _is_given_up(self) -> bool:
        return self._in_vain >= MOST_IN_VAIN

    def _forget_written(self) -> None:
        """It may have written calls and not have said so."""
        with suppress(OSError):
            cut_torn_line(self.paths[-1])
        unsaid = calls_in(self.paths[-1]) - self._written_here
        for number in list(self.unwritten)[: max(0, unsaid)]:
            del self.unwritten[number]

    def _strike(self) -> None:
        """The call that it was working on may be why it ended."""
        number, self._reading = self._reading, None
        if number not in self.unwritten:
            return
        self._strikes[number] = self._strikes.get(number, 0) + 1
        if self._strikes[number] >= MOST_STRIKES:
            del self.unwritten[number]
            self._say(f"call {number} is not recorded: {MOST_STRIKES} processes ended while they worked on it")

    def _go_on_in_another_file(self) -> None:
        """The same file, as long as it holds no call: nothing in it is of any use to the next process."""
        if calls_in(self.paths[-1]):
            self.paths.append(free_place(self.paths[0]))
            self._written_here = 0
        else:
            with suppress(OSError):
                self.paths[-1].write_bytes(b"")
