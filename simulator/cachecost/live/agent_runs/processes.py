"""A command in a process of its own, that ends within its time with everything it started, and its environment: the
simulated API's address, no key of yours, no way to the network.

The clock of a command's second run is ahead, so that every time, date, weekday and month is another one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cachecost.live.agent_runs.supervisor import MADE, REACHABLE_SOCKETS
from cachecost.live.keys import SHORTEST, longest_first, url_credentials
from cachecost.live.loopback import LOOPBACK, address_of, listen
from cachecost.live.server.served_api import PLACEHOLDER

SHIFT_S = 33 * 86_400 + 5 * 3600 + 37 * 60 + 11
"""Seconds: another month, day of the month, weekday, hour, minute and second, and mostly the same year."""
SHIMS = Path(__file__).with_name("shifted_clock")
FAKETIME = "libfaketimeMT.so.1"
FOLDERS = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime", "/opt/*/lib/faketime")


@dataclass(frozen=True, slots=True)
class RunClock:
    """A way to set the clock of a command ahead. `seen` is where programs leave word that theirs is."""

    name: str
    variables: Mapping[str, str]
    seen: Path | None = None

    def set_in(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with the variables of this clock; lists of paths and options are continued."""
        found = dict(environment)
        for name, value in self.variables.items():
            found[name] = f"{value}{JOINTS[name]}{found[name]}" if name in JOINTS and found.get(name) else value
        return found

    @property
    def description(self) -> str:
        """What was done, for people; "" where no program is known to have had another clock."""
        if self.seen is None:
            return self.name
        programs = sorted(one.name for one in self.seen.iterdir())
        return f"set ahead in {' and '.join(programs)}" if programs else ""


JOINTS = {"LD_PRELOAD": ":", "PYTHONPATH": os.pathsep, "NODE_OPTIONS": " "}


def run_clocks(folder: Path) -> Iterator[RunClock]:
    """The ways to be tried, the surest first: the next one where the one before reached no program. `folder` exists."""
    if library := find_faketime():
        yield RunClock("set ahead by libfaketime", _with_library(library))
        return
    variables = {
        "PYTHONPATH": str(SHIMS),
        "NODE_OPTIONS": f'--require "{(SHIMS / "shifted_date.cjs").as_posix()}"',
        "CACHECOST_CLOCK_SHIFT": str(SHIFT_S),
        "CACHECOST_CLOCK_SEEN": str(folder),
    }
    yield RunClock("in programs", variables, folder)
    # as POSIX writes a zone 13 hours and 37 minutes ahead of UTC
    yield RunClock("in another time zone (TZ); libfaketime would set it ahead", {"TZ": "<+13>-13:37"})


@cache
def find_faketime() -> Path | None:
    """The library of libfaketime, if it is installed and sets a clock ahead here."""
    command = [sys.executable, "-I", "-S", "-c", "import time; print(int(time.time()))"]
    for library in (found for pattern in FOLDERS for found in sorted(Path("/").glob(f"{pattern[1:]}/{FAKETIME}"))):
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            done = subprocess.run(command, env=_with_library(library), capture_output=True, timeout=10, check=True)
            if abs(int(done.stdout) - time.time() - SHIFT_S) < 60:
                return library
    return None


