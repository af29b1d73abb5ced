"""Random logs of chat calls, as the tokens that an engine gets and as the prompts that the simulator gets.

A character is a token, and so is what the template puts before each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.compare import first_difference, text_of
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden, Prompt
from cachecost.prompts.request import Request, text_block
from cachecost.providers.rules import ModelRules

Message = tuple[str, str]
"""Role and text."""
FRAMES = {"user": 1, "assistant": 2}
END = 3
"""The token that ends an answer."""


@dataclass(frozen=True)
class LoggedCall:
    messages: tuple[Message, ...]
    answer: str = ""


class CharacterCounter:
    """A token for each character and one for the frame."""

    name = "characters"
    source = "characters"
    error_margin = 0.0

    def block(self, block: Block) -> int:
        return 1 + len(text_of(block))

    def shared(self, one: Block, other: Block) -> int:
        return 1 + first_difference(text_of(one), text_of(other))

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


COUNTER = CharacterCounter()


def tokens_of(messages: Sequence[Message]) -> list[int]:
    return [token for role, text in messages for token in (FRAMES[role], *map(ord, text))]


class Server(Protocol):
    def serve(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> int | None:
        """The tokens of `prompt` that are read; None where it does not fit."""
        ...


def served_reads(calls: Sequence[LoggedCall], server: Server, opens: bool = True) -> list[int]:
    """What each call reads on a server. With `opens`, a prompt ends with what opens the answer."""
    reads = []
    for call in calls:
        prompt, answer = (
            tokens_of(call.messages),
            tokens_of([("assistant", call.answer)]) if call.answer or opens else [],
        )
        opener, answer = (answer[:1], answer[1:]) if opens else ([], answer)
        reads.append(server.serve([*prompt, *opener], [*answer, END]) or 0)
    return reads


def simulated_reads(calls: Sequence[LoggedCall], rules: ModelRules, opens: bool = True) -> list[int]:
    """What each call reads under the rules, one after the other."""
    cache, root = FixedBlockCache(), Prefix(None, Layer.MESSAGES, None, 0)
    reads = []
    for number, call in enumerate(calls):
        end = root
        for message in call.messages:
            end = _then(end, message)
        prompt = Prompt(end, root, (), 0, 0, end.tokens + opens, ("", "", ""), counter=COUNTER)
        reads.append(cache.call(prompt, rules, float(number)).read)
        cache.note_answer(prompt, rules, 0, _then(end, ("assistant", call.answer)) if call.answer or opens else end)
    return reads


def _then(node: Prefix, message: Message) -> Prefix:
    block = text_block(*message)
    return node.then(block, Layer.MESSAGES, COUNTER.block(block))


LETTERS = "ab"
LENGTHS = (0, 1, 3, 7, 14, 15, 16, 30, 31, 33, 64, 110)


def random_log(chance: Random, calls: int, answers: bool) -> list[LoggedCall]:
    """Conversations that grow, fork between and inside messages, and repeat; the answers are the engine's own or not.

    With `answers`, calls are answered, and what comes back is the answer, the beginning of it, or another text.
    """
    log: list[LoggedCall] = []
    texts = [_text(chance) for _ in range(4)]
    for _ in range(calls):
        before = chance.choice(log[-5:] or [LoggedCall(())])
        messages = list(before.messages)
        kind = chance.choice(("grow", "grow", "grow", "fork", "inside", "inside", "repeat", "new"))
        if kind == "new":
            messages = []
        elif kind == "fork":
            messages = messages[: chance.randint(0, len(messages))]
        elif kind == "inside" and messages:
            role, text = messages[-1]
            messages[-1] = role, text[: chance.randint(0, len(text))] + _text(chance)
        elif kind == "grow" and messages:
            messages.append(("assistant", _answer_back(before.answer, chance)))
        if not messages or (kind != "repeat" and (messages[-1][0] == "assistant" or kind == "fork")):
            messages.append(("user", chance.choice(texts) + chance.choice(("", _text(chance)))))
        log.append(LoggedCall(tuple(messages), _text(chance) if answers and chance.random() < 0.8 else ""))
    return log


def _answer_back(answer: str, chance: Random) -> str:
    kind = chance.choice(("same", "same", "same", "begins", "other"))
    if answer and kind == "same":
        return answer
    return answer[: chance.randint(0, len(answer))] + _text(chance)


def _text(chance: Random) -> str:
    return "".join(chance.choices(LETTERS, k=chance.choice(LENGTHS)))
