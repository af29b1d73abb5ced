"""Runs a command that can reach little of this machine, and ends it with everything it has started:
`python -I -S supervisor.py FD LEVEL PORT PATHS WORD…`.

At the level "processes" the command has a network of its own with nothing but a loopback interface, its own processes,
and no socket that another process listens at, by path or not (user_namespaces(7), network_namespaces(7),
pid_namespaces(7)); at "network" it sees the processes of this machine, and at "none" everything. PATHS is a JSON object
of paths: `covered` are files and sockets to hide, `kept` those that stay.

This process listens in the command's network, and hands the socket to its parent over the socket FD; if the system
allows no such level, the reason, and the status is REFUSED. When the command ends, or FD is closed at the other end
because the parent wants it or was killed, all processes are ended, and FD gets the command's status and, on the next
lines, the last OUTPUT_BYTES of its stderr. Signals are statuses above 128, as in a shell.

The file is run by itself, so it imports nothing of the package.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 24, 36
CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN = 12, 19, 21
"""What root of the namespace could uncover and undo things with."""
LOOPBACK, BACKLOG = "127.0.0.1", 128
REFUSED, NOT_FOUND, BY_SIGNAL = 125, 127, 128
OUTPUT_BYTES = 64 * 1024
"""How much of the end of the command's stderr is kept; what it prints is never on a disk."""
PIPE_BYTES = 1 << 20
UNREACHABLE = (errno.ENOENT, errno.EACCES, errno.ENOTDIR)
"""A path that has gone, or where this user cannot get to."""
MADE, REACHABLE_SOCKETS = b"made", b"sockets"
"""What the parent gets with the listener: sockets of this machine are hidden, or could not be."""


def main(arguments: Sequence[str]) -> int:
    channel, level, port = socket.socket(fileno=int(arguments[0])), arguments[1], int(arguments[2])
    channel.set_inheritable(False)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    wake, errors = reading, os.pipe()
    try:
        message, listener = _isolate(level, port, json.loads(arguments[3]))
        child = _start(channel, level, errors[1], arguments[4:])
    except OSError as error:
        channel.sendall((error.strerror or str(error)).encode())
        return REFUSED
    os.close(errors[1])
    with suppress(OSError):  # the parent may have been killed meanwhile: the command is ended below
        socket.send_fds(channel, [message], [listener.fileno()] if listener else [])
    if listener:
        listener.close()
    status, tail = _watch(channel, child, wake, errors[0])
    _end_all(child, level)
    os.set_blocking(errors[0], False)
    with suppress(BlockingIOError):
        while (data := os.read(errors[0], PIPE_BYTES)) and len(data) < PIPE_BYTES:
            tail = (tail + data)[-OUTPUT_BYTES:]
    with suppress(OSError):
        channel.sendall(b"%d\n%b" % (status, tail))
    return 0


def _watch(channel: socket.socket, child: int, wake: int, errors: int) -> tuple[int, bytes]:
    """Wait until the child ends or nobody waits for it any more; its status (-1: it goes on), and its last stderr."""
    tail, reading = b"", [channel.fileno(), wake, errors]
    while True:
        ready, _, _ = select.select(reading, [], [])
        if errors in ready:
            data = os.read(errors, PIPE_BYTES)
            tail = (tail + data)[-OUTPUT_BYTES:]
            if not data:
                reading.remove(errors)
        if wake in ready:
            os.read(wake, PIPE_BYTES)
            with suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    if ended[0] == child:
                        return _status(ended[1]), tail
        if channel.fileno() in ready:
            return -1, tail


def _status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else BY_SIGNAL - code


