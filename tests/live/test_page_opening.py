"""The browser gets the address of the page, with its token, by a file and not on a command line."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.viewer_logs import requests, write_log

from cachecost.commands.view import redirect_file

BROWSER = """#!{python}
import json, sys, urllib.parse, urllib.request
text = open(urllib.parse.unquote(sys.argv[1].removeprefix("file://"))).read()
open({out!r}, "w").write(json.dumps([sys.argv[1], text]))
"""


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/t0ken/", 'http://127.0.0.1:1/t/#/session/a"><script>&b'])
def test_only_the_user_can_read_the_file_and_it_leads_to_the_page(address: str) -> None:
    with redirect_file(address) as path:
        text = path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        found = re.search(r'content="0; url=([^"]*)"', text)
        assert (
            found
            and found[1].replace("&quot;", '"').replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
            == address
        )
        assert "<script>" not in text and "no-referrer" in text
    assert not path.parent.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a browser of its own is a script here")
@pytest.mark.slow
def test_no_command_line_has_the_token(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", list(requests(2)), session="s1")
    browser, out = tmp_path / "browser", tmp_path / "seen.json"
    browser.write_text(BROWSER.format(python=sys.executable, out=str(out)))
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":9"}
    command = [sys.executable, "-m", "cachecost", "view", str(log)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr
        address = process.stderr.readline().split()[0]
        token = address.split("/")[3]
        for _ in range(200):
            if out.exists() and out.stat().st_size:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    opened, text = json.loads(out.read_text())
    assert token not in opened and opened.startswith("file:///")
    assert address in text
    assert not Path(opened.removeprefix("file://")).exists()
