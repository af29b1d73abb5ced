"""What keeps real clients from doing harm: no network but loopback, no daemon left, an environment of their own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients_bench import KEY, Server, isolates

pytestmark = pytest.mark.clients
REACH = """
import socket, sys
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "8.8.8.8")):
    try:
        socket.create_connection((address, 443), timeout=5).close()
    except OSError as error:
        print(type(error).__name__, error.strerror)
"""
LEAVE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    [os.close(number) for number in (0, 1, 2)]
    open(sys.argv[1], "w").write(str(os.getpid()))
    while True:
        os.utime(sys.argv[1])
        time.sleep(0.01)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def isolated() -> None:
    if not isolates():
        pytest.skip("needs Linux, root, unshare and nsenter")


@pytest.mark.usefixtures("isolated")
def test_a_client_reaches_loopback_alone(server: Server) -> None:
    done = server.run(sys.executable, "-c", REACH)
    assert done.out == "OSError Network is unreachable\n" * 2


@pytest.mark.usefixtures("isolated")
def test_a_daemon_ends_with_its_client(server: Server) -> None:
    file = server.folder / "alive"
    assert server.run(sys.executable, "-c", LEAVE, str(file)).code == 0
    touched = file.stat().st_mtime_ns
    server.run("sh", "-c", "sleep 0.05")
    assert file.stat().st_mtime_ns == touched


def test_a_client_gets_a_clean_environment_and_an_empty_folder(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "of-the-developer")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-developer")
    done = server.run("sh", "-c", "env; ls -A")
    variables = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    assert (variables["ANTHROPIC_BASE_URL"], variables["ANTHROPIC_API_KEY"]) == (server.address, KEY)
    assert variables["HOME"].startswith(str(server.folder))
    assert variables["HOME"] != os.environ.get("HOME")
    assert "of-the-developer" not in done.out
    assert not [line for line in done.out.splitlines() if "=" not in line]
