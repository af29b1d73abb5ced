"""The usage of one call, in Anthropic's convention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from cachecost.base.structs import value

ZERO = Decimal(0)
"""No dollars: the start of every sum of money."""
TOKEN_CLASSES = ("read", "write_5m", "write_1h", "input", "output")
"""The classes that tokens are priced by."""
PRICED_CLASSES = ("input", "read", "write_5m", "write_1h", "output")
"""The same, in the order of a price file."""
INPUT_CLASSES = TOKEN_CLASSES[:-1]
"""Those of a prompt."""
COST_CLASSES = (*TOKEN_CLASSES, "fees")
"""The classes of dollars: those of tokens, and the fees of server tools."""
ToolUses = tuple[tuple[str, int], ...]
"""Uses of server tools that may have a fee: (tool, number)."""


@value
class Usage:
    """Tokens of one call. `input_tokens` is *uncached input only*: total input is `total_input`.

    All fields are whole tokens. `write_5m` and `write_1h` are the two halves of
    `cache_creation_input_tokens`. `tool_uses` are those that the answer counts, `charged_usd` is what it says that the
    call was charged (None: nothing): gateways do, and xAI.
    """

    input_tokens: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output_tokens: int = 0
    tool_uses: ToolUses = ()
    charged_usd: Decimal | None = None

    @property
    def write(self) -> int:
        return self.write_5m + self.write_1h

    @property
    def total_input(self) -> int:
        """Prompt length: uncached + read + written."""
        return self.input_tokens + self.read + self.write_5m + self.write_1h

    def __add__(self, other: Usage) -> Usage:
        """The sum of the counts. What was charged is that of one call, so a sum has none."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.output_tokens + other.output_tokens,
            add_uses(self.tool_uses, other.tool_uses),
        )

    def wire(self) -> dict[str, object]:
        """The `usage` object as the Messages API spells it."""
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
            "output_tokens": self.output_tokens,
            **({"server_tool_use": {f"{tool}_requests": n for tool, n in self.tool_uses}} if self.tool_uses else {}),
        }


def usage_of(tokens: Iterable[int], uses: ToolUses = (), charged_usd: Decimal | None = None) -> Usage:
    """The usage of five counts, in the order of its fields."""
    uncached, read, five, hour, output = tokens
    return Usage(uncached, read, five, hour, output, uses, charged_usd)


def plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """The sum; None (unknown) where one of them is."""
    return None if one is None or other is None else one + other


def add_uses(one: ToolUses, other: ToolUses) -> ToolUses:
    """The uses of both, by tool."""
    if not one or not other:
        return one or other
    return tuple(sorted((Counter(dict(one)) + Counter(dict(other))).items()))