def _with_library(library: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "FAKETIME": f"+{SHIFT_S}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
PASSED = re.compile(
    "PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|CI"
    "|VIRTUAL_ENV|CONDA_PREFIX|PYTHONPATH|NODE_PATH|JAVA_HOME|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH"
)
"""Variables that a command gets without being named in its scenario: where programs are, and how text is shown."""
SECRET = re.compile(
    r"(?:^|_)(?:API)?(?:KEYS?|TOKEN|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?)(?:_[A-Z0-9]+)?$", re.IGNORECASE
)
"""Names of variables whose values are taken for credentials."""
WORKFLOW_FILES = re.compile("GITHUB_.*")
"""Variables that name files with which a step speaks to its workflow, which runs what is in them with its keys."""
NOWHERE = "http://127.0.0.1:9"
"""A proxy that refuses: nothing listens on the port of the discard service (RFC 863)."""
SHORTEST_NAME = 4
EVERYDAY_NAMES = frozenset(
    {"root", "user", "users", "admin", "runner", "ubuntu", "debian", "node", "nobody", "vscode", "codespace", "jenkins"}
    | {"gitlab-runner", "build", "builder", "ci-user", "docker", "agent", "work", "worker", "home", "server", "host"}
    | {"localhost", "test", "tester", "developer", "default", "macbook", "desktop", "laptop", "claude", "python"}
)


def environment_of(
    outside: Mapping[str, str],
    more: Mapping[str, str],
    address: str,
    turns: Sequence[str],
    run: int,
    clock: RunClock | None = None,
) -> dict[str, str]:
    """The variables of a command in its `run`-th run (from 0), whose API is at `address`. `more` are those that the
    scenario names; `clock` is that of the run, if it is not that of the machine.
    """
    here = {
        **{name: value for name, value in outside.items() if PASSED.fullmatch(name)},
        # PYTHONHASHSEED of each run: sets of text are in another order in each, and the same on every machine
        "PYTHONHASHSEED": ("1", "2")[run],
        **more,
        "ANTHROPIC_BASE_URL": address,
        "OPENAI_BASE_URL": f"{address}/v1",
        "GOOGLE_GEMINI_BASE_URL": address,
        **dict.fromkeys(KEYS, PLACEHOLDER),
        "CACHECOST_TURNS": json.dumps(turns, ensure_ascii=False),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    return clock.set_in(here) if clock else here


def machine_names(outside: Mapping[str, str]) -> dict[str, str]:
    """The names of this machine and its user, where they are no everyday words."""
    user = outside.get("USER") or outside.get("LOGNAME") or outside.get("USERNAME") or ""
    names = {"host name": socket.gethostname(), "user name": user}
    return {what: name for what, name in names.items() if len(name) >= SHORTEST_NAME and name not in EVERYDAY_NAMES}


def refusing_proxies() -> dict[str, str]:
    """Variables that lead clients that respect them to a proxy that refuses."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {case(name): NOWHERE for name in names for case in (str.upper, str.lower)}


def named_variables(outside: Mapping[str, str], named: Mapping[str, str | None]) -> dict[str, str]:
    """The variables that a scenario names; without a value, they have that of `outside`, or do not exist."""
    found = {name: outside.get(name) if value is None else value for name, value in named.items()}
    return {name: value for name, value in found.items() if value is not None}


def secrets_in_environment(outside: Mapping[str, str], named: Mapping[str, str | None]) -> list[str]:
    """The values of credentials, longest first: nothing that is shown may contain them. Those are variables that are
    named so, and what a scenario passes on by name, with the passwords of its URLs.
    """
    here = named_variables(outside, named)
    found = [value for one in (outside, here) for name, value in one.items() if SECRET.search(name)]
    passed_on = [name for name, value in named.items() if value is None and not PASSED.fullmatch(name)]
    found += [here[name] for name in passed_on if name in here]
    found += [secret for value in here.values() for secret in url_credentials(value)[0]]
    return longest_first(value for value in found if len(value) >= SHORTEST)


def hidden_paths(outside: Mapping[str, str]) -> list[str]:
    """The sockets that variables name, and files that speak to the workflow of this command: no command gets them."""
    workflow = [value for name, value in outside.items() if WORKFLOW_FILES.fullmatch(name) and Path(value).is_file()]
    return workflow + [path for path in named_paths(outside) if Path(path).is_socket()]


def named_paths(variables: Mapping[str, str]) -> list[str]:
    """The values that are paths of what exists, or URLs of a socket: `unix:///run/docker.sock`. No other value may
    get to a command line, which everybody on a machine can read.
    """
    paths = [value.removeprefix("unix://") for value in variables.values()]
    return [path for path in paths if path.startswith("/") and "\0" not in path and os.access(path, os.F_OK)]


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
        with ExitStack() as opened:
            opened.enter_context(ours)
            shared = opened.enter_context(listen(0)) if self.level == "none" else None
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
                opened.pop_all()
                return RunningCommand(supervisor, ours, listener, message.removeprefix(made))
        supervisor.wait()
        self.refusal = message.decode(errors="replace") or "the supervising process ended"
        if self.level == LEVELS[-1]:
            raise OSError(self.refusal)
        return None


def find_program(word: str, folder: Path, path: str | None) -> bool:
    return os.access(folder / word, os.X_OK) if os.sep in word else shutil.which(word, path=path) is not None
