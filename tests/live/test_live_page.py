"""The page of a simulated API while traffic flows: its figures, its events, and who gets to it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from decimal import Decimal
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import httpx2
import pytest
from simulated_calls import Served, automatic, refusable, uncached
from test_server_command import Process
from viewer_client import Client

from cachecost.live.server.bill import MeterFeed, bill_of
from cachecost.live.viewer import app as events
from cachecost.live.viewer.sessions_source import LiveSource
from cachecost.live.viewer.source import CallSignal
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import ZERO
from cachecost.simulation.setup import ReplaySetup

CLASSES = ("read", "write_5m", "write_1h", "input", "output")


def page_of(served: Served) -> LiveSource:
    signal_ = CallSignal()
    served.meter.heard = signal_.tell
    setup = ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", "tiktoken")
    return LiveSource(MeterFeed(served.meter), signal_, setup, "cachecost serve", has_bill=False, bill_path="b.json")


@pytest.fixture(scope="module")
def served() -> Served:
    made = Served()
    made.loop("Fix the failing test", automatic)
    made.loop("Nothing marked", uncached, workspace="w2")
    made.call(dict(refusable()), workspace="w2")
    return made


def test_the_page_has_the_figures_of_the_meter(served: Served) -> None:
    client = Client(page_of(served))
    start, listed = client.get("api/start").json, client.get("api/sessions").json
    assert (start["kind"], start["title"], start["bill"]) == ("live", "cachecost serve", "b.json")
    bill = bill_of(served.meter)
    shares = {share.name.partition(": ")[2]: share for share in bill.conversations}
    assert Decimal(listed["total"]["cost_usd"]) == bill.total.cost.total
    assert listed["total"]["calls"] == bill.total.calls - bill.total.refused
    for row in listed["sessions"]:
        answer, share = client.get(f"api/session/{row['id']}").json, shares[row["title"]]
        usage = share.usage
        sums = [usage.read, usage.write_5m, usage.write_1h, usage.input_tokens, usage.output_tokens]
        assert [sum(answer["calls"][name]) for name in CLASSES] == sums
        assert Decimal(answer["cost_usd"]) == share.cost.total
        assert (answer["title"], answer["has_bill"], answer["has_text"]) == (row["title"], False, True)
        assert {len(column) for column in answer["calls"].values()} == {share.calls}


def test_calls_are_shown_block_by_block_and_what_if(served: Served) -> None:
    client = Client(page_of(served))
    row = next(row for row in client.get("api/sessions").json["sessions"] if row["title"].startswith("Fix"))
    call = client.get(f"api/session/{row['id']}/call/2").json
    assert call["before"] == 1 and call["has_text"]
    assert any(block["text"].startswith("Fix the failing test") for block in call["blocks"])
    assert {"read", "write_5m"} <= {block["state"] for block in call["blocks"]}
    what_if = client.get(f"api/session/{row['id']}/whatif?breakpoints=none").json
    assert Decimal(what_if["difference_usd"]) > 0
    assert (what_if["command"], what_if["yaml"]) == ("", "")
    assert client.get(f"api/session/{row['id']}/simulated").json["cost_usd"] == what_if["basis_usd"]


def test_without_calls_there_is_a_page_of_nothing() -> None:
    client = Client(page_of(Served()))
    assert client.get("api/sessions").json["sessions"] == []
    assert client.get("api/session/x").status == 404


async def gather(stream: Any, names: list[str], most_s: float = 20) -> list[dict[str, Any]]:
    """The data of the events of these names, which come in this order; comments are skipped."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(most_s):
        async for part in stream:
            if part.startswith(b":"):
                continue
            name, data = part.decode().removeprefix("event: ").rstrip().split("\ndata: ")
            assert name == names[len(found)]
            found.append(json.loads(data))
            if len(found) == len(names):
                return found
    raise AssertionError(f"only {len(found)} events")


def test_events_bring_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE_S", 0.01)
    served = Served()
    served.loop("Fix the failing test", automatic, steps=2)
    source = page_of(served)
    client = Client(source)
    id_ = client.get("api/sessions").json["sessions"][0]["id"]
    known = client.get(f"api/session/{id_}").json

    async def go() -> None:
        stream = events.event_stream(source)
        assert (await anext(stream)).startswith(b":")
        served.loop("Fix the failing test", automatic, steps=4)
        (data,) = await gather(stream, ["calls"])
        count = len(known["calls"]["number"])
        assert (data["session"], data["from"]) == (id_, count)
        now = json.loads(json.dumps(source.current().session(id_)))
        for name, column in now["calls"].items():
            assert known["calls"][name] + data["calls"][name] == column
        assert data["total"]["cost_usd"] == now["cost_usd"]
        assert data["headline"] == now["headline"]
        served.loop("Another one", automatic, steps=1)
        _, data = await gather(stream, ["sessions", "calls"])
        assert data["from"] == 0 and data["session"] != id_
        source.signal.stop()
        async with asyncio.timeout(20):
            assert [part async for part in stream] == []

    asyncio.run(go())


