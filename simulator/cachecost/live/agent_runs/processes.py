"""A command in a process of its own, that ends within its time with everything it started."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cachecost.live.agent_runs.environment import refusing_proxies
from cachecost.live.agent_runs.supervisor import MADE, REACHABLE_SOCKETS
from cachecost.live.loopback import LOOPBACK, address_of, listen

PORT = 8787
"""Where the API is in a network of the command's own: the same in every run."""
SUPERVISOR = (sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")))
LEVELS = ("processes", "network", "none")
"""What a command is cut off from, as supervisor.py has it, the most first."""
END_S = 10.0
"""How long the supervisor may take to end all processes before it is killed itself."""
EnvironmentOf = Callable[[str], Mapping[str, str]]
"""The environment of a command, by the address of the API."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: its exit status (None: it was ended after its time), and the end of its stderr."""

    status: int | None
    errors: str


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """A command that has begun, and the socket at which it expects the API. `supervisor` sends its end to `channel`,
    and ends it when that is shut down.
    """

    supervisor: subprocess.Popen[bytes]
    channel: socket.socket
    listener: socket.socket
    received: bytes = b""
    """What came with the first message: the end of a command that was over before this process looked."""

    def wait(self, seconds: float) -> CommandEnd:
        """Wait until it ends, or end it after so many seconds, and what it has started with it."""
        self.channel.settimeout(seconds)
        try:
            sent, is_late = self.received + self.channel.recv(1 << 16), False
        except TimeoutError:
            sent, is_late = self.received, True
            self.channel.shutdown(socket.SHUT_WR)
        self.channel.settimeout(END_S)
        with suppress(OSError):
            while data := self.channel.recv(1 << 16):
                sent += data
        self.end()
        status, _, errors = sent.partition(b"\n")
        return CommandEnd(None if is_late else int(status or b"-1"), errors.decode("utf-8", "replace"))

    def end(self) -> None:
        """End every process that it has started."""
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)
        try:
            self.supervisor.wait(END_S)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What is run: its words, in which folder, and what it reads from its standard input. Paths of `covered` are
    hidden from it where that is possible, those of `kept` are not.
    """

    words: Sequence[str]
    folder: Path
    standard_input: bytes
    covered: Sequence[str] = ()
    kept: Sequence[str] = ()


class Launcher:
    """Begins commands cut off from as much as the system allows; `refusal` is why it allows no more."""

    def __init__(self) -> None:
        self.level = LEVELS[0] if sys.platform == "linux" else LEVELS[-1]
        self.refusal = "" if sys.platform == "linux" else f"{sys.platform} has no network namespaces"
        self.has_sockets = self.level == "none"
        """Whether the command reaches sockets of this machine."""

    @property
    def description(self) -> str:
        """What a command is cut off from, for people."""
        if self.level == "none":
            return f"proxies that refuse ({self.refusal}); sockets and processes of this machine are reachable"
        sockets = "reachable" if self.has_sockets else "cut off"
        if self.level == "network":
            return f"its own network; sockets of this machine are {sockets}, its processes visible ({self.refusal})"
        return f"its own network; sockets and processes of this machine are {sockets}"

    @contextmanager
    def begin(self, line: CommandLine, environment: EnvironmentOf) -> Iterator[RunningCommand]:
        """A command that runs; at the end of the block all its processes are ended. Raises OSError."""
        while (running := self._begin(line, environment)) is None:
            self.level = LEVELS[LEVELS.index(self.level) + 1]
        with running.channel, running.listener:
            try:
                yield running
            finally:
                running.end()

    def _begin(self, line: CommandLine, environment: EnvironmentOf) -> RunningCommand | None:
        """None where the system does not allow the level."""
        ours, theirs = socket.socketpair()
        shared = listen(0) if self.level == "none" else None
        try:
            with theirs, tempfile.TemporaryFile() as standard_input:
                standard_input.write(line.standard_input)
                standard_input.seek(0)
                here = environment(address_of(shared) if shared else f"http://{LOOPBACK}:{PORT}")
                paths = json.dumps({"covered": line.covered, "kept": line.kept})
                supervisor = subprocess.Popen(
                    [*SUPERVISOR, str(theirs.fileno()), self.level, str(PORT), paths, *line.words],
                    cwd=line.folder,
                    env={**here, **refusing_proxies()} if shared else here,
                    stdin=standard_input,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            message, descriptors, _, _ = socket.recv_fds(ours, 1024, 1)
            listener = socket.socket(fileno=descriptors[0]) if descriptors else shared
            made = next((word for word in (MADE, REACHABLE_SOCKETS) if message.startswith(word)), None)
            if made is not None and listener is not None:
                self.has_sockets = self.level == "none" or made == REACHABLE_SOCKETS
                return RunningCommand(supervisor, ours, listener, message.removeprefix(made))
        except BaseException:
            _close(ours, shared)
            raise
        _close(ours, shared)
        supervisor.wait()
        self.refusal = message.decode(errors="replace") or "the supervising process ended"
        if self.level == LEVELS[-1]:
            raise OSError(self.refusal)
        return None


def _close(*sockets: socket.socket | None) -> None:
    for one in sockets:
        if one is not None:
            one.close()


def find_program(word: str, folder: Path, path: str | None) -> bool:
    """Whether the first word of a command is a program."""
    return os.access(folder / word, os.X_OK) if os.sep in word else shutil.which(word, path=path) is not None
