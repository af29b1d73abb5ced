"""A line that repeats its conversation is read in a shorter way: it says what its whole parse says, nothing else."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers import request_log as growing
from cachecost.conversations.readers.request_log import RequestLog
from cachecost.conversations.start_times import PIECE, BufferLine
from cachecost.prompts.intake import Intake, plain_message
from cachecost.prompts.request import parse_message
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.views.replay.call_rows import call_object

LOGS = int(os.environ.get("CACHECOST_LOGS", "150"))
BREAKPOINT = {"type": "ephemeral"}
PIECES = [
    "a",
    "Bo ",
    "\n",
    '"',
    "\\",
    "é",
    "\u2028",
    "\x01",
    "/",
    "😀",
    '"}',
    '"},{"type":"text","text":"',
    "long " * 20,
    "",
]
TIMES = [
    "2026-10-01T08:00:{:02d}Z",
    "2026-10-01T08:00:{:02d}+02:00",
    "2026-10-01 08:00:{:02d}",
    "2026-10-01T08:{:02d}:00.123456Z",
]
BYTES = [b" ", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\xc3", b"1", b"\x00", b"null", b"NaN", b"\r"]
JUNK = [
    b'{"request":{"model":"claude-sonnet-4-5"}}',
    b'{"request":{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"\\ud800"}]}}',
    b'{"request":{"model":"claude-sonnet-4-5","messages":[]}}',
    b'{"request":{"model":"claude-sonnet-4-5","messages":[-0.0e-000007]}}',
    b'{"request":{"model":"","messages":[{"role":"user","content":"hi"}]}}',
    b'{"request":{"model":"claude-sonnet-4-5","messages":[{"role":"usr","content":"hi"}]}}',
    b"[]",
    b"not json",
    b"",
    b"   ",
    b"\xef\xbb\xbf{}",
]


class Whole(RequestLog):
    """Every line parsed whole: the one definition of what a line means."""

    def _quick(self, line: BufferLine) -> Call | None:
        return None


class Talking:
    """A conversation that grows, and changes as recorded ones do and do not."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.body: dict[str, Any] = {"model": dice.choice(("claude-sonnet-4-5", "claude-opus-4-6")), "max_tokens": 9}
        if dice.random() < 0.7:
            self.body["tools"] = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]
            self.body["system"] = dice.choice(
                ("You.", [{"type": "text", "text": "You. " * 900, "cache_control": BREAKPOINT}])
            )
        self.body["messages"] = [{"role": "user", "content": [self.text()]}]
        self.compact = dice.random() < 0.7
        self.ascii = dice.random() < 0.5
        self.order = dice.random()
        self.time = dice.choice(TIMES)

    def text(self) -> dict[str, Any]:
        return {"type": "text", "text": "".join(self.dice.choices(PIECES, k=self.dice.randint(0, 6)))}

    def block(self, role: str) -> dict[str, Any]:
        if self.dice.random() < 0.7:
            return self.text()
        said: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": "t", "content": self.dice.choice(("ok", [self.text()]))},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": True}},
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "later"}]},
        ]
        answered: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"n": self.dice.choice((1, 1.0, 2**70, 1e-5))}},
        ]
        return self.dice.choice(said if role == "user" else answered)

    def step(self) -> None:
        for _ in range(self.dice.randint(0, 3)):
            role = self.dice.choice(("user", "assistant"))
            content: Any = [self.block(role) for _ in range(self.dice.randint(1, 3))]
            self.body["messages"].append({"role": role, "content": self.dice.choice((content, content, "word é"))})
        if self.dice.random() < 0.15:
            self.change()
        for message in self.body["messages"][-12:]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                block.pop("cache_control", None)
        if self.dice.random() < 0.9:
            self.breakpoint()

    def breakpoint(self) -> None:
        content = self.dice.choice(self.body["messages"][-2:])["content"]
        if isinstance(content, list):
            content[-1]["cache_control"] = self.dice.choice((BREAKPOINT, BREAKPOINT, {**BREAKPOINT, "ttl": "1h"}, None))

    def change(self) -> None:
        messages = self.body["messages"]
        place = self.dice.randrange(len(messages))
        kind = self.dice.randrange(8)
        if kind == 0:
            messages[place] = {"role": "user", "content": "edited"}
        elif kind == 1:
            messages.insert(place, {"role": "user", "content": [self.text()]})
        elif kind == 2:
            del messages[max(1, place) :]
        elif kind == 3:
            self.body["tool_choice"] = {"type": self.dice.choice(("auto", "any", "none"))}
        elif kind == 4:
            self.body["tools"] = [{"name": "later", "input_schema": {}, "defer_loading": True}, {"name": "read"}]
        elif kind == 5:
            self.body["model"] = self.dice.choice(("claude-sonnet-4-5", "claude-haiku-4-5", "nobody-1"))
        elif kind == 6:
            self.body["system"] = [self.text()]
        else:
            self.body["cache_control"] = BREAKPOINT

    def line(self, number: int) -> bytes:
        row: dict[str, Any] = {"timestamp": self.time.format(number % 60), "request": self.shuffled()}
        if self.dice.random() < 0.1:
            del row["timestamp"]
        if self.order < 0.3:
            row = dict(reversed(row.items()))
        if self.order > 0.8:
            row["usage"] = {"input_tokens": number, "output_tokens": 3}
        breakpoints = (",", ":") if self.compact else (", ", ": ")
        return json.dumps(row, separators=breakpoints, ensure_ascii=self.ascii).encode("utf-8", "surrogatepass")

    def shuffled(self) -> dict[str, Any]:
        body = copy.deepcopy(self.body)
        if self.order > 0.5:
            body = {name: body[name] for name in sorted(body)}
        elif self.order > 0.4:
            body["messages"] = body.pop("messages")
        return body


