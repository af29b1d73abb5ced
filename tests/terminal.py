"""The command as a process whose stderr is a terminal: what it shows there, and how it ends on a signal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINE = b'{"request": {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}}\n'
"""A line of a request log."""
SECONDS = 30
AT_ONCE = "from cachecost.commands import options; options.SECONDS_BEFORE_SHOWN = 0.0; "
"""Bars are shown from the beginning: a test need not work for a second."""
HEEDED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A process that a script starts in the background ignores Ctrl-C."""
COMMAND = "from cachecost.cli import main; main()"
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A running command. Its stdout goes to a file, or to the same terminal; `has_keys`: so does its stdin."""

    def __init__(self, *words: object, stdout: Path | None = None, has_keys: bool = False) -> None:
        self._reader, end = pty.openpty()
        self.resize(120)
        code = HEEDED + AT_ONCE + COMMAND
        self.environment = {
            **os.environ,
            "TERM": "xterm",
            "PYTHONPATH": str(ROOT / "simulator"),
            "CACHECOST_STORE": "off",
        }
        with Path(stdout or os.devnull).open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, words)],
                stdin=end if has_keys else subprocess.DEVNULL,
                stdout=output if stdout else end,
                stderr=end,
                env=self.environment,
                start_new_session=True,
            )
        os.close(end)
        self.shown = ""

    def resize(self, columns: int, rows: int = 40) -> None:
        """Make the terminal so many cells large."""
        fcntl.ioctl(self._reader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._reader, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text is shown. Raises AssertionError at the end of the process."""
        while text not in self.shown:
            assert self._read(), f"{text!r} was not shown; but {self.shown!r}"

    def send(self, number: signal.Signals) -> float:
        """Send a signal and wait for the end; the seconds that this took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(SECONDS)
        took = time.monotonic() - began
        self.end()
        return took

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._reader)
        return self.process.wait(SECONDS)

    def _read(self) -> bool:
        assert select.select([self._reader], [], [], SECONDS)[0], f"nothing more was shown; but {self.shown!r}"
        try:
            data = os.read(self._reader, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += STYLE.sub("", data.decode())
        return bool(data)
