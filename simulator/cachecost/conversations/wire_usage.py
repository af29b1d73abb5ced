"""The `usage` object of the Messages API -> our `Usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachecost.base.limits import MOST_TOKENS, is_tokens
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage

if TYPE_CHECKING:
    from cachecost.conversations.calls import Iteration

NOTHING: dict[str, Any] = {}


def parse_usage(value: Any, path: str) -> Usage:
    """A wire `usage` object. Creation that its 5m/1h split leaves out is 5m. Raises NotAMessage."""
    if not isinstance(value, dict):
        raise NotAMessage(path, "a usage object", value)
    split = value.get("cache_creation") or NOTHING
    written = _tokens(value, "cache_creation_input_tokens", path)
    hour = _tokens(split, "ephemeral_1h_input_tokens", f"{path}.cache_creation")
    five = _tokens(split, "ephemeral_5m_input_tokens", f"{path}.cache_creation")
    return Usage(
        _tokens(value, "input_tokens", path),
        _tokens(value, "cache_read_input_tokens", path),
        max(five, written - hour),
        hour,
        _tokens(value, "output_tokens", path),
    )


def _tokens(value: Any, name: str, path: str) -> int:
    found = value.get(name) if type(value) is dict else value
    if type(found) is int and 0 <= found <= MOST_TOKENS:
        return found
    if found is None:
        return 0
    if not is_tokens(found):
        raise NotAMessage(f"{path}.{name}", "a whole number of tokens", found)
    return found


def parse_iterations(usage: Any, path: str) -> tuple[Iteration, ...]:
    from cachecost.conversations.calls import Iteration

    passes = usage.get("iterations") if isinstance(usage, dict) else None
    if not isinstance(passes, list) or not all(isinstance(one, dict) for one in passes):
        return ()
    return tuple(
        Iteration(
            str(one.get("type") or "message"), parse_usage(one, f"{path}.iterations.{n}"), str(one.get("model") or "")
        )
        for n, one in enumerate(passes)
    )
