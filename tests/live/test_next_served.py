"""What `next` says of a conversation is what `serve` then bills, to the token: random clients, sizes and pauses."""

import random
from pathlib import Path

import pytest
from server_fakes import Says, post, served_by

from cachecost.analysis.next_message.choices import LastConversation
from cachecost.changes.fix import MODEL
from cachecost.conversations.logs import Logs
from cachecost.live.request_log import CallLog
from cachecost.live.server.state import Meter
from cachecost.prompts.blocks import Message
from cachecost.prompts.request import parse_message
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import read_workload

START = 1_793_577_600.0
"""2026-11-02."""
WORDS = ("river", "bend", "Nørre", "4,711", "people", "met", "🙂", "def", "f(x):", "return", "x ** 2", "\n", "–")
MODELS = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5", "claude-opus-4-6")


class SetClock:
    """A clock that a test sets."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Nothing waits here."""


class RandomClient:
    """A client with its way of placing breakpoints, and the conversation so far."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.ttl = draw.choice(["5m", "1h"])
        self.style = draw.choice(["automatic", "last", "last two", "first and last", "static and last", "none"])
        self.model = draw.choice(MODELS)
        self.system = self.text(3000)
        self.said: list[dict[str, object]] = []

    def text(self, most: int) -> str:
        return " ".join(self.draw.choices(WORDS, k=self.draw.randint(1, most)))

    def cached(self, ttl: str = "") -> dict[str, object]:
        return {"cache_control": {"type": "ephemeral", "ttl": ttl or self.ttl}}

    def body(self, new: str) -> dict[str, object]:
        """The request that goes on with a message."""
        messages = [*self.said, {"role": "user", "content": [{"type": "text", "text": new}]}]
        marked = {"last": [-1], "last two": [-1, -3], "first and last": [0, -1], "static and last": [-1]}
        places = {place % len(messages) for place in marked.get(self.style, []) if place >= -len(messages)}
        sent = [self._marked(message) if place in places else message for place, message in enumerate(messages)]
        system = {"type": "text", "text": self.system} | (self.cached("1h") if "static" in self.style else {})
        body = {"model": self.model, "max_tokens": 4000, "system": [system], "messages": sent}
        return {**body, **self.cached()} if self.style == "automatic" else body

    def _marked(self, message: dict[str, object]) -> dict[str, object]:
        content = message["content"]
        assert isinstance(content, list)
        return {**message, "content": [*content[:-1], {**content[-1], **self.cached()}]}

    def take(self, new: str, answer: list[dict[str, object]]) -> None:
        user = {"role": "user", "content": [{"type": "text", "text": new}]}
        self.said += [user, {"role": "assistant", "content": answer}]


def setup_of_server(tokens: str) -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", tokens)


def wire(message: str) -> Message:
    return parse_message({"role": "user", "content": [{"type": "text", "text": message}]}, True, 0).message


def compare(seed: int, folder: Path, tokens: str = "tiktoken") -> bool:
    """Let a random client talk to the server and compare its next message; whether that read the cache."""
    draw, clock = random.Random(seed), SetClock()
    client, path = RandomClient(draw), folder / "log.jsonl"
    answers = Says(by=lambda asked: None)
    with CallLog(path) as log:
        served = served_by(answers, Meter(setup_of_server(tokens)), clock=clock, log=log)
        for _ in range(draw.randint(1, 5)):
            new = client.text(900)
            answer = [{"type": "text", "text": client.text(300)} for _ in range(draw.randint(1, 2))]
            answers.by = None
            answers.answer_ = type(answers.answer_)(answer)
            assert post(served, client.body(new)).status_code == 200
            client.take(new, answer)
            clock.at += draw.choice([3.5, 60.0, 299.0, 301.0, 1800.0])
        clock.at += draw.choice([0.0, 100.0, 299.0, 300.0, 3599.0, 3601.0])
        new = client.text(900)
        known = LastConversation(read_workload(Logs([path]), setup_of_server(tokens), tokens))
        told = known.next_message(wire(new), clock.at)
        other = MODELS[(MODELS.index(client.model) + 1) % len(MODELS)]
        switched = known.next_message(wire(new), clock.at, MODEL.to(other))
        billed = post(served, client.body(new)).json()["usage"]
        in_between = dict(billed) | {"output_tokens": 0}
        assert {name: in_between[name] for name in told.usage.wire()} == told.usage.wire(), (seed, client.style)
        clock.at += 0.1
        client.model = other
        then = post(served, client.body(new)).json()["usage"]
    assert then["input_tokens"] == switched.usage.input_tokens
    assert then["cache_creation_input_tokens"] == switched.usage.write
    assert then["cache_read_input_tokens"] == switched.usage.read == 0
    assert told.cold.usage.total_input == told.usage.total_input and told.cold.usage.read == 0
    return told.is_warm


def test_next_is_what_is_billed_then(tmp_path: Path) -> None:
    seen = set()
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen.add(compare(seed, folder))
    assert seen == {True, False}


@pytest.mark.long
def test_next_is_what_is_billed_then_in_100_sessions(tmp_path: Path) -> None:
    for seed in range(100, 200):
        folder = tmp_path / str(seed)
        folder.mkdir()
        compare(seed, folder)
