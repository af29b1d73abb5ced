"""Prompts made of named blocks of given lengths, without requests: `prompt("A:100", "B:20")`."""

from __future__ import annotations

from typing import Any

from bodies import RULES
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Layer, Prefix, given_block
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import text_block
from cachecost.providers.rules import ModelRules

FREE = replace(RULES, host="vllm", model="m", minimum_tokens=0, ttl_s={})
"""No minimum, no TTL, no step: what was sent is read."""


def rules(**changes: Any) -> ModelRules:
    return replace(FREE, **changes)


class Tree:
    """The prefixes that prompts share."""

    def __init__(self) -> None:
        self.root = Prefix(None, Layer.TOOLS, None, 0)

    def end(self, *blocks: str) -> Prefix:
        """The prefix of `blocks`, each "name:tokens", an assistant's with ">" before it.

        Tools end at "/", system at "|". After "=" comes a text, each character a token.

        One with "~" before it is a salt: hidden tokens without a block.
        """
        ends = {"/": Layer.SYSTEM, "|": Layer.MESSAGES}
        layer, node = Layer.TOOLS if "/" in blocks else Layer.SYSTEM if "|" in blocks else Layer.MESSAGES, self.root
        for block in blocks:
            if block in ends:
                layer = ends[block]
                continue
            if block.startswith("="):
                node = node.then(text_block("user", block[1:]), layer, len(block) - 1)
                continue
            name, tokens = block.split(":")
            if name.startswith("~"):
                node = node.cache_key(name.encode(), layer, int(tokens))
                continue
            role = "assistant" if name.startswith(">") else "user"
            node = node.then(given_block("text", role, name, int(tokens)), layer, int(tokens))
        return node

    def prompt(self, *blocks: str, tail: int = 0, breakpoint: int | None = None, ttl: Any = "5m") -> Prompt:
        """As `end`; `tail` tokens come after it, and a `breakpoint` stands after so many of the blocks."""
        end = self.end(*blocks)
        breakpoints = () if breakpoint is None else (BreakpointPrefix(self.end(*blocks[:breakpoint]), ttl),)
        return Prompt(end, self.root, breakpoints, 0, 0, end.tokens + tail, ("", "", ""))
