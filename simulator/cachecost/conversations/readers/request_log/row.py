"""A line of a request log whose values are still bytes, and what each of them means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec

from cachecost.base.limits import MOST_NUMBER, is_number, is_tokens
from cachecost.base.times import day_of
from cachecost.conversations.known_lengths import KnownLengths, parse_lengths
from cachecost.conversations.start_times import parse_time
from cachecost.prompts.exact_json import load
from cachecost.prompts.intake import ABSENT, RawBody
from cachecost.prompts.wire import NotAMessage, content_blocks

PASS_TYPES = re.compile(rb'_tool_result"|"compaction"')
"""In every answer that makes its call several passes: types of blocks that a server tool or the API put in."""
INTERLEAVED = b"interleaved-thinking"
"""The beta that adds tokens to a prompt (`tokens/hidden.toml`)."""
EXPECTED = {str: "a string", int: "a whole number"}


class RawRow(msgspec.Struct):
    """A line of the log. All methods raise NotAMessage with the path of what is wrong."""

    request: RawBody
    timestamp: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT
    response: msgspec.Raw = ABSENT
    response_content: msgspec.Raw = ABSENT
    first_token_s: msgspec.Raw = ABSENT
    host: msgspec.Raw = ABSENT
    workspace: msgspec.Raw = ABSENT
    session: msgspec.Raw = ABSENT
    status: msgspec.Raw = ABSENT
    service: msgspec.Raw = ABSENT
    commit_date: msgspec.Raw = ABSENT
    source: msgspec.Raw = ABSENT
    url: msgspec.Raw = ABSENT
    anthropic_beta: msgspec.Raw = ABSENT
    lengths: msgspec.Raw = ABSENT
    most_read: msgspec.Raw = ABSENT

    def parse(self, name: str, kind: Any = str) -> Any:
        """The value of a field; None where it is absent or null."""
        data = bytes(getattr(self, name))
        if data == b"null":
            return None
        value = load(data, name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise NotAMessage(name, EXPECTED.get(kind, "a number"), value)
        return value

    def complete_body(self) -> str | None:
        """Put betas, and the model of a Bedrock URL, into the body. Returns the host that the URL names.

        A model in the body stays: the URL then tells the host alone.
        """
        body = self.request
        if bytes(body.betas) == bytes(body.anthropic_beta) == b"null" and INTERLEAVED in bytes(self.anthropic_beta):
            body.anthropic_beta = self.anthropic_beta
        if bytes(self.url) == b"null":
            return None
        from cachecost.conversations.readers.http.routes import Route, route_of
        from cachecost.providers.hosts import parse_model_name

        route = route_of("POST", self.parse("url"))
        if not isinstance(route, Route):
            return None
        if not route.model or bytes(body.model) not in (b"null", b'""'):
            named = load(bytes(body.model), "request.model")
            return route.host_for(named if isinstance(named, str) else "")
        model, prefix = parse_model_name(route.model, route.host or "")
        body.model = msgspec.Raw(msgspec.json.encode(model))
        return route.host_for(model, prefix)

    def commit_day(self) -> date | None:
        """The day by which the call was recorded."""
        commit_date = self.parse("commit_date")
        return None if commit_date is None else day_of(parse_time(commit_date))

    def wait_s(self) -> float:
        """Seconds until the first token."""
        value = self.parse("first_token_s", (int, float)) or 0.0
        if not is_number(value):
            raise NotAMessage("first_token_s", f"seconds, a number from 0 to {MOST_NUMBER:,}", value)
        return float(value)

    def known_lengths(self) -> KnownLengths | None:
        """The lengths that the line states."""
        return None if bytes(self.lengths) == b"null" else parse_lengths(load(bytes(self.lengths), "lengths"))

    def read_limit(self) -> int | None:
        """The tokens that the call can read at most."""
        limit: int | None = self.parse("most_read", int)
        if limit is not None and not is_tokens(limit):
            raise NotAMessage("most_read", "a whole number of tokens", limit)
        return limit

    def source_name(self) -> str:
        source = load(bytes(self.source), "source")
        return source if isinstance(source, str) else ""

    def usage_and_path(self) -> tuple[Any, str]:
        """The usage object, None if there is none, and its path."""
        if bytes(self.usage) != b"null":
            return load(bytes(self.usage), "usage"), "usage"
        if bytes(self.response) == b"null":
            return None, "usage"
        response = load(bytes(self.response), "response")
        return (response.get("usage") if isinstance(response, dict) else None), "response.usage"

    @property
    def may_have_passes(self) -> bool:
        """Whether the answer may make its call several passes."""
        return any(PASS_TYPES.search(part) for part in (self.response, self.response_content))

    def answer_id(self) -> str:
        try:
            found = _decode_answer(self.response).id
        except msgspec.DecodeError:
            return ""
        return found if isinstance(found, str) else ""

    def answer(self) -> list[Mapping[str, Any]]:
        """The wire objects of the answer; none if what was logged as an answer is no list of blocks."""
        content = load(bytes(self.response_content), "response_content")
        if content is None:
            response = load(bytes(self.response), "response")
            content = response.get("content") if isinstance(response, Mapping) else None
        try:
            return content_blocks(content or [], "response.content")
        except NotAMessage:
            return []


class _Answer(msgspec.Struct):
    id: Any = None


_decode_answer = msgspec.json.Decoder(_Answer).decode
