"""What `watch` follows: files that grow, are damaged, replaced or removed, and the bill of a server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bill_sessions import SessionWriter
from tests.viewer_logs import requests, write_log

from cachecost.conversations.readers.claude_code import transcript as reader
from cachecost.live.watching.server import FileFollower, ServerFollower, is_loopback, newest_file, session_name
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup

ID = "1e0816ef-0000-4000-8000-000000000001"
Follow = Callable[[Path], FileFollower]
OTHER = "2e0816ef-0000-4000-8000-000000000002"


def setup() -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook())


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Followers of files, which are closed at the end."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(closing(FileFollower(path, setup())))


def transcript(calls: int, session: str = ID) -> list[str]:
    writer = SessionWriter(session, "/work")
    for number in range(calls):
        writer.write_message("Next.")
        writer.answer(number * 5000, 5000)
    return [json.dumps(line) + "\n" for line in writer.lines]


def test_only_what_was_added_is_read(tmp_path: Path, follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    decode = reader.decode_line
    monkeypatch.setattr(reader, "decode_line", lambda line: read.append(line) or decode(line))
    lines, path = transcript(4), tmp_path / f"{ID}.jsonl"
    path.write_text("".join(lines[:4]))
    follower = follow(path)
    first = follower.poll(0)
    assert first is not None and first.totals.calls == 2 and len(read) == 4
    assert follower.poll(1) is None
    path.write_text("".join(lines))
    second = follower.poll(2)
    assert second is not None and second.totals.calls == 4 and len(read) == len(lines)


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path, follow: Follow) -> None:
    lines, path = transcript(3), tmp_path / f"{ID}.jsonl"
    text = "".join(lines)
    whole = follow(path)
    for end in range(len("".join(lines[:3])), len(text), 97):
        path.write_text(text[:end])
        found = whole.poll(0)
        assert found is not None and found.totals.calls in (1, 2)
    path.write_text(text)
    found = whole.poll(0)
    assert found is not None and found.totals.calls == 3 and not found.notes


def test_a_damaged_line_is_noted_and_the_others_count(tmp_path: Path, follow: Follow) -> None:
    lines, path = transcript(2), tmp_path / f"{ID}.jsonl"
    path.write_text("".join([*lines[:2], "{broken\n", *lines[2:]]))
    found = follow(path).poll(0)
    assert found is not None and found.totals.calls == 2
    assert any(":3" in note for note in found.notes)


def test_a_replaced_file_is_read_anew_and_a_removed_one_stays_on_the_screen(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / f"{ID}.jsonl"
    path.write_text("".join(transcript(3)))
    follower = follow(path)
    assert (follower.poll(0) or pytest.fail()).totals.calls == 3
    part = tmp_path / "new"
    part.write_text("".join(transcript(1, OTHER)))
    part.replace(path)
    found = follower.poll(1)
    assert found is not None and found.totals.calls == 1
    assert found.state is not None and found.state.session == OTHER
    path.unlink()
    gone = follower.poll(2)
    assert gone is not None and gone.calls == found.calls and "gone" in gone.notes[0]
    path.write_text("".join(transcript(2)))
    again = follower.poll(3)
    assert again is not None and again.totals.calls == 2 and not again.notes


def test_a_request_log_grows(tmp_path: Path, follow: Follow) -> None:
    whole = write_log(tmp_path / "whole.jsonl", list(requests(4))).read_text()
    path = tmp_path / "log.jsonl"
    path.write_text("".join(whole.splitlines(keepends=True)[:2]))
    follower = follow(path)
    assert (follower.poll(0) or pytest.fail()).totals.calls == 2
    path.write_text(whole[:-200])
    assert (follower.poll(1) or pytest.fail()).totals.calls == 3
    path.write_text(whole)
    found = follower.poll(2)
    assert found is not None and found.totals.calls == 4
    assert found.calls[2].cause == "system_changed"


def test_a_log_without_bills_says_so(tmp_path: Path, follow: Follow) -> None:
    path = write_log(tmp_path / "log.jsonl", list(requests(2)), is_billed=False)
    found = follow(path).poll(0)
    assert found is not None and not found.calls and "cachecost record" in found.notes[0]


def test_the_newest_session_is_that_of_a_sub_agent_that_writes(tmp_path: Path) -> None:
    main, other = tmp_path / f"{ID}.jsonl", tmp_path / f"{OTHER}.jsonl"
    agent = tmp_path / ID / "subagents" / "agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    for at, path in enumerate((main, other, agent)):
        path.write_text("")
        os.utime(path, (at, at))
    assert newest_file([main, other, agent]) == main
    assert newest_file([main, other]) == other
    assert newest_file([]) is None
    assert session_name(Path(f"rollout-2026-01-01T10-00-00-{ID}.jsonl")) == ID


@given(data=st.data())
def test_any_way_to_grow_gives_what_one_reading_gives(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Pieces of any length, a replacement by another session among them, end as the whole file read at once."""
    folder = tmp_path_factory.mktemp("grow")
    text, other = "".join(transcript(4)), "".join(transcript(2, OTHER))
    path, whole = folder / f"{ID}.jsonl", folder / "whole.jsonl"
    whole.write_text(text)
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    with closing(FileFollower(path, setup())) as follower, closing(FileFollower(whole, setup())) as once:
        shown = None
        for content in [*(text[:end] for end in ends), *data.draw(st.sampled_from([[], [other]])), text]:
            path.write_text(content)
            shown = follower.poll(0) or shown
        expected = once.poll(0)
    assert shown is not None and expected is not None
    assert (shown.totals, shown.state) == (expected.totals, expected.state)
    assert [one.call for one in shown.calls] == [one.call for one in expected.calls]


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://127.0.0.1:80", True),
        ("http://localhost:8000/cachecost", True),
        ("http://[::1]:8000", True),
        ("https://127.0.0.1:80", False),
        ("http://127.0.0.1.example.com", False),
        ("http://127.0.0.1@example.com", False),
        ("file:///etc/passwd", False),
        ("http://127.0.0.1:x", False),
    ],
)
def test_only_servers_of_this_machine(url: str, is_local: bool) -> None:
    assert is_loopback(url) is is_local


