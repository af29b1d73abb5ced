"""`cachecost record` as a whole, in a process of its own: what it writes, says and survives."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from recorder_upstream import (
    STREAM,
    Got,
    NotStarted,
    Seen,
    Upstream,
    body,
    chunk,
    events,
    message,
    plain,
    recorder,
    send,
    until,
    upstream_thread,
    usage,
)

from cachecost.base.extras import NotInstalled
from cachecost.commands import record as command
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.recorder import proxy as session

KEY = "sk-ant-api03-planted-key-1"
BEARER = "planted-oauth-token-2"
TOKEN = "planted-mcp-token-3"
COOKIE = "planted-cookie-4"
LONG = "The first words of a long text. " * 900
ASIDE = 4_000
"""Tokens that the stand-in bills for LONG; nobody counts them."""


@pytest.fixture
def api() -> Iterator[Upstream]:
    with upstream_thread() as made:
        yield made


def at(one: Upstream) -> str:
    return f"http://127.0.0.1:{one.port}"


def calls(port: int, *bodies: bytes, headers: dict[str, str] | None = None) -> list[Got | None]:
    """One after another."""
    told = [(name.encode(), value.encode()) for name, value in (headers or {"x-api-key": KEY}).items()]

    async def go() -> list[Got | None]:
        return [await send(port, target=b"/v1/messages?beta=true", headers=told, pieces=[one]) for one in bodies]

    return asyncio.run(go())


def marked(*later: str) -> bytes:
    """A conversation whose long beginning is marked, and that goes on by questions and answers."""
    first = {"role": "user", "content": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]}
    roles = ("assistant", "user")
    rest = [{"role": roles[n % 2], "content": text} for n, text in enumerate(later)]
    return body(messages=[first, *rest])


def test_predicted_stands_beside_billed_and_the_summary_judges_the_file(tmp_path: Path) -> None:
    """The first call writes what the second reads; the bill of the first sizes the prediction of the second."""
    bills = iter([usage(0, ASIDE), usage(ASIDE, 0)])

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(message(usage=next(bills))))

    with upstream_thread(answering) as made:
        running = recorder(at(made), tmp_path / "r.jsonl")
        calls(running.port, marked(), marked("Yes", "And then?"))
        until(lambda: running.said("^call 2 "))
        code, said = running.stop()
    assert code == 0
    one, two = (line for line in said if line.startswith("call "))
    assert re.fullmatch(
        r"call 1  claude-sonnet-4-5  predicted read 0 write [\d,]+ · billed read 0 write 4,000"
        r" · \$0\.0151 · total \$0\.0151",
        one,
    )
    assert two == (
        "call 2  claude-sonnet-4-5  predicted read 4,000 write 0 · billed read 4,000 write 0 · $0.00128 · total $0.0164"
    )
    summary = said[said.index(two) + 1 :]
    assert summary[0] == f"2 calls recorded in {tmp_path / 'r.jsonl'}"
    assert "  hits       1 of 1 exact" in summary
    assert "  cold       1 of 1 exact (reads only; 1 billed a write)" in summary
    assert summary[-1].endswith("$0.0162 predicted, $0.0162 billed (input side)")


def test_a_key_is_in_no_file_and_in_no_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the client writes it into the prompt, and the API says it again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    secrets = (KEY, BEARER, TOKEN, COOKIE)
    headers = {"x-api-key": KEY, "authorization": f"Bearer {BEARER}", "cookie": COOKIE}
    servers = [{"type": "url", "url": "https://x.example", "name": "x", "authorization_token": TOKEN}]

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        again = " ".join(secrets)
        told = json.loads(seen.body)
        if told.get("stream"):
            writer.write(STREAM + b"".join(map(chunk, events(again))) + b"0\r\n\r\n")
        elif told["max_tokens"] == 1:
            error = {"type": "error", "error": {"type": f"bad {again}", "message": again}}
            writer.write(plain(error, b"401 Unauthorized", f"x-again: {KEY}\r\n".encode()))
        else:
            writer.write(plain(message(again)))

    with upstream_thread(answering) as made:
        running = recorder(at(made), Path("r.jsonl"))
        said_in = f"my keys are {secrets}"
        bodies = [body(said_in, mcp_servers=servers, **more) for more in ({}, {"stream": True}, {"max_tokens": 1})]
        got = calls(running.port, *bodies, b'{"not": "' + KEY.encode() + b'"}', headers=headers)
        until(lambda: running.said("^call 3 "))
        _, said = running.stop()
        assert [seen.body for seen in made.seen[:3]] == bodies
    assert all(one and KEY.encode() in one.body for one in got[:3])
    written = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(written) == 1
    assert len(list(read_calls(tmp_path / "r.jsonl"))) == 3
    for secret in secrets:
        assert secret not in "\n".join(said)
        assert secret.encode() not in written[0]


@pytest.mark.slow
def test_a_second_start_goes_on_in_the_same_file_and_remembers_it(api: Upstream, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for number in (1, 2):
        running = recorder(at(api), path)
        calls(running.port, body(f"call {number}"))
        running.stop(signal.SIGTERM)
        assert len(list(read_calls(path))) == number
        assert (f"{path}: appending to it" in running.first) == (number == 2)


@pytest.mark.slow
def test_what_a_kill_tore_is_taken_away_and_said(api: Upstream, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    whole = b'{"timestamp":"2026-03-07T10:00:00Z","request":' + body() + b"}\n"
    path.write_bytes(whole + whole[:70])
    running = recorder(at(api), path)
    calls(running.port, body("after"))
    running.stop()
    assert running.first[0] == f"{path}: 70 bytes of an incomplete call removed"
    assert len(list(read_calls(path))) == 2


@pytest.mark.slow
def test_two_recorders_never_write_one_file(api: Upstream, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    running = recorder(at(api), path)
    with pytest.raises(NotStarted) as stopped:
        recorder(at(api), path)
    assert stopped.value.args == (2, [f"{path} another process is recording to it", "1 error; nothing was run."])
    _, said = running.stop()
    assert f"0 calls recorded in {path}" in said


@pytest.mark.slow
def test_a_second_start_predicts_from_what_the_first_one_recorded(tmp_path: Path) -> None:
    bills = iter([usage(0, ASIDE), usage(ASIDE, 0)])

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(message(usage=next(bills))))

    with upstream_thread(answering) as made:
        running = recorder(at(made), tmp_path / "r.jsonl", "--quiet")
        calls(running.port, marked())
        _, said = running.stop()
        assert not any(line.startswith("call ") for line in said)
        running = recorder(at(made), tmp_path / "r.jsonl")
        calls(running.port, marked("Yes", "And then?"))
        until(lambda: running.said("^call 1 .* predicted read 4,000 write 0 · billed read 4,000 write 0 "))
        _, said = running.stop()
    assert "  hits       1 of 1 exact" in said


@pytest.mark.slow
def test_what_fails_or_cannot_be_predicted_is_said_once(tmp_path: Path) -> None:
    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        is_odd = json.loads(seen.body)["model"] == "claude-odd"
        writer.write(plain(message()) if is_odd else plain(error, b"529 Overloaded"))

    with upstream_thread(answering) as made:
        running = recorder(at(made), tmp_path / "r.jsonl")
        calls(running.port, body(), body(model="claude-odd"), body(model="claude-odd"))
        until(lambda: running.said("^call 3 "))
        _, said = running.stop()
    assert [line for line in said if line.startswith("call ")] == [
        "call 1  claude-sonnet-4-5  failed with status 529 · $0.00 · total $0.00",
        "call 2  claude-odd  not predicted · billed read 0 write 0 · – · total $0.00",
        "call 2: unknown model 'claude-odd' on host anthropic (did you mean 'claude-opus-5'?); reported once",
        "call 3  claude-odd  not predicted · billed read 0 write 0 · – · total $0.00",
    ]
    assert [call.status for call in read_calls(tmp_path / "r.jsonl")] == [529, 200, 200]


def test_without_content_no_word_is_written(tmp_path: Path, api: Upstream) -> None:
    """It reads and is judged like any recording; a second start cannot go on with it, and writes beside it."""
    path = tmp_path / "r.jsonl"
    path.write_text("mine\n")
    running = recorder(at(api), path, "--content", "digest")
    place = tmp_path / "r-2.jsonl"
    assert running.first[0] == (
        f"{path} exists, and a recording without content cannot be continued; writing to {place}"
    )
    calls(running.port, marked(), marked("Yes", "And then?"))
    until(lambda: running.said("^call 2 "))
    written = place.read_bytes()
    _, said = running.stop()
    assert place.stat().st_mode & 0o077 == 0
    assert path.read_text() == "mine\n"
    assert [call.request.thread.length for call in read_calls(place)] == [1, 3]
    assert [call.billed and call.billed.input_tokens for call in read_calls(place)] == [3, 3]
    assert not any(word in written for word in (b"first words", b"And then", b"Yes", KEY.encode()))
    assert f"2 calls recorded in {place}" in said


@pytest.mark.slow
def test_without_content_what_has_ended_outlives_a_kill(tmp_path: Path, api: Upstream) -> None:
    path = tmp_path / "r.jsonl"
    running = recorder(at(api), path, "--content", "digest", "--quiet")
    calls(running.port, body("one"), body("two"))
    until(lambda: path.exists() and path.read_bytes().count(b'"call"') == 2)
    running.kill()
    assert len(list(read_calls(path))) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("https://me:secret@x.example", "expected a URL without a name, a password, a query or a fragment"),
        ("https://x.example/?key=secret", "expected a URL without a name, a password, a query or a fragment"),
        ("ftp://x.example/secret", "expected a URL that begins with https:// or http://"),
        ("secret", "expected a URL that begins with https:// or http://"),
        ("https://[secret", "expected a URL like https://api.anthropic.com"),
    ],
)
def test_an_upstream_that_is_none_is_told_without_repeating_it(given: str, words: str) -> None:
    told = CliRunner().invoke(command.record, ["--upstream", given, "--port", "0"])
    assert told.exit_code == 2
    assert f"Error: --upstream: {words}" in told.output
    assert "secret" not in told.output


INSECURE = (
    "Error: --upstream: http:// sends keys and prompts unencrypted to another machine; use https://, or --insecure"
)


@pytest.mark.parametrize(
    ("host", "is_refused"),
    [
        ("10.1.2.3", True),
        ("x.example", True),
        ("localhost.example", True),
        ("[2001:db8::1]", True),
        ("127.0.0.1", False),
        ("127.9.9.9:80", False),
        ("[::1]:80", False),
        ("LocalHost", False),
    ],
)
def test_plain_http_leaves_the_machine_only_where_it_was_allowed(
    host: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "record", lambda *_: session.RecordingResult((tmp_path,), 0, 0))
    for more, refused in (([], is_refused), (["--insecure"], False)):
        told = CliRunner().invoke(command.record, ["--upstream", f"http://{host}/v1", *more])
        assert (INSECURE in told.output, told.exit_code == 2) == (refused, refused)
    assert CliRunner().invoke(command.record, ["--upstream", f"https://{host}"]).exit_code == 0


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("uvicorn", "httpx2"):
        monkeypatch.setitem(sys.modules, name, None)
    told = CliRunner().invoke(command.record, [])
    assert isinstance(told.exception, NotInstalled)
    assert "cachecost record needs the extra 'server': uvicorn and httpx2 are not installed" in str(told.exception)


def test_faults_before_it_starts(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Mine")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more, words in (
            (["-o", str(notes)], "expected a request log to continue, or a new file; got another format"),
            (
                ["-o", str(tmp_path / "r.jsonl"), "--port", str(port)],
                f"--port {port} is not available (Address already in use); use 0 to let the system choose",
            ),
            (["-o", str(notes / "r.jsonl")], "cannot be written: File exists"),
            (["--rule", "ttl=no"], "ttl"),
        ):
            with pytest.raises(NotStarted) as stopped:
                recorder("http://127.0.0.1:9", tmp_path / "unused.jsonl", *more)
            assert stopped.value.code == 2
            assert words in "\n".join(stopped.value.said)
    assert notes.read_text() == "# Mine"