def _end_all(child: int, level: str) -> None:
    """End everything that the command has started. The end of the first process of a namespace ends all in it; else
    orphans, wherever they went, are children of this process on Linux, and elsewhere only the group is known.
    """
    if sys.platform != "linux":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        return
    while True:
        processes = [child]
        if level != "processes":
            processes = []
            for place in Path("/proc").glob("[0-9]*/stat"):
                with suppress(OSError):
                    if int(place.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                        processes.append(int(place.parent.name))
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _isolate(level: str, port: int, paths: Mapping[str, Sequence[str]]) -> tuple[bytes, socket.socket | None]:
    """Leave what this process shares with the machine; what to tell the parent, and the listener. Raises OSError."""
    if level == "none":
        if sys.platform == "linux":
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
        return MADE, None
    kept = {os.path.realpath(path) for path in paths["kept"]}
    hidden = _hidden_paths(paths["covered"]) - kept
    more = CLONE_NEWPID if level == "processes" else 0
    user, group = os.getuid(), os.getgid()
    _call("unshare", CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | more)
    process = Path("/proc/self")
    (process / "setgroups").write_text("deny")
    (process / "uid_map").write_text(f"{user} {user} 1")
    (process / "gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
    _mount(b"none", "/", None, MS_REC | MS_PRIVATE)
    message = MADE
    try:
        _cover(hidden)
    except OSError:
        if level == "processes":
            raise
        message = REACHABLE_SOCKETS
    if level == "network":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((LOOPBACK, port))
    listener.listen(BACKLOG)
    return message, listener


def _hidden_paths(covered: Iterable[str]) -> set[str]:
    """These paths, and every socket with a path: those of this network, those mounted here, and all below /run."""
    found = [line.split(None, 7)[-1] for line in _lines("/proc/net/unix")]
    found += [line.split()[4] for line in _lines("/proc/self/mountinfo")]
    found += [f"{folder}/{name}" for folder, _, names in os.walk("/run") for name in names]
    hidden = list(covered)
    for path in found:
        with suppress(OSError, ValueError):
            if path.startswith("/") and stat.S_ISSOCK(Path(path).stat().st_mode):
                hidden.append(path)
    return set(map(os.path.realpath, hidden))


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="surrogateescape").splitlines()


def _cover(paths: Iterable[str]) -> None:
    """Put an empty device in the place of each path. Raises OSError."""
    for path in paths:
        try:
            _mount(b"/dev/null", path, None, MS_BIND)
        except OSError as error:
            if error.errno not in UNREACHABLE:
                raise


def _mount(source: bytes, target: str, kind: bytes | None, flags: int) -> None:
    _call("mount", source, os.fsencode(target), kind, ctypes.c_ulong(flags), None)


def _call(name: str, *values: object) -> None:
    """A function of the C library. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True)[name](*values):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3)


def _start(channel: socket.socket, level: str, errors: int, command: Sequence[str]) -> int:
    """The process of the command, or the first of its namespace, which starts it. Raises OSError if that one cannot."""
    if level != "processes":
        return _fork_command(level, errors, command)
    refusals, refusal = os.pipe()
    number = os.getpid()
    if child := os.fork():
        os.close(refusal)
        with os.fdopen(refusals, "rb") as stream:
            if why := stream.read():
                raise OSError(why.decode())
        return child
    status = REFUSED
    try:
        channel.close()
        signal.set_wakeup_fd(-1)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _mount(b"proc", "/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        with suppress(OSError):  # process ids differ from run to run, as they do without a namespace
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(number))
        command_process = _fork_command(level, errors, command)
        os.close(refusal)
        os.close(errors)
        while True:
            ended, wait_status = os.waitpid(-1, 0)
            if ended == command_process:
                status = _status(wait_status)
                break
    except OSError as error:
        os.write(refusal, f"mount proc: {error.strerror}".encode())
    finally:
        os._exit(status)


def _fork_command(level: str, errors: int, command: Sequence[str]) -> int:
    if child := os.fork():
        return child
    try:
        os.setsid()
        if sys.platform == "linux":
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for capability in (CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN) if level != "none" else ():
            _prctl(PR_CAPBSET_DROP, capability)
        os.dup2(errors, 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_FOUND)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
