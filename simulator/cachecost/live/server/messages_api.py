"""Anthropic's Messages API, which is also what the server works with: nothing is converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.live.keys import workspace_of
from cachecost.live.server.answering import events_of
from cachecost.live.server.model import ApiError, ResolvedCall, body_fault, error_body, invalid, of_status
from cachecost.live.server.served_api import EVENTS, ReceivedCall, ServedApi, ServedResponse, as_bytes
from cachecost.live.server.state import ServerState

VERSIONS = ("2023-06-01", "2026-10-21")
VERSION = "anthropic-version"


class MessagesApi(ServedApi):
    """See `ServedApi`."""

    name = None
    maker = "anthropic"
    id_prefix = "msg_"
    stream_type = EVENTS

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        """No key, or no known version. Any key is valid."""
        if not workspace_of(headers):
            return of_status(401, "x-api-key header is required")
        version = headers.get(VERSION)
        if not version:
            return invalid(f"{VERSION}: header is required")
        if version not in VERSIONS:
            return invalid(f'{VERSION}: "{version}" is not a valid version')
        return None

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        return served.threads.resolve(arrived.workspace, arrived.body, start)

    def fault(self, arrived: ReceivedCall, resolved: ResolvedCall) -> ApiError | None:
        return body_fault(resolved.body, arrived.version)

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        assert not isinstance(answer.message, ApiError)
        served.threads.keep(arrived.workspace, resolved, answer.message)

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        return error_body(refused, request_id)

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        assert not isinstance(answer.message, ApiError)
        return answer.message

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        return as_bytes(events_of(self.whole(answer)))


MESSAGES = MessagesApi()
