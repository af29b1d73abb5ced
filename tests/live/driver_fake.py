"""A simulated API behind an httpx2 transport, with faults, and a clock that only moves when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2

from cachecost.base.times import day_of
from cachecost.conversations.calls import Call
from cachecost.live.driver.planning import LiveOptions, Plan, plan
from cachecost.live.driver.run import LiveResult, LiveRun, drive
from cachecost.live.driver.sending import Journal
from cachecost.live.keys import workspace_of
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import sent_breakpoints
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.scenario.loading import from_mapping
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

KEY = "sk-ant-api03-planted-for-the-driver/tests"
START = 1_795_000_000.0
"""A day in November 2026."""
NOT_BILLED = ("429", "429 date", "500", "529", "no retry", "connect", "401", "400")
BILLED = ("504", "cut", "garbage", "timeout", "lost", "json", "error event", "no usage")
FAULTS = (*NOT_BILLED, *BILLED)


class Killed(BaseException):
    """The process ends here, whatever it was doing."""


class FakeClock:
    """Moves by what is slept, and by what the API takes."""

    def __init__(self, start: float = START) -> None:
        self.at = start
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces, and may break."""

    def __init__(self, pieces: list[bytes], error: BaseException | None = None) -> None:
        self.pieces, self.error = pieces, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.error:
            raise self.error

    async def aclose(self) -> None:
        pass


def no_fault(number: int) -> str:
    return ""


@dataclass
class FakeApi(httpx2.AsyncBaseTransport):
    """Bills by the simulated cache; `fault(n)` names what goes wrong with the n-th attempt (from 1), "" for nothing.

    `answered` counts whole answers by body, `billed` is what was charged in USD, delivered or not.
    """

    clock: FakeClock
    fault: Callable[[int], str] = no_fault
    count_status: int = 200
    count_lie: Callable[[int], Any] = int
    lie: Callable[[list[bytes]], list[bytes]] = list
    """What becomes of a whole answer."""
    overbill: int = 1
    tokens: str = "bytes"
    attempts: int = 0
    billed: Decimal = Decimal(0)
    answered: Counter[str] = field(default_factory=Counter)
    retries: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.rules, self.prices = RuleBook(), PriceBook.load()
        self.intake = Intake(keep_content=True)
        setup = ReplaySetup(self.rules, self.prices, tokens=self.tokens)
        self.counter = setup.counter(self.rules.rules("anthropic", SCENARIO["model"]).generation)
        self.simulation = Simulation(setup)
        self.under_way = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        if request.url.path.endswith("/count_tokens"):
            return self.count(body)
        self.attempts += 1
        number = self.attempts
        self.retries.append(request.headers["x-stainless-retry-count"])
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        try:
            return self.answer(
                body, {name.lower(): value for name, value in request.headers.items()}, self.fault(number)
            )
        finally:
            self.under_way -= 1

    def count(self, body: dict[str, Any]) -> httpx2.Response:
        if self.count_status != 200:
            return httpx2.Response(self.count_status, json=error("not_found_error", "Not found"))
        assert "max_tokens" not in body and "stream" not in body
        request = self.intake.body(body)
        rules = self.rules.rules("anthropic", request.model, day_of(self.clock.at))
        prompt = Renderer(self.counter).render(request, sent_breakpoints(request).breakpoints, rules)
        return httpx2.Response(200, json={"input_tokens": self.count_lie(prompt.total_tokens)})

    def answer(self, body: dict[str, Any], headers: dict[str, str], fault: str) -> httpx2.Response:
        if fault == "kill before":
            raise Killed
        if refused := self.refusal(fault, headers):
            return refused
        self.bodies.append(body)
        start = self.clock.at
        call = Call(
            self.intake.body(body),
            start,
            day_of(start),
            None,
            workspace=workspace_of(headers),
            first_token_s=0.5,
            output_tokens=min(7, body["max_tokens"]) * self.overbill,
        )
        row = self.simulation.row(call)
        if row.error:
            return httpx2.Response(400, json=error("invalid_request_error", row.error))
        self.billed += row.cost.total
        self.clock.at += 60.0 if fault == "slow" else 0.5
        if fault == "kill after":
            raise Killed
        return self.told(body, events(row.usage.wire()), fault)

    def refusal(self, fault: str, headers: dict[str, str]) -> httpx2.Response | None:
        """What is answered, or raised, before anything is billed."""
        if fault == "connect":
            raise httpx2.ConnectError("connection refused")
        if fault == "429":
            return httpx2.Response(429, headers={"retry-after": "3"}, json=error("rate_limit_error", "slow down"))
        if fault == "429 date":
            return httpx2.Response(429, headers={"retry-after-ms": "250"}, json=error("rate_limit_error", "slow"))
        if fault == "no retry":
            return httpx2.Response(500, headers={"x-should-retry": "false"}, json=error("api_error", "no"))
        if fault in ("500", "529"):
            return httpx2.Response(int(fault), json=error("overloaded_error", "Overloaded"))
        if fault in ("400", "401"):  # whoever echoes a key
            words = f"invalid x-api-key {headers['authorization'].removeprefix('Bearer ')}"
            return httpx2.Response(int(fault), json=error("authentication_error", words))
        return None

    def told(self, body: dict[str, Any], whole: list[bytes], fault: str) -> httpx2.Response:
        """The answer, or what is left of it."""
        head = {"content-type": "text/event-stream"}
        if fault == "lost":
            raise httpx2.ReadError(f"connection reset, key {KEY}")
        if fault == "timeout":
            raise httpx2.ReadTimeout("read timed out")
        if fault == "504":
            return httpx2.Response(504, text="upstream took too long")
        if fault == "cut":
            broken = httpx2.RemoteProtocolError("peer closed connection")
            return httpx2.Response(200, headers=head, stream=Pieces(whole[:2], broken))
        if fault == "garbage":
            return httpx2.Response(200, headers=head, stream=Pieces([whole[0], b"event: message_delta\ndata: {{{\n\n"]))
        if fault == "json":
            return httpx2.Response(200, json={"hello": "world"})
        if fault == "no usage":
            bad = whole[0].replace(b'"usage"', b'"used"')
            return httpx2.Response(200, headers=head, stream=Pieces([bad, *whole[1:]]))
        if fault == "error event":
            late = event("error", error("overloaded_error", "Overloaded"))
            return httpx2.Response(200, headers=head, stream=Pieces([whole[0], late]))
        self.answered[json.dumps(body)] += 1
        return httpx2.Response(200, headers=head, stream=Pieces(self.lie(whole)))


