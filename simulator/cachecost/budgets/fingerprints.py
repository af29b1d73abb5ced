"""Short digests of what was sent: enough to find the first changed call and block, without any content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from json import dumps
from typing import Any

from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.prompts.blocks import Block, Message, Part, Thread
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.prompts.request import Request

SHORT = 4
"""Bytes of a digest: 8 hex digits. Two texts share one in a case of four thousand million."""
IN_KEY = (
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "speed",
    "container",
    "context_management",
)
"""Parameters that the layers of a prompt depend on (rule 2), or that change what is sent."""
LAYERS = ("tools", "system", "parameters")
Entries = tuple[tuple[str, int, str], ...]
"""The blocks of a layer: short digest, tokens, and of a parameter its name."""


def short(*parts: bytes) -> str:
    """8 hex digits of a digest over `parts`."""
    return blake2b(b"\0".join(parts), digest_size=SHORT, person=b"baseline").hexdigest()


class Fingerprints:
    """The digests of a strategy's calls. Each costs work for what is new in a call."""

    def __init__(self, replayed: ReplayedStrategy) -> None:
        self._replayed = replayed
        self._threads: dict[Thread, bytes] = {}
        self._parts: dict[Part, tuple[str, Entries]] = {}
        generations = [one.rules.generation for one in replayed.simulated if one.rules]
        self._counter = replayed.traffic.setup.counter(generations[0]) if generations else None

    def prompt(self, call: int) -> str:
        """What a call sends, breakpoints left out."""
        request = self._replayed.request(call)
        layers = (digest.encode() for digest, _ in self.layers(call).values())
        return short(request.model.encode(), *layers, self._thread(request.thread))

    def breakpoints(self, call: int) -> str:
        """Where its breakpoints stand and how long they live: 4 hex digits."""
        sent = sent_breakpoints(self._replayed.request(call)).breakpoints
        found = [
            f"{breakpoint.layer}.{breakpoint.node.length if breakpoint.node else 0}.{breakpoint.index}.{breakpoint.ttl}"
            for breakpoint in sent
        ]
        return short(" ".join(found).encode())[:4]

    def layers(self, call: int) -> dict[str, tuple[str, Entries]]:
        """Digest and entries of tools, system and parameters."""
        request = self._replayed.request(call)
        parameters = tuple(_parameters(request))
        found = (self._part(request.tools), self._part(request.system), (_of_entries(parameters), parameters))
        return dict(zip(LAYERS, found, strict=True))

    def _part(self, part: Part) -> tuple[str, Entries]:
        if part not in self._parts:
            entries = tuple((short(block.digest), self._tokens(block), "") for block in part.blocks)
            self._parts[part] = (_of_entries(entries), entries)
        return self._parts[part]

    def _tokens(self, block: Block) -> int:
        return self._counter.block(block) if self._counter else 0

    def _thread(self, thread: Thread) -> bytes:
        return thread.fold(self._threads, b"", _digest_after)


def _digest_after(digest: bytes, message: Message) -> bytes:
    return blake2b(digest + message.digest, digest_size=16).digest()


def _parameters(request: Request) -> Iterator[tuple[str, int, str]]:
    params: Any = request.params
    for name in IN_KEY:
        if params.get(name):
            yield short(dumps(params[name], sort_keys=True).encode()), 0, name


def _of_entries(entries: Iterable[tuple[str, int, str]]) -> str:
    return short(*(f"{digest} {name}".encode() for digest, _, name in entries))
