"""A command as a process of its own group, that ends within its time with everything it started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cachecost.live.agent_runs.environment import refusing_proxies
from cachecost.live.loopback import LOOPBACK, address_of, listen

PORT = 8787
"""Where the API is in a network of the command's own: the same in every run."""
HELPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("isolated.py")))
OUTPUT_BYTES = 64 * 1024
"""How much of the end of the command's stderr is read."""
EnvironmentOf = Callable[[str], Mapping[str, str]]
"""The environment of a command, by the address of the API."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: its exit status (None: it was ended after its time), and the end of its stderr."""

    status: int | None
    errors: str


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """A command that has begun, and the socket at which it expects the API."""

    process: subprocess.Popen[bytes]
    listener: socket.socket
    errors: IO[bytes]

    def wait(self, seconds: float) -> CommandEnd:
        """Wait until it ends, or end it after so many seconds, and what it has started with it."""
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = self.process.wait(seconds)
        self.end()
        return CommandEnd(status, _tail(self.errors))

    def end(self) -> None:
        """End every process of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True, slots=True)
class _Streams:
    """What a command reads, and where it prints errors: files, which never make it wait."""

    standard_input: IO[bytes]
    errors: IO[bytes]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What is run: its words, in which folder, and what it reads from its standard input."""

    words: Sequence[str]
    folder: Path
    standard_input: bytes


class Launcher:
    """Begins commands without a network; `refusal` is why the system allows no network of their own ("": it does)."""

    def __init__(self) -> None:
        self.refusal = "" if sys.platform == "linux" else f"{sys.platform} has no network namespaces"

    @contextmanager
    def begin(self, line: CommandLine, environment: EnvironmentOf) -> Iterator[RunningCommand]:
        """A command that runs; at the end of the block all its processes are ended. Raises OSError."""
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as standard_input:
            standard_input.write(line.standard_input)
            streams = _Streams(standard_input, errors)
            running = self._begin_isolated(line, environment, streams) or _begin_beside(line, environment, streams)
            try:
                yield running
            finally:
                running.end()
                running.listener.close()

    def _begin_isolated(
        self, line: CommandLine, environment: EnvironmentOf, streams: _Streams
    ) -> RunningCommand | None:
        """In a network of its own; None where the system does not allow it."""
        if self.refusal:
            return None
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                words = [*HELPER, str(theirs.fileno()), str(PORT), *line.words]
                here = environment(f"http://{LOOPBACK}:{PORT}")
                process = _start(words, line.folder, here, streams, [theirs.fileno()])
            message, descriptors, _, _ = socket.recv_fds(ours, 1024, 1)
        if not descriptors:
            process.wait()
            self.refusal = message.decode(errors="replace") or "the helper process ended"
            return None
        return RunningCommand(process, socket.socket(fileno=descriptors[0]), streams.errors)


def _begin_beside(line: CommandLine, environment: EnvironmentOf, streams: _Streams) -> RunningCommand:
    """In this machine's network, with proxies that refuse."""
    listener = listen(0)
    try:
        here = {**environment(address_of(listener)), **refusing_proxies()}
        return RunningCommand(_start(line.words, line.folder, here, streams), listener, streams.errors)
    except BaseException:
        listener.close()
        raise


def _start(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: _Streams, kept: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    streams.standard_input.seek(0)
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=streams.standard_input,
        stdout=subprocess.DEVNULL,
        stderr=streams.errors,
        pass_fds=kept,
        start_new_session=True,
    )


def find_program(word: str, folder: Path, path: str | None) -> bool:
    """Whether the first word of a command is a program."""
    return os.access(folder / word, os.X_OK) if os.sep in word else shutil.which(word, path=path) is not None


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - OUTPUT_BYTES))
    return errors.read().decode("utf-8", "replace")
