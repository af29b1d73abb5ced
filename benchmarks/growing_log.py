"""Writes a request log that grows as agents' logs do: every request repeats its conversation and adds to it.

python benchmarks/growing_log.py LOG.jsonl [--conversations 20] [--requests 100] [--in-a-row] [--unique] [--seed 1]

By default 20 interleaved conversations of 100 requests each: 2,000 lines, 110 MB. All conversations share a head of
6 tools and a system prompt of 12 kB; messages grow to 56 kB of text. Each request has three breakpoints (last tool,
last system block, newest user block) and starts 3 s after the one before it; after every 25 rounds comes a pause of
400 s, which 5-minute entries do not survive. The text is filler made of invented words. Same options, same bytes,
on every Python.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 10, 1, 8, tzinfo=UTC)
STEP_S = 3
PAUSE_S = 400
ROUNDS_BETWEEN_PAUSES = 25
TOOLS = 6
TOOL_CHARACTERS = 1_200
SYSTEM_CHARACTERS = (4_000, 8_000)
USER_CHARACTERS = 230
ASSISTANT_CHARACTERS = 260
BREAKPOINT = b',"cache_control":{"type":"ephemeral"}}'


@dataclass(frozen=True, slots=True)
class Shape:
    """What to write. `unique` makes every block of every request new, so that nothing can be shared."""

    conversations: int = 20
    requests: int = 100
    interleaved: bool = True
    unique: bool = False
    messages_first: bool = False
    model: str = "claude-sonnet-4-5"
    seed: int = 1


class Filler:
    """Text of invented words. Only `Random.random` is used: its sequence is the same on every Python."""

    LENGTH = 1_000_000

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        words = ["".join(self._pick(SYLLABLES) for _ in range(1 + self._below(4))) for _ in range(2_000)]
        text = " ".join(self._sentence(words) for _ in range(self.LENGTH // 60))
        self._text = text[: self.LENGTH]
        self._count = 0

    def text(self, characters: int) -> str:
        """A new text of that length; no two are equal."""
        self._count += 1
        number = f"{self._count}. "
        start = self._below(self.LENGTH - characters)
        return number + self._text[start : start + characters - len(number)]

    def _sentence(self, words: list[str]) -> str:
        sentence = " ".join(self._pick(words) for _ in range(6 + self._below(10)))
        end = ".\n" if self._below(4) == 0 else "."
        return sentence.capitalize() + end

    def _pick(self, items: list[str]) -> str:
        return items[self._below(len(items))]

    def _below(self, limit: int) -> int:
        return int(self._random.random() * limit)


SYLLABLES = [first + vowel + last for first in "bdfgklmnprstvz" for vowel in "aeiou" for last in ("", "n", "r", "s")]


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Blocks:
    """Makes the blocks of a log, as JSON without breakpoints."""

    def __init__(self, filler: Filler) -> None:
        self._filler = filler

    def tool(self, number: int) -> bytes:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        description = self._filler.text(TOOL_CHARACTERS)
        return compact({"name": f"tool_{number}", "description": description, "input_schema": schema})

    def text(self, characters: int) -> bytes:
        return compact({"type": "text", "text": self._filler.text(characters)})

    def head(self) -> bytes:
        """The fields `tools` and `system`, each with a breakpoint on its last block."""
        tools = [self.tool(number) for number in range(1, TOOLS + 1)]
        system = [self.text(characters) for characters in SYSTEM_CHARACTERS]
        return b'"tools":%b,"system":%b' % (last_marked(tools), last_marked(system))

    def user(self, number: int) -> list[bytes]:
        """The blocks of a conversation's `number`-th user message: one, or two in every third."""
        return [self.text(USER_CHARACTERS) for _ in range(2 if number % 3 == 0 else 1)]

    def assistant(self) -> list[bytes]:
        return [self.text(ASSISTANT_CHARACTERS)]


def array(items: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def last_marked(blocks: list[bytes]) -> bytes:
    return array([*blocks[:-1], blocks[-1][:-1] + BREAKPOINT])


def message(role: bytes, content: bytes) -> bytes:
    return b'{"role":"%b","content":%b}' % (role, content)


class Conversation:
    """The messages of one conversation so far, each as JSON."""

    def __init__(self, blocks: Blocks, unique: bool) -> None:
        self._blocks = blocks
        self._unique = unique
        self._settled: list[bytes] = []
        self._requests = 0

    def next_messages(self) -> bytes:
        """The `messages` of the next request: all before, and one user message more, marked."""
        if self._unique:
            self._settled = [part for number in range(1, self._requests + 1) for part in self._turn(number)]
        self._requests += 1
        user = self._blocks.user(self._requests)
        messages = array([*self._settled, message(b"user", last_marked(user))])
        self._settled += [message(b"user", array(user)), message(b"assistant", array(self._blocks.assistant()))]
        return messages

    def _turn(self, number: int) -> list[bytes]:
        user, assistant = array(self._blocks.user(number)), array(self._blocks.assistant())
        return [message(b"user", user), message(b"assistant", assistant)]


def schedule(shape: Shape) -> Iterator[tuple[int, str]]:
    """(conversation, timestamp) of each request. A round is one request of each conversation, or just one in a row."""
    now = START
    requests_between_pauses = ROUNDS_BETWEEN_PAUSES * (shape.conversations if shape.interleaved else 1)
    for number in range(shape.conversations * shape.requests):
        conversation = number % shape.conversations if shape.interleaved else number // shape.requests
        yield conversation, now.strftime("%Y-%m-%dT%H:%M:%SZ")
        pauses = (number + 1) % requests_between_pauses == 0
        now += timedelta(seconds=STEP_S + (PAUSE_S if pauses else 0))


def lines(shape: Shape) -> Iterator[bytes]:
    """The log, line by line. Memory: the messages of each conversation once."""
    blocks = Blocks(Filler(shape.seed))
    head = blocks.head()
    conversations = [Conversation(blocks, shape.unique) for _ in range(shape.conversations)]
    for conversation, timestamp in schedule(shape):
        fields = [blocks.head() if shape.unique else head, b'"messages":' + conversations[conversation].next_messages()]
        body = b",".join(fields[::-1] if shape.messages_first else fields)
        start = f'{{"timestamp":"{timestamp}","request":{{"model":"{shape.model}","max_tokens":4096,'
        yield start.encode() + body + b"}}\n"


def write_log(path: Path, shape: Shape) -> int:
    """Writes the log and returns its size in bytes."""
    with path.open("wb") as file:
        return sum(map(file.write, lines(shape)))


def arguments() -> argparse.ArgumentParser:
    usual = Shape()
    parser = argparse.ArgumentParser(description="Writes a growing request log of filler text.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--conversations", type=int, default=usual.conversations)
    parser.add_argument("--requests", type=int, default=usual.requests, help="of each conversation")
    turns = parser.add_mutually_exclusive_group()
    turns.add_argument("--interleaved", action="store_true", default=True, help="conversations take turns (default)")
    turns.add_argument("--in-a-row", action="store_false", dest="interleaved", help="one conversation after the other")
    parser.add_argument("--unique", action="store_true", help="every block of every request new")
    parser.add_argument("--messages-first", action="store_true", help="`messages` before `tools` and `system`")
    parser.add_argument("--model", default=usual.model)
    parser.add_argument("--seed", type=int, default=usual.seed)
    return parser


def main() -> None:
    options = vars(arguments().parse_args())
    path: Path = options.pop("log")
    size = write_log(path, Shape(**options))
    print(f"{path}: {size:,} bytes")


if __name__ == "__main__":
    main()
