"""Writes a recording without content: this process until the helper is ready, then the helper."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import RLock

from cachecost.live.callbacks import Say
from cachecost.live.log import call_line
from cachecost.live.recorder.capture import ROOM
from cachecost.live.recorder.digest import KEY_BYTES, DigestFile, calls_in, cut_torn_line, free_place
from cachecost.live.recorder.helper import HelperOptions, RecorderHelper
from cachecost.live.recorder.log_lines import LineReader, LogLine, NotRecorded
from cachecost.prompts.intake import Intake


class DigestSink:
    """Writes calls without content, or has a helper write them: content never reaches a disk.

    The helper makes the same lines under the same key from its start on, so it can go on at any byte of the file: once
    it has caught up, or when this process is killed. If it exits early, this process writes the rest, in a new file
    where the helper had taken over, since the numbers of its blocks are lost. `paths` are all files. `unwritten` are
    messages by the number of their call.
    """

    def __init__(self, options: HelperOptions, say: Say) -> None:
        self.paths = [Path(options.path)]
        self.unwritten: dict[int, bytes] = {}
        self._say = say
        self._lock = RLock()
        self._written_here = 0
        self._is_full = self._is_closing = False
        self._reader = LineReader(self.paths[0], Intake(keep_content=True))
        key = os.urandom(KEY_BYTES)
        self._helper = RecorderHelper(options, self._on_message, self._on_exit)
        self._helper.tell(b"key %b\n" % key.hex().encode())
        self._own: DigestFile | None = DigestFile(self.paths[0], key)

    @property
    def calls(self) -> int:
        """How many calls the files hold."""
        return sum(map(calls_in, self.paths))

    def on_start(self, number: int) -> None:
        self._helper.tell(b"begin %d\n" % number)

    def take(self, number: int, line: LogLine) -> None:
        message = b"line %d %b" % (number, call_line(line.fields, line.request))
        with self._lock:
            if sum(map(len, self.unwritten.values())) + len(message) > ROOM:
                raise NotRecorded(f"more than {ROOM >> 20} MiB are waiting to be written")
            self._helper.tell(message)
            self.unwritten[number] = message
            if self._own is not None:
                self._own.add(number, self._reader.call(message.split(b" ", 2)[2]))
                self._write(self._own)

    def nothing(self, number: int) -> None:
        self._helper.tell(b"gone %d\n" % number)

    def close(self) -> None:
        """Wait until everything possible is written, or until Ctrl-C or SIGTERM."""
        with self._lock:
            self._is_closing = True
            if self._own is not None:
                self._own.close()
        code = self._helper.close()
        if self.unwritten:
            self._forget_written()
        if left := len(self.unwritten):
            why = "stopped while they were being written" if code else "the file cannot be written"
            self._say(f"{left:,} {'call is' if left == 1 else 'calls are'} not recorded: {why}")

    def _write(self, file: DigestFile) -> None:
        try:
            self._note_written(file.write())
        except OSError as error:
            self._say_full(error.strerror or "")

    def _say_full(self, why: str) -> None:
        if not self._is_full:
            self._say(f"{self.paths[-1]} cannot be written: {why}; ended calls are kept in memory until it can be")
        self._is_full = True

    def _note_written(self, numbers: list[int]) -> None:
        for number in numbers:
            self._written_here += self.unwritten.pop(number, None) is not None
            self._is_full = False

    def _on_message(self, answer: bytes) -> None:
        word, _, rest = answer.partition(b" ")
        with self._lock:
            if word == b"full":
                self._say_full(rest.decode())
            elif word == b"wrote":
                self._note_written([int(one) for one in rest.split()])
            elif word == b"ready" and self._own is not None and not self._is_closing:
                self._own.close()
                self._own = None
                self._helper.tell(b"write\n")

    def _on_exit(self, code: int) -> None:
        """However it ended: on purpose, or this process goes on."""
        with self._lock:
            if self._is_closing and code == 0:
                return
            ended = f"the process that predicts calls and writes {self.paths[-1]} exited early (exit code {code})"
            if self._own is None or self._is_closing:
                self._forget_written()
                if self._is_closing and not self.unwritten:
                    self._say(ended)
                    return
                self._go_on_in_another_file()
            where = f"recording goes on in {self.paths[-1]}, without predictions"
            self._say(f"{ended}; {where}")

    def _forget_written(self) -> None:
        """It may have written calls and not have said so."""
        with suppress(OSError):
            cut_torn_line(self.paths[-1])
        unsaid = calls_in(self.paths[-1]) - self._written_here
        for number in list(self.unwritten)[: max(0, unsaid)]:
            del self.unwritten[number]

    def _go_on_in_another_file(self) -> None:
        """The same file, as long as it holds no call: nothing in it is of any use then."""
        if calls_in(self.paths[-1]):
            self.paths.append(free_place(self.paths[0]))
            self._written_here = 0
        else:
            with suppress(OSError):
                self.paths[-1].write_bytes(b"")
        self._own = DigestFile(self.paths[-1], os.urandom(KEY_BYTES))
        for number, message in self.unwritten.items():
            self._own.add(number, self._reader.call(message.split(b" ", 2)[2]))
        self._write(self._own)
