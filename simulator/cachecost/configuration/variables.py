"""The environment variables that cachecost reads."""

from __future__ import annotations

from typing import NamedTuple


class Variable(NamedTuple):
    """A variable: what it does, and what holds without it."""

    name: str
    purpose: str
    default: str


VARIABLES = (
    Variable("CACHECOST_CONFIG", "Settings file to read instead of the one found; off reads none.", "the nearest"),
    Variable(
        "CACHECOST_TOKENS", "Source of token counts that `auto` stands for; wins over the file's `tokens`.", "auto"
    ),
    Variable(
        "CACHECOST_STORE",
        "Folder of what was read of sessions and of token counts; off: nothing is kept.",
        "in the user's cache",
    ),
    Variable("CACHECOST_STATUSLINE", "The line of `statusline`, as its `--format`.", "as `--format`"),
    Variable("CACHECOST_HOOK_LEAST_USD", "`hook` is silent below so many dollars.", "as `--least-usd`"),
    Variable("CACHECOST_HOOK_LEAST_TOKENS", "`hook` is silent below so many tokens.", "as `--least-tokens`"),
    Variable("CACHECOST_TODAY", "The day that is today for retired models and changed prices.", "the clock's"),
    Variable("CACHECOST_MAX_LINE", "Most bytes of a line of a log or of a body.", "64M"),
    Variable("CACHECOST_MAX_FILE", "Most bytes of a recording that is one JSON or YAML value.", "1G"),
    Variable("CACHECOST_MAX_UNPACKED", "Most bytes of a gzip file when unpacked, and of a pipe.", "4G"),
    Variable("CACHECOST_MAX_BLOCKS", "Most blocks of a generated conversation.", "1000000"),
    Variable("CACHECOST_MAX_CELLS", "Most cells of a sweep.", "10000000"),
    Variable("CACHECOST_DEBUG", "If set, an internal error prints its traceback.", "not set"),
)
