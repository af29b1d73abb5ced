"""The server on a real port: many streams at once, two keys, a client that leaves, an end without loss."""

import asyncio
import json
import socket
import struct
import threading
import time

import anthropic
import httpx2
import pytest
from server_fakes import BLOCKS, BODY, HEAD, Letters, Says, lines_of, served_by

from cachecost.live.clock import ScaledClock
from cachecost.live.keys import workspace_of
from cachecost.live.loopback import PortTaken, listen
from cachecost.live.request_log import CallLog
from cachecost.live.server.app import app_of, serving, serving_at
from cachecost.live.server.state import faults_from

STREAM = {**BODY, "stream": True}


def sdk(address, key="k", retries=0):
    return anthropic.AsyncAnthropic(
        api_key=key,
        base_url=address,
        max_retries=retries,
        http_client=httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None), timeout=30, trust_env=False),
    )


async def streamed(client, text):
    body = {**BODY, "messages": [{"role": "user", "content": text}]}
    async with client.messages.stream(**body) as stream:
        return (await stream.get_final_message()).content[0].text


def test_200_streams_at_once_and_two_keys_lose_nothing(tmp_path):
    path = tmp_path / "log.jsonl"
    together = threading.Event()
    most = 200

    def echo(asked):
        if len(answerer.asked) == most:
            together.set()
        return Says({"type": "text", "text": asked.body["messages"][0]["content"]}, first=30.0, seconds=60.0).answer_

    answerer = Says(by=echo)
    with CallLog(path) as log:
        served = served_by(answerer, Letters(), log=log, clock=ScaledClock(200.0))
        with serving(app_of(served), served.pauses) as address:

            async def run():
                async with sdk(address, "key-one") as one, sdk(address, "key-two") as two:
                    calls = [streamed((one, two)[n % 2], f"call number {n}") for n in range(most)]
                    return await asyncio.gather(*calls)

            texts = asyncio.run(run())
    assert together.is_set()
    assert texts == [f"call number {n}" for n in range(most)]
    lines = lines_of(path)
    assert sorted(line["request"]["messages"][0]["content"] for line in lines) == sorted(texts)
    spaces = [line["workspace"] for line in lines]
    assert {*spaces} == {workspace_of({"x-api-key": name}) for name in ("key-one", "key-two")}
    assert [spaces.count(one) for one in {*spaces}] == [100, 100]
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)


def test_a_record_is_there_when_the_end_is_seen(tmp_path):
    path = tmp_path / "log.jsonl"
    with CallLog(path) as log, serving(app_of(served_by(log=log))) as address, httpx2.Client(trust_env=False) as client:
        for number in range(1, 4):
            for body in (BODY, STREAM):
                client.post(f"{address}/v1/messages", headers=HEAD, json=body).raise_for_status()
            assert len(lines_of(path)) == 2 * number


def test_a_client_that_leaves_is_billed_and_recorded(tmp_path):
    path = tmp_path / "log.jsonl"
    with CallLog(path) as log:
        served = served_by(Says(*BLOCKS, first=0.0, seconds=3600.0), log=log, clock=ScaledClock(1.0))
        with (
            serving(app_of(served), served.pauses) as address,
            httpx2.stream("POST", f"{address}/v1/messages", headers=HEAD, json=STREAM, trust_env=False) as response,
        ):
            assert next(response.iter_bytes()).startswith(b"event: message_start")
        lines = lines_of(path)
    assert len(lines) == 1
    assert lines[0]["usage"]["output_tokens"] > 0


def test_a_running_answer_comes_to_its_end_when_the_server_stops(tmp_path):
    served = served_by(Says(*BLOCKS, seconds=3600.0), clock=ScaledClock(1.0))
    got = []

    def ask(address):
        with httpx2.Client(trust_env=False) as client:
            got.append(client.post(f"{address}/v1/messages", headers=HEAD, json=STREAM).text)

    with serving(app_of(served), served.pauses) as address:
        thread = threading.Thread(target=ask, args=(address,))
        thread.start()
        while not served.pauses.count:
            time.sleep(0.002)
    thread.join()
    assert got[0].endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')


