"""Token lengths of a call that are known without its bill: `lengths` in a line of a request log.

A request log of re-planned requests has no bills, as nothing was sent. What the bills of the recording showed of the
same content still holds, however its breakpoints are placed: the length of the prompt, of the prefixes at the
breakpoints of then, and of the answer.

    "lengths": {"prompt": 7005, "output": 210, "prefixes": [{"at": ["messages", 0, 4], "tokens": 7000}]}

A place is layer, message (from 0) and block (from 0), in the order in which the request is rendered. Of two prefixes
the first had the 1h TTL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachecost.base.limits import is_tokens
from cachecost.base.structs import value
from cachecost.prompts.blocks import Layer
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.prompts.request import Breakpoint, Request
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage

if TYPE_CHECKING:
    from cachecost.conversations.calls import RecordedCall

KEYS = ("prompt", "output", "prefixes")
MOST_PREFIXES = 2


@value
class PrefixLength:
    """The length in tokens of the prompt up to a block: `layer`, `message` (from 0; −1 outside messages), `index`."""

    layer: str
    message: int
    index: int
    tokens: int

    def wire(self) -> dict[str, Any]:
        message = [self.message] if self.message >= 0 else []
        return {"at": [self.layer, *message, self.index], "tokens": self.tokens}


@value
class KnownLengths:
    """The lengths of a call in tokens. `prompt` is 0 and `output` None where they are not known."""

    prompt: int = 0
    output: int | None = None
    prefixes: tuple[PrefixLength, ...] = ()

    def wire(self) -> dict[str, Any]:
        """What a line of a request log says; parses back to these lengths."""
        parts = {
            "prompt": self.prompt or None,
            "output": self.output,
            "prefixes": [prefix.wire() for prefix in self.prefixes] or None,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def usage(self) -> Usage:
        """A usage with these lengths, as if all breakpoints had been written."""
        ends = [prefix.tokens for prefix in self.prefixes]
        last, hour = (ends[-1], ends[0] if len(ends) > 1 else 0) if ends else (0, 0)
        return Usage(max(0, self.prompt - last), write_5m=max(0, last - hour), write_1h=hour)

    def breakpoints(self, request: Request) -> tuple[Breakpoint, ...]:
        """The breakpoints at the prefixes, on a request that has these blocks; none where it has not."""
        nodes = {node.length - 1: node for node in request.thread.back()} if self.prefixes else {}
        found = []
        for number, one in enumerate(self.prefixes):
            node = nodes.get(one.message)
            message = node.message if node else None
            part = request.tools if one.layer == Layer.TOOLS else request.system
            blocks = message.blocks if message else part.blocks if one.message < 0 else ()
            if one.index >= len(blocks):
                return ()
            is_hour = number == 0 and len(self.prefixes) > 1
            found.append(Breakpoint(Layer(one.layer), one.index, "1h" if is_hour else "5m", node))
        return tuple(found)


def billed_lengths(call: RecordedCall) -> KnownLengths:
    """The lengths that the bill of a recorded call shows. A bill of several passes shows only that of the answer."""
    billed = call.billed
    if billed is None or call.iterations:
        return KnownLengths(output=call.output_tokens)
    cached = billed.read + billed.write
    sent = sent_breakpoints(call.request).breakpoints
    if not cached or not sent:
        return KnownLengths(billed.total_input, billed.output_tokens)
    hours = [breakpoint for breakpoint in sent if breakpoint.ttl == "1h"] if billed.write_1h and billed.write_5m else []
    ends = [(hours[-1], billed.read + billed.write_1h)] if hours else []
    ends.append((sent[-1], cached))
    prefixes = tuple(_prefix_length(breakpoint, tokens) for breakpoint, tokens in ends)
    return KnownLengths(billed.total_input, billed.output_tokens, prefixes)


def _prefix_length(breakpoint: Breakpoint, tokens: int) -> PrefixLength:
    message = breakpoint.node.length - 1 if breakpoint.node else -1
    return PrefixLength(str(breakpoint.layer), message, breakpoint.index, tokens)


def parse_lengths(found: Any) -> KnownLengths:
    """The `lengths` of a line. Raises NotAMessage with the path of what is wrong."""
    if not isinstance(found, dict):
        raise NotAMessage("lengths", "an object", found)
    if unknown := sorted(found.keys() - set(KEYS)):
        raise NotAMessage(f"lengths.{unknown[0]}", f"one of {', '.join(KEYS)}", unknown[0])
    prefixes = found.get("prefixes", [])
    if not isinstance(prefixes, list) or len(prefixes) > MOST_PREFIXES:
        raise NotAMessage("lengths.prefixes", f"a list of at most {MOST_PREFIXES}", prefixes)
    ends = tuple(_parse_prefix(one, f"lengths.prefixes.{number}") for number, one in enumerate(prefixes))
    output = _tokens(found["output"], "lengths.output") if "output" in found else None
    return KnownLengths(_tokens(found.get("prompt", 0), "lengths.prompt"), output, ends)


def _parse_prefix(found: Any, path: str) -> PrefixLength:
    if not isinstance(found, dict):
        raise NotAMessage(path, "an object", found)
    tokens = _tokens(found.get("tokens"), f"{path}.tokens")
    match found.get("at"):
        case [("tools" | "system") as layer, index] if is_tokens(index):
            return PrefixLength(layer, -1, index, tokens)
        case ["messages", message, index] if is_tokens(message) and is_tokens(index):
            return PrefixLength("messages", message, index, tokens)
    raise NotAMessage(f"{path}.at", 'a place like ["system", 0] or ["messages", 0, 0]', found.get("at"))


def _tokens(found: Any, path: str) -> int:
    if not is_tokens(found):
        raise NotAMessage(path, "a whole number of tokens", found)
    return int(found)
