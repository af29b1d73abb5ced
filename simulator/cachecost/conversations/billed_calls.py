"""What the bill of a session needs of each call: usage, time, model, and what happened since the call before it.

Readers of session stores make these without parsing content, so that hundreds of megabytes take seconds; they are
small enough to be remembered on disk. A call whose request is known is a `RecordedCall` instead.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from cachecost.providers.usage import ToolUses, Usage

EVENTS = {
    "human": "a person's message",
    "compaction": "the history was compacted",
    "clear": "the history was cleared",
    "edit": "old tool results were removed (micro-compaction)",
    "model": "another model",
    "client": "another version of the client",
    "error": "an API error",
    "fork": "another call continued from the same one",
    "tools": "an MCP server or the list of tools changed",
    "system": "the system prompt changed",
    "history": "earlier messages changed",
    "agents": "the list of agents or skills changed",
    "effort": "another effort level",
    "thinking": "thinking was switched",
    "resume": "the session was resumed",
    "date": "the date changed",
    "images": "the first image",
    "tool_search": "a tool search",
    "skill": "a skill was loaded",
    "continued": "the session began in another file",
}
"""What may lie between a call and the one that it continues, and its words."""


class BilledCall(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """One call and its bill. Calls of one file refer to each other by `number`.

    `start` is when the request began, `end` when its answer was complete, in seconds since the epoch (None: unknown).
    `tokens` are input, read, 5m write, 1h write and output, as billed. `before` is the number of the call that this
    one continues (0: none), `events` which of `EVENTS` lie between the two, `blocks` the number of content blocks, and
    `new_chars` the characters of content that the request has and the one before did not. `modes` change the price
    ("batch", "fast", "us" …: tiers and region, as `CallTerms.modes`). `extra` are passes that the usage leaves out and
    that are charged: (model, tokens) of each. `miss_reason` is the API's `diagnostics.cache_miss_reason`.
    """

    number: int
    line: int
    model: str
    tokens: tuple[int, int, int, int, int]
    start: float | None = None
    end: float | None = None
    before: int = 0
    events: tuple[str, ...] = ()
    agent: str = ""
    session: str = ""
    id: str = ""
    version: str = ""
    modes: tuple[str, ...] = ()
    blocks: int = 0
    new_chars: int = 0
    has_thinking: bool = False
    is_summed: bool = False
    """Whether the usage sums several passes (server tools), so that its read and write are no length of a prefix."""
    miss_reason: str = ""
    missed_tokens: int = 0
    host: str = ""
    extra: tuple[tuple[str, tuple[int, int, int, int, int]], ...] = ()
    answered: float | None = None
    """When the answer began: from then on what the call wrote can be read (None: unknown)."""
    agent_type: str = ""
    """What kind of sub-agent made the call; agents of one type share their static prefix."""
    is_output_partial: bool = False
    """Whether the output tokens were recorded before the answer was complete: the call was billed at least these."""
    answer_bytes: int = 0
    """Of a partial output: the length of what the record has of the answer, in UTF-8."""
    tool_uses: ToolUses = ()
    charged_usd: Decimal | None = None
    """These two are as those of a usage."""

    @property
    def usage(self) -> Usage:
        return Usage(*self.tokens, self.tool_uses, self.charged_usd)

    @property
    def read(self) -> int:
        return self.tokens[1]

    @property
    def written(self) -> int:
        return self.tokens[2] + self.tokens[3]

    @property
    def cached(self) -> int:
        """Tokens of the prefix that is cached after this call: those read and those written."""
        tokens = self.tokens
        return tokens[1] + tokens[2] + tokens[3]

    @property
    def total_input(self) -> int:
        tokens = self.tokens
        return tokens[0] + tokens[1] + tokens[2] + tokens[3]


class SessionFile(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """The calls of one file, in the order of their first lines, and what the file says of them all.

    `client` is the agent that wrote the file ("claude-code", "codex" …), `project` the folder it worked in. `damaged`
    are (line, reason) of lines that could not be read; the other lines are counted all the same. A note on a line
    begins with ":" and its number.
    """

    path: str
    client: str
    project: str = ""
    calls: list[BilledCall] = []
    damaged: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    has_requests: bool = False
    """Whether the requests are known too, so that their content says what was written again."""
    client_sums: dict[str, tuple[int, int, int, int, int]] = {}
    """What the client counted for the session, by model: input, read, 5m write, 1h write, output. Calls that it writes
    into no transcript are in it."""
