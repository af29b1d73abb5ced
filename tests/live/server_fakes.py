"""What the server's tests stand on: an answerer and a meter that are easily reckoned, and ways to call the app."""

import asyncio
import json
from decimal import Decimal

import anthropic
import httpx2

from cachecost.base.errors import CannotEvaluate
from cachecost.ledger.rows import CallRow, Cost
from cachecost.live.clock import SteppingClock
from cachecost.live.server.app import app_of
from cachecost.live.server.model import ApiError, CallCharge, ModelAnswer
from cachecost.live.server.state import ServerState
from cachecost.prompts.intake import Intake
from cachecost.providers.usage import Usage
from loopback import Loopback

KEY = "sk-ant-planted-0123456789"
HEAD = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
MODEL = "claude-opus-4-6"
BODY = {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": "Say it."}]}
BLOCKS = (
    {"type": "thinking", "thinking": "Let me see what they want of me.", "signature": "c2lnbmVk"},
    {"type": "text", "text": "Here is “it”, as asked: ¼ of a naïve 🙂 answer."},
    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}},
)


class Says:
    """Answers everything with the same blocks, or with what a function makes of the call."""

    def __init__(self, *blocks, stop="end_turn", first=0.0, seconds=0.0, by=None):
        self.answer_ = ModelAnswer(blocks or ({"type": "text", "text": "It."},), stop, first, seconds)
        self.by = by
        self.asked = []

    def answer(self, asked):
        self.asked.append(asked)
        return self.by(asked) if self.by else self.answer_


class Letters:
    """A meter: a token is a letter, a call writes all it sends, and reads what the call before it wrote."""

    def __init__(self, refused=None, diagnostics=None):
        self.refused, self.diagnostics = refused, diagnostics
        self.taken = []
        self.last = 0

    def charge(self, asked, answer):
        if self.refused is not None:
            return self.refused
        self.taken.append(asked)
        total, read = self.count(asked.body), self.last
        self.last = total
        usage = Usage(3, read, max(0, total - read), 0, sum(map(size, answer.content)))
        cost = Cost(input=Decimal(0))
        row = CallRow(len(self.taken), asked.start, None, "as recorded", MODEL, usage, cost, None, {}, {})
        return CallCharge(row, usage, self.diagnostics)

    def count(self, body, host=None):
        if body["model"] != MODEL:
            raise CannotEvaluate("unknown model")
        Intake().body(body)
        return sum(len(one["content"]) if isinstance(one["content"], str) else sum(map(size, one["content"]))
                   for one in body["messages"])  # fmt: skip


def size(block):
    return len(block.get("text") or block.get("thinking") or json.dumps(block))


REFUSED = ApiError(400, "invalid_request_error", "A maximum of 4 blocks with cache_control may be provided. Found 5.")


def served_by(answerer=None, meters=None, **others):
    return ServerState(
        answerer or Says(), meters or Letters(), others.pop("clock", None) or SteppingClock(2.0), **others
    )


def client_of(served, more=()):
    return httpx2.AsyncClient(transport=Loopback(app_of(served, more)), base_url="http://test")


def sdk_of(served, retries=0, key=KEY, **others):
    return anthropic.AsyncAnthropic(
        api_key=key, base_url="http://test", max_retries=retries, http_client=client_of(served), **others
    )


def post(served, body=BODY, path="/v1/messages", head=HEAD, **others):
    """One POST; the whole response."""

    async def run():
        async with client_of(served) as client:
            if "content" in others:
                return await client.post(path, headers=head, **others)
            return await client.post(path, headers=head, json=body, **others)

    return asyncio.run(run())


def get(served, path, head=HEAD, method="GET"):
    async def run():
        async with client_of(served) as client:
            return await client.request(method, path, headers=head)

    return asyncio.run(run())


def events(text):
    """(name, data) of each server-sent event."""
    parts = [part.split("\n") for part in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
