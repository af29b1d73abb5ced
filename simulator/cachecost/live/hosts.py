"""Under which names a server on this machine answers.

A page of another site may reach loopback under a name of its own (DNS rebinding); the browser then takes the server for
that site, and lets the page read its answers. Its name is in the Host header.
"""

from __future__ import annotations

import json

from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost")
ENCODING = "latin-1"


def header_values(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, whose `name` is in lower case."""
    return [value.decode(ENCODING) for key, value in scope["headers"] if key == name]


def is_loopback(scope: Scope, port: int | None = None) -> bool:
    """Whether the request names this machine, once, and `port` (None: any, as behind a tunnel)."""
    hosts = header_values(scope, b"host")
    if len(hosts) != 1:
        return False
    name, _, number = hosts[0].lower().partition(":")
    return name in NAMES and (number == str(port) if port is not None else not number or number.isdecimal())


class LoopbackHosts:
    """Passes requests on that name this machine; others are answered with status 421."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_loopback(scope):
            await self._app(scope, receive, send)
            return
        message = f"host: expected {' or '.join(NAMES)}, as this server answers no other site"
        error = {"type": "invalid_request_error", "message": message}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 421, "headers": headers})
        await send({"type": "http.response.body", "body": body})
