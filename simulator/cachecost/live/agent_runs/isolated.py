"""Runs a command that reaches nothing but this machine's simulated API: `python -I -S isolated.py FD PORT WORD…`.

Linux lets a process have a network of its own, with nothing but a loopback interface (user_namespaces(7),
network_namespaces(7)). This process makes one, listens in it, hands the socket to its parent over the socket FD, and
becomes the command. The parent serves the socket, which belongs to the network in which it was made. Where the system
does not allow it, the parent gets the reason instead, and the status is REFUSED.

The file is run by itself, so it imports nothing of the package.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
LOOPBACK, BACKLOG = "127.0.0.1", 128
MADE = b"listening"
REFUSED, NOT_FOUND = 125, 127


def main(arguments: list[str]) -> int:
    channel, port, command = socket.socket(fileno=int(arguments[0])), int(arguments[1]), arguments[2:]
    try:
        leave_network()
        listener = _listen(port)
    except OSError as error:
        channel.sendall(str(error.strerror or error).encode())
        return REFUSED
    socket.send_fds(channel, [MADE], [listener.fileno()])
    listener.close()
    channel.close()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_FOUND


def leave_network() -> None:
    """Give this process a network of its own; user and group stay the same. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    process = Path("/proc/self")
    (process / "setgroups").write_text("deny")
    (process / "uid_map").write_text(f"{user} {user} 1")
    (process / "gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))


def _listen(port: int) -> socket.socket:
    """As `live.loopback.listen`, which cannot be imported here."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((LOOPBACK, port))
    listener.listen(BACKLOG)
    return listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
