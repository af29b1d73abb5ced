"""A recorder never calls itself, by whatever way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest
from recorder_upstream import NotStarted, body, free_port, recorder, send, upstream_thread

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.recorder.proxy import HEADER, is_itself, token_for

WORDS = "expected the API, or a server that forwards calls to it"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8788", True),
        ("http://localhost:8788/v1", True),
        ("http://0.0.0.0:8788", True),
        ("http://[::ffff:127.0.0.1]:8788", True),
        ("https://127.0.0.1:8788", True),
        ("http://127.0.0.1:8787", False),
        ("http://127.0.0.1", False),
        ("http://192.0.2.1:8788", False),
        ("https://api.anthropic.com", False),
    ],
)
def test_which_address_is_the_recorder_itself(url: str, expected: bool) -> None:
    assert is_itself(httpx2.URL(url), 8788) == expected


def test_what_goes_to_the_api_has_no_header_of_ours() -> None:
    assert token_for(httpx2.URL("https://api.anthropic.com")) is None
    assert token_for(httpx2.URL("http://127.0.0.1:1")) != token_for(httpx2.URL("http://127.0.0.1:1"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_it_does_not_start_with_itself_as_upstream(tmp_path: Path, host: str) -> None:
    port = free_port()
    url = f"http://{host}:{port}"
    with pytest.raises(NotStarted) as stopped:
        recorder(url, tmp_path / "r.jsonl", "--port", str(port))
    assert stopped.value.code == 2
    assert stopped.value.said[0] == f"--upstream {url}: {WORDS}; got this recorder itself"
    assert not (tmp_path / "r.jsonl").exists()


def test_a_call_that_comes_back_over_another_recorder_is_refused(tmp_path: Path) -> None:
    """Two recorders, each the upstream of the other: one call is two calls, and no more."""
    port = free_port()
    first = recorder(f"http://127.0.0.1:{port}", tmp_path / "first.jsonl")
    second = recorder(f"http://127.0.0.1:{first.port}", tmp_path / "second.jsonl", "--port", str(port))
    got = asyncio.run(send(first.port, headers=[(b"x-api-key", b"key")], pieces=[body()]))
    said = [*first.stop()[1], *second.stop()[1]]
    assert got
    assert got.status == 508
    assert WORDS in json.loads(got.body)["error"]["message"]
    assert sum(WORDS in line for line in said) == 1
    for name in ("first", "second"):
        assert [call.status for call in read_calls(tmp_path / f"{name}.jsonl")] == [508]


def test_the_token_is_one_header_and_nothing_else(tmp_path: Path) -> None:
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", tmp_path / "r.jsonl", "--quiet")
        asyncio.run(send(running.port, headers=[(b"x-api-key", b"key"), (HEADER, b"of-another")], pieces=[body()]))
        running.stop()
    tokens = [value for name, value in api.seen[0].headers if name.lower() == HEADER]
    assert tokens[0] == b"of-another"
    assert len(tokens) == 2
    assert tokens[1] not in (tmp_path / "r.jsonl").read_bytes()