def damaged(dice: random.Random, line: bytes) -> bytes:
    """A line that another hand was at: sometimes it is no JSON any more, sometimes it says something else."""
    at = dice.randrange(len(line) + 1)
    kind = dice.randrange(6)
    if kind == 0:
        return line[:at]
    if kind == 1:
        return line[:at] + dice.choice(BYTES) + line[at:]
    if kind == 2:
        return line[:at] + dice.choice(BYTES) + line[at + 1 :]
    if kind == 3:
        return line.replace(b'"messages"', b'"messages":[],"messages"', 1)
    if kind == 4:
        return line.replace(b'"request"', b'"timestamp":"2026-10-01T07:00:00Z","request"', 1)
    return line.replace(b'"}', b'","text":"twice"}', 1)


def random_log(seed: int) -> bytes:
    dice = random.Random(seed)
    conversations = [Talking(dice) for _ in range(dice.randint(1, 3))]
    lines, is_damaged = [], dice.random() < 0.4
    for number in range(dice.randint(2, 25)):
        conversation = dice.choice(conversations)
        conversation.step()
        line = conversation.line(number)
        if is_damaged and dice.random() < 0.1:
            line = damaged(dice, line) if dice.random() < 0.7 else dice.choice(JUNK)
        lines.append(line)
    end = dice.choice((b"\n", b"\n", b"\n", b"\r\n"))
    log = end.join(lines) + dice.choice((end, end, b""))
    return log[: -dice.randint(1, 30)] if dice.random() < 0.1 else log


def told(log: RequestLog) -> tuple[list[Any], str, int | None]:
    """What a log comes to: its calls and their rows, its faults, and which line was still being written."""
    calls: list[Call] = []
    faults = ""
    try:
        calls.extend(log.calls())
    except InputError as error:
        faults = str(error)
    simulation = Simulation(ReplaySetup(RuleBook(), PriceBook.load(), tokens="bytes"))
    rows = [call_object(row) for row in simulation.rows(calls)]
    return [(shown(call), row) for call, row in zip(calls, rows, strict=True)], faults, log.unfinished


def shown(call: Call) -> list[Any]:
    """All that a call says, block by block."""
    request = call.request
    rest = [getattr(call, name) for name in Call.__match_args__ if name not in ("request", "response")]
    messages = [
        (message.digest, message.is_human, list(map(block_shown, message.blocks)))
        for message in request.thread.messages()
    ]
    head = [list(map(block_shown, part.blocks)) for part in (request.tools, request.system)]
    breakpoints = [(breakpoint.block_key, breakpoint.ttl) for breakpoint in request.breakpoints]
    return [
        repr(rest),
        messages,
        head,
        breakpoints,
        request.model,
        request.automatic,
        repr(request.params),
        request.fault,
    ]


def block_shown(block: Any) -> tuple[Any, ...]:
    names = ("kind", "role", "digest", "size", "is_empty_text", "has_image", "has_citations")
    return (*[getattr(block, name) for name in names], repr(block.content))


def test_random_logs_say_the_same_read_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    quick = {"calls": 0, "all": 0}
    read = RequestLog._quick

    def counted(self: RequestLog, line: BufferLine) -> Call | None:
        call = read(self, line)
        quick["calls"] += call is not None
        quick["all"] += 1
        return call

    monkeypatch.setattr(RequestLog, "_quick", counted)
    for seed in range(LOGS):
        path.write_bytes(random_log(seed))
        keeps = seed % 4 == 0
        one, other = told(RequestLog(path, Intake(keeps))), told(Whole(path, Intake(keeps)))
        assert one == other, f"seed={seed}"
    assert quick["calls"] > 0.4 * quick["all"]