def test_a_call_that_began_before_those_shown_makes_the_page_ask_again() -> None:
    served = Served()
    served.loop("Fix the failing test", automatic, steps=2)
    source = page_of(served)
    seen = source.seen()
    ((id_, (count, last)),) = seen.items()
    served.loop("Fix the failing test", automatic, steps=2)
    ((name, data),) = source.changes({id_: (count, (last or 0) + 1)})
    assert (name, data["from"], data["calls"]) == ("calls", -1, {})
    assert source.changes(source.seen()) == []


def test_a_comment_comes_when_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "COMMENT_S", 0.02)
    source = page_of(Served())

    async def go() -> list[bytes]:
        async with asyncio.timeout(20):
            stream = events.event_stream(source)
            return [await anext(stream) for _ in range(3)]

    assert all(part.startswith(b":") for part in asyncio.run(go()))


def test_other_pages_have_no_events(served: Served) -> None:
    source = page_of(served)
    assert Client(source).ask("/t0ken-of_the-test/api/events", "HEAD").headers["content-type"].startswith("text/event")
    assert source.current().sessions()["total"]["cost_usd"] != str(ZERO)


# ------------------------------------------------------------------------------------------------- a real server


@pytest.fixture
def server() -> Any:
    made = Process("--clock", "+2s", "--as-of", "2026-11-01")
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def ask(server: Process, path: str, **headers: str) -> httpx2.Response:
    return httpx2.get(f"{server.address}{path}", headers=headers, trust_env=False)


def page_path(server: Process) -> str:
    return re.search(r"http://[^/]+(/cachecost/[\w-]{22}/)\n", "".join(server.said))[1]  # type: ignore[index]


def test_a_person_is_led_to_the_page_and_another_site_is_not(server: Process) -> None:
    path, port = page_path(server), server.address.rpartition(":")[2]
    for headers in ({}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-origin"}, {"host": f"localhost:{port}"}):
        answer = ask(server, "/cachecost", **headers)
        assert (answer.status_code, answer.headers["location"]) == (307, path)
    for headers, status in (
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"host": f"evil.example:{port}"}, 421),
        ({"host": "localhost"}, 421),
    ):
        answer = ask(server, "/cachecost", **headers)
        assert answer.status_code == status and "location" not in answer.headers and path not in answer.text
    assert ask(server, path).status_code == 200
    assert ask(server, path, host=f"evil.example:{port}").status_code == 421
    assert ask(server, f"{path}api/start", origin="http://evil.example").status_code == 403
    assert ask(server, "/cachecost/" + "x" * 22 + "/").status_code == 404
    assert ask(server, f"{path}api/start").json()["bill"] == "../../cachecost.json"
    assert ask(server, "/cachecost.json", host="evil.example").status_code == 421
    assert ask(server, "/v1/models", host="evil.example").status_code == 421
    assert ask(server, "/cachecost.json").json()["format"] == 1


@pytest.mark.slow
def test_events_flow_and_keep_no_server_from_ending(server: Process) -> None:
    path = page_path(server)
    connection, answer = open_events(server, path)
    assert answer.fp.readline() == b": cachecost\n"
    assert server.post().status_code == 200
    lines: set[bytes] = set()
    while not {b"event: sessions\n", b"event: calls\n"} <= lines:  # the connection has a time limit
        lines.add(answer.fp.readline())
    began = time.monotonic()
    code, _, err = server.end(signal.SIGINT)
    assert code == 0 and time.monotonic() - began < 10 and "Traceback" not in err
    connection.close()


def open_events(server: Process, path: str) -> tuple[HTTPConnection, HTTPResponse]:
    """The stream without its transfer encoding: HTTP/1.0 has none."""
    host, _, port = server.address.removeprefix("http://").partition(":")
    connection = HTTPConnection(host, int(port), timeout=20)
    connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"  # type: ignore[attr-defined]
    connection.request("GET", f"{path}api/events", headers={"host": f"{host}:{port}"})
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
    return connection, answer