def share(name: str, calls: int, usage: Usage, usd: str) -> dict[str, Any]:
    return {"name": name, "calls": calls, "refused": 0, "usage": usage.wire(), "cost_usd": usd}


def bill_of(calls: int, usage: Usage, usd: str) -> bytes:
    one = share("claude-sonnet-4-5", calls, usage, usd)
    return json.dumps({"format": 1, "total": one, "models": [one], "conversations": [one]}).encode()


@contextmanager
def server(answers: list[tuple[int, bytes]]) -> Iterator[str]:
    """A server that gives these answers, one after the other."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.pop(0)
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_the_bill_of_a_server_becomes_calls() -> None:
    before, after = Usage(3, 0, 5000, 0, 10), Usage(6, 5000, 5500, 0, 30)
    answers = [
        (200, bill_of(1, before, "0.02")),
        (200, bill_of(1, before, "0.02")),
        (200, bill_of(2, after, "0.025")),
        (302, b""),
        (200, b"[]"),
        (200, b"{" * 1000),
        (200, bill_of(0, Usage(), "0")),
        (200, bill_of(1, before, "0.02")),
    ]
    with server(answers) as url:
        follower = ServerFollower(url, setup())
        first = follower.poll(1e9)
        assert first is not None and first.totals.calls == 1 and not first.calls
        assert follower.poll(1e9) is None
        found = follower.poll(1.8e9)
        assert found is not None and found.totals.cost == Decimal("0.025")
        (call,) = found.calls
        assert call.call.tokens == (3, 5000, 500, 0, 20) and call.cost == Decimal("0.005")
        assert found.state is not None and found.state.warm_until == 1.8e9 + 300
        for why in ("no answer", "no bill"):
            noted = follower.poll(1.8e9)
            assert noted is not None and why in noted.notes[0] and noted.calls == found.calls
        assert follower.poll(1.8e9) is None
        anew = follower.poll(1.8e9)
        assert anew is not None and anew.totals.calls == 0 and not anew.calls
        assert len((follower.poll(1.8e9) or pytest.fail()).calls) == 1
    lost = follower.poll(1.8e9)
    assert lost is not None and "no answer" in lost.notes[0]