def growing_lines(number: int) -> Iterator[bytes]:
    """A conversation whose every line is longer than the buffer in the end, its breakpoint always on the last
    message.
    """
    messages: list[dict[str, Any]] = []
    for line in range(number):
        messages.append({"role": "user", "content": [{"type": "text", "text": f"{line} " + "text \n" * 4000}]})
        marked = [*messages[:-1], copy.deepcopy(messages[-1])]
        marked[-1]["content"][-1]["cache_control"] = BREAKPOINT
        row = {
            "timestamp": f"2026-10-01T08:{line:02d}:00Z",
            "request": {"model": "claude-opus-4-6", "messages": marked},
        }
        yield json.dumps(row, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("packed", [False, True])
def test_lines_longer_than_the_buffer(tmp_path: Path, packed: bool) -> None:
    text = b"".join(growing_lines(24))
    assert len(text) > 4 * PIECE
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert told(RequestLog(path, Intake())) == told(Whole(path, Intake()))


@pytest.mark.parametrize(("name", "most"), [("MOST_BYTES", 2_000), ("MOST_LINES", 0), ("MOST_LINES", 2)])
def test_conversations_that_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(growing, name, most)
    path = tmp_path / "log.jsonl"
    for seed in range(1000, 1030):
        path.write_bytes(random_log(seed))
        assert told(RequestLog(path, Intake())) == told(Whole(path, Intake())), f"seed={seed}"


@pytest.mark.parametrize(("between", "is_kept"), [(2, True), (3, False)])
def test_a_conversation_is_forgotten_that_lines_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: int, is_kept: bool
) -> None:
    monkeypatch.setattr(growing, "MOST_LINES", 2)
    mine, *others = (
        f'{{"request":{{"model":"claude-opus-4-6","messages":[{TEXT % (f"{number} " + "a" * 99)}]}}}}\n'
        for number in range(1 + between)
    )
    path = tmp_path / "log.jsonl"
    path.write_text("".join([mine, *others, mine]))
    log = RequestLog(path, Intake())
    was_found: list[bool] = []
    find = log._parser.find

    def watched(line: BufferLine, start: int | None = None) -> growing.Repeat | None:
        found = find(line, start)
        was_found.append(found is not None)
        return found

    monkeypatch.setattr(log._parser, "find", watched)
    assert len(list(log.calls())) == between + 2
    assert was_found == [*[False] * (between + 1), is_kept]


def test_what_is_cut_out_elsewhere_than_in_the_messages_is_noticed(tmp_path: Path) -> None:
    """The bytes of the conversation stand in another field first: that is no reason to take them for the messages."""
    message = (
        '{"role":"user","content":[{"type":"text","text":"the first message, which is long enough to be looked up"}]}'
    )
    usual = f'{{"request":{{"model":"claude-opus-4-6","messages":[{message}]}}}}'
    other = f'{{"response":{{"messages":[{message}]}},"request":{{"model":"claude-opus-4-6","messages":[]}}}}'
    twice = f'{{"request":{{"model":"claude-opus-4-6","messages":[{message}],"messages":[{message},{message}]}}}}'
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([usual, other, twice, usual]) + "\n")
    lengths = [call.request.thread.length for call in RequestLog(path, Intake()).calls()]
    assert lengths == [1, 0, 2, 1]


def test_a_control_character_in_a_known_frame_is_a_fault(tmp_path: Path) -> None:
    rows = list(growing_lines(4))
    rows[3] = rows[3].replace(b"2026-10-01T", b"2026-10-01\x00", 1)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(rows))
    with pytest.raises(InputError, match=r"log\.jsonl:4 expected one JSON object; got a damaged line"):
        list(RequestLog(path, Intake()).calls())


TEXT = '{"role":"user","content":[{"type":"text","text":"%s"}]}'


@pytest.mark.parametrize(
    ("data", "is_plain"),
    [
        (TEXT % "hello", True),
        (TEXT % 'a \\n \\t \\\\ \\" é', True),
        (TEXT % "", True),
        (TEXT % "\\u00e9", False),
        (TEXT % "\\/", False),
        (
            '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}',
            True,
        ),
        ('{"role":"user","content":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}}]}', False),
        ('{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}', False),
        ('{"role":"user","content":[{"type":"text","text":"a","x":1},{"type":"text","text":"b"}]}', False),
        ('{"role":"user","content":[{"type":"text","text":"a"} ,{"type":"text","text":"b"}]}', False),
        ('{"role":"system","content":[{"type":"text","text":"a"}]}', False),
        ('{"role":"user","content":"a"}', False),
    ],
)
def test_plain_messages_are_known_by_their_bytes(data: str, is_plain: bool) -> None:
    found, parsed = plain_message(data.encode()), parse_message(json.loads(data), False, 0)
    assert (found is not None) == is_plain
    if found is not None:
        assert list(map(block_shown, found.message.blocks)) == list(map(block_shown, parsed.message.blocks))
        assert (found.message.digest, found.breakpoints, found.faults) == (
            parsed.message.digest,
            parsed.breakpoints,
            parsed.faults,
        )
