"""Whatever a client sends, the server answers as the API would: never with a 500, and the log it writes reads."""

from __future__ import annotations

import asyncio
import json
import random

import httpx2
import pytest
from request_mutations import body_of, headers_of, target_of
from server_fakes import BODY, HEAD, lines_of, post, served_by

from cachecost.conversations.readers.request_log import calls
from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server.answers.agent import AgentAnswerer
from cachecost.live.server.app import app_of
from cachecost.live.server.bill import routes
from cachecost.live.server.model import models_of
from cachecost.live.server.served_api import MOST_NESTED
from cachecost.live.server.state import Meter, ServerState
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from loopback import Loopback

REQUESTS = 600
NOT_JSON = "The request body is not valid JSON"


@pytest.fixture
def served(tmp_path):
    said = []
    rules = RuleBook()
    meter = Meter(ReplaySetup(rules, PriceBook.load(), "anthropic", "bytes"))
    clock = SteppingClock(1.0, 1_780_000_000.0)
    with CallLog(tmp_path / "log.jsonl") as log:
        yield (
            ServerState(AgentAnswerer(), meter, clock, log, models=models_of(rules, "anthropic"), say=said.append),
            meter,
            said,
        )


def request_of(dice):
    method, path, query = target_of(dice)
    head = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers_of(dice).items()]
    content = body_of(dice) if method == "POST" else None
    return {"method": method, "url": f"{path}?{query}" if query else path, "headers": head, "content": content}


def test_no_request_makes_an_internal_error(served):
    app, meter, said = served

    async def run():
        transport = Loopback(app_of(app, routes(meter, "token", 80)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            return [(seed, await client.request(**request_of(random.Random(seed)))) for seed in range(REQUESTS)]

    answers = asyncio.run(run())
    assert [(seed, answer.status_code) for seed, answer in answers if answer.status_code >= 500] == []
    assert said == []
    assert {200, 400, 404} <= {answer.status_code for _, answer in answers}
    errors = [answer for _, answer in answers if answer.status_code >= 400 and answer.request.method != "HEAD"]
    refused = [answer for answer in errors if answer.status_code != 421]  # /cachecost, which is no part of the API
    assert all("error" in answer.json() for answer in refused)
    lines = list(calls(app.log.path, lambda words: None, keep_content=True))
    assert len(lines) == app.calls - app.unreadable > 50


def nested(levels):
    return json.dumps({**BODY, "metadata": 0}).replace(": 0", ": " + "[" * levels + "]" * levels).encode()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps({**BODY, "system": "half of \ud83d"}).encode(), f"{NOT_JSON}: lone surrogate in a string"),
        (json.dumps({**BODY, "\udc00": 1}).encode(), f"{NOT_JSON}: lone surrogate in a string"),
        (b'{"model": 1e400}', NOT_JSON),
        (b'{"metadata": {"x": -1e999}}', NOT_JSON),
        (b'{"max_tokens": %b}' % (b"9" * 5_000), NOT_JSON),
        (b"\xef\xbb\xbf" + json.dumps(BODY).encode(), NOT_JSON),
        (nested(MOST_NESTED), f"{NOT_JSON}: nested more than {MOST_NESTED} levels deep"),
        (nested(100_000), NOT_JSON),
    ],
    ids=["surrogate", "surrogate-key", "float", "negative-float", "digits", "byte-order-mark", "nested", "very-nested"],
)
def test_a_body_that_is_no_text_or_number(path, content, message):
    response = post(served_by(), path=path, content=content)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert response.json()["error"]["message"].startswith(message)


def test_just_as_deep_as_may_be_and_a_whole_letter():
    body = {**BODY, "system": "a whole \U0001f642"}
    assert post(served_by(), content=json.dumps(body).encode()).status_code == 200
    assert post(served_by(), content=nested(MOST_NESTED - 1)).status_code == 200


@pytest.mark.parametrize(("retry", "status"), [("9" * 5_000, 400), ("9" * 10, 400), ("7", 200), ("²", 200), ("", 200)])
def test_a_retry_count_that_no_client_reaches(tmp_path, retry, status):
    with CallLog(tmp_path / "log.jsonl") as log:
        head = {**HEAD, "x-stainless-retry-count": retry.encode("latin-1")}
        assert post(served_by(log=log), head=head).status_code == status
    assert len(lines_of(log.path) if log.path.stat().st_size else []) == (status == 200)


@pytest.mark.parametrize("messages", [3, 0.5, True, "hi", {"role": "user"}])
def test_messages_that_are_no_list_in_the_strict_version(messages):
    head = {**HEAD, "anthropic-version": "2026-10-21"}
    response = post(served_by(), {**BODY, "messages": messages}, head=head)
    assert (response.status_code, response.json()["error"]["message"]) == (
        400,
        "messages: Input should be a valid list",
    )
