"""The page's server ends at once, whatever it works on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from threading import Thread

import pytest

from slow_cases import mostly_slow

SCRIPT = """
import sys
from threading import Event
from cachecost.live.loopback import listen
from cachecost.live.viewer.app import viewer_app
from cachecost.live.viewer.app import serve_page

class Slow:
    def start(self):
        print("asked", flush=True)
        Event().wait()

listener = listen(0)
port = listener.getsockname()[1]
serve_page(viewer_app(Slow(), {}, "t", port, print), listener, lambda: print(port, flush=True))
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", mostly_slow([signal.SIGINT, signal.SIGTERM], 1))
def test_an_answer_that_is_being_made_keeps_nobody_waiting(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        port = int(process.stdout.readline())
        asking = Thread(target=ask, args=(port,))
        asking.start()
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        assert process.wait(20) == 0
        asking.join()
        assert (process.stdout.read(), process.stderr.read()) == ("ended\n", "")


def ask(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    with suppress(OSError, HTTPException):
        connection.request("GET", "/t/api/start")
        status = connection.getresponse().status
        assert re.fullmatch("5..", str(status))
    connection.close()
