"""Faults on purpose: what is asked for, what a client meets, what it costs and what is recorded."""

import asyncio

import anthropic
import httpx2
import pytest
from server_fakes import BLOCKS, BODY, Letters, Says, client_of, lines_of, post, sdk_of, served_by

from cachecost.live.request_log import CallLog
from cachecost.live.server.app import app_of
from cachecost.live.server.state import ConnectionCut, FaultSchedule, InjectedFault, faults_from

STREAM = {**BODY, "stream": True}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("3:529", InjectedFault("529", 3)),
        ("1:cut", InjectedFault("cut", 1)),
        ("2:429", InjectedFault("429", 2, seconds=1.0)),
        ("2:429=7", InjectedFault("429", 2, seconds=7.0)),
        ("4:slow=2.5", InjectedFault("slow", 4, seconds=2.5)),
        ("slow:0.1", InjectedFault("slow", chance=0.1, seconds=30.0)),
        ("slow=5:.5", InjectedFault("slow", chance=0.5, seconds=5.0)),
        ("529:1", InjectedFault("529", chance=1.0)),
        ("garbage:0", InjectedFault("garbage", chance=0.0)),
    ],
)
def test_what_is_asked_for(text, fault):
    assert faults_from([text]).faults == (fault,)


@pytest.mark.parametrize(
    "text", ["", "529", "0:529", "3:418", "3:", "cut:1.1", "cut:-1", "cut=3:0.5", "x:y:z", "3:cutt"]
)
def test_what_cannot_be_asked_for(text):
    with pytest.raises(ValueError, match="expected NUMBER:KIND or KIND:CHANCE") as error:
        faults_from([text])
    assert f"got '{text}'" in str(error.value)
    if text == "3:cutt":
        assert str(error.value).endswith("(did you mean 'cut'?)")


def test_chance_is_seeded_and_about_as_often_as_told():
    def struck(seed):
        faults = faults_from(["cut:0.25"], seed)
        return [call for call in range(1, 2001) if faults.for_call(call)]

    assert struck(7) == struck(7) != struck(8)
    assert 440 < len(struck(7)) < 560


def test_a_number_goes_before_chance():
    faults = faults_from(["cut:1", "2:529"])
    assert [faults.for_call(call).kind for call in (1, 2, 3)] == ["cut", "529", "cut"]


def recorded(tmp_path, faults, bodies, meter=None, **others):
    """The responses (or what broke) and the log of calls that meet faults."""
    meter = meter or Letters()
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(Says(*BLOCKS), meter, faults=faults_from(faults), log=log, **others)
        met = []
        for body in bodies:
            try:
                met.append(post(served, body, timeout=0.05))
            except httpx2.HTTPError as error:
                met.append(type(error))
    return met, lines_of(tmp_path / "log.jsonl"), meter


@pytest.mark.parametrize(
    ("kind", "type_"), [("429", "rate_limit_error"), ("500", "api_error"), ("529", "overloaded_error")]
)
def test_errors_before_the_answer_cost_nothing(tmp_path, kind, type_):
    met, lines, meter = recorded(tmp_path, [f"1:{kind}"], [BODY, BODY])
    assert [one.status_code for one in met] == [int(kind), 200]
    assert met[0].json()["error"]["type"] == type_
    assert met[0].headers.get("retry-after") == ("1" if kind == "429" else None)
    assert [line["status"] for line in lines] == [int(kind), 200]
    assert "usage" not in lines[0]
    assert lines[0]["request"] == BODY
    assert len(meter.taken) == 1


@pytest.mark.parametrize("body", [BODY, STREAM])
@pytest.mark.parametrize(("kind", "met"), [("cut", httpx2.RemoteProtocolError), ("timeout", httpx2.ReadTimeout)])
def test_answers_that_do_not_arrive_are_billed_and_recorded(tmp_path, kind, met, body):
    got, lines, meter = recorded(tmp_path, [f"1:{kind}"], [body, body])
    assert got[0] is met
    assert got[1].status_code == 200
    assert [line.get("fault") for line in lines] == [kind, None]
    assert [line["status"] for line in lines] == [200, 200]
    assert lines[0]["usage"]["output_tokens"] > 0
    assert lines[1]["usage"]["cache_read_input_tokens"] == 7
    assert len(meter.taken) == 2


def test_a_stream_is_cut_in_its_middle():
    async def run():
        seen = b""
        async with client_of(served_by(Says(*BLOCKS), faults=faults_from(["1:cut"]))) as client:
            head = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
            async with client.stream("POST", "/v1/messages", headers=head, json=STREAM) as response:
                with pytest.raises(httpx2.RemoteProtocolError):
                    async for chunk in response.aiter_bytes():
                        seen += chunk
        return seen

    seen = asyncio.run(run())
    assert seen.startswith(b"event: message_start")
    assert b"message_stop" not in seen


@pytest.mark.parametrize("body", [BODY, STREAM])
def test_garbage_is_neither_json_nor_events(tmp_path, body):
    met, lines, meter = recorded(tmp_path, ["1:garbage"], [body])
    assert met[0].status_code == 200
    with pytest.raises(ValueError):
        met[0].json()
    assert b"event:" not in met[0].content
    assert lines[0]["response"]["content"] == list(BLOCKS)
    assert len(meter.taken) == 1


def test_a_slow_answer_is_late_for_the_cache_too(tmp_path):
    _, lines, _ = recorded(tmp_path, ["1:slow=12"], [BODY, BODY])
    assert [line["first_token_s"] for line in lines] == [12.0, 0.0]


def test_a_timeout_ends_when_the_server_stops():
    async def run():
        served = served_by(faults=faults_from(["1:timeout"]))
        async with client_of(served) as client:
            head = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
            call = asyncio.create_task(client.post("/v1/messages", headers=head, json=BODY, timeout=None))
            while not served.calls:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            served.pauses.stop()
            with pytest.raises(httpx2.RemoteProtocolError):
                await call

    asyncio.run(run())


def test_the_plain_transport_hands_a_cut_on():
    async def run():
        app = app_of(served_by(faults=FaultSchedule((InjectedFault("cut", 1),))))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://test") as client:
            head = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
            await client.post("/v1/messages", headers=head, json=BODY)

    with pytest.raises(ConnectionCut):
        asyncio.run(run())


@pytest.mark.parametrize("kind", ["429=0.001", "500", "529", "cut"])
def test_the_sdk_tries_again_and_gets_the_same_answer(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)
    answerer = Says(*BLOCKS)
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(answerer, faults=faults_from([f"1:{kind}"]), log=log)

        async def run():
            async with sdk_of(served, retries=2) as client:
                return await client.messages.create(**BODY)

        message = asyncio.run(run())
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert [line.get("retry") for line in lines_of(tmp_path / "log.jsonl")] == [None, 1]


def test_the_sdk_says_that_a_stream_broke():
    async def run():
        client = sdk_of(served_by(Says(*BLOCKS), faults=faults_from(["1:cut"])))
        async with client, client.messages.stream(**BODY) as stream:
            await stream.get_final_message()

    with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
        asyncio.run(run())
