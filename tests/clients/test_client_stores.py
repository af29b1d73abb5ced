"""What real clients store of a session against what the server billed: usage to the token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clients_bench import Server
from clients_sessions import SESSIONS

from cachecost.conversations.calls import parse_usage
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.logs import find_input_files
from cachecost.conversations.readers.cline.reader import session_files as cline_sessions
from cachecost.conversations.readers.opencode.reader import session_files as opencode_sessions
from cachecost.providers.usage import Usage

pytestmark = pytest.mark.clients
Bill = Callable[[Path], list[SessionFile]]
STORES: dict[str, tuple[str, Bill]] = {
    "opencode": (".local/share/opencode/opencode.db", opencode_sessions),
    "cline": (".cline/data/sessions/*/*.messages.json", cline_sessions),
}
"""Where each has its sessions, below the home folder, and what reads their bill."""


@pytest.mark.parametrize("client", STORES)
def test_what_a_client_stores_is_what_the_server_billed(client: str, tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        SESSIONS[client].run(server)
        server.end()
    finally:
        server.close()
    place, bill = STORES[client]
    (path,) = (tmp_path / "home").glob(place)
    (file,) = bill(path)
    assert [call.usage for call in file.calls] == billed(server.record)
    assert file.project == str(tmp_path / "work")
    (found,) = find_input_files([path], "auto", str, [])
    assert [call.billed for call in found.calls(str)] == billed(server.record)


def billed(record: Path) -> list[Usage]:
    """The usage of the calls of the loop, which offer tools."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    return [parse_usage(line["usage"], "usage") for line in lines if line["request"].get("tools")]