@pytest.mark.parametrize("body", [BODY, STREAM])
def test_a_cut_is_a_broken_connection(body):
    served = served_by(Says(*BLOCKS), faults=faults_from(["1:cut"]))
    with serving(app_of(served), served.pauses) as address, httpx2.Client(trust_env=False) as client:
        with pytest.raises(httpx2.RemoteProtocolError, match="peer closed connection"):
            client.post(f"{address}/v1/messages", headers=HEAD, json=body)
        assert client.post(f"{address}/v1/messages", headers=HEAD, json=body).status_code == 200


def test_a_timeout_and_garbage():
    served = served_by(Says(*BLOCKS), faults=faults_from(["1:timeout", "2:garbage"]))
    with serving(app_of(served), served.pauses) as address, httpx2.Client(trust_env=False) as client:
        with pytest.raises(httpx2.ReadTimeout):
            client.post(f"{address}/v1/messages", headers=HEAD, json=BODY, timeout=0.05)
        assert b"not json" in client.post(f"{address}/v1/messages", headers=HEAD, json=STREAM).content


def test_chunked_bodies_and_head():
    with serving(app_of(served_by())) as address, httpx2.Client(trust_env=False) as client:
        letters = (letter.encode() for letter in '{"model":"claude-opus-4-6","max_tokens":9,"messages":[{"role":"user","content":"x"}]}')  # fmt: skip # noqa: E501
        assert client.post(f"{address}/v1/messages", headers=HEAD, content=letters).status_code == 200
        head = client.head(address)
        assert (head.status_code, head.content) == (200, b"")
        assert "server" not in head.headers


def test_a_taken_port_is_told():
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken) as error:
            listen(port)
    assert str(error.value) == (
        f"--port {port} is not available (Address already in use); use 0 to let the system choose"
    )


def test_only_loopback_is_listened_on():
    with listen(0) as taken:
        assert taken.getsockname()[0] == "127.0.0.1"
        assert taken.family == socket.AF_INET
        assert taken.proto == socket.IPPROTO_TCP


@pytest.fixture(scope="module")
def address():
    with serving(app_of(served_by())) as found:
        yield found


def test_the_end_of_a_server_waits_for_nothing(monkeypatch):
    """Uvicorn sleeps 0.1 s between its looks, and `check` starts a server for each run of a command."""
    slept = []
    sleep = asyncio.sleep

    def spy(seconds, *rest):
        slept.append(seconds)
        return sleep(seconds, *rest)

    monkeypatch.setattr(asyncio, "sleep", spy)
    with serving(app_of(served_by())) as address:
        assert httpx2.get(f"{address}/v1/models", headers=HEAD, trust_env=False).status_code == 200
    assert max(slept, default=0.0) < 0.05


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:1", 200),  # as through a tunnel
        ("localhost", 200),
        ("evil.example:{port}", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1:{port}.evil.example", 421),
        ("localhost:", 200),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/"])
def test_it_answers_under_the_names_of_this_machine(address, host, status, path):
    headers = {**HEAD, "host": host.format(port=address.rpartition(":")[2])}
    answer = httpx2.get(address + path, headers=headers, trust_env=False)
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["error"]["message"].startswith("host: expected 127.0.0.1 or localhost, as ")


def test_two_hosts_are_none():
    with (
        listen(0) as listener,
        serving_at(app_of(served_by()), listener),
        socket.create_connection(listener.getsockname()) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert client.recv(100).split()[1] in (b"400", b"421")


def test_clients_that_leave_a_long_stream_cause_no_warnings(caplog):
    """asyncio says "socket.send() raised exception." for each write to a connection that is gone."""
    served = served_by(Says({"type": "text", "text": "word " * 100_000}))
    body = json.dumps({**STREAM, "max_tokens": 10**6}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in HEAD.items()).encode()
    request = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n%b"
    with listen(0) as listener, serving_at(app_of(served), listener):
        for number in range(12):
            with socket.create_connection(listener.getsockname(), timeout=30) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset at the end
                client.sendall(request % (head, len(body), body))
                received = 0
                while received <= 40_000 * number:
                    received += len(client.recv(1 << 16))
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