def error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def event(kind: str, fields: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def events(usage: dict[str, Any]) -> list[bytes]:
    """A streamed answer, which quotes a key as no server should."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    delta = {"type": "text_delta", "text": f"Fine. {KEY}"}
    return [
        event("message_start", {"message": {**message, "usage": {**usage, "output_tokens": 1}}}),
        event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        event("content_block_delta", {"index": 0, "delta": delta}),
        event("content_block_stop", {"index": 0}),
        event(
            "message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": usage["output_tokens"]}}
        ),
        event("message_stop", {}),
    ]


SCENARIO: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "model": "claude-sonnet-4-5",
    "tokens": "bytes",
    "conversation": {
        "synthetic": {"seed": 5, "turns": 2, "calls": 2, "tools": 2},
        "head": {"tools": {"count": 2, "tokens": 6_000}, "system": {"tokens": 900}},
    },
    "strategies": ["progressive", "none"],
}


def small_plan(run: str = "cafe", options: LiveOptions | None = None, **over: Any) -> Plan:
    """A plan of a few calls; keyword arguments go over the scenario."""
    scenario = from_mapping({**SCENARIO, **over}, Path())
    return plan(scenario, Path(), run, START, options or LiveOptions(pace=0.5))


def journal_of(made: Plan, folder: Path) -> Journal:
    return Journal(folder / "journal.jsonl", made.run, made.digest, made.scenario.name, {}, made.at)


def driven(made: Plan, api: FakeApi, folder: Path, limit: str = "10", **over: Any) -> LiveResult:
    """Drive a plan against the fake, from the journal in `folder` on."""
    given = LiveRun(made, KEY, Decimal(limit), api.clock, "http://127.0.0.1:1", transport=api, **over)
    with journal_of(made, folder) as journal:
        return asyncio.run(drive(given, journal, lambda step, sent, budget: None))
