"""No byte is changed, none is held back: what the upstream got and the client got is what each other sent."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import random
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from recorder_upstream import (
    STREAM,
    Got,
    Heard,
    Pairs,
    Seen,
    answers_at_once,
    body,
    chunk,
    events,
    free_port,
    message,
    passing,
    plain,
    send,
    upstream,
)

from cachecost.live.loopback import listen
from cachecost.live.recorder.writing import CaptureMemory, for_client, for_upstream

T = TypeVar("T")


def run(told: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(told, 30))


def lower(pairs: Pairs) -> Pairs:
    return [(name.lower(), value) for name, value in pairs]


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def cut_up(dice: random.Random, data: bytes) -> list[bytes]:
    """Pieces of random lengths, none empty."""
    places = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.randrange(12)))) if len(data) > 1 else []
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True) if end > start]


def some_bytes(dice: random.Random) -> bytes:
    kinds = [
        dice.randbytes(dice.choice([0, 1, 500, 70_000, 300_000])),
        gzip.compress(body("word " * 5000), mtime=0),
        b"".join(events("streamed")),
        body("ünï ✓", tools=[]),
    ]
    return dice.choice(kinds)


HEADERS: Pairs = [
    (b"X-Api-Key", b"sk-ant-1234567890"),
    (b"anthropic-version", b"2026-10-21"),
    (b"anthropic-beta", b"one"),
    (b"anthropic-beta", b"two, three"),
    (b"Accept-Encoding", b"zstd, br"),
    (b"User-Agent", b"some client/1.0"),
    (b"x-odd", b"caf\xe9  two  blanks"),
    (b"Cookie", b"a=1; b=2"),
    (b"x-empty", b""),
    (b"If-None-Match", b'"x"'),
]
TARGETS = [
    b"/v1/messages",
    b"/v1/messages?beta=true",
    b"/some/where/v1/messages?a=%20b&a=b+c&%C3%A9",
    b"/v1/files/a%2Fb/../c//d?x=/y?z",
    b"/v1/messages/count_tokens",
    b"/%7Euser;v=1,2/'()*!$&@:",
    b"/",
]
STATUSES = [
    b"200 OK",
    b"201 Created",
    b"307 Temporary Redirect",
    b"400 Bad Request",
    b"429 Too Many Requests",
    b"529 x",
]


def test_whatever_is_sent_arrives_as_it_was_sent() -> None:
    dice = random.Random(6)
    answers: list[tuple[bytes, Pairs, bytes]] = []

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        data, status = some_bytes(dice), dice.choice(STATUSES)
        headers = [
            *dice.sample(HEADERS, dice.randrange(len(HEADERS))),
            (b"Set-Cookie", b"s=1"),
            (b"Set-Cookie", b"t=2"),
        ]
        is_chunked = dice.random() < 0.5
        framing = (b"Transfer-Encoding", b"chunked") if is_chunked else (b"Content-Length", b"%d" % len(data))
        answers.append((status, headers, data))
        head = b"".join(b"%b: %b\r\n" % pair for pair in [*headers, framing, (b"Keep-Alive", b"timeout=9")])
        writer.write(b"HTTP/1.1 %b\r\n%b\r\n" % (status, head))
        for piece in cut_up(dice, data):
            writer.write(chunk(piece) if is_chunked else piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n" if is_chunked else b"")

    async def go() -> None:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", Heard()) as port:
            for _ in range(60):
                method = dice.choice([b"POST", b"PUT", b"PATCH", b"DELETE"])
                target, data = dice.choice(TARGETS), some_bytes(dice)
                headers = dice.sample(HEADERS, dice.randrange(len(HEADERS)))
                sent = [*headers, (b"Transfer-Encoding", b"chunked")] if dice.random() < 0.5 else headers
                got = await send(
                    port, method, target, [*sent, (b"Connection", b"x-mine"), (b"X-Mine", b"1")], cut_up(dice, data)
                )
                seen = api.seen[-1]
                kept = [
                    pair
                    for pair in lower(seen.headers)
                    if pair[0] not in (b"host", b"content-length", b"transfer-encoding")
                ]
                assert digest(method, target, lower(headers), data) == digest(seen.method, seen.target, kept, seen.body)
                assert (
                    (b"content-length", str(len(data)).encode()) in lower(seen.headers)
                    or sent is not headers
                    or not data
                )
                status, told, answer = answers[-1]
                assert got and got.is_whole
                assert got.status == int(status[:3])
                back = [
                    pair for pair in got.headers if pair[0].lower() not in (b"content-length", b"transfer-encoding")
                ]
                assert digest(told, answer) == digest(back, got.body)

    run(go())


def test_nothing_is_added_to_a_bare_request() -> None:
    async def go() -> list[Pairs]:
        async with upstream(answers_at_once) as api, passing(f"http://127.0.0.1:{api.port}/base/", Heard()) as port:
            await send(port, b"GET", b"/v1/models?limit=2")
            await send(port, b"POST", b"/v1/messages", pieces=[body()])
            host = b"127.0.0.1:%d" % api.port
            assert [seen.target for seen in api.seen] == [b"/base/v1/models?limit=2", b"/base/v1/messages"]
            assert all(seen.headers[0] == (b"host", host) for seen in api.seen)
            return [seen.headers[1:] for seen in api.seen]

    assert run(go()) == [[], [(b"content-length", str(len(body())).encode())]]


def test_a_head_has_the_length_of_what_it_stands_for() -> None:
    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4711\r\nDate: today\r\n\r\n")

    async def go() -> Got | None:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", Heard()) as port:
            return await send(port, b"HEAD", b"/")

    got = run(go())
    assert got
    assert (got.status, got.body, got.headers) == (200, b"", [(b"Content-Length", b"4711"), (b"Date", b"today")])


def test_redirects_and_information_are_not_acted_on() -> None:
    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        writer.write(plain(b"elsewhere", b"308 Permanent Redirect", b"Location: /v2/messages\r\n"))

    async def go() -> tuple[Got | None, int]:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", Heard()) as port:
            return await send(port, pieces=[body()]), len(api.seen)

    got, requests = run(go())
    assert got
    assert (got.status, got.body, requests) == (308, b"elsewhere", 1)
    assert (b"Location", b"/v2/messages") in got.headers


def test_the_first_chunk_arrives_while_the_upstream_holds_the_second_back() -> None:
    first, *rest = events()
    arrived = asyncio.Event()

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(first))
        await arrived.wait()
        for event in rest:
            writer.write(chunk(event))
        writer.write(b"0\r\n\r\n")

    def on_chunk(data: bytes) -> bool:
        arrived.set()
        return True

    async def go() -> Got | None:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", Heard()) as port:
            return await send(port, pieces=[body(stream=True)], on_chunk=on_chunk)

    got = run(go())
    assert got
    assert got.chunks[0] == first
    assert got.body == b"".join([first, *rest])


def test_the_upstream_gets_the_first_piece_before_the_client_sends_the_second() -> None:
    """An upload is not held back either."""
    got_some = asyncio.Event()

    async def first_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told = b""
        while b"FIRST" not in told:
            told += await reader.read(1000)
        got_some.set()
        while b"SECOND" not in told:
            told += await reader.read(1000)
        writer.write(plain(message()))
        await writer.drain()
        writer.close()

    async def go() -> bytes:
        api = await asyncio.start_server(first_bytes, "127.0.0.1", 0)
        async with api, passing(f"http://127.0.0.1:{api.sockets[0].getsockname()[1]}", Heard()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nFIRST")
            await got_some.wait()
            writer.write(b"SECOND")
            status = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return status

    assert run(go()) == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked", b"Content-Length: 5000"])
def test_an_answer_that_breaks_off_breaks_off_for_the_client(framing: bytes) -> None:
    heard = Heard()

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        is_chunked = b"chunked" in framing
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (framing, chunk(b"so far") if is_chunked else b"so far"))
        await writer.drain()
        writer.close()

    async def go() -> Got | None:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", heard) as port:
            return await send(port, pieces=[body()])

    got = run(go())
    assert got
    assert (got.status, got.body, got.is_whole) == (200, b"so far", False)
    assert [(one.is_cut, one.answer.data) for one in heard.captures] == [(True, b"so far")]


def test_a_client_that_leaves_ends_the_call_upstream() -> None:
    heard, gone = Heard(), asyncio.Event()

    async def holds(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + chunk(events()[0]))
        while await reader.read(1000):
            pass
        gone.set()
        writer.close()

    async def go() -> None:
        api = await asyncio.start_server(holds, "127.0.0.1", 0)
        async with api, passing(f"http://127.0.0.1:{api.sockets[0].getsockname()[1]}", heard) as port:
            assert await send(port, pieces=[body(stream=True)], on_chunk=lambda data: False) is None
            await gone.wait()
            while not heard.captures:
                await asyncio.sleep(0.001)

    run(go())
    assert [(one.is_cut, one.status) for one in heard.captures] == [(True, 200)]


def test_an_upstream_that_does_not_answer_is_a_502_in_the_shape_of_the_api() -> None:
    heard = Heard()

    async def go() -> Got | None:
        async with passing(f"http://127.0.0.1:{free_port()}", heard) as port:
            return await send(port, pieces=[body()])

    got = run(go())
    assert got
    assert got.status == 502
    error = json.loads(got.body)
    words = "cachecost record: 127.0.0.1 did not answer (ConnectError)"
    assert error == {"type": "error", "error": {"type": "api_error", "message": words}}
    assert [(one.status, one.is_cut, one.answer.data) for one in heard.captures] == [(502, False, got.body)]


def test_only_calls_are_kept() -> None:
    heard = Heard()

    async def go() -> None:
        async with upstream(answers_at_once) as api, passing(f"http://127.0.0.1:{api.port}", heard) as port:
            for method, target in (
                (b"POST", b"/v1/messages/count_tokens"),
                (b"GET", b"/v1/messages"),
                (b"POST", b"/v1/messages/batches"),
                (b"POST", b"/v1/chat/completions"),
                (b"POST", b"/any/v1/messages?beta=true"),
                (b"POST", b"/v1/messages"),
            ):
                await send(port, method, target, pieces=[body()] if method == b"POST" else [])

    run(go())
    assert heard.begun == [one.number for one in heard.captures] == [1, 2]


def test_what_is_too_much_to_keep_is_passed_on_all_the_same() -> None:
    heard, room = Heard(), CaptureMemory(2000)
    long = body("x" * 5000)

    async def go() -> list[bytes]:
        async with upstream(answers_at_once) as api, passing(f"http://127.0.0.1:{api.port}", heard, room) as port:
            got = await send(port, pieces=[long])
            assert got
            return [api.seen[0].body, got.body]

    assert run(go()) == [long, json.dumps(message()).encode()]
    (capture,) = heard.captures
    assert (capture.request.is_whole, capture.answer.is_whole) == (False, True)
    assert room.left < 2000
    capture.drop()
    assert room.left == 2000


def test_headers_of_one_hop_stay_there() -> None:
    told = [
        (b"Connection", b"close, X-Hop"),
        (b"x-hop", b"1"),
        (b"TE", b"trailers"),
        (b"X-Kept", b"2"),
        (b"Host", b"h"),
    ]
    assert for_upstream(told, b"up") == [(b"host", b"up"), (b"X-Kept", b"2")]
    assert for_upstream([(b"Transfer-Encoding", b"chunked")], b"up") == [
        (b"host", b"up"),
        (b"transfer-encoding", b"chunked"),
    ]
    assert for_client([*told, (b"Transfer-Encoding", b"chunked")]) == [(b"X-Kept", b"2"), (b"Host", b"h")]


BOTH = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_request_with_two_lengths_is_refused_and_its_connection_closed() -> None:
    """What follows may be a request that only one of the servers on the way sees."""

    async def go() -> tuple[bytes, int]:
        async with upstream(answers_at_once) as api, passing(f"http://127.0.0.1:{api.port}", heard) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(BOTH + b"0\r\n\r\nGET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n")
            got = await reader.read()
            writer.close()
            return got, len(api.seen)

    heard = Heard()
    got, seen = run(go())
    head, _, told = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"either Content-Length or Transfer-Encoding" in told
    assert (seen, heard.captures) == (0, [])
    assert got.count(b"HTTP/1.1") == 1


def test_an_answer_with_two_lengths_has_that_of_its_chunks() -> None:
    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(chunk(b"longer than 4") + b"0\r\n\r\n")

    async def go() -> Got | None:
        async with upstream(answering) as api, passing(f"http://127.0.0.1:{api.port}", Heard()) as port:
            return await send(port, pieces=[body()])

    got = run(go())
    assert got
    assert (got.is_whole, got.body) == (True, b"longer than 4")


def test_no_answer_waits_for_an_acknowledgement() -> None:
    with listen(0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
        assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
