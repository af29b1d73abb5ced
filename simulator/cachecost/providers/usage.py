"""The usage of one call, in Anthropic's convention."""

from __future__ import annotations

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


@value
class Usage:
    """Tokens of one call. `input_tokens` is *uncached input only*: total input is `total_input`.

    All fields are whole tokens. `write_5m` and `write_1h` are the two halves of
    `cache_creation_input_tokens`.
    """

    input_tokens: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output_tokens: int = 0

    @property
    def write(self) -> int:
        return self.write_5m + self.write_1h

    @property
    def total_input(self) -> int:
        """Prompt length: uncached + read + written."""
        return self.input_tokens + self.read + self.write_5m + self.write_1h

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.output_tokens + other.output_tokens,
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
        }
