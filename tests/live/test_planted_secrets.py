"""Secrets of a call, wherever and however a client writes them, are in no output of `record` and `serve`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from recorder_upstream import (
    STREAM,
    Running,
    Seen,
    body,
    chunk,
    events,
    message,
    plain,
    recorder,
    send,
    server,
    until,
    upstream_thread,
)

SECRETS = {
    "x-api-key": "sk-ant-api03-planted/key+1",
    "bearer": "planted-oauth-token-2",
    "cookie": "planted-cookie-3",
    "basic": "planted-password-4",
    "azure": "planted-azure-key-5",
    "gateway": "planted-gateway-key-6",
    "mcp_servers": "planted-mcp-token-7",
    "mcp tool": "planted-tool-token-8",
    "mcp header": "planted-header-token-9",
    "second header": "planted-second-key-10",
    "mcp password": "planted-mcp-password-11",
    "mcp query": "planted-mcp-query-12",
    "tool query": "planted-tool-query-13",
    "query key": "planted-query-key-14",
}
HEADERS = [
    ("x-api-key", SECRETS["x-api-key"]),
    ("x-api-key", SECRETS["second header"]),
    ("authorization", f"Bearer {SECRETS['bearer']}"),
    ("cookie", f"a=1; session={SECRETS['cookie']}; b=2"),
    ("proxy-authorization", "Basic " + b64encode(f"me:{SECRETS['basic']}".encode()).decode()),
    ("api-key", SECRETS["azure"]),
    ("helicone-auth", f"Bearer {SECRETS['gateway']}"),
    ("anthropic-version", "2023-06-01"),
]
OWN_LETTER = re.compile(rb"\\+u([0-9a-fA-F]{4})")
PAGE = re.compile(r"so far: http://127\.0\.0\.1:(\d+)(/\S+/)")


def escaped(text: str, every: int) -> str:
    """Every so many letters as an escape."""
    return "".join(f"\\u{ord(one):04X}" if n % every == 0 else one for n, one in enumerate(text))


SPELLINGS: list[Callable[[str], str]] = [
    str,
    lambda text: escaped(text, 1),
    lambda text: escaped(text, 3),
    lambda text: text.replace("/", "\\/"),
    lambda text: json.dumps('{"key": "' + escaped(text, 2) + '"}')[1:-1],
]


def bodies() -> list[bytes]:
    """Every secret in every spelling, in a prompt that is answered, streamed, refused, and not valid."""
    words = " ".join(spell(secret) for secret in SECRETS.values() for spell in SPELLINGS)
    url = f"https://me:{SECRETS['mcp password']}@x.example/sse?a=1&token={SECRETS['mcp query']}"
    servers = [{"type": "url", "url": url, "name": "x", "authorization_token": SECRETS["mcp_servers"]}]
    tool = {"type": "mcp", "server_label": "x", "server_url": f"https://x.example?api_key={SECRETS['tool query']}",
            "authorization": SECRETS["mcp tool"], "headers": {"X-Key": SECRETS["mcp header"]}}  # fmt: skip
    made = []
    for more in ({}, {"stream": True}, {"max_tokens": -1}, {"model": "claude-odd"}):
        of_text = {"system": "WORDS", "mcp_servers": servers, "metadata": {"user_id": "WORDS", "tool": tool}}
        made.append(body("WORDS", **{**of_text, **more}).replace(b"WORDS", words.encode()))
    return [*made, made[0][:-20]]


async def says_it_again(seen: Seen, writer: asyncio.StreamWriter) -> None:
    again = " ".join(SECRETS.values())
    if b'"stream":true' in seen.body:
        writer.write(STREAM + b"".join(map(chunk, events(again))) + b"0\r\n\r\n")
    elif b'"max_tokens":-1' in seen.body:
        error = {"type": "error", "error": {"type": f"odd {again}", "message": again}}
        writer.write(plain(error, b"400 Bad Request", f"set-cookie: s={SECRETS['cookie']}\r\n".encode()))
    else:
        writer.write(plain(message(again)))


def outputs(running: Running, folder: Path, page: tuple[int, str]) -> dict[str, bytes]:
    """Everything that a command wrote, showed and printed, by name."""
    headers = [(name.encode(), value.encode()) for name, value in HEADERS]

    async def call() -> None:
        for one in bodies():
            target = f"/v1/messages?beta=true&key={SECRETS['query key']}".encode()
            assert await send(running.port, target=target, headers=headers, pieces=[one])

    asyncio.run(call())
    shown = []

    def is_shown() -> bool:
        sessions = json.loads(get(page, "sessions"))
        return bool(sessions["sessions"]) and int(sessions["total"]["calls"]) >= 2

    until(is_shown)
    time.sleep(0.3)
    shown.append(get(page, "sessions"))
    for row in json.loads(shown[0])["sessions"]:
        shown += [get(page, f"session/{row['id']}"), get(page, f"session/{row['id']}/call/1")]
    _, said = running.stop(signal.SIGINT)
    files = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    assert files
    return {"file": files, "page": b"\n".join(shown), "stderr": "\n".join(said).encode()}


def get(page: tuple[int, str], path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", page[0], timeout=20)
    try:
        connection.request("GET", f"{page[1]}api/{path}")
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        return data
    finally:
        connection.close()


def page_of(running: Running) -> tuple[int, str]:
    found: list[re.Match[str]] = []

    def is_said() -> bool:
        text = "\n".join([*running.first, *(line.decode() for line in list(running._lines))])
        found.extend(PAGE.finditer(text))
        return bool(found)

    until(is_said)
    return int(found[0][1]), found[0][2]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, bytes]]:
    made: dict[str, bytes] = {}
    with upstream_thread(says_it_again) as api:
        for command in ("keep", "digest", "serve"):
            folder = tmp_path_factory.mktemp(command)
            more = ("--content", command, "--page", "0")
            path = folder / "r.jsonl"
            running = server(path) if command == "serve" else recorder(f"http://127.0.0.1:{api.port}", path, *more)
            try:
                found = outputs(running, folder, page_of(running))
            finally:
                running.process.kill()
            made |= {f"{command} {name}": data for name, data in found.items()}
    yield made


def spelled_out(data: bytes) -> bytes:
    """Without escapes."""
    plain_ = OWN_LETTER.sub(lambda found: chr(int(found[1], 16)).encode("utf-8", "surrogatepass"), data)
    return plain_.replace(b"\\/", b"/")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "output", [f"{one} {name}" for one in ("keep", "digest", "serve") for name in ("file", "page", "stderr")]
)
def test_a_planted_secret_is_in_no_output(secret: str, output: str, written: dict[str, bytes]) -> None:
    assert SECRETS[secret].encode() not in spelled_out(written[output])


@pytest.mark.parametrize("output", ["keep file", "keep page", "serve file", "serve page"])
def test_what_stands_around_the_secrets_is_kept(output: str, written: dict[str, bytes]) -> None:
    assert written[output].count(b"[key]") > len(SECRETS)
